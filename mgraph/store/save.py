"""Write this rank's part of a graph to files."""

from __future__ import annotations

import pathlib

import numpy as np

from mgraph.backends.base import Backend
from mgraph.errors import InputError
from mgraph.shard.shard import Rows, Shard
from mgraph.store.files import Joined, Stored, unchanged, write_array
from mgraph.store.labels import arrays_of_labels
from mgraph.store.manifest import PIECE_ARCS, Facts, StoredPart, file_name
from mgraph.types import Array, vertex_dtype


def save_shard(shard: Shard, folder: pathlib.Path) -> tuple[StoredPart, Facts]:
    """Write the arrays of a shard to a folder; return their description, and what all parts have in common."""
    arrays = _tables_of(shard) | (_rows_of(shard) if shard.has_rows else _blocks_of(shard))
    if shard.labels is not None:
        arrays |= arrays_of_labels(shard.labels)
    written = {}
    try:
        for name, (array, dtype, convert) in arrays.items():
            path = folder / file_name(name, shard.rank)
            written[name] = write_array(path, array, dtype, shard.backend, convert)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    dtypes = {name: dtype.name for name, (_, dtype, _) in arrays.items()}
    facts = Facts(shard.partition.num_positions, dtypes, None if shard.labels is None else shard.labels.missing)
    if not shard.has_rows:
        (blocks,) = shard.blocks.values()
        return StoredPart(written, [], blocks.shape), facts
    return StoredPart(written, _cuts(shard.backend, shard.rows), None), facts


def _tables_of(shard: Shard) -> Stored:
    """Return what both layouts store: lengths of rows, and tables between user ids and positions."""
    ids = vertex_dtype(shard.info.num_vertices)
    arrays: Stored = {"lengths": (shard.degrees, vertex_dtype(shard.partition.num_positions), unchanged)}
    if shard.user_of_local is not None:
        arrays["users"] = (shard.user_of_local, ids, unchanged)
    if shard.position_of_user is not None:
        arrays["positions"] = (shard.position_of_user, ids, unchanged)
    return arrays


def _rows_of(shard: Shard) -> Stored:
    rows = shard.rows
    partition = shard.partition
    arrays: Stored = {"targets": (rows.targets, vertex_dtype(partition.num_positions), partition.position)}
    if rows.weights is not None:
        arrays["weights"] = (rows.weights, rows.weights.dtype, unchanged)
    return arrays


def _blocks_of(shard: Shard) -> Stored:
    """Return the arrays of all blocks as one set, those in host memory after those on the device."""
    (blocks,) = shard.blocks.values()
    backend = shard.backend
    pieces = list(blocks.in_place())
    arrays = {
        "unit_tiles": _bounds(backend, [piece.unit_tiles for piece in pieces]),
        "unit_segments": Joined(backend, [piece.unit_segments for piece in pieces]),
        "tile_edges": _bounds(backend, [piece.tile_edges for piece in pieces]),
        "tile_starts": Joined(backend, [piece.tile_starts for piece in pieces]),
        "words": Joined(backend, [piece.words for piece in pieces]),
    }
    weights = [piece.weights for piece in pieces if piece.weights is not None]
    if weights:
        arrays["weights"] = Joined(backend, weights)
    return {name: (array, array.dtype, unchanged) for name, array in arrays.items()}


def _bounds(backend: Backend, pieces: list[Array]) -> Joined:
    """Return bounds of runs, each piece with those of its own from 0, as bounds in all of them."""
    joined = [np.zeros(1, np.int64)]
    end = 0
    for piece in pieces:
        own = backend.to_host(piece)
        joined.append(end + own[1:])
        end += int(own[-1])
    return Joined(backend, joined)


def _cuts(backend: Backend, rows: Rows) -> list[tuple[int, int, int]]:
    """Return where pieces of the rows begin, as in StoredPart: at a fixed number of arcs, and of rows."""
    xp = backend.xp
    num_rows = len(rows.indptr) - 1
    num_arcs = len(rows.targets)
    arcs = xp.arange(0, num_arcs, PIECE_ARCS, dtype=np.int64)
    # The last row that does not begin after the arc: rows without arcs before it end there too.
    of_arcs = xp.searchsorted(rows.indptr, arcs, side="right") - 1 if num_arcs else arcs
    skips = arcs - rows.indptr[of_arcs]
    of_rows = xp.arange(0, num_rows, PIECE_ARCS, dtype=np.int64)
    by_arcs = zip(*(backend.to_host(column).tolist() for column in (arcs, of_arcs, skips)), strict=True)
    by_rows = zip(*(backend.to_host(column).tolist() for column in (rows.indptr[of_rows], of_rows)), strict=True)
    cuts = {(0, 0, 0), *by_arcs, *((arc, row, 0) for arc, row in by_rows)}
    return [*sorted(cuts), (num_arcs, num_rows, 0)]
