#include "prelude.cuh"
#include "trees.cuh"

extern "C" __global__ void cover_paths(i64 lo, i64 hi, const vertex_t* near, const vertex_t* far,
                                       const int* levels, const vertex_t* parents, vertex_t* tops) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t u = near[i], v = far[i];
    if (u >= v || parents[u] == v || parents[v] == u) continue;
    u = compress_path(tops, u);
    v = compress_path(tops, v);
    // Race: another thread may have covered the edge meanwhile, or does now. What it writes is the
    // parent too, or a vertex further up. A path that was read before is shorter, and the rest is
    // covered again.
    while (u != v) {
      if (levels[u] < levels[v]) {
        vertex_t lower = v;
        v = u;
        u = lower;
      }
      // No vertex of this level or below is above both.
      vertex_t above = parents[u];
      store_relaxed(&tops[u], above);
      u = compress_path(tops, above);
    }
  }
}
