"""Find the columns of a table that are the ends of the edges and the weight, by names that all formats share.

If the names of two columns are a known pair, these are source and target, wherever they are in the table. Without a
pair, two columns are source and target in their order, and more are refused: a wrong guess would be another graph.
Case is ignored, and so are common prefixes and suffixes: `src`, `SRC_ID` and `srcNode` are the same name.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mgraph.errors import InputError, UsageError
from mgraph.io.checks import as_column

# Names of the source and names of the target; any name of a line pairs with any other of the same line.
PAIRS = (
    ("source sources src from origin orig", "target targets tgt trg dst dest destination to"),
    ("u", "v"),
    ("i", "j"),
    ("row", "col column"),
    ("node1 nodeid1 vertex1 id1 n1 v1", "node2 nodeid2 vertex2 id2 n2 v2"),
    ("start_id start_node start_node_id start_vertex", "end_id end_node end_node_id end_vertex"),
    ("head", "tail"),  # in graph theory an arc leads from tail to head, in a knowledge graph from head to tail
)
HEAD_AND_TAIL = len(PAIRS) - 1
BEFORE = ("", "id_", "node_", "vertex_")
AFTER = ("", "_id", "_node", "_node_id", "_vertex", "_vertex_id")
WEIGHT_NAMES = ("weight", "weights", "w")
# Columns of row numbers, as pandas writes them in text, reads them back, and writes them in Parquet.
INDEX_NAME = re.compile(r"|unnamed: \d+|__index_level_\d+__")
MAX_LISTED = 12  # names of columns in an error
CHOOSE_ENDS = "give the columns as source= and target= (--source-column, --target-column)"


@dataclass(frozen=True)
class Columns:
    """The columns that the user gives, by names or numbers from 0; a weight of False means none.

    With `ends_only` weights are not used: nothing is asked about them where names or the user tell the ends. Of unnamed
    columns the first two need not be the ends if there are more.
    """

    source: str | int | None = None
    target: str | int | None = None
    weight: str | int | bool | None = None
    ends_only: bool = False

    @property
    def given(self) -> tuple[str | int | None, ...]:
        """All three."""
        return self.source, self.target, self.weight


NO_COLUMNS = Columns()


def _known_names() -> dict[str, tuple[int, int]]:
    """Return name -> (pair, 0 for its source or 1 for its target), with all prefixes and suffixes."""
    known = {}
    spellings = [(k, end, word) for k, pair in enumerate(PAIRS) for end in (0, 1) for word in pair[end].split()]
    for (k, end, word), before, after in itertools.product(spellings, BEFORE, AFTER):
        name = before + word + after
        known[name] = k, end
        if len(word) > 1:  # but uid is no u_id
            known[name.replace("_", "")] = k, end
    return known


_KNOWN = _known_names()


def find_ends(path: object, names: Sequence[str], directed: bool) -> tuple[int, int]:
    """Return the columns of the sources and of the targets, or refuse the table."""
    plain = [name.strip().lower() for name in names]
    found = _roles(names)
    pairs = _whole_pairs(found)
    candidates = [k for pair in pairs for end in (0, 1) for k in found[pair, end]]
    _refuse_repeated(path, names, candidates)
    if len(candidates) > 2:
        raise InputError(
            f"{path} has several columns that may be ends of edges ({listed(names[k] for k in sorted(candidates))}): "
            f"{CHOOSE_ENDS}"
        )
    if pairs == [HEAD_AND_TAIL] and directed:
        raise InputError(
            f"{path}: a directed edge goes from tail to head or from head to tail, depending on the field: "
            f"{CHOOSE_ENDS}"
        )
    if candidates:
        return candidates[0], candidates[1]
    if len(names) == 2:
        _refuse_repeated(path, names, (0, 1))
    # A column known as a target but first, or as a source but second, contradicts the order of two columns. A single
    # letter does not: v and w may be a pair.
    reverse = any(column != end for (_, end), of in found.items() for column in of if len(plain[column]) > 1)
    if len(names) != 2 or reverse or any(_is_index(name) or name in WEIGHT_NAMES[:2] for name in plain):
        raise InputError(
            f"{path} has the columns {listed(names)}, and no two of them are known as the ends of edges: {CHOOSE_ENDS}"
        )
    return 0, 1


def _refuse_repeated(path: object, names: Sequence[str], chosen: Iterable[int]) -> None:
    """Refuse columns that are chosen by a name if others have it too; those that are not read may have any."""
    plain = [name.strip().lower() for name in names]
    for k in chosen:
        if plain.count(plain[k]) > 1:
            raise InputError(f"{path} has two columns called {names[k]!r}: give each its own name")


def names_ends(fields: Sequence[str]) -> bool:
    """Return whether some of the fields are the names of a known pair."""
    return bool(_whole_pairs(_roles(fields)))


def find_columns(
    path: object, wanted: Columns, count: int, names: Sequence[str], directed: bool
) -> tuple[int, int, int]:
    """Return which of `count` columns are the source, the target and the weight, -1 for no weight.

    `names` is empty for unnamed columns, of which the first two are the ends.
    """
    source = wanted.source
    target = wanted.target
    if (source is None) != (target is None):
        raise UsageError(
            f"{path}: give both ends of the edges, source= and target= (--source-column, --target-column), or neither"
        )
    if source is None or target is None:
        ends = find_ends(path, names, directed) if names else (0, 1)
    else:
        ends = _column(path, source, count, names), _column(path, target, count, names)
        if ends[0] == ends[1]:
            raise UsageError(f"{path}: source and target are the same column, {source!r}")
    is_unused = wanted.ends_only and wanted.weight is None and (names or source is not None)
    return *ends, find_weight(path, False if is_unused else wanted.weight, count, names, ends)


def find_weight(
    path: object, weight: str | int | bool | None, count: int, names: Sequence[str], ends: tuple[int, int]
) -> int:
    """Return which of `count` columns is the weight, -1 for none.

    `names` is empty for unnamed columns. `weight` is a name, or a number from 0; None means a column called weight;
    False means none.
    """
    if weight is False:
        return -1
    if weight is None or weight is True:
        others = [k for k in range(count) if k not in ends and not (names and _is_index(names[k].strip().lower()))]
        usual = [k for k in others if names and names[k].strip().lower() in WEIGHT_NAMES]
        _refuse_repeated(path, names, usual)
        if len(usual) == 1:
            return usual[0]
        if not others and weight is None:
            return -1
        known = f" ({listed(names)})" if names else ""
        example = "NAME" if names else others[0] if others else 0
        say = f"weight={example} (--weight {example}), or " if others else ""
        raise UsageError(
            f"{path} has {count} columns{known}: say which is the weight, or that there is none: "
            f"{say}weight=False (--weight none)"
        )
    found = _column(path, weight, count, names, "weight")
    if found in ends:
        raise UsageError(
            f"{path} has no weight in column {weight}: columns {ends[0]} and {ends[1]} are the ends, "
            f"{count - 1} is the last"
        )
    return found


def _column(path: object, column: str | int, count: int, names: Sequence[str], what: str = "column") -> int:
    """Return the number of a column that the user names, or gives by a number from 0."""
    column = as_column(column, what)
    if isinstance(column, str):
        if names.count(column) > 1:
            raise InputError(f"{path} has two columns called {column!r}: give its number, or each its own name")
        if column in names:
            return list(names).index(column)
        try:
            number = int(column)
        except ValueError:
            known = f"only {listed(names)}" if names else "and the first line names none"
            raise UsageError(f"{path} has no column {column!r}, {known}") from None
    else:
        number = column
    if not 0 <= number < count:
        raise UsageError(f"{path} has no {what} in column {column}: {count - 1} is the last")
    return number


def listed(names: Iterable[str]) -> str:
    """Return column names for an error: at most MAX_LISTED of them, long ones cut."""
    shown = [repr(name[:40]) if not name.isprintable() or not name else name[:40] for name in names]
    more = f" and {len(shown) - MAX_LISTED} more" if len(shown) > MAX_LISTED else ""
    return ", ".join(shown[:MAX_LISTED]) + more


def _roles(names: Sequence[str]) -> dict[tuple[int, int], list[int]]:
    """Return (pair, end) -> the columns with a name of that end."""
    found: dict[tuple[int, int], list[int]] = {}
    for k, name in enumerate(names):
        normal = _normal(name)
        if role := _KNOWN.get(normal) or _KNOWN.get(normal.replace("_", "")):
            found.setdefault(role, []).append(k)
    return found


def _whole_pairs(found: dict[tuple[int, int], list[int]]) -> list[int]:
    """Return the pairs with columns for both ends."""
    return [pair for pair in range(len(PAIRS)) if (pair, 0) in found and (pair, 1) in found]


def _normal(name: str) -> str:
    """Return a name in snake case: FromNodeId becomes from_node_id."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\W_]+", "_", words.lower()).strip("_")


def _is_index(plain: str) -> bool:
    return INDEX_NAME.fullmatch(plain) is not None
