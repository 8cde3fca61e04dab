#include "prelude.cuh"

extern "C" __global__ void spread_scores(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                         const weight_t* weights, const double* scores,
                                         i64* received) {
  for (i64 row = lo + warp_index(); row < hi; row += warp_count()) {
    i64 begin = indptr[row], end = indptr[row + 1];
    double total = (double)(end - begin);
    if (weights) {
      total = 0;
      for (i64 arc = begin + lane_index(); arc < end; arc += 32) total += (double)weights[arc];
      total = warp_sum(total);
    }
    if (!(total > 0)) continue;
    for (i64 arc = begin + lane_index(); arc < end; arc += 32) {
      double part = weights ? scores[row] * ((double)weights[arc] / total) : scores[row] / total;
      atomic_add(&received[targets[arc]], (i64)(part * 0x1p60));
    }
  }
}
