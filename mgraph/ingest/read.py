"""Read every piece of a table once, on one rank, check it, and keep its edges for the passes of the build.

    in rounds:  each rank reads its pieces, several at a time: ids are checked and narrowed
    then:       the ranks agree on the kind of ids, their extremes, the dtype of weights and the number of edges
    last:       ids are numbers 0..n-1 already, or labels, which are mapped to such numbers

If pieces are wrong, all ranks fail with the error of the first wrong piece, whatever the number of ranks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.cpu import available_cores
from mgraph.backends.kernel import inline
from mgraph.comm.base import Communicator
from mgraph.edges import EdgePiece, EdgeTable
from mgraph.errors import CommAborted, InputError
from mgraph.formatting import counted
from mgraph.ingest.kept import KeptEdges, KeptPiece
from mgraph.labels.strings import Strings
from mgraph.types import LARGE_VERTEX, SMALL_VERTEX, Array, none_of

if TYPE_CHECKING:
    LabelTable = Any

# Pieces that each rank reads before the ranks agree whether one of them is wrong.
ROUND_PIECES = 64
INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class _Read:
    """A piece that was read, and what the ranks have to agree on."""

    kept: KeptPiece
    vertices: Array | None
    is_text: bool  # whether its ids are strings
    low: int  # extremes of the ids, less the base; INT64.max and INT64.min if there are none
    high: int
    min_weight: int
    max_weight: int
    doubt: InputError | None


def read_table(table: EdgeTable, backend: Backend, comm: Communicator) -> tuple[KeptEdges, LabelTable | None]:
    """Read this rank's pieces of a table.

    Return its edges as a source for the build, and its part of the labels, None if ids are not mapped. Every rank calls
    it with the same table.
    """
    found: dict[int, _Read] = {}
    threads = getattr(backend, "threads", None) or available_cores()
    with ThreadPoolExecutor(threads) as pool:
        for begin in range(0, table.num_pieces, ROUND_PIECES * comm.size):
            end = min(begin + ROUND_PIECES * comm.size, table.num_pieces)
            failure = _read_round(table, backend, range(begin + comm.rank, end, comm.size), pool, threads, found)
            _raise_first(failure, comm)
    pieces = [found[k] for k in sorted(found)]
    low, min_weight, high, max_weight, *kinds = _agree(pieces, comm)
    num_edges, num_vertices = comm.sum(
        sum(len(piece.kept) for piece in pieces),
        sum(0 if piece.vertices is None else len(piece.vertices) for piece in pieces),
    )
    is_text, is_integer, whole, single, double = (bool(kind) for kind in kinds)
    if not double and not single:
        doubts = ((k, found[k].doubt) for k in sorted(found))
        _raise_first(next(((k, doubt) for k, doubt in doubts if doubt is not None), None), comm)
    _check_declared(table, num_edges)
    if is_text and is_integer:
        raise InputError(
            f"{table.name}: some ids are integers, and others strings: labels='string' reads all as strings"
        )
    if is_text or _are_labels(table, low, high, num_edges + num_vertices, pieces, backend, comm):
        raise _unread(table, "strings" if is_text else "negative, or have large gaps")
    n = table.num_vertices
    edges = KeptEdges(
        table.name,
        table.directed,
        max(high + 1, 0) if n is None else n,
        _weights_dtype(min_weight, max_weight, whole, single, double) if table.has_weights else None,
        num_edges,
        [piece.kept for piece in pieces],
        comm.rank,
        comm.size,
    )
    return edges, None


def _read_round(
    table: EdgeTable,
    backend: Backend,
    own: range,
    pool: ThreadPoolExecutor,
    threads: int,
    found: dict[int, _Read],
) -> tuple[int, Exception] | None:
    """Read some pieces into `found`, in their order; return the first that is wrong, with its error."""
    numbers = iter(own)
    failures: dict[int, Exception] = {}
    taking = threading.Lock()

    def work() -> None:
        while not failures:
            with taking:
                k = next(numbers, None)
            if k is None:
                return
            try:
                if backend.stopped is not None:
                    raise CommAborted(backend.stopped)
                found[k] = _keep(table, table.piece(k, backend))
            except Exception as error:
                failures[k] = error

    for task in [pool.submit(work) for _ in range(min(threads, len(own)))]:
        task.result()
    # A piece before the first that failed was taken earlier, and is read: the first failure is the same each time.
    return min(failures.items(), key=lambda failure: failure[0], default=None)


def _raise_first(failure: tuple[int, Exception] | None, comm: Communicator) -> None:
    """Raise the failure of the first of all ranks' pieces on every rank."""
    first = int(comm.allreduce(np.array([INT64.max if failure is None else failure[0]], np.int64), "min")[0])
    if first == INT64.max:
        return
    if failure is not None and failure[0] == first:
        raise failure[1]
    comm.barrier()  # until the rank with that piece has raised its error, which aborts this verb
    raise AssertionError("a rank has lost the error of its piece")


def _keep(table: EdgeTable, piece: EdgePiece) -> _Read:
    """Check the ids of a piece and narrow them; find the extremes of ids and weights."""
    if isinstance(piece.sources, Strings):
        raise _unread(table, "strings")
    whole = [] if piece.weights is None or piece.weights.dtype.kind == "f" else [piece.weights]
    min_weight, max_weight = _extremes(whole)
    ends = [ids for ids in (piece.sources, piece.targets, piece.vertices) if ids is not None]
    low, high = _extremes(ends)
    if low <= high:
        _check_ids(table, piece, low, high)
        low -= table.base
        high -= table.base
    sources, targets = (_narrowed(ids, table.base, low, high) for ids in (piece.sources, piece.targets))
    vertices = None if piece.vertices is None else _narrowed(piece.vertices, table.base, low, high)
    kept = KeptPiece(sources, targets, piece.weights)
    return _Read(kept, vertices, False, low, high, min_weight, max_weight, piece.doubt)


def _extremes(arrays: list[Array]) -> tuple[int, int]:
    """Return the smallest and the largest of all values, and (INT64.max, INT64.min) if there are none."""
    filled = [array for array in arrays if len(array)]
    low = min((int(array.min()) for array in filled), default=INT64.max)
    return low, max((int(array.max()) for array in filled), default=INT64.min)


def _narrowed(ids: Array, base: int, low: int, high: int) -> Array:
    dtype = SMALL_VERTEX if low >= 0 and high < none_of(SMALL_VERTEX) else LARGE_VERTEX
    if base and len(ids):
        ids = ids.astype(LARGE_VERTEX, copy=False) - base
    return ids.astype(dtype, copy=False)


def _check_ids(table: EdgeTable, piece: EdgePiece, low: int, high: int) -> None:
    """Refuse ids that are no vertices, naming the first."""
    base = table.base
    n = table.num_vertices
    may_map = n is None and table.labels is not False
    if low < base and not (may_map and (base == 0 or table.labels != "auto")):
        which, ids, i = _first(piece, lambda ids: ids < base)
        problem = f"vertex {ids[i]} is negative: " if ids[i] < 0 else f"vertex {ids[i]} is below the first: "
        raise InputError(f"{which}: {problem}vertices are numbered from {base}")
    if n is not None and high - base >= n:
        which, ids, i = _first(piece, lambda ids: ids > n - 1 + base)
        raise InputError(f"{which}: vertex {ids[i]} is not in {base}..{n - 1 + base}")
    if high > INT64.max - (not may_map):
        which, ids, i = _first(piece, lambda ids: ids > INT64.max - (not may_map))
        raise InputError(f"{which}: vertex {ids[i]} is beyond 63 bits")


def _first(piece: EdgePiece, is_bad: Callable[[Array], Array]) -> tuple[str, Array, int]:
    """Return where the first bad id of a piece is, the column that has it, and its index."""
    bad = [(int(is_bad(ids).argmax()), ids) for ids in (piece.sources, piece.targets) if is_bad(ids).any()]
    if bad:
        i, ids = min(bad, key=lambda found: found[0])
        return piece.where(i), ids, i
    assert piece.vertices is not None
    i = int(is_bad(piece.vertices).argmax())
    return piece.where(0), piece.vertices, i


def _agree(pieces: list[_Read], comm: Communicator) -> Iterator[int]:
    """Return over all ranks the extremes of ids and weights, and whether there are kinds of ids and weights."""
    dtypes = [None if piece.kept.weights is None else piece.kept.weights.dtype for piece in pieces]
    kinds = (
        any(piece.is_text for piece in pieces),
        any(not piece.is_text and piece.low <= piece.high for piece in pieces),
        any(dtype is not None and dtype.kind != "f" for dtype in dtypes),
        any(dtype == np.float32 for dtype in dtypes),
        any(piece.doubt is None and dtype == np.float64 for piece, dtype in zip(pieces, dtypes, strict=True)),
    )
    lows = [min((part(piece) for piece in pieces), default=INT64.max) for part in (_low, _min_weight)]
    highs = [max((part(piece) for piece in pieces), default=INT64.min) for part in (_high, _max_weight)]
    yield from comm.allreduce(np.array(lows, np.int64), "min").tolist()
    yield from comm.allreduce(np.array([*highs, *kinds], np.int64), "max").tolist()


def _low(piece: _Read) -> int:
    return piece.low


def _high(piece: _Read) -> int:
    return piece.high


def _min_weight(piece: _Read) -> int:
    return piece.min_weight


def _max_weight(piece: _Read) -> int:
    return piece.max_weight


def _weights_dtype(low: int, high: int, whole: bool, single: bool, double: bool) -> np.dtype:
    """Return the dtype that holds the weights of all pieces."""
    if double or (single and whole):
        return np.dtype(np.float64)
    if single:
        return np.dtype(np.float32)
    if low > high:
        low = high = 0
    names = ("uint8", "uint16", "uint32", "int64") if low >= 0 else ("int32", "int64")
    return next(np.dtype(name) for name in names if np.iinfo(name).min <= low and high <= np.iinfo(name).max)


def _check_declared(table: EdgeTable, num_edges: int) -> None:
    """Refuse a number of edges that differs from the one that the input declares."""
    declared = getattr(table, "declared_edges", None)
    if declared is not None and num_edges != declared:
        path = getattr(table, "path", table.name)
        raise InputError(f"{path} has {counted(num_edges, 'edge')} where its header says {declared:,}: truncated?")


def _unread(table: EdgeTable, what: str) -> InputError:
    return InputError(f"{table.name}: its ids are {what}, and such labels are not read yet")


def _are_labels(
    table: EdgeTable,
    low: int,
    high: int,
    num_labels: int,
    pieces: list[_Read],
    backend: Backend,
    comm: Communicator,
) -> bool:
    """Return whether integer ids are mapped: by request, or because one is negative or they have large gaps."""
    if table.labels != "auto" or table.num_vertices is not None or low > high:
        return table.labels not in ("auto", False)
    # Of m edges the distinct ends are 2 m at most.
    return low < 0 or high + 1 > 4 * num_labels or high + 1 > 2 * _count_distinct(high + 1, pieces, comm)


def _count_distinct(num_ids: int, pieces: list[_Read], comm: Communicator) -> int:
    """Return how many of the ids below `num_ids` occur, or any number that is at least half of them."""
    seen = np.zeros(-(-num_ids // 8) * 8, np.uint8)
    least = 0
    for i, piece in enumerate(pieces):
        for ids in (piece.kept.sources, piece.kept.targets, piece.vertices):
            if ids is not None:
                mark(_on_host(ids), seen)
        # Few pieces have half of the ids of most graphs: look after 1, 2, 4, ... pieces.
        if (i + 1) & i == 0 or i + 1 == len(pieces):
            least = int(np.count_nonzero(seen))
            if 2 * least >= num_ids:
                break
    if comm.size == 1 or comm.any(2 * least >= num_ids):
        return least if comm.size == 1 else num_ids
    # Each rank adds up the bits of its range of ids.
    bits = np.packbits(seen)
    parts = [np.ascontiguousarray(part) for part in np.array_split(bits, comm.size)]
    received = comm.alltoallv(parts)
    return comm.sum(int(np.unpackbits(np.bitwise_or.reduce(received)).sum()))[0]


def _on_host(ids: Array) -> np.ndarray:
    return ids if isinstance(ids, np.ndarray) else ids.get()


@inline
def mark(ids, seen):
    """Set seen[id] for every id."""
    for i in range(len(ids)):
        seen[ids[i]] = 1
