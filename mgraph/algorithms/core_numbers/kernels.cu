#include "prelude.cuh"

// See kernels.py. Race: the load may be stale, and then larger than what is left: the atomic tells.
__device__ inline bool lose(i64* left, i64 count, i64 level) {
  if (load_relaxed(left) <= level) return false;
  i64 old = atomic_add(left, -count), below = (old < level ? old : level) - (old - count);
  if (below > 0) atomic_add(left, below);
  return old > level && old - count <= level;
}

extern "C" __global__ void peel(i64 lo, i64 hi, const vertex_t* frontier, i64 base, i64 num_owned,
                                i64 level, const i64* indptr, const vertex_t* targets,
                                const i64* in_indptr, const vertex_t* in_targets, i64* left,
                                vertex_t* losses, vertex_t* found, i64* counters) {
  i64 scanned = 0;
  for (i64 k = lo + warp_index(); k < hi; k += warp_count()) {
    for (i64 v = frontier[k]; v >= 0;) {
      i64 row = v - base, begin = indptr[row], num = indptr[row + 1] - begin;
      i64 in_begin = in_indptr ? in_indptr[row] : 0;
      i64 all = num + (in_indptr ? in_indptr[row + 1] - in_begin : 0);
      scanned += all;
      v = -1;
      for (i64 first = 0; first < all; first += 32) {
        i64 i = first + lane_index(), u = -1;
        bool is_owned = false, is_found = false;
        if (i < all) {
          u = i < num ? targets[begin + i] : in_targets[in_begin + i - num];
          is_owned = u >= base && u < base + num_owned;
          is_found =
              is_owned ? lose(&left[u - base], 1, level) : atomic_add(&losses[u], (vertex_t)1) == 0;
        }
        u32 peeled = __ballot_sync(0xFFFFFFFFu, is_found && is_owned);
        if (v < 0 && peeled) {
          int leader = __ffs(peeled) - 1;
          v = __shfl_sync(0xFFFFFFFFu, u, leader);
          if (lane_index() == leader) is_found = false;
        }
        if (is_found) found[reserve(&counters[0])] = (vertex_t)u;
      }
    }
  }
  if (lane_index() == 0 && scanned) atomic_add(&counters[1], scanned);
}

extern "C" __global__ void merge_losses(i64 lo, i64 hi, const vertex_t* states,
                                        const vertex_t* counts, i64 base, i64 level, i64* left,
                                        vertex_t* found, i64* counters) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t v = states[i];
    if (lose(&left[v - base], counts[i], level)) found[reserve(&counters[0])] = v;
  }
}

extern "C" __global__ void list_level(i64 lo, i64 hi, const vertex_t* listed, i64 base, i64 level,
                                      const i64* left, vertex_t* rest, vertex_t* found,
                                      i64* counters) {
  i64 least = top_of<i64>::value();
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t v = listed[i];
    i64 arcs = left[v - base];
    if (arcs == level) found[reserve(&counters[1])] = v;
    if (arcs <= level) continue;
    rest[reserve(&counters[0])] = v;
    if (arcs < least) least = arcs;
  }
  least = warp_min(least);
  if (lane_index() == 0) lower(&counters[2], least);
}
