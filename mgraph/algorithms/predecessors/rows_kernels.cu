// Kernels of algorithms/predecessors/rows.py, which finds predecessors after the fixed point.
// rows_kernels.py documents each kernel and its parameters.

#include "prelude.cuh"
#include "rows_kernels.cuh"

extern "C" __global__ void digest_distances(i64 lo, i64 hi, const dist_t* dist, u8* low_bytes) {
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) low_bytes[v] = (u8)dist[v];
}

extern "C" __global__ void find_core(i64 lo, i64 hi, i64 step, const dist_t* dist, i64 stride,
                                     i64 multiplier, dist_t* threshold) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    atomic_min(threshold, dist[state_of(i * step, stride, multiplier)]);
}

extern "C" __global__ void offer_early(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                       const weight_t* weights, const dist_t* dist,
                                       const dist_t* threshold, i64 base, i64 stride,
                                       i64 multiplier, i64 capacity, vertex_t* candidates) {
  Arcs arcs(targets, weights, indptr[hi]);
  dist_t dense_begin = *threshold;
  auto is_below = [&](i64 v) { return dist[base + v] < dense_begin; };
  each_row_by_block<8>(lo, hi, false, is_below, [&](i64 row) {
    i64 end = indptr[row + 1];
    dist_t own = dist[base + row];
    vertex_t position = position_of((vertex_t)(base + row), stride, multiplier);
    for (i64 i = indptr[row] + threadIdx.x; i < end; i += DEPTH * blockDim.x) {
      vertex_t u[DEPTH];
      dist_t w[DEPTH], far[DEPTH];
      arcs.load_strided(i, blockDim.x, end, u, w);
#pragma unroll
      for (int j = 0; j < DEPTH; j++) far[j] = w[j] < top_of<dist_t>::value() ? dist[u[j]] : own;
#pragma unroll
      for (int j = 0; j < DEPTH; j++) {
        if (far[j] <= own || far[j] == top_of<dist_t>::value() || (dist_t)(own + w[j]) != far[j])
          continue;
        // A pair of vertices holds a 64-bit counter.
        i64 place = 1 + reserve((i64*)candidates);
        if (place <= capacity) {
          candidates[2 * place] = u[j];
          candidates[2 * place + 1] = position;
        }
      }
    }
  });
}

// As many threads as candidates fit share the candidates that there are.
extern "C" __global__ void take_offers(i64 lo, i64 hi, const vertex_t* candidates, i64 capacity,
                                       i64 num_ranks, i64 base, i64 num_owned, vertex_t* parents,
                                       dist_t* threshold) {
  for (i64 r = 0; r < num_ranks; r++) {
    if (*(const i64*)(candidates + 2 * (capacity + 1) * r) <= capacity) continue;
    if (thread_index() == 0) *threshold = 0;
    return;
  }
  for (i64 r = 0; r < num_ranks; r++) {
    const vertex_t* of_rank = candidates + 2 * (capacity + 1) * r;
    i64 last = *(const i64*)of_rank;
    for (i64 i = 1 + thread_index(); i <= last; i += thread_count()) {
      i64 v = (i64)of_rank[2 * i] - base;
      if (v >= 0 && v < num_owned) atomic_min(&parents[v], of_rank[2 * i + 1]);
    }
  }
}

extern "C" __global__ void find_nearer_by_weight(i64 lo, i64 hi, i64 falling, const i64* indptr,
                                                 const vertex_t* lightest_targets,
                                                 const weight_t* lightest_weights, double scale,
                                                 const dist_t* dist, const dist_t* threshold,
                                                 i64 base, i64 stride, i64 multiplier,
                                                 vertex_t* parents) {
  dist_t dense_begin = threshold ? *threshold : 0;
  LightArcs light = {indptr,
                     {lightest_targets, lightest_weights, scale},
                     dist,
                     parents,
                     dense_begin,
                     base,
                     stride,
                     multiplier,
                     Arcs(lightest_targets, lightest_weights, lightest_begin(indptr[hi]))};
  // In degree order the longest rows come first: those of hubs are dealt out in parts, so that all
  // warps have some.
  i64 hubs = falling ? count_longer_rows(HUB_ROW, lo, hi, indptr) - lo : 0;
  i64 num_long = falling ? count_longer_rows(BLOCK_ROW, lo, hi, indptr) : hi;
  i64 num_medium = falling ? count_longer_rows(LANE_ROW, lo, hi, indptr) : hi;
  i64 parts = hubs && hubs < warp_count() ? warp_count() / hubs : 1;
  for (i64 k = warp_index(); k < hubs * parts; k += warp_count()) {
    i64 v = lo + k % hubs;
    dist_t own = dist[base + v];
    if (own <= dense_begin || own == top_of<dist_t>::value()) continue;
    vertex_t parent = light.first_of_part(v, own, k / hubs, parts);
    if (lane_index() == 0 && parent < top_of<vertex_t>::value()) atomic_min(&parents[v], parent);
  }
  // Adjacent rows have similar lengths from there on.
  light.search_rows<32>(lo + hubs, num_long, falling);
  light.search_rows<8>(num_long, num_medium, true);
  // Degrees fall, not row lengths: rows have lost their parallel arcs, and a few longer ones come
  // behind shorter ones. Of those that have a candidate no other kernel scans the light arcs.
  if (dense_begin) light.search_rows<32>(num_medium, hi, false);
}

extern "C" __global__ void __launch_bounds__(1024)
    find_before_candidates(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                           const weight_t* weights, const weight_t* lightest_weights, double scale,
                           const dist_t* dist, const dist_t* threshold, i64 base, i64 stride,
                           i64 multiplier, vertex_t* parents) {
  dist_t dense_begin = *threshold;
  if (!dense_begin) return;
  LightestArcs lightest = {nullptr, lightest_weights, scale};
  Rows rows = {indptr, dist + base, parents};
  // Few vertices have a candidate: no other rows are loaded.
  auto open = [&](i64 v) {
    if (load_relaxed(&parents[v]) == top_of<vertex_t>::value()) return false;
    Row row = rows(v);
    return row.length() > LANE_ROW && row.own > dense_begin && row.own != top_of<dist_t>::value() &&
           lightest.are_all_below(lightest.of_row(row.begin, row.end),
                                  class_edge((dist_t)(row.own - dense_begin), scale));
  };
  auto explains = [&](dist_t own, const vertex_t(&u)[DEPTH], const dist_t(&w)[DEPTH]) {
    dist_t near[DEPTH];
    u32 hits = 0;
#pragma unroll
    for (int k = 0; k < DEPTH; k++) near[k] = (dist_t)(own - dense_begin) < w[k] ? own : dist[u[k]];
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
      hits |= (u32)(near[k] < own && (dist_t)(near[k] + w[k]) == own) << k;
    return hits;
  };
  auto settle = [&](i64 v, const Row& row, i64 i) {
    if (i == row.end) return;
    vertex_t parent = position_of(targets[i], stride, multiplier);
    if (parent < row.parent) store_relaxed(&parents[v], parent);
  };
  settle_by_block<8>(lo, hi, false, rows, Arcs(targets, weights, indptr[hi]), open, explains,
                     settle);
}

extern "C" __global__ void __launch_bounds__(1024)
    find_nearer(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets, const weight_t* weights,
                i64 long_rows, const dist_t* dist, const u8* low_bytes, const dist_t* threshold,
                i64 base, i64 stride, i64 multiplier, vertex_t* parents, i64* counters) {
  vertex_t none = top_of<vertex_t>::value();
  dist_t dense_begin = threshold ? *threshold : 0;
  auto open = [&](const Row& row) {
    if (row.own == top_of<dist_t>::value()) return false;
    return row.parent == none || (dense_begin && row.own > dense_begin && row.length() <= LANE_ROW);
  };
  auto explains = [&](dist_t own, const vertex_t(&u)[DEPTH], const dist_t(&w)[DEPTH]) {
    dist_t near[DEPTH], max_weight = own > dense_begin ? own - dense_begin : 0;
    bool scans[DEPTH];
    u32 hits = 0;
    // An arc longer than the path from the threshold is no part of it, and its source is not looked
    // up. Nor is a source with another low byte, where these are given.
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
      scans[k] = w[k] <= max_weight && (!low_bytes || low_bytes[u[k]] == (u8)(own - w[k]));
#pragma unroll
    for (int k = 0; k < DEPTH; k++) near[k] = scans[k] ? dist[u[k]] : own;
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
      hits |= (u32)(near[k] < own && (dist_t)(near[k] + w[k]) == own) << k;
    return hits;
  };
  auto settle = [&](i64 v, const Row& row, i64 i) {
    vertex_t parent = i < row.end ? position_of(targets[i], stride, multiplier) : none;
    if (parent < row.parent)
      store_relaxed(&parents[v], parent);
    else if (row.parent == none)
      atomic_add(&counters[0], (i64)1);
  };
  settle_rows(lo, hi, long_rows, {indptr, dist + base, parents}, Arcs(targets, weights, indptr[hi]),
              open, explains, settle);
}

extern "C" __global__ void __launch_bounds__(1024)
    find_equal(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets, const weight_t* weights,
               const dist_t* dist, const u8* hops, i64 base, i64 stride, i64 multiplier,
               vertex_t* parents, u8* new_hops, i64* counters) {
  auto open = [&](const Row& row) {
    return row.parent == top_of<vertex_t>::value() && row.own != top_of<dist_t>::value();
  };
  auto explains = [&](dist_t own, const vertex_t(&u)[DEPTH], const dist_t(&w)[DEPTH]) {
    u32 hits = 0;
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
      hits |= (u32)(w[k] <= own && (dist_t)(own + w[k]) == own && hops[u[k]] && dist[u[k]] == own)
              << k;
    return hits;
  };
  auto settle = [&](i64 v, const Row& row, i64 i) {
    if (i == row.end) return;
    store_relaxed(&parents[v], position_of(targets[i], stride, multiplier));
    new_hops[v] = 1;
    atomic_add(&counters[0], (i64)1);
  };
  settle_rows(lo, hi, hi, {indptr, dist + base, parents}, Arcs(targets, weights, indptr[hi]), open,
              explains, settle);
}
