"""Find over which edges a state may still lower another or give it a parent; see reach.py."""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add
from mgraph.backends.numba_helpers import position_of, top_of


@kernel(lanes=32, block=256, dist_t="states", vertex_t="parents")
def note_lowered(lo, hi, grain_bits, visit, states, lowered, before, parents, stamps, latest, counters):
    """Stamp every state that is below `before` with this visit, and let it have no parent; then `before` equals states.

    Work items are grains, of which only those with `lowered` set are read, and it is cleared. On CUDA a block processes
    them one by one; there is a block for every eight grains, as few are set. `latest` is the last visit that lowered a
    state of the grain. `counters` are: states lowered.
    """
    count = 0
    for grain in range(lo, hi):
        if not lowered[grain]:
            continue
        lowered[grain] = 0
        first = grain << grain_bits
        for i in range(first, first + (1 << grain_bits)):
            if states[i] < before[i]:
                before[i] = states[i]
                parents[i] = top_of(parents)
                stamps[i] = visit
                latest[grain] = visit
                count += 1
    atomic_add(counters, 0, count)


@kernel(lanes=32, dist_t="states", vertex_t="parents")
def find_farthest(lo, hi, grain_bits, states, parents, far_states, far_parents):
    """Find the greatest state of every grain, and the greatest parent of the vertices with that state.

    Work items are grains.
    """
    for grain in range(lo, hi):
        first = grain << grain_bits
        far = states[first]
        parent = parents[first]
        for i in range(first + 1, first + (1 << grain_bits)):
            if states[i] > far or (states[i] == far and parents[i] > parent):
                far = states[i]
                parent = parents[i]
        far_states[grain] = far
        far_parents[grain] = parent


@kernel(lanes=1024, block=1024, dist_t="states", vertex_t="positions")
def find_nearest(lo, hi, shape, ranges, visited, states, stamps, latest, nearest, positions):
    """Find the least state that was lowered after the last visit of a part, and the lowest position with it.

    Work items are slices of the two directions of each part, from starts to ends and back. A row of `ranges` has the
    first and the last grain, excluded, of starts and of ends; a slice has every `slices`-th grain. `shape` is: grain
    bits, whether edges go both ways, stride and multiplier of states, and slices.
    """
    grain_bits = shape[0]
    slices = shape[4]
    for item in range(lo, hi):
        part = item // slices >> 1
        way = item // slices & 1
        least = top_of(states)
        position = top_of(positions)
        end = ranges[part, 2 * way] if way and not shape[1] else ranges[part, 2 * way + 1]
        for grain in range(ranges[part, 2 * way] + item % slices, end, slices):
            if latest[grain] <= visited[part]:
                continue
            for i in range(grain << grain_bits, (grain + 1) << grain_bits):
                if stamps[i] > visited[part] and states[i] <= least:
                    own = position_of(i, shape[2], shape[3])
                    if states[i] < least or own < position:
                        least = states[i]
                        position = own
        nearest[item] = least
        positions[item] = position


@kernel(lanes=1024, block=1024, dist_t="nearest", vertex_t="positions")
def find_reach(lo, hi, slices, bounds, ranges, nearest, positions, far_states, far_parents, reach):
    """Find the least state of all slices of a direction of a part, if an edge from it may still have an effect.

    `bounds` is: what an edge adds at least, and the limit of all states. An edge from a state to one that is greater
    than the sum lowers it; to one that equals the sum, it may have a smaller parent. `reach` is unreached where no edge
    can do so.
    """
    for item in range(lo, hi):
        part = item >> 1
        far = ranges[part, 2 - 2 * (item & 1)], ranges[part, 3 - 2 * (item & 1)]
        least = top_of(nearest)
        position = top_of(positions)
        for place in range(item * slices, (item + 1) * slices):
            if nearest[place] < least or (nearest[place] == least and positions[place] < position):
                least = nearest[place]
                position = positions[place]
        reach[item] = top_of(nearest)
        if least == top_of(nearest):
            continue
        through = nearest.dtype.type(least + bounds[0])
        if through > bounds[1]:
            continue
        for grain in range(far[0], far[1]):
            if through < far_states[grain] or (through == far_states[grain] and position < far_parents[grain]):
                reach[item] = least
                break
