"""Estimate sizes of an input from some places in it, for the memory plan."""

from __future__ import annotations

import functools
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from mgraph.labels.strings import Strings
from mgraph.types import Array

PLACES = 5
# Places from which strings are taken, of all files together.
LABEL_PLACES = 8
# Rows that are read at a place, and the parts in which they are compared.
ROWS = 4096
PARTS = 4


@dataclass(frozen=True)
class LabelSample:
    """Strings in some places of a table: the distinct ones of each part, and the edges and bytes of all."""

    parts: tuple[frozenset[bytes], ...]
    num_edges: int
    num_bytes: int

    @classmethod
    def of(cls, places: Iterable[Sequence[Strings]]) -> LabelSample:
        """Return the sample of both ends of the edges at some places."""
        parts = []
        edges = num_bytes = 0
        for ends in places:
            texts = [end.encoded() for end in ends]
            count = len(texts[0])
            edges += count
            num_bytes += sum(len(text) for end in texts for text in end)
            cuts = [count * k // PARTS for k in range(PARTS + 1)]
            parts += [frozenset(text for end in texts for text in end[lo:hi]) for lo, hi in pairwise(cuts)]
        return cls(tuple(parts), edges, num_bytes)

    @classmethod
    def merged(cls, samples: Iterable[LabelSample]) -> LabelSample:
        """Return the samples of several tables as one."""
        parts, edges, num_bytes = zip(*((one.parts, one.num_edges, one.num_bytes) for one in samples), strict=True)
        return cls(tuple(chain.from_iterable(parts)), sum(edges), sum(num_bytes))

    def text_bytes(self, num_edges: int) -> int:
        """Return the bytes of the strings of this many edges."""
        return self.num_bytes * num_edges // max(self.num_edges, 1)

    def distinct(self, num_edges: int) -> tuple[int, int]:
        """Return how many distinct strings this many edges have: as expected, and at most.

        Expected by Chao's estimator from those in one part and in two parts of the sample, which is low where a few
        vertices have most edges; at most, if strings in one place are in no other.
        """
        counts = Counter(chain.from_iterable(self.parts))
        if self.num_edges >= num_edges or not counts:
            return len(counts), len(counts)
        in_parts = Counter(counts.values())
        # No string in two parts tells of none that is in all of them: at most as many as there can be.
        unseen = in_parts[1] * (in_parts[1] - 1) / max(2 * in_parts[2], 1) * (1 - 1 / len(self.parts))
        most = len(counts) * num_edges // self.num_edges
        return min(len(counts) + int(unseen), most), most


def sample_of_labels(table: object, most: int = LABEL_PLACES) -> LabelSample | None:
    """Return a sample of a table's labels in at most `most` places; None if they are numbers, or are not sampled."""
    sample = getattr(table, "label_sample", None)
    return None if sample is None else sample(most)


def places(last: int, most: int = PLACES) -> list[int]:
    """Return at most `most` numbers of 0 .. last, evenly spread, with the first and the last; one is the middle."""
    return sorted({last * k // (most - 1) for k in range(most)}) if most > 1 else [last // 2]


def largest_of(ends: list[Array | Strings]) -> int:
    """Return the largest id, -1 if there is none or if the ends are strings."""
    return max((int(end.max()) for end in ends if len(end) and not isinstance(end, Strings)), default=-1)


def kept_with_table(find: Callable[..., Any]) -> Callable[..., Any]:
    """Cache what a function finds in a table, for the same table and arguments.

    The table is referenced weakly: it keeps a decompressed copy of its file open.
    """
    by_table: weakref.WeakKeyDictionary[Any, dict[tuple[Hashable, ...], Any]] = weakref.WeakKeyDictionary()

    @functools.wraps(find)
    def found(table: Any, *args: Hashable) -> Any:
        values = by_table.setdefault(table, {})
        if args not in values:
            values[args] = find(table, *args)
        return values[args]

    return found
