"""Between user ids and positions: edges and sources on the way in, answers on the way out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.kernels.backend import Backend, Fresh, Given
from mgraph.kernels.rows import look_up
from mgraph.kernels.translate import find_positions, translate_distances, translate_tree
from mgraph.shard import Shard, once_a_shard
from mgraph.types import Array


def positions_of(shard: Shard, comm: Communicator, users: Sequence[int]) -> list[int]:
    """Return the positions of a few user ids, the same on every rank."""
    if shard.position_of_user is None:
        return list(users)
    run, (lo, hi), num = shard.backend, shard.user_range, len(users)
    words, on_host = run.host_words(num)
    on_host[:num] = users
    find_positions[run](0, num, shard.position_of_user, lo, hi - lo, words)
    run.synchronize()
    found = on_host[:num].copy()
    return (found if comm.size == 1 else comm.allreduce(found, "max")).tolist()


def translated(backend: Backend, ids: Array, table: Array) -> Array:
    """Return table[ids]."""
    out = backend.xp.empty(len(ids), table.dtype)
    look_up[backend](0, len(ids), ids, table, out)
    return out


def user_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which a user sees distances that are held in `dtype`."""
    return np.dtype(np.int64) if dtype.kind == "u" else dtype


def distances_of_users(shard: Shard, comm: Communicator, distances: Array) -> Array:
    """Return the distances of this rank's range of user ids.

    Floats stay as they are, inf where not reached; levels stay int32 and integer distances become
    int64, -1 where not reached.
    """
    lo, hi = shard.user_range
    out = shard.backend.xp.empty(hi - lo, user_dtype(distances.dtype))
    values = _gather(shard, comm, distances)
    translate_distances[shard.backend](0, hi - lo, *_shape(shard), values, out)
    return out


def predecessors_of_users(shard: Shard, comm: Communicator, predecessors: Array) -> Array:
    """Return the predecessors of this rank's range of user ids as user ids, int64, -1 for none."""
    lo, hi = shard.user_range
    out = shard.backend.xp.empty(hi - lo, np.int64)
    parents = _gather(shard, comm, predecessors)
    users = None if shard.user_of_local is None else gather_states(shard, comm, shard.user_of_local)
    translate_tree[shard.backend](0, hi - lo, *_shape(shard), None, parents, users, None, out)
    return out


def tree_of_users(shard: Shard, comm: Communicator, distances: Array, predecessors: Array) -> list[Array]:
    """Return the distances and the predecessors of this rank's range of user ids, as the two above do."""
    if comm.size > 1 and shard.partition.cyclic:
        # One after the other: the states of all ranks, which are gathered, may be large.
        return [distances_of_users(shard, comm, distances), predecessors_of_users(shard, comm, predecessors)]
    return _tree_translation(shard, distances.dtype, predecessors.dtype)(distances, predecessors)


@once_a_shard
def _tree_translation(shard: Shard, distance: np.dtype, vertex: np.dtype) -> Callable[..., list[Array]]:
    """Return what translates both, where nothing is gathered."""
    lo, hi = shard.user_range
    distances, predecessors = Fresh(hi - lo, user_dtype(distance)), Fresh(hi - lo, np.dtype(np.int64))
    given = Given(distance), Given(vertex)
    return shard.backend.prepared(
        translate_tree, 0, hi - lo, *_shape(shard), *given, shard.user_of_local, distances, predecessors
    )


def edges_of_users(shard: Shard, comm: Communicator, arcs: Array) -> tuple[int, dict[str, Array]]:
    """Return edges, which are arcs of any ranks' rows, in user ids, and how many edges earlier ranks return.

    Sources are below targets, and the edges rise with both over the ranks: so they do not depend on who had them.
    """
    xp, rows = shard.backend.xp, shard.rows
    local = xp.searchsorted(rows.indptr, arcs, side="right") - 1
    if shard.user_of_local is None:
        near, far = shard.partition.offset(comm.rank) + local, rows.targets[arcs].astype(np.int64)
    else:
        near = shard.user_of_local[local].astype(np.int64)
        far = gather_states(shard, comm, shard.user_of_local)[rows.targets[arcs]].astype(np.int64)
    assert rows.weights is not None, "edges of a forest have weights"
    weights = rows.weights[arcs]
    weights = weights if weights.dtype.kind == "f" else weights.astype(np.int64)
    columns = [xp.minimum(near, far), xp.maximum(near, far), weights]
    if comm.size > 1:
        owners = columns[0] // shard.user_stride
        parts = [[column[owners == r] for r in range(comm.size)] for column in columns]
        columns = [xp.concatenate(comm.alltoallv(part)) for part in parts]
    columns = _in_order(shard, columns)
    counts = np.zeros(comm.size, np.int64)
    comm.allgather(np.array([len(columns[0])], np.int64), counts)
    return int(counts[: comm.rank].sum()), dict(zip(("sources", "targets", "weights"), columns, strict=True))


def _in_order(shard: Shard, columns: list[Array]) -> list[Array]:
    """Sort edges by source, then target."""
    xp, n = shard.backend.xp, shard.info.num_vertices
    # One number sorts by both, where there are not 3 billion vertices.
    packed = n * n < 1 << 63
    order = xp.argsort(columns[0] * n + columns[1]) if packed else xp.lexsort(xp.stack(columns[1::-1]))
    return [column[order] for column in columns]


def gather_states(shard: Shard, comm: Communicator, owned: Array) -> Array:
    """Gather every rank's owned values into one array by state index; the slices' tails are zeros."""
    return _gather_ranges(comm, shard.backend, owned, shard.partition.stride)


def gather_users(shard: Shard, comm: Communicator, of_range: Array) -> Array:
    """Gather every rank's values of its range of user ids into one array; zeros lie behind the last."""
    return _gather_ranges(comm, shard.backend, of_range, shard.user_stride)


def _gather_ranges(comm: Communicator, run: Backend, part: Array, stride: int) -> Array:
    """Gather the parts of all ranks, which are as long as `stride` or shorter; one rank has it all."""
    if comm.size == 1:
        return part
    if len(part) < stride:
        own, part = part, run.xp.zeros(stride, part.dtype)
        part[: len(own)] = own
    return comm.allgather(part, run.xp.empty(stride * comm.size, part.dtype))


def _gather(shard: Shard, comm: Communicator, owned: Array) -> Array:
    """Return what the translation reads: all states, or one's own slice where ranges are the owners'."""
    return gather_states(shard, comm, owned) if shard.partition.cyclic else owned


def _shape(shard: Shard) -> tuple:
    """Return the arguments that say where a user id's state stands."""
    partition = shard.partition
    if partition.cyclic:
        return shard.position_of_user, 0, partition.num_positions, partition.stride, partition.multiplier
    # Ranges are the owners': user id i of the range is local i, every one with a state.
    return None, 0, shard.num_owned, partition.stride, 1
