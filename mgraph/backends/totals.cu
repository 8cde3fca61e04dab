#include "prelude.cuh"

extern "C" __global__ void add_up(i64 lo, i64 hi, const id_t* values, i64* total) {
  i64 mine = 0;
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) mine += (i64)values[i];
  warp_add(total, mine);
}

extern "C" __global__ void count_between(i64 lo, i64 hi, const id_t* values, i64 above, i64 below,
                                         i64* count) {
  i64 mine = 0;
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    mine += above < (i64)values[i] && (i64)values[i] < below;
  warp_add(count, mine);
}
