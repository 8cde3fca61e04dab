#include "lightest_arcs.cuh"
#include "prelude.cuh"

extern "C" __global__ void relax_light(i64 lo, i64 hi, const vertex_t* frontier, const i64* indptr,
                                       const vertex_t* targets, const weight_t* weights,
                                       const vertex_t* lightest_targets,
                                       const weight_t* lightest_weights, double scale,
                                       const dist_t* bounds, dist_t* dist, u32* marked,
                                       vertex_t* near, i64* counters) {
  RowsAndLightest rows = {indptr, targets, weights, {lightest_targets, lightest_weights, scale}};
  dist_t bound = bounds[1], cutoff = bounds[2];
  i64 arcs = 0, total = 0;
  for (i64 k = lo + thread_index(); k < hi; k += thread_count()) {
    vertex_t u = frontier[k];
    dist_t d = load_relaxed(&dist[u]);
    Slots light = rows.light_of(indptr[u], indptr[u + 1], class_edge((dist_t)(bound - d), scale));
    for (i64 slot = light.begin; slot < light.end; slot++) {
      dist_t through = d + rows.weight(slot);
      if (through > bound || through > cutoff) continue;
      vertex_t v = rows.target(slot);
      if (through < load_relaxed(&dist[v]) && through < atomic_min(&dist[v], through) &&
          through < bound && set_bit(marked, v))
        near[reserve(&counters[0])] = v;
    }
    arcs += light.end - light.begin;
    total += indptr[u + 1] - indptr[u];
  }
  atomic_add(&counters[1], arcs);
  atomic_add(&counters[2], total);
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
                                          const vertex_t* lightest_targets,
                                          const weight_t* lightest_weights, double scale,
                                          const dist_t* bounds, dist_t* dist, vertex_t* near,
                                          dist_t* lowest, i64* counters) {
  RowsAndLightest rows = {indptr, targets, weights, {lightest_targets, lightest_weights, scale}};
  dist_t begin = bounds[3], settled = bounds[0], bound = bounds[1], cutoff = bounds[2],
         pull_limit = bounds[4];
  dist_t best = top_of<dist_t>::value();
  i64 arcs = 0, total = 0;
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) {
    dist_t d = load_relaxed(&dist[v]), before = d;
    i64 row_begin = indptr[v], row_end = indptr[v + 1];
    if (d < settled) {
      if (d >= begin) total += row_end - row_begin;
      continue;
    }
    // A distance that falls meanwhile was not settled, and is not now: it is not used here, or is
    // pushed then.
    auto pull_over = [&](i64 slot) {
      dist_t other = load_relaxed(&dist[rows.target(slot)]);
      if (other >= pull_limit) return;
      dist_t through = other + rows.weight(slot);
      if (through < d && through <= cutoff) d = through;
    };
    Slots lightest = rows.lightest_of(row_begin, row_end);
    i64 slot = lightest.begin;
    for (; slot < lightest.end &&
           (double)rows.weight(slot) * scale < class_edge((dist_t)(d - begin), scale);
         slot++) {
      pull_over(slot);
      arcs++;
    }
    if (slot == lightest.end) {
      for (slot = row_begin; slot < row_end; slot++)
        if ((dist_t)(begin + rows.weight(slot)) < d) pull_over(slot);
      arcs += row_end - row_begin;
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
