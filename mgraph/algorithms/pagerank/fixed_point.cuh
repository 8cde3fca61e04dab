// What the kernels of PageRank share: numbers in units of 2^-62, and their sums.

#include "prelude.cuh"

// The product of two numbers up to 1, rounded down: see fixed_point.py.
__device__ inline i64 scaled(i64 a, i64 b) {
  i64 low = (1ll << 31) - 1, a_high = a >> 31, b_high = b >> 31;
  i64 middle = a_high * (b & low) + (a & low) * b_high + ((a & low) * (b & low) >> 31);
  return a_high * b_high + (middle >> 31);
}
// What an arc passes on of what its source gives.
__device__ inline i64 share_of(dist_t given, weight_t weight) {
  return (i64)((double)given * (double)weight);
}
__device__ inline i64 along(dist_t given, const weight_t* weights, i64 arc) {
  return weights ? share_of(given, weights[arc]) : (i64)given;
}
// Add a part of each lane to sums[key], with one atomic for each run of lanes with equal keys; none
// for key -1. By a whole converged warp.
__device__ inline void add_by_key(i64* sums, i64 key, i64 part) {
  int lane = lane_index();
  i64 previous = __shfl_up_sync(0xFFFFFFFFu, key, 1);
  u32 heads = __ballot_sync(0xFFFFFFFFu, lane == 0 || previous != key);
  // How many lanes of its run are before this one.
  int before = lane - (31 - __clz((int)(heads & ((2u << lane) - 1))));
  for (int d = 1; d < 32; d <<= 1) {
    i64 other = __shfl_up_sync(0xFFFFFFFFu, part, d);
    if (d <= before) part += other;
  }
  if (key >= 0 && (lane == 31 || heads >> (lane + 1) & 1)) atomic_add(&sums[key], part);
}
