// One thread for each edge of a list, which is relaxed in both directions from one read.
//
// Races: a state is stored, not lowered by an atomic. A smaller value that is overwritten by a
// larger one is found again by the next launch, and the last launch, which stores nothing, has read
// what all others have left: so the fixed point is the same, after perhaps more launches. A stale
// value is never smaller than the state, and is correct for the same reason.

#include "prelude.cuh"

// The paper's read-only path is a second pointer to the same array. What is read through it may be
// as old as the launch; other loads have the newest value.
template <bool READ_ONLY, class T> __device__ inline T seen(const T* p) {
  return READ_ONLY ? load_stale(p) : load_relaxed(p);
}

template <bool READ_ONLY> __device__ inline void relax(i64 lo, i64 hi, const u32* starts,
                                                       const u32* ends, const double* weights,
                                                       i64 iteration, double* dist, i64* modified) {
  for (i64 e = lo + thread_index(); e < hi; e += thread_count()) {
    u32 u = starts[e], v = ends[e];
    double weight = weights[e], from = seen<READ_ONLY>(&dist[u]), to = seen<READ_ONLY>(&dist[v]);
    if (to > from + weight)
      store_relaxed(&dist[v], from + weight);
    else if (from > to + weight)
      store_relaxed(&dist[u], to + weight);
    else
      continue;
    store_relaxed(modified, iteration);
  }
}

extern "C" __global__ void relax_edges(i64 lo, i64 hi, const u32* starts, const u32* ends,
                                       const double* weights, i64 iteration, double* dist,
                                       i64* modified) {
  relax<false>(lo, hi, starts, ends, weights, iteration, dist, modified);
}

extern "C" __global__ void relax_edges_read_only(i64 lo, i64 hi, const u32* starts, const u32* ends,
                                                 const double* weights, i64 iteration, double* dist,
                                                 i64* modified) {
  relax<true>(lo, hi, starts, ends, weights, iteration, dist, modified);
}

// Each direction by itself: the list has every edge twice.
extern "C" __global__ void relax_arcs(i64 lo, i64 hi, const u32* starts, const u32* ends,
                                      const double* weights, i64 iteration, double* dist,
                                      i64* modified) {
  for (i64 e = lo + thread_index(); e < hi; e += thread_count()) {
    u32 v = ends[e];
    double from = load_stale(&dist[starts[e]]) + weights[e];
    if (load_stale(&dist[v]) > from) {
      store_relaxed(&dist[v], from);
      store_relaxed(modified, iteration);
    }
  }
}

template <bool READ_ONLY> __device__ inline void advance(i64 lo, i64 hi, const u32* starts,
                                                         const u32* ends, i64 level, u8* levels,
                                                         i64* modified) {
  for (i64 e = lo + thread_index(); e < hi; e += thread_count()) {
    u32 u = starts[e], v = ends[e];
    u8 from = seen<READ_ONLY>(&levels[u]), to = seen<READ_ONLY>(&levels[v]);
    if (from == level && to > level + 1)
      store_relaxed(&levels[v], (u8)(level + 1));
    else if (to == level && from > level + 1)
      store_relaxed(&levels[u], (u8)(level + 1));
    else
      continue;
    store_relaxed(modified, level + 1);
  }
}

extern "C" __global__ void advance_edges(i64 lo, i64 hi, const u32* starts, const u32* ends,
                                         i64 level, u8* levels, i64* modified) {
  advance<false>(lo, hi, starts, ends, level, levels, modified);
}

extern "C" __global__ void advance_edges_read_only(i64 lo, i64 hi, const u32* starts,
                                                   const u32* ends, i64 level, u8* levels,
                                                   i64* modified) {
  advance<true>(lo, hi, starts, ends, level, levels, modified);
}

extern "C" __global__ void advance_arcs(i64 lo, i64 hi, const u32* starts, const u32* ends,
                                        i64 level, u8* levels, i64* modified) {
  for (i64 e = lo + thread_index(); e < hi; e += thread_count()) {
    u32 v = ends[e];
    if (load_stale(&levels[starts[e]]) == level && load_stale(&levels[v]) > level + 1) {
      store_relaxed(&levels[v], (u8)(level + 1));
      store_relaxed(modified, level + 1);
    }
  }
}

// A thread for each vertex looks whether it is on the level. The paper then launches a child kernel
// over its arcs; here the warp processes the arcs of the vertices that its lanes have found.
extern "C" __global__ void advance_vertices(i64 lo, i64 hi, const i64* indptr, const u32* targets,
                                            i64 level, u8* levels, i64* modified) {
  for (i64 base = lo + warp_index() * 32; base < hi; base += thread_count()) {
    i64 own = base + lane_index();
    bool is_found = own < hi && load_stale(&levels[own < hi ? own : lo]) == level;
    for (u32 found = __ballot_sync(0xFFFFFFFFu, is_found); found; found &= found - 1) {
      i64 u = base + __ffs(found) - 1;
      for (i64 arc = indptr[u] + lane_index(); arc < indptr[u + 1]; arc += 32) {
        if (load_stale(&levels[targets[arc]]) <= level + 1) continue;
        store_relaxed(&levels[targets[arc]], (u8)(level + 1));
        store_relaxed(modified, level + 1);
      }
    }
  }
}
