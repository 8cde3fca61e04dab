#include "prelude.cuh"

extern "C" __global__ void add_words(i64 lo, i64 hi, const vertex_t* near, const vertex_t* far,
                                     const vertex_t* parents, i64* words) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t u = near[i], v = far[i];
    if (u >= v || parents[u] == v || parents[v] == u) continue;
    u64 word = mix(mix((u64)u) + (u64)v);
    atomic_add(&words[u], (i64)word);
    atomic_add(&words[v], (i64)(0 - word));
  }
}
