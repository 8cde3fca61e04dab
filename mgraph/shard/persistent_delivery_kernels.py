"""The kernel by which ranks write their results into each other's peer buffers, in one launch a rank."""

from __future__ import annotations

from mgraph.backends.kernel import persistent


@persistent(block=512, vertex_t="order", dist_t="values", parent_t="parents", id_t="users")
def send_tree(
    lo, hi, abort, peer_buffers, buffer, routes, order, values, parents, users, stride, multiplier, parents_at, done
) -> None:
    """Write distances, and predecessors as user ids, into the peer buffers of the ranks that serve them.

    `lo` .. `hi` decides the number of blocks. `routes` has, for each rank, where its part of the order begins; the end
    of the last part; and for each rank the index at which this rank's values begin among all that it receives. A peer
    buffer receives distances from its beginning on, and predecessors from byte `parents_at` on. `values` or `parents`
    may be None. `done` becomes 1, unless the launch was ended while ranks waited for each other.
    """
