#include "prelude.cuh"

extern "C" __global__ void relax_light(i64 lo, i64 hi, const vertex_t* frontier, const i64* indptr,
                                       const vertex_t* targets, const weight_t* weights,
                                       double scale, const dist_t* bounds, dist_t* dist,
                                       u32* marked, vertex_t* near, i64* counters) {
  dist_t bound = bounds[1], cutoff = bounds[2];
  i64 arcs = 0, total = 0;
  for (i64 k = lo + thread_index(); k < hi; k += thread_count()) {
    vertex_t u = frontier[k];
    dist_t d = load_relaxed(&dist[u]);
    i64 begin = indptr[u], end = indptr[u + 1], i = begin;
    double edge = class_edge((dist_t)(bound - d), scale);
    for (; i < end && (double)weights[i] * scale < edge; i++) {
      vertex_t v = targets[i];
      dist_t through = d + (dist_t)weights[i];
      if (through >= load_relaxed(&dist[v]) || through > cutoff) continue;
      if (through < atomic_min(&dist[v], through) && through < bound && set_bit(marked, v))
        near[reserve(&counters[0])] = v;
    }
    arcs += i - begin;
    total += end - begin;
  }
  atomic_add(&counters[1], arcs);
  atomic_add(&counters[2], total);
}

extern "C" __global__ void measure_heavy(i64 lo, i64 hi, const vertex_t* frontier,
                                         const i64* indptr, const weight_t* weights,
                                         const dist_t* dist, const dist_t* bounds, double scale,
                                         i64* begins, i64* lengths) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t v = frontier[i];
    i64 end = indptr[v + 1];
    begins[i] =
        light_end(weights, indptr[v], end, scale, class_edge((dist_t)(bounds[0] - dist[v]), scale));
    lengths[i] = end - begins[i];
  }
}

extern "C" __global__ void list_settled(i64 lo, i64 hi, const i64* indptr, const dist_t* dist,
                                        const dist_t* bounds, u32* marked, vertex_t* settled,
                                        vertex_t* near, dist_t* lowest, i64* counters) {
  dist_t begin = bounds[3], end = bounds[0], bound = bounds[1], best = top_of<dist_t>::value();
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) {
    dist_t d = dist[v];
    if (d >= bound) {
      if (d < best) best = d;
    } else if (d >= end) {
      set_bit(marked, v);
      near[reserve(&counters[0])] = (vertex_t)v;
    } else if (d >= begin) {
      atomic_add(&counters[2], indptr[v + 1] - indptr[v]);
      settled[reserve(&counters[1])] = (vertex_t)v;
    }
  }
  lower(lowest, best);
}

extern "C" __global__ void pull_distances(i64 lo, i64 hi, const i64* indptr,
                                          const vertex_t* targets, const weight_t* weights,
                                          double scale, const dist_t* bounds, dist_t* dist,
                                          vertex_t* near, dist_t* lowest, i64* counters) {
  dist_t begin = bounds[3], settled = bounds[0], bound = bounds[1], cutoff = bounds[2],
         pull_limit = bounds[4];
  dist_t best = top_of<dist_t>::value();
  i64 arcs = 0, total = 0;
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) {
    dist_t d = load_relaxed(&dist[v]), before = d;
    if (d < settled) {
      if (d >= begin) total += indptr[v + 1] - indptr[v];
      continue;
    }
    // A distance that falls meanwhile was not settled, and is not now: it is not used here, or is
    // pushed then.
    double edge = class_edge((dist_t)(d - begin), scale);
    for (i64 i = indptr[v]; i < indptr[v + 1] && (double)weights[i] * scale < edge; i++) {
      arcs++;
      dist_t other = load_relaxed(&dist[targets[i]]);
      if (other >= pull_limit) continue;
      dist_t through = other + (dist_t)weights[i];
      if (through < d && through <= cutoff) {
        d = through;
        edge = class_edge((dist_t)(d - begin), scale);
      }
    }
    store_relaxed(&dist[v], d);
    if (d < bound && (d < before || pull_limit == settled))
      near[reserve(&counters[0])] = (vertex_t)v;
    else if (d >= bound && d < best)
      best = d;
  }
  lower(lowest, best);
  atomic_add(&counters[1], arcs);
  atomic_add(&counters[2], total);
}
