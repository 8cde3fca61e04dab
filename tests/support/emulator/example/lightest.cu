// One warp for each vertex: each lane scans every 32nd arc, then a reduction gives the lightest.

#include "prelude.cuh"

extern "C" __global__ void find_lightest(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                         const weight_t* weights, vertex_t* neighbour,
                                         i64* num_alone) {
  for (i64 v = lo + warp_index(); v < hi; v += warp_count()) {
    i64 best = indptr[v + 1];
    for (i64 i = indptr[v] + lane_index(); i < indptr[v + 1]; i += 32)
      if (best == indptr[v + 1] || weights[i] < weights[best]) best = i;
    for (int d = 16; d; d >>= 1) {
      i64 other = __shfl_xor_sync(0xFFFFFFFFu, best, d);
      if (other == indptr[v + 1]) continue;
      bool lighter = best == indptr[v + 1] || weights[other] < weights[best];
      // Of two equal weights the first arc wins, whatever lane scanned it.
      if (lighter || (weights[other] == weights[best] && other < best)) best = other;
    }
    if (lane_index()) continue;
    if (best < indptr[v + 1]) {
      neighbour[v] = targets[best];
    } else {
      neighbour[v] = top_of<vertex_t>::value();
      atomic_add(num_alone, (i64)1);
    }
  }
}
