#include "prelude.cuh"

extern "C" __global__ void count_at_least(i64 lo, i64 hi, i64 base, const i64* indptr,
                                          const vertex_t* targets, const id_t* numbers,
                                          i64* counts) {
  for (i64 row = lo + warp_index(); row < hi; row += warp_count()) {
    id_t number = numbers[base + row];
    i64 count = 0;
    for (i64 i = indptr[row] + lane_index(); i < indptr[row + 1]; i += 32)
      count += numbers[targets[i]] >= number;
    count = warp_sum(count);
    if (lane_index() == 0) counts[row] += count;
  }
}

extern "C" __global__ void lose_equals(i64 lo, i64 hi, const vertex_t* frontier, i64 base,
                                       const i64* indptr, const vertex_t* targets,
                                       const id_t* numbers, vertex_t* losses, vertex_t* touched,
                                       i64* counters) {
  for (i64 k = lo + warp_index(); k < hi; k += warp_count()) {
    vertex_t v = frontier[k];
    i64 row = v - base;
    for (i64 i = indptr[row] + lane_index(); i < indptr[row + 1]; i += 32) {
      vertex_t u = targets[i];
      if (numbers[u] == numbers[v] && atomic_add(&losses[u], (vertex_t)1) == 0)
        touched[reserve(&counters[0])] = u;
    }
  }
}

extern "C" __global__ void release(i64 lo, i64 hi, const vertex_t* states, const vertex_t* counts,
                                   i64 base, i64* excess, vertex_t* released, i64* counters) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 count = counts[i], old = atomic_add(&excess[states[i] - base], -count);
    if (old > 0 && old <= count) released[reserve(&counters[0])] = states[i];
  }
}
