#include "fixed_point.cuh"
#include "prelude.cuh"

extern "C" __global__ void total_weights(i64 lo, i64 hi, const i64* indptr, const weight_t* weights,
                                         double* totals, i64* counters) {
  for (i64 row = lo + warp_index(); row < hi; row += warp_count()) {
    double greatest = 0;
    i64 high = 0, low = 0;
    for (i64 arc = indptr[row] + lane_index(); arc < indptr[row + 1]; arc += 32)
      if ((double)weights[arc] > greatest) greatest = (double)weights[arc];
    greatest = -warp_min(-greatest);
    for (i64 arc = indptr[row] + lane_index(); arc < indptr[row + 1] && greatest > 0; arc += 32) {
      // The product and the difference are exact, also if the compiler fuses them.
      double share = (double)weights[arc] / greatest * 0x1p30;
      i64 whole = (i64)share;
      high += whole;
      low += (i64)((share - (double)whole) * 0x1p32);
    }
    high = warp_sum(high);
    low = warp_sum(low);
    if (lane_index()) continue;
    double total = greatest * ((double)high * 0x1p-30 + (double)low * 0x1p-62);
    totals[row] = total;
    if (total > 0 && !(0x1p-900 < total && total < 0x1p1000)) atomic_add(&counters[0], (i64)1);
  }
}

extern "C" __global__ void pull_scores(i64 lo, i64 hi, const i64* indptr, i64 num_rows,
                                       const vertex_t* targets, const weight_t* weights,
                                       const dist_t* given, i64* received, i64* counters) {
  i64 length = ArcTile::length(hi - lo);
  u64 passed = 0;
  for (i64 begin = lo + blockIdx.x * length; begin < hi; begin += gridDim.x * length) {
    i64 end = begin + length < hi ? begin + length : hi;
    ArcTile tile(indptr, num_rows, begin, end);
    // Whole warps: the lanes add up the parts of a row.
    for (i64 first = begin + (threadIdx.x & ~31); first < end; first += blockDim.x) {
      i64 arc = first + lane_index(), row = -1, part = 0;
      if (arc < end) {
        row = tile.row_of(arc);
        part = along(load_readonly(&given[targets[arc]]), weights, arc);
      }
      passed += part;
      add_by_key(received, row, part);
    }
  }
  warp_add(&counters[0], (i64)passed);
}

extern "C" __global__ void settle_scores(i64 lo, i64 hi, const i64* received, const id_t* degrees,
                                         const double* totals, const i64* teleport, i64 rest,
                                         i64 damping, i64* scores, dist_t* given, i64* counters) {
  i64 rises = 0, falls = 0;
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 score = received[i] + (teleport ? scaled(teleport[i], rest) : rest);
    i64 change = score - scores[i], passed = scaled(damping, score);
    if (change > 0)
      rises += change;
    else
      falls -= change;
    scores[i] = score;
    if (totals)
      given[i] = (dist_t)(totals[i] > 0 ? (double)passed / totals[i] : 0.0);
    else
      given[i] = (dist_t)(degrees[i] > 0 ? passed / (i64)degrees[i] : 0);
  }
  warp_add(&counters[0], rises);
  warp_add(&counters[1], falls);
}

extern "C" __global__ void finish_scores(i64 lo, i64 hi, const i64* units, i64 share,
                                         double* scores) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    scores[i] = (double)(units[i] < 0 ? share : units[i]) * 0x1p-62;
}
