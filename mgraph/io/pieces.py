"""Make pieces of edge tables from arrays as files hold them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mgraph.edges import EdgePiece
from mgraph.io.checks import check_weights, weights_dtype
from mgraph.labels.strings import Strings

# Edges in a piece of a binary file: 4 to 24 MiB, so that the threads of all ranks share files of moderate size.
PIECE_EDGES = 1 << 20


def num_pieces(num_edges: int) -> int:
    """Return the number of pieces; a table without edges has one, which is checked too."""
    return max(1, -(-num_edges // PIECE_EDGES))


def edges_of_piece(k: int, num_edges: int) -> tuple[int, int]:
    """Return the first edge of piece k and the one after its last."""
    return k * PIECE_EDGES, min((k + 1) * PIECE_EDGES, num_edges)


def edge_piece(
    sources: np.ndarray | Strings,
    targets: np.ndarray | Strings,
    weights: np.ndarray | None,
    where: Callable[[int], str],
) -> EdgePiece:
    """Return a piece of arrays in any byte order; weights are checked and of a dtype in WEIGHT_DTYPES."""
    if weights is not None:
        weights = native(weights)
        check_weights(weights, lambda i: f"{where(i)}: weight")
        weights = weights.astype(weights_dtype(weights.dtype), copy=False)
    first, second = (ids if isinstance(ids, Strings) else native(ids) for ids in (sources, targets))
    return EdgePiece(first, second, weights, where)


def native(values: np.ndarray) -> np.ndarray:
    """Return values in this machine's byte order."""
    return values.astype(values.dtype.newbyteorder("="), copy=False)
