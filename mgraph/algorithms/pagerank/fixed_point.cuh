// What the kernels of PageRank share: numbers in units of 2^-62, and their sums.

#include "prelude.cuh"

// The product of two numbers up to 1, rounded down: see fixed_point.py.
__device__ inline i64 scaled(i64 a, i64 b) {
  i64 low = (1ll << 31) - 1, a_high = a >> 31, b_high = b >> 31;
  i64 middle = a_high * (b & low) + (a & low) * b_high + ((a & low) * (b & low) >> 31);
  return a_high * b_high + (middle >> 31);
}
// What an arc passes on of what its source gives.
__device__ inline i64 along(dist_t given, const weight_t* weights, i64 arc) {
  return weights ? (i64)((double)given * (double)weights[arc]) : (i64)given;
}
// Add a part of each lane to sums[key], with one atomic for each run of lanes with equal keys; none
// for key -1. By a whole converged warp.
__device__ inline void add_by_key(i64* sums, i64 key, i64 part) {
  for (int d = 1; d < 32; d <<= 1) {
    i64 before = __shfl_up_sync(0xFFFFFFFFu, part, d);
    i64 its_key = __shfl_up_sync(0xFFFFFFFFu, key, d);
    if (lane_index() >= d && its_key == key) part += before;
  }
  i64 next = __shfl_down_sync(0xFFFFFFFFu, key, 1);
  if (key >= 0 && (lane_index() == 31 || next != key)) atomic_add(&sums[key], part);
}
