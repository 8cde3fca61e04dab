#include "prelude.cuh"

extern "C" __global__ void count_degrees(i64 lo, i64 hi, const id_t* sources, const id_t* targets,
                                         u32* out_degrees, u32* in_degrees, i64* num_loops) {
  i64 loops = 0;
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    id_t u = sources[i], v = targets[i];
    if (u == v) {
      loops++;
    } else {
      atomic_add(&out_degrees[u], 1u);
      atomic_add(&in_degrees[v], 1u);
    }
  }
  if (loops) atomic_add(num_loops, loops);
}

extern "C" __global__ void count_values(i64 lo, i64 hi, const vertex_t* values, i64* counts) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    atomic_add(&counts[values[i]], (i64)1);
}
