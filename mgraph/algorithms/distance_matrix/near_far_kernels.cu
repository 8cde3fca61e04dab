#include "prelude.cuh"

extern "C" __global__ void relax_pairs(i64 lo, i64 hi, const vertex_t* frontier, i64 num_frontier,
                                       const i64* offsets, const i64* begins,
                                       const vertex_t* targets, const weight_t* weights,
                                       const i64* shape, const dist_t* bounds, dist_t* dist,
                                       u32* marked, vertex_t* found, i64* counters) {
  dist_t cutoff = bounds[2];
  // In the width of a vertex: a 64-bit division takes several times as long as a 32-bit one.
  vertex_t num_sources = (vertex_t)shape[0];
  vertex_t stride = (vertex_t)shape[1];
  each_arc_of_rows(lo, hi, offsets, num_frontier, [&](i64 k, i64 arc) {
    vertex_t pair = frontier[k];
    vertex_t source = pair / stride % num_sources;
    i64 slot = begins[k] + arc - offsets[k];
    vertex_t v = targets[slot];
    vertex_t reached = v + (v / stride * (num_sources - 1) + source) * stride;
    dist_t through = load_relaxed(&dist[pair]) + (dist_t)weights[slot];
    if (through >= load_relaxed(&dist[reached]) || through > cutoff) return;
    if (through < atomic_min(&dist[reached], through) && set_bit(marked, reached))
      found[reserve(&counters[0])] = reached;
  });
}
