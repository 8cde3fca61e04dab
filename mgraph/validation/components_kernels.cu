#include "prelude.cuh"

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
    for (i64 i = indptr[row] + lane_index(); i < indptr[row + 1]; i += 32) {
      vertex_t a = roots[first + row], b = roots[targets[i]];
      if (a == b) continue;
      num_arcs++;
      vertex_t high = a < b ? b : a, low = a < b ? a : b;
      // Race: an entry only falls, so that a load that finds it small enough remains valid.
      if (load_relaxed(&lower[high]) > low) atomic_min(&lower[high], low);
    }
  }
  warp_add(&counters[0], num_arcs);
}
