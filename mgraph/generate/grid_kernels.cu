// Road-like grids: each vertex has an edge to the right and one down, of which a random share is
// missing.

#include "prelude.cuh"

extern "C" __global__ void grid_edges(i64 lo, i64 hi, i64 first, i64 rows, i64 columns, i64 seed,
                                      i64 drop, i64 max_weight, i64 none, vertex_t* sources,
                                      vertex_t* targets, weight_t* weights) {
  const u64 stream = mix((u64)seed + 33), weights_key = weight_key(seed);
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 v = i >> 1, j = i - first;
    bool at_border = i & 1 ? v / columns + 1 >= rows : v % columns + 1 >= columns;
    if (at_border || mix(stream ^ mix(i)) < (u64)drop) {
      sources[j] = (vertex_t)none;
      continue;
    }
    i64 u = i & 1 ? v + columns : v + 1;
    sources[j] = (vertex_t)v;
    targets[j] = (vertex_t)u;
    if (weights) weights[j] = (weight_t)edge_weight(weights_key, v, u, max_weight);
  }
}
