#include "prelude.cuh"
#include "tiles.cuh"

// Link the larger of two roots to the smaller; return whether they differ.
__device__ inline bool hook_pair(vertex_t a, vertex_t b, vertex_t* lower) {
  if (a == b) return false;
  vertex_t high = a < b ? b : a, low = a < b ? a : b;
  // Race: an entry only falls, so that a load that finds it small enough remains valid.
  if (load_relaxed(&lower[high]) > low) atomic_min(&lower[high], low);
  return true;
}

extern "C" __global__ void mark_torn(i64 lo, i64 hi, i64 first, const i64* indptr,
                                     const vertex_t* targets, const id_t* labels, u8* is_mismatch) {
  for (i64 row = lo + warp_index(); row < hi; row += warp_count()) {
    for (i64 i = indptr[row] + lane_index(); i < indptr[row + 1]; i += 32) {
      // Race: several lanes may mark a row at a time; all of them write the same 1.
      if (labels[targets[i]] != labels[first + row]) store_relaxed(&is_mismatch[row], (u8)1);
    }
  }
}

extern "C" __global__ void hook_roots(i64 lo, i64 hi, i64 first, const i64* indptr,
                                      const vertex_t* targets, const vertex_t* roots,
                                      vertex_t* lower, i64* counters) {
  i64 num_arcs = 0;
  for (i64 row = lo + warp_index(); row < hi; row += warp_count()) {
    for (i64 i = indptr[row] + lane_index(); i < indptr[row + 1]; i += 32)
      num_arcs += hook_pair(roots[first + row], roots[targets[i]], lower);
  }
  warp_add(&counters[0], num_arcs);
}

extern "C" __global__ void __launch_bounds__(1024)
    mark_torn_edges(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                    const i64* tile_edges, const i64* tile_starts, const u32* words,
                    i64 segment_bits, i64 both_ways, const id_t* labels, u8* is_mismatch) {
  u32 mask = (u32)(((i64)1 << segment_bits) - 1);
  visit_edges(lo, hi, {unit_tiles, unit_segments, tile_edges, tile_starts, words},
              [&](i64 unit, i64 start, i64 e) {
                i64 u = start + (words[e] >> segment_bits);
                i64 v = unit_segments[unit] + (words[e] & mask);
                if (labels[u] == labels[v]) return;
                // Race: several threads may mark a state at a time; all of them write the same 1.
                store_relaxed(&is_mismatch[u], (u8)1);
                if (both_ways) store_relaxed(&is_mismatch[v], (u8)1);
              });
}

extern "C" __global__ void __launch_bounds__(1024)
    hook_roots_of_edges(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                        const i64* tile_edges, const i64* tile_starts, const u32* words,
                        i64 segment_bits, const vertex_t* roots, vertex_t* lower, i64* counters) {
  u32 mask = (u32)(((i64)1 << segment_bits) - 1);
  i64 num_edges = 0;
  visit_edges(lo, hi, {unit_tiles, unit_segments, tile_edges, tile_starts, words},
              [&](i64 unit, i64 start, i64 e) {
                vertex_t a = roots[start + (words[e] >> segment_bits)];
                num_edges += hook_pair(a, roots[unit_segments[unit] + (words[e] & mask)], lower);
              });
  warp_add(&counters[0], num_edges);
}
