"""Find connected components over edge blocks by union-find, each edge read once, on any number of ranks.

    every vertex is a tree
    for every edge that this rank holds: join the trees of its ends
    exchange whole forests

Results: the root of every position, on every rank: the smallest position of its component.
"""

from __future__ import annotations

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.blocks_kernels import link_edges
from mgraph.algorithms.components.union_find import Roots, Union
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Shard
from mgraph.types import LEVEL


def link_blocks(shard: Shard, comm: Communicator, trace: Trace) -> Roots:
    """Find the root of every position."""
    backend = shard.backend
    blocks = require_blocks(shard, comm, LEVEL)
    union = Union(shard, comm, trace)
    with trace.phase("find"):
        union.parents = backend.xp.arange(len(union.parents), dtype=union.parents.dtype)
        for part in blocks.on_device(weighted=False):
            link_edges[backend](0, part.num_units, *part.edges, part.shape.segment_bits, *union.layout, union.parents)
        union.compress_paths()
        backend.synchronize()  # the superstep has the time of the launches
        # The trace has no arcs: an edge is read once for both.
        trace.superstep("link", len(union.parents), blocks.num_edges, **blocks.counts)
        union.exchange_forests()
    return Roots(union.parents, None, union.giant)


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of parents, and of another rank's or of labels."""
    received = sizes.vertex * sizes.states if sizes.partition.num_ranks > 1 else 0
    labelling = 8 * sizes.users + (sizes.id_bytes * sizes.states if sizes.partition.cyclic else 0)
    return sizes.vertex * sizes.states + max(received, labelling)


VARIANT = Variant(
    "components.blocks",
    when="in the layouts compact and host, on any ranks",
    applies=lambda conditions: not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    bytes=_bytes,
    loop=link_blocks,
)
