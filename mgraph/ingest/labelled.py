"""Decide whether integer ids are labels, and replace labels by the ids that they are mapped to."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mgraph.backends.kernel import inline
from mgraph.backends.workers import Workers
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeTable
from mgraph.ingest.kept import Keeper, KeptColumn, KeptPiece
from mgraph.types import LARGE_VERTEX, Array

if TYPE_CHECKING:
    from mgraph.labels.reader import LabelReader
    from mgraph.labels.table import LabelTable


class PieceOfIds(Protocol):
    """A piece that was read: what a mapping of its ids to labels needs."""

    @property
    def kept(self) -> KeptPiece: ...

    @property
    def vertices(self) -> KeptColumn | None: ...

    @property
    def where(self) -> Callable[[int], str]: ...


def are_labels(
    table: EdgeTable,
    low: int,
    high: int,
    num_labels: int,
    pieces: Sequence[PieceOfIds],
    comm: Communicator,
    workers: Workers,
) -> bool:
    """Return whether integer ids are mapped: by request, or because one is negative or they have large gaps.

    `low` and `high` are their extremes, and `num_labels` is an upper bound of half of the distinct ones.
    """
    if table.labels != "auto" or table.num_vertices is not None or low > high:
        return table.labels not in ("auto", False)
    return low < 0 or high + 1 > 4 * num_labels or high + 1 > 2 * _count_distinct(high + 1, pieces, comm, workers)


def _count_distinct(num_ids: int, pieces: Sequence[PieceOfIds], comm: Communicator, workers: Workers) -> int:
    """Return how many of the ids below `num_ids` occur, or any number that is at least half of them."""
    seen = np.zeros(-(-num_ids // 8) * 8, np.uint8)
    found = 0
    done = 0
    # Few pieces have half of the ids of most graphs: count after 1, 2, 4, ... pieces.
    while done < len(pieces) and 2 * found < num_ids:
        some = pieces[done : 2 * done + 1]
        done += len(some)
        # Threads that set the same byte set it to the same value.
        workers.map(lambda piece: _mark(piece, seen), some)
        found = int(np.count_nonzero(seen))
    if comm.any(2 * found >= num_ids):
        return num_ids
    if comm.size == 1:
        return found
    # Each rank unites the bits of one range of ids.
    parts = [np.ascontiguousarray(part) for part in np.array_split(np.packbits(seen), comm.size)]
    united = np.bitwise_or.reduce(comm.alltoallv(parts))
    return comm.sum(int(np.unpackbits(united).sum()))[0]


def _mark(piece: PieceOfIds, seen: np.ndarray) -> None:
    for ids in (piece.kept.sources, piece.kept.targets, piece.vertices):
        if ids is not None:
            mark(on_host(ids), seen)


@inline
def mark(ids, seen):
    """Set seen[id] for every id."""
    for i in range(len(ids)):
        # Most are set already, and a read does not take the cache line from other cores.
        if seen[ids[i]] == 0:
            seen[ids[i]] = 1


def encoded(reader: LabelReader, piece: PieceOfIds, base: int, keeper: Keeper) -> KeptPiece:
    """Return a piece with codes of labels in place of its ids, which are labels less `base`."""

    def codes_of(ids: KeptColumn) -> Array:
        labels = ids[:]
        # Ids beyond 63 bits are kept as they were.
        whole = base == 0 or labels.dtype == np.uint64
        return reader.add(labels if whole else labels.astype(LARGE_VERTEX) + base, piece.where)

    if piece.vertices is not None:
        codes_of(piece.vertices)
    kept = piece.kept
    sources, targets = (keep_codes(keeper, codes_of(ids)) for ids in (kept.sources, kept.targets))
    return dataclasses.replace(kept, sources=sources, targets=targets)


def keep_codes(keeper: Keeper, codes: Array) -> KeptColumn:
    """Keep codes on the keeper's device, or in host memory if it has none."""
    return keeper.keep(on_host(codes) if keeper.device is None else codes)


def mapped(
    reader: LabelReader, pieces: Sequence[KeptPiece], keeper: Keeper, workers: Workers
) -> tuple[list[KeptPiece], LabelTable]:
    """Return pieces of codes as pieces of ids, and this rank's part of the labels; collective."""
    labels, id_of_code = reader.finish()
    device = keeper.device
    id_of_code = on_host(id_of_code) if device is None else device.to_device(id_of_code)

    def ids_of(codes: KeptColumn) -> KeptColumn:
        if device is not None:
            device.enter_thread()
            return id_of_code[codes[:]]
        given = on_host(codes)
        # Codes are this rank's own, and ids of the same width take their place.
        ids = given if given.dtype == id_of_code.dtype else np.empty(len(given), id_of_code.dtype)
        translate(given, id_of_code, ids)
        return keeper.replace(codes, ids)

    def ids_of_piece(piece: KeptPiece) -> KeptPiece:
        return dataclasses.replace(piece, sources=ids_of(piece.sources), targets=ids_of(piece.targets))

    return workers.map(ids_of_piece, pieces), labels


@inline
def translate(codes, id_of_code, ids):
    """Set ids[i] to the id of code i."""
    for i in range(len(codes)):
        ids[i] = id_of_code[codes[i]]


def on_host(column: KeptColumn) -> np.ndarray:
    """Return a column in host memory."""
    part = column[:]
    return part if isinstance(part, np.ndarray) else part.get()
