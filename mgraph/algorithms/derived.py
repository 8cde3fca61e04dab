"""What variants need in addition to the rows: structures made of a shard once for a graph, alike on every rank.

`make` of a need is collective. Where memory runs out on one rank it returns False on all of them, for those structures
without which another variant can run. Peer buffers are in the files of the loops that use them: their size depends on
the loop.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.variant import Derived, GraphSizes
from mgraph.backends.base import PersistentBackend
from mgraph.backends.numba_helpers import LIGHTEST_BITS
from mgraph.backends.rates_file import require_rates
from mgraph.comm.base import Communicator
from mgraph.ingest.host_plan import SPARE_SHARE, memory_of_host
from mgraph.ingest.split_plan import may_split
from mgraph.shard.block_headers import WORD_BITS
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.host_copy import host_copy
from mgraph.shard.in_rows import require_first_neighbors, require_in_rows
from mgraph.shard.light_units import LIGHT_SHARE, TILE_BYTES, require_light_units
from mgraph.shard.lightest_arcs import require_lightest_arcs, wants_lightest_arcs
from mgraph.shard.shard import Blocks, Shard, cached_on_shard


def _make_in_rows(shard: Shard, comm: Communicator, dtype: np.dtype) -> bool:
    require_in_rows(shard, comm)
    return True


def _make_edge_blocks(shard: Shard, comm: Communicator, dtype: np.dtype) -> bool:
    require_blocks(shard, comm, dtype)
    return True


def _make_light_units(shard: Shard, comm: Communicator, dtype: np.dtype) -> bool:
    """Divide this rank's units by weight if there is memory for it; ranks need not agree."""
    blocks = require_blocks(shard, comm, dtype)
    return not isinstance(blocks, Blocks) or require_light_units(shard, blocks)


def _make_rates(shard: Shard, comm: Communicator, dtype: np.dtype) -> bool:
    assert isinstance(shard.backend, PersistentBackend), "only persistent loops need rates"
    require_rates(shard.backend)
    return True


@cached_on_shard
def _make_first_neighbors(shard: Shard, comm: Communicator) -> bool:
    """Allocate on every rank or on none: the ranks agree once for a graph."""
    try:
        require_first_neighbors(shard)
        failed = False
    except MemoryError:
        failed = True
    if comm.any(failed):
        shard.incoming.first_neighbors = None
        return False
    return True


def _make_lightest_arcs(shard: Shard, comm: Communicator, dtype: np.dtype) -> bool:
    """Take the lightest arcs of this rank's rows if that pays and there is room; ranks need not agree.

    In the layout split the host has room too. All ranks ask for it at once, until all have made theirs.
    """
    if not wants_lightest_arcs(shard.info):
        return True
    if shard.info.layout != "split" or not may_split(shard.backend, comm):
        require_lightest_arcs(shard)
        return shard.lightest_arcs is not None
    host_bytes = memory_of_host(shard.backend, comm).num_bytes
    require_lightest_arcs(shard, host_bytes - host_bytes // SPARE_SHARE)
    return not comm.any(shard.lightest_arcs is None)


def _make_host_copy(shard: Shard, comm: Communicator, dtype: np.dtype) -> bool:
    """Copy the rows of the one rank, unless the host lacks the memory."""
    try:
        host_copy(shard)
    except MemoryError:
        return False
    return True


def _lightest_bytes(sizes: GraphSizes) -> int:
    return (sizes.row_arcs >> LIGHTEST_BITS) * (sizes.vertex + sizes.weight)


def _edge_block_bytes(sizes: GraphSizes) -> int:
    return sizes.edges * (4 + sizes.weight)


def _light_unit_bytes(sizes: GraphSizes) -> int:
    # A tile joins 2**WORD_BITS pairs of states; an undirected edge is in one order.
    tiles = (sizes.states**2 >> WORD_BITS + (0 if sizes.directed else 1)) // sizes.partition.num_ranks
    return TILE_BYTES * min(tiles, int(LIGHT_SHARE * sizes.edges)) if sizes.weight else 0


# Rows by target; the rows themselves where the graph is undirected.
IN_ROWS = Derived("in_rows", _make_in_rows)
# The first target of every row side by side; its bytes are counted with those of the searches that read it.
FIRST_NEIGHBORS = Derived("first_neighbors", lambda shard, comm, dtype: _make_first_neighbors(shard, comm))
# The lightest arcs of every row, by weight.
LIGHTEST_ARCS = Derived("lightest_arcs", _make_lightest_arcs, _lightest_bytes)
# The rows in the host's memory; on the GPU it takes nothing.
HOST_COPY = Derived("host_copy", _make_host_copy)
# The segment-sorted edges that sweeps read; all that the compact layout has.
EDGE_BLOCKS = Derived("edge_blocks", _make_edge_blocks, _edge_block_bytes)
# Light and heavy units of these edges; it takes the headers of the tiles that are divided.
LIGHT_UNITS = Derived("light_units", _make_light_units, _light_unit_bytes)
# The measured rates of the device's memory, by which a loop chooses how to process a level.
DEVICE_RATES = Derived("device_rates", _make_rates)
