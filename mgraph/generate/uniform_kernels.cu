// Random graphs with uniform ends of edges, or with a fixed out-degree and uniform targets.

#include "prelude.cuh"

extern "C" __global__ void uniform_edges(i64 lo, i64 hi, i64 first, i64 num_vertices, i64 seed,
                                         i64 max_weight, vertex_t* sources, vertex_t* targets,
                                         weight_t* weights) {
  const u64 stream = mix((u64)seed + 17), weights_key = weight_key(seed);
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    u64 state = stream ^ mix(i);
    u64 a = multiply_high(mix(state), num_vertices),
        b = multiply_high(mix(state + GOLDEN), num_vertices);
    sources[i - first] = (vertex_t)a;
    targets[i - first] = (vertex_t)b;
    if (weights)
      weights[i - first] =
          (weight_t)edge_weight(weights_key, a < b ? a : b, a < b ? b : a, max_weight);
  }
}

extern "C" __global__ void fixed_out_degree_arcs(i64 lo, i64 hi, i64 first, i64 num_vertices,
                                                 i64 out_degree, i64 seed, i64 max_weight,
                                                 vertex_t* sources, vertex_t* targets,
                                                 weight_t* weights) {
  const u64 stream = mix((u64)seed + 18), weights_key = weight_key(seed);
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    u64 a = i / out_degree, b = multiply_high(mix(stream ^ mix(i)), num_vertices);
    sources[i - first] = (vertex_t)a;
    targets[i - first] = (vertex_t)b;
    if (weights) weights[i - first] = (weight_t)edge_weight(weights_key, a, b, max_weight);
  }
}
