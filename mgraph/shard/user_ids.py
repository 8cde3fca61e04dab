"""Between user ids and positions: edges and sources on the way in, answers on the way out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgraph.backends.base import Backend, Fresh, Given
from mgraph.comm.base import Communicator
from mgraph.shard.result_routing import require_homes, starts_of
from mgraph.shard.rows_kernels import look_up
from mgraph.shard.shard import Homes, Shard, once_a_shard
from mgraph.shard.user_ids_kernels import deal_tree, find_positions, translate_levels, translate_tree
from mgraph.types import LEVEL, NARROW_LEVEL, Array, vertex_dtype


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
    if dtype == NARROW_LEVEL:
        return LEVEL
    return np.dtype(np.int64) if dtype.kind == "u" else dtype


def tree_of_users(shard: Shard, comm: Communicator, distances: Array | None, predecessors: Array | None) -> list[Array]:
    """Return those that are given of this rank's range of user ids.

    Distances that are floats stay as they are, inf where not reached; levels stay int32 and integer distances become
    int64, -1 where not reached. Predecessors become user ids, int64, -1 for none.
    """
    homes, step = require_homes(shard, comm), 1
    given = [distances, predecessors]
    if homes is not None:
        step, given = _deal(shard, comm, homes, distances, predecessors)
    dtypes = [None if column is None else column.dtype for column in given]
    return _translation(shard, step, *dtypes)(*[column for column in given if column is not None])


@once_a_shard
def _translation(
    shard: Shard, step: int, distance: np.dtype | None, parent: np.dtype | None
) -> Callable[..., list[Array]]:
    """Return what writes both in order of user ids."""
    (lo, hi), partition, homes = shard.user_range, shard.partition, shard.homes
    out = (
        None if distance is None else Fresh(hi - lo, user_dtype(distance)),
        None if parent is None else Fresh(hi - lo, np.dtype(np.int64)),
    )
    # Alone, a rank has the predecessors' levels at hand: hubs' mostly, so that they are sooner there than one's own.
    if partition.cyclic and homes is None and distance in (LEVEL, NARROW_LEVEL) and parent is not None:
        return shard.backend.prepared(
            translate_levels, 0, hi - lo, shard.position_of_user, partition.num_positions,
            Given(distance), Given(parent), shard.user_of_local, *out,
        )  # fmt: skip
    # In natural order ranges are the owners': user id i of the range is local i, every one with a state.
    shape = (
        (shard.position_of_user, partition.num_positions, partition.stride, partition.multiplier)
        if partition.cyclic
        else (None, shard.num_owned, partition.stride, 1)
    )
    bits, before = (None, None) if homes is None else (homes.coming, homes.before_coming)
    return shard.backend.prepared(
        translate_tree, 0, hi - lo, *shape, bits, before, step,
        None if distance is None else Given(distance), None if parent is None else Given(parent),
        shard.user_of_local if homes is None else None, *out,
    )  # fmt: skip


def _deal(
    shard: Shard, comm: Communicator, homes: Homes, distances: Array | None, predecessors: Array | None
) -> tuple[int, list[Array | None]]:
    """Send what is given of owned vertices to the homes of their user ids.

    Return what comes, in order of states, and how many values it is apart: both of a vertex are looked up at once where
    they stand side by side, as they do if they are as wide.
    """
    run, partition, ids = shard.backend, shard.partition, vertex_dtype(shard.info.num_vertices)
    dtypes = [None if distances is None else distances.dtype, None if predecessors is None else ids]
    kinds = [dtype for dtype in dtypes if dtype is not None]
    step = 2 if [kind.itemsize for kind in kinds] == [ids.itemsize] * 2 else 1

    def columns(num: int) -> tuple[list[Array], list[Array | None]]:
        """Return arrays for so many vertices, and where in them what is given stands."""
        if step == 2:
            both = run.xp.empty(2 * num, ids)
            return [both], [both.view(kinds[0]), both[1:]]
        each = [None if dtype is None else run.xp.empty(num, dtype) for dtype in dtypes]
        return [column for column in each if column is not None], each

    users = None if predecessors is None else _users_of_states(shard, comm)
    sent, going = columns(starts_of(homes.num_going)[-1])
    deal_tree[run](
        0, shard.num_owned, shard.user_of_local, shard.user_stride, homes.going, homes.before_going,
        distances, predecessors, users, partition.stride, partition.multiplier, step, *going,
    )  # fmt: skip
    came, coming = columns(starts_of(homes.num_coming)[-1])
    for out, into in zip(sent, came, strict=True):
        comm.alltoallv(_cut(out, homes.num_going, step), _cut(into, homes.num_coming, step))
    return step, coming


def _cut(column: Array, nums: list[int], step: int) -> list[Array]:
    """Return each rank's part of a column that has `step` values for each of so many vertices."""
    return [column[step * at : step * (at + num)] for at, num in zip(starts_of(nums), nums, strict=False)]


def _users_of_states(shard: Shard, comm: Communicator) -> Array:
    """Return the user id of every state, which is kept beside rows."""
    homes = require_homes(shard, comm)
    if homes is None:
        return shard.user_of_local
    if homes.users is not None:
        return homes.users
    users = gather_states(shard, comm, shard.user_of_local)
    if not shard.is_compact:
        homes.users = users
    return users


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
        far = _users_of_states(shard, comm)[rows.targets[arcs]].astype(np.int64)
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
