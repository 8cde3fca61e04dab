"""Draw dtypes that occur together, and the rows of one rank of a small graph."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from emulator.backend import SANITIZE
from hypothesis import strategies as st
from twins.case import Case, Unwritten

from mgraph.backends.numba_helpers import LIGHTEST_BITS
from mgraph.types import none_of, unreached_of, vertex_dtype


@dataclass(frozen=True)
class Types:
    """The dtypes of one module."""

    vertex: np.dtype
    weight: np.dtype
    dist: np.dtype

    def __repr__(self) -> str:
        return f"{self.vertex}-{self.weight}-{self.dist}"


def _types(*names: str) -> Types:
    return Types(*map(np.dtype, names))


TYPES = (
    _types("uint32", "float32", "float32"),
    _types("uint32", "uint8", "uint32"),
    _types("int64", "float64", "float64"),
)


def widths(*choices: Any) -> st.SearchStrategy:
    """Draw one of several widths; under sanitizers the first, because each one is compiled separately."""
    return st.sampled_from(choices[:1] if SANITIZE else choices)


types = widths(*TYPES)
# With the 16-bit distances of persistent multi-GPU searches.
types_found = widths(*TYPES, _types("uint32", "uint8", "uint16"))
vertex_types = widths(np.dtype(np.uint32), np.dtype(np.int64))
# Weights of kernels that only copy them.
weight_types = widths(np.dtype(np.float32), np.dtype(np.uint8)) | st.none()
seeds = st.integers(0, 2**16)
# The number of ranks, and the rank of the rows.
RANKS = st.sampled_from([(1, 0), (2, 1), (3, 1)])


def bits(flags: np.ndarray) -> np.ndarray:
    """Return flags as a bitmap of 32-bit words, with whole words at the end."""
    padded = np.resize(np.concatenate([flags, np.zeros(32, bool)]), -(-max(len(flags), 1) // 32) * 32)
    padded[len(flags) :] = False
    return np.packbits(padded, bitorder="little").view(np.uint32)


def some(random: np.random.Generator, n: int, share: float = 0.4) -> np.ndarray:
    """Return flags of which a share is set."""
    return random.random(n) < share


@dataclass
class DrawnRows:
    """CSR rows of `num_owned` vertices, states base .. base + num_owned - 1, of a graph of `num_states`."""

    random: np.random.Generator
    types: Types
    num_states: int
    base: int
    num_owned: int
    multiplier: int
    stride: int
    first: int
    indptr: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    def distances(self, reached: float = 0.7, most: int = 5) -> np.ndarray:
        """Return distances up to `most` (few of them make ties); some vertices are unreached."""
        dist = self.random.integers(0, most + 1, self.num_states).astype(self.types.dist)
        dist[~some(self.random, self.num_states, reached)] = unreached_of(self.types.dist)
        return dist

    def owned(self, share: float = 0.4) -> np.ndarray:
        """Return the states of some owned vertices, in any order."""
        chosen = np.flatnonzero(some(self.random, self.num_owned, share)) + self.base
        return self.random.permutation(chosen).astype(self.types.vertex)

    def offsets(self, frontier: np.ndarray) -> np.ndarray:
        """Return the prefix sums of the degrees of a frontier."""
        local = frontier.astype(np.int64) - self.base
        return np.concatenate([[0], np.cumsum(self.indptr[local + 1] - self.indptr[local])]).astype(np.int64)

    def lengthened(self, length: int) -> DrawnRows:
        """Return the same rows with one of them longer by `length` arcs."""
        row = int(self.random.integers(self.num_owned))
        extra = self.random.integers(0, self.num_states, length)
        begin = int(self.indptr[row])
        indptr = self.indptr + length * (np.arange(len(self.indptr)) > row)
        targets = np.insert(self.targets, begin, extra.astype(self.types.vertex))
        weights = np.insert(self.weights, begin, self.random.integers(0, 4, length).astype(self.types.weight))
        return dataclasses.replace(self, indptr=indptr, targets=targets, weights=weights)

    def lightest(self, scale: float) -> dict[str, np.ndarray]:
        """Return the lightest arcs of the rows by class of weight, as arguments of kernels."""
        row = np.repeat(np.arange(self.num_owned), np.diff(self.indptr))
        order = np.lexsort([(self.weights * scale).astype(np.int64), row])
        begin = self.indptr >> LIGHTEST_BITS
        place = np.arange(len(order)) - self.indptr[row]
        order = order[place < (begin[1:] - begin[:-1])[row]]
        return {"lightest_targets": self.targets[order], "lightest_weights": self.weights[order]}

    def no_vertices(self, n: int) -> np.ndarray:
        """Return n entries that are no vertex."""
        return np.full(n, none_of(self.types.vertex), self.types.vertex)


@st.composite
def rows(
    draw: st.DrawFn,
    types: st.SearchStrategy[Types] = types,
    ranks: st.SearchStrategy[tuple[int, int]] = RANKS,
) -> DrawnRows:
    """Draw the rows of one rank; some are empty, a few are long."""
    kinds = draw(types)
    num_ranks, rank = draw(ranks)
    stride = 64 * draw(st.integers(1, 3))
    random = np.random.default_rng(draw(seeds))
    num_owned = draw(st.integers(1, stride))
    degrees = random.integers(0, 5, num_owned)
    degrees[random.random(num_owned) < 0.15] = 75  # longer than a warp, and not a multiple
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    num_arcs = int(indptr[-1])
    return DrawnRows(
        random,
        kinds,
        num_states=stride * num_ranks,
        base=rank * stride,
        num_owned=num_owned,
        multiplier=num_ranks if draw(st.booleans()) else 1,
        stride=stride,
        first=rank,
        indptr=indptr,
        targets=random.integers(0, stride * num_ranks, num_arcs).astype(kinds.vertex),
        weights=random.integers(0, 4, num_arcs).astype(kinds.weight),
    )


def edges(
    draw: st.DrawFn, shape: dict, *, largest: int, num_edges: int, may_miss: bool = False, slots: int = 1
) -> Case:
    """Return the arguments of a generator's kernel for some consecutive edges."""
    vertex = vertex_dtype(largest)
    weight = draw(weight_types)
    n = draw(st.integers(1, min(num_edges, 150)))
    first = draw(st.integers(0, num_edges - n))
    args = {"lo": first, "hi": first + n, "first": first, **shape, "max_weight": draw(st.sampled_from([1, 7, 100]))}
    if may_miss:
        args["none"] = none_of(vertex)
    args |= {"sources": Unwritten(n * slots, vertex), "targets": Unwritten(n * slots, vertex)}
    return Case({**args, "weights": None if weight is None else Unwritten(n * slots, weight)})
