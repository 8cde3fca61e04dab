"""Name each strongly connected component by its smallest vertex, by user id."""

from __future__ import annotations

from mgraph.algorithms.strong_components.kernels import label_isolated, lower_labels
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import translate_results, translated
from mgraph.types import Array, none_of, vertex_dtype


def labels_of_users(shard: Shard, comm: Communicator, roots: Array) -> Array:
    """Return the labels of this rank's range of user ids, as int64, from the root state of each owned vertex."""
    backend = shard.backend
    ids = vertex_dtype(shard.info.num_vertices)
    smallest = backend.full(shard.partition.num_states, none_of(ids), ids)
    base = shard.rank * shard.partition.stride
    lower_labels[backend](0, len(roots), roots, shard.user_of_local, base, smallest)
    if comm.size > 1:
        comm.allreduce(smallest, "min")
    # On the way to the ranks that serve them, labels are like distances.
    (labels,) = translate_results(shard, comm, translated(backend, roots, smallest), None)
    label_isolated[backend](0, len(labels), shard.user_range[0], labels)
    return labels
