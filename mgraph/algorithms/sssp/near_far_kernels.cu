#include "prelude.cuh"

extern "C" __global__ void relax_frontier(i64 lo, i64 hi, const vertex_t* frontier,
                                          i64 num_frontier, const i64* offsets, const i64* begins,
                                          const vertex_t* targets, const weight_t* weights,
                                          const dist_t* bounds, dist_t* dist, u32* marked,
                                          vertex_t* found, i64* counters) {
  dist_t cutoff = bounds[2];
  each_arc_of_rows(lo, hi, offsets, num_frontier, [&](i64 k, i64 arc) {
    vertex_t state = frontier[k];
    i64 slot = begins[k] + arc - offsets[k];
    vertex_t v = targets[slot];
    dist_t through = load_relaxed(&dist[state]) + (dist_t)weights[slot];
    if (through >= load_relaxed(&dist[v]) || through > cutoff) return;
    if (through < atomic_min(&dist[v], through) && set_bit(marked, v))
      found[reserve(&counters[0])] = v;
  });
}

extern "C" __global__ void merge_distances(i64 lo, i64 hi, const vertex_t* states,
                                           const dist_t* values, dist_t* dist, u32* marked,
                                           vertex_t* found, i64* counters) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t v = states[i];
    if (values[i] < atomic_min(&dist[v], values[i]) && set_bit(marked, v))
      found[reserve(&counters[0])] = v;
  }
}

extern "C" __global__ void clear_marks(i64 lo, i64 hi, const vertex_t* states, u32* marked) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) clear_bit(marked, states[i]);
}

extern "C" __global__ void split_found(i64 lo, i64 hi, const vertex_t* found, const dist_t* dist,
                                       const dist_t* bounds, i64 keeps, u32* in_far, vertex_t* near,
                                       vertex_t* far, dist_t* lowest, i64* counters) {
  dist_t best = top_of<dist_t>::value();
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t v = found[i];
    dist_t d = dist[v];
    if (d < bounds[1]) {
      near[reserve(&counters[0])] = v;
      continue;
    }
    if (d < best) best = d;
    if (keeps && set_bit(in_far, v)) far[reserve(&counters[1])] = v;
  }
  lower(lowest, best);
}

extern "C" __global__ void split_far(i64 lo, i64 hi, const vertex_t* far, const dist_t* dist,
                                     const dist_t* bounds, u32* in_far, vertex_t* near,
                                     vertex_t* next_far, dist_t* lowest, i64* counters) {
  dist_t best = top_of<dist_t>::value();
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t v = far[i];
    dist_t d = dist[v];
    if (d >= bounds[1]) {
      if (d < best) best = d;
      next_far[reserve(&counters[1])] = v;
      continue;
    }
    clear_bit(in_far, v);
    if (d >= bounds[0]) near[reserve(&counters[0])] = v;
  }
  lower(lowest, best);
}

extern "C" __global__ void scan_distances(i64 lo, i64 hi, const dist_t* dist, const dist_t* bounds,
                                          vertex_t* near, dist_t* lowest, i64* counters) {
  dist_t best = top_of<dist_t>::value();
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) {
    dist_t d = dist[v];
    if (d >= bounds[1])
      best = d < best ? d : best;
    else if (d >= bounds[0])
      near[reserve(&counters[0])] = (vertex_t)v;
  }
  lower(lowest, best);
}

extern "C" __global__ void measure_rows(i64 lo, i64 hi, const vertex_t* states, const i64* indptr,
                                        i64 stride, i64* begins, i64* lengths) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t local = states[i] % (vertex_t)stride;
    begins[i] = indptr[local];
    lengths[i] = indptr[(i64)local + 1] - indptr[local];
  }
}
