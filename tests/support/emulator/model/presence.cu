#include "prelude.cuh"

extern "C" __global__ void tell_presence(i64 lo, i64 hi, const i64* array, i64* found) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) found[i] = array ? 1 : 0;
}
