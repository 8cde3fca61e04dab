#include "prelude.cuh"

extern "C" __global__ void exchange_scores(i64 lo, i64 hi, const i64* indptr,
                                           const vertex_t* targets, const weight_t* weights,
                                           double share, const double* hubs,
                                           const double* authorities, i64* along, i64* against) {
  for (i64 row = lo + warp_index(); row < hi; row += warp_count()) {
    i64 got = 0;
    for (i64 arc = indptr[row] + lane_index(); arc < indptr[row + 1]; arc += 32) {
      double part = weights ? (double)weights[arc] * share : share;
      atomic_add(&along[targets[arc]], (i64)(hubs[row] * part * 0x1p60));
      got += (i64)(authorities[targets[arc]] * part * 0x1p60);
    }
    got = warp_sum(got);
    if (lane_index() == 0) against[row] = got;
  }
}
