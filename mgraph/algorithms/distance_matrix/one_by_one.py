"""Search from many sources, one after another, with the variant that a single search runs."""

from __future__ import annotations

from collections.abc import Iterator

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.distance_matrix.searches import Searches, columns_of, own_columns, widened
from mgraph.algorithms.variant import GraphSizes, TraversalSpec, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.types import Array


def search_one_by_one(shard: Shard, comm: Communicator, searches: Searches, trace: Trace) -> Iterator[Array]:
    """Yield the distances from one source after another: a row, with a column for each own target or vertex."""
    # It reads the table of variants, in which this loop is.
    from mgraph.algorithms.run_variant import prepare, search

    columns = own_columns(shard, comm.rank, searches)
    algorithm = "sssp" if searches.weighted else "bfs"
    for user in searches.users:
        spec = TraversalSpec(
            algorithm, "auto", (user,), searches.dtype, searches.limit, predecessors=False,
            targets=tuple(searches.target_users),
        )  # fmt: skip
        found = search(prepare(shard, comm, spec), shard, comm, spec, trace).distances
        yield columns_of(widened(found.reshape(1, -1), searches.dtype), columns)


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of a row in the dtype of the request, beside those of a search, which the plan counts."""
    return sizes.state * sizes.owned


VARIANT = Variant(
    "distance_matrix.one_by_one",
    when="one sssp after another, on all others",
    applies=lambda conditions: conditions.has_rows,
    bytes=_bytes,
    loop=search_one_by_one,
)
