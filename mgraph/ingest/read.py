"""Read every piece of a table once, on one rank, check it, and keep its edges for the passes of the build.

    in rounds:  each rank reads its pieces, several at a time: ids are checked and narrowed, strings encoded
    then:       the ranks agree on the kind of ids, their extremes, the dtype of weights and the number of edges
    last:       ids are numbers 0..n-1 already, or labels, which are mapped to such numbers

If pieces are wrong, all ranks fail with the error of the first wrong piece, whatever the number of ranks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.kernel import inline
from mgraph.backends.progress import Phase
from mgraph.backends.workers import Workers
from mgraph.comm.base import Communicator
from mgraph.edges import EdgePiece, EdgeTable
from mgraph.errors import InputError
from mgraph.formatting import counted
from mgraph.ingest.kept import Keeper, KeptColumn, KeptEdges, KeptPiece, device_of, memory_budget
from mgraph.ingest.labelled import are_labels, encoded, keep_codes, mapped
from mgraph.io.checks import check_not_empty, mixed_kinds
from mgraph.labels.strings import Strings
from mgraph.types import LARGE_VERTEX, SMALL_VERTEX, Array, none_of

if TYPE_CHECKING:
    from mgraph.labels.reader import LabelReader
    from mgraph.labels.table import LabelTable

# Pieces that each rank reads before the ranks agree whether one of them is wrong.
ROUND_PIECES = 64
INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class _CheckedPiece:
    """A piece that was read and checked, and what the ranks have to agree on."""

    kept: KeptPiece
    vertices: KeptColumn | None
    is_text: bool  # whether its ids are strings, and what is kept are codes
    low: int  # extremes of the ids, less the base; INT64.max and INT64.min if there are none
    high: int
    min_weight: int
    max_weight: int
    weight_dtype: np.dtype | None  # that of the input: int64 for all integers
    doubt: InputError | None
    where: Callable[[int], str]


def read_table(table: EdgeTable, backend: Backend, comm: Communicator) -> tuple[KeptEdges, LabelTable | None]:
    """Read this rank's pieces of a table.

    Return its edges as a source for the build, and its part of the labels, None if ids are not mapped. Every rank calls
    it with the same table.
    """
    workers = Workers(backend)
    try:
        reader = _TableReader(table, backend, comm, workers)
        backend.phase = Phase("reading", len(range(comm.rank, table.num_pieces, comm.size)), "pieces")
        for begin in range(0, table.num_pieces, ROUND_PIECES * comm.size):
            end = min(begin + ROUND_PIECES * comm.size, table.num_pieces)
            own = range(begin + comm.rank, end, comm.size)
            _raise_first(workers.try_each(reader.read, own), comm)
        return reader.finish()
    finally:
        workers.close()


class _TableReader:
    """Reads one rank's pieces of a table, and keeps them by number."""

    def __init__(self, table: EdgeTable, backend: Backend, comm: Communicator, workers: Workers) -> None:
        self.table = table
        self.backend = backend
        self.comm = comm
        self.workers = workers
        self.found: dict[int, _CheckedPiece] = {}
        edge_bytes = 2 * LARGE_VERTEX.itemsize + 8 * table.has_weights
        device = device_of(backend, comm, table.max_edges, edge_bytes)
        self.keeper = Keeper(memory_budget(backend, comm), table.name, device)
        self._reader: LabelReader | None = None
        self._lock = threading.Lock()

    @property
    def reader(self) -> LabelReader:
        """The reader of labels, made when the first is found."""
        with self._lock:
            if self._reader is None:
                # The module is loaded only if there are labels.
                from mgraph.labels.reader import LabelReader

                self._reader = LabelReader(self.backend, self.comm)
            return self._reader

    def read(self, k: int) -> None:
        """Read a piece."""
        self.found[k] = self._kept(self.table.piece(k, self.backend))
        assert self.backend.phase is not None, "read_table has begun it"
        self.backend.phase.step()

    def _kept(self, piece: EdgePiece) -> _CheckedPiece:
        """Check a piece, narrow its columns or encode its labels, and keep it."""
        table = self.table
        weights = piece.weights
        dtype = None if weights is None else weights.dtype
        min_weight, max_weight = _extremes([] if dtype is None or dtype.kind == "f" else [weights])
        if weights is not None and dtype is not None and dtype.kind != "f":
            weights = weights.astype(_integer_dtype(min_weight, max_weight), copy=False)
            dtype = np.dtype(np.int64)
        ends = [ids for ids in (piece.sources, piece.targets, piece.vertices) if ids is not None]
        low = INT64.max
        high = INT64.min
        if is_text := isinstance(piece.sources, Strings):
            sources, targets = self._codes(piece)
            vertices = None
        else:
            low, high = _extremes(ends)
            if low <= high:
                _check_ids(table, piece, low, high)
                low -= table.base
                high -= table.base
            sources, targets, vertices = (
                None if ids is None else self.keeper.keep(_narrowed(ids, table.base, low, high))
                for ids in (piece.sources, piece.targets, piece.vertices)
            )
        kept = KeptPiece(sources, targets, None if weights is None else self.keeper.keep(weights))
        extremes = min(low, INT64.max), min(high, INT64.max), min_weight, max_weight
        # No strings at all are no kind of ids.
        is_text = is_text and any(map(len, ends))
        return _CheckedPiece(kept, vertices, is_text, *extremes, dtype, piece.doubt, piece.where)

    def _codes(self, piece: EdgePiece) -> list[KeptColumn]:
        """Return the codes of both ends of a piece of strings."""
        if self.table.labels is False or self.table.num_vertices is not None:
            option = "labels=False" if self.table.labels is False else f"num_vertices={self.table.num_vertices}"
            raise InputError(f"{piece.where(0)}: ids are strings, and {option} says that they are numbers")
        for ids in (piece.sources, piece.targets, piece.vertices):
            if isinstance(ids, Strings) and (bad := first_invalid(ids)) >= 0:
                raise InputError(f"{piece.where(bad)}: {_shown(ids, bad)} is not UTF-8: convert the file, as by iconv")
        if piece.vertices is not None:
            self.reader.add(piece.vertices)
        return [keep_codes(self.keeper, self.reader.add(ids, piece.where)) for ids in (piece.sources, piece.targets)]

    def finish(self) -> tuple[KeptEdges, LabelTable | None]:
        """Agree with the other ranks on all pieces, and map labels; collective."""
        table = self.table
        comm = self.comm
        numbers = sorted(self.found)
        pieces = [self.found[k] for k in numbers]
        low, min_weight, high, max_weight, *kinds = _agree(pieces, comm)
        num_edges, num_vertices = comm.sum(
            sum(len(piece.kept) for piece in pieces),
            sum(0 if piece.vertices is None else len(piece.vertices) for piece in pieces),
        )
        is_text, is_integer, whole, single, double = (bool(kind) for kind in kinds)
        if not double and not single:
            doubts = ((k, self.found[k].doubt) for k in numbers)
            _raise_first(next(((k, doubt) for k, doubt in doubts if doubt is not None), None), comm)
        _check_declared(table, num_edges, num_vertices)
        check_not_empty(table, num_edges, num_vertices)
        if is_text and is_integer:
            strings = ((k, self.found[k].where(0)) for k in numbers if self.found[k].is_text)
            _raise_first(next(((k, mixed_kinds(where)) for k, where in strings), None), comm)
        kept = [piece.kept for piece in pieces]
        labels = None
        n = table.num_vertices
        if is_text or are_labels(table, low, high, num_edges + num_vertices, pieces, comm, self.workers):
            if not is_text:
                reader = self.reader
                kept = self.workers.map(lambda piece: encoded(reader, piece, table.base, self.keeper), pieces)
            self.found.clear()
            pieces.clear()
            kept, labels = mapped(self.reader, kept, self.keeper, self.workers)
            n = labels.num_vertices
        dtype = _weights_dtype(min_weight, max_weight, whole, single, double) if table.has_weights else None
        facts = table.name, table.directed, max(high + 1, 0) if n is None else n, dtype, num_edges
        return KeptEdges(*facts, kept, comm.rank, comm.size), labels


def _raise_first(failure: tuple[int, Exception] | None, comm: Communicator) -> None:
    """Raise the failure of the first of all ranks' pieces on every rank."""
    first = int(comm.allreduce(np.array([INT64.max if failure is None else failure[0]], np.int64), "min")[0])
    if first == INT64.max:
        return
    if failure is not None and failure[0] == first:
        try:
            raise failure[1]
        finally:
            # The error's traceback refers to this frame.
            del failure
    comm.barrier()  # until the rank with that piece has raised its error, which aborts this verb
    raise AssertionError("a rank has lost the error of its piece")


def first_invalid(strings: Strings) -> int:
    """Return the first string that is not UTF-8, -1 if there is none."""
    if not len(strings):
        return -1
    data = strings.data[strings.offsets[0] : strings.offsets[-1]]
    if all_bits(data) < 0x80:
        return -1
    starts = strings.offsets[:-1][np.diff(strings.offsets) > 0] - strings.offsets[0]
    # Bytes 10xxxxxx continue a character. No string begins with one, or the whole could be valid without its parts.
    continued = (data[starts] & 0xC0) == 0x80
    at = int(starts[continued.argmax()]) if continued.any() else len(data)
    try:
        data.tobytes().decode()
    except UnicodeDecodeError as error:
        at = min(at, error.start)
    if at == len(data):
        return -1
    return int(np.searchsorted(strings.offsets, at + strings.offsets[0], "right")) - 1


@inline
def all_bits(octets):
    """Return the bits that are set in any byte."""
    bits = np.uint8(0)
    for i in range(len(octets)):
        bits |= octets[i]
    return bits


def _shown(strings: Strings, i: int) -> str:
    return repr(strings.data[strings.offsets[i] : strings.offsets[i + 1]][:40].tobytes())


def _extremes(arrays: list[Array]) -> tuple[int, int]:
    """Return the smallest and the largest of all values, and (INT64.max, INT64.min) if there are none."""
    # Reading a number waits for a GPU: launch all of them before.
    found = [(array.min(), array.max()) for array in arrays if len(array)]
    low = min((int(low) for low, _ in found), default=INT64.max)
    return low, max((int(high) for _, high in found), default=INT64.min)


def _narrowed(ids: Array, base: int, low: int, high: int) -> Array:
    """Return ids less the base, as the smallest dtype of vertices that holds all of the piece."""
    if high > INT64.max:
        return ids
    if base and len(ids):
        ids = ids.astype(LARGE_VERTEX, copy=False) - base
    return ids.astype(SMALL_VERTEX if low >= 0 and high < none_of(SMALL_VERTEX) else LARGE_VERTEX, copy=False)


def _check_ids(table: EdgeTable, piece: EdgePiece, low: int, high: int) -> None:
    """Refuse ids that are no vertices, naming the first."""
    base = table.base
    n = table.num_vertices
    may_map = n is None and table.labels is not False
    # Ids below the base are labels, unless base=1 says without labels= that ids are counted from one.
    may_be_below = may_map and (base == 0 or table.labels != "auto")
    if low < base and not may_be_below:
        which, ids, i = _first(piece, lambda ids: ids < base)
        problem = f"vertex {ids[i]} is negative: " if ids[i] < 0 else f"vertex {ids[i]} is below the first: "
        raise InputError(f"{which}: {problem}vertices are numbered from {base}")
    if n is not None and high - base >= n:
        which, ids, i = _first(piece, lambda ids: ids > n - 1 + base)
        raise InputError(f"{which}: vertex {ids[i]} is not in {base}..{n - 1 + base}")
    if high >= INT64.max and not may_map:
        which, ids, i = _first(piece, lambda ids: ids >= INT64.max)
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


def _agree(pieces: list[_CheckedPiece], comm: Communicator) -> Iterator[int]:
    """Return over all ranks the extremes of ids and weights, and whether there are kinds of ids and weights."""
    kinds = (
        any(piece.is_text for piece in pieces),
        any(not piece.is_text and piece.low <= piece.high for piece in pieces),
        any(piece.weight_dtype == np.int64 for piece in pieces),
        any(piece.weight_dtype == np.float32 for piece in pieces),
        any(piece.weight_dtype == np.float64 and piece.doubt is None for piece in pieces),
    )
    lows = [min((p.low for p in pieces), default=INT64.max), min((p.min_weight for p in pieces), default=INT64.max)]
    highs = [max((p.high for p in pieces), default=INT64.min), max((p.max_weight for p in pieces), default=INT64.min)]
    yield from comm.allreduce(np.array(lows, np.int64), "min").tolist()
    yield from comm.allreduce(np.array([*highs, *kinds], np.int64), "max").tolist()


def _weights_dtype(low: int, high: int, whole: bool, single: bool, double: bool) -> np.dtype:
    """Return the dtype that holds the weights of all pieces."""
    if double or (single and whole):
        return np.dtype(np.float64)
    return np.dtype(np.float32) if single else _integer_dtype(low, high)


def _integer_dtype(low: int, high: int) -> np.dtype:
    """Return the smallest dtype of weights that holds low..high, or nothing if low > high."""
    if low > high:
        return np.dtype(np.uint8)
    names = ("uint8", "uint16", "uint32", "int64") if low >= 0 else ("int32", "int64")
    return next(np.dtype(name) for name in names if np.iinfo(name).min <= low and high <= np.iinfo(name).max)


def _check_declared(table: EdgeTable, num_edges: int, num_vertices: int) -> None:
    """Refuse a number of edges, or of listed vertices, that differs from the one that the input declares."""
    counts = (num_edges, "edge", "declared_edges", "path"), (num_vertices, "vertex", "declared_vertices", "vertices")
    for found, noun, name, file in counts:
        declared = getattr(table, name, None)
        if declared is not None and found != declared:
            path = getattr(table, file, table.name)
            raise InputError(f"{path} has {counted(found, noun)} where its header says {declared:,}: truncated?")
