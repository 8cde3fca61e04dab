#include "prelude.cuh"

extern "C" __global__ void look_up(i64 lo, i64 hi, const id_t* ids, const vertex_t* table,
                                   vertex_t* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) out[i] = table[ids[i]];
}

extern "C" __global__ void bucket_arcs(i64 lo, i64 hi, const id_t* owners, const vertex_t* rows,
                                       const vertex_t* targets, const weight_t* weights,
                                       i64* cursors, vertex_t* out_rows, vertex_t* out_targets,
                                       weight_t* out_weights) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 slot =
        reserve_of(cursors, (i64)owners[i]);  // few distinct owners: one atomic per warp and owner
    out_rows[slot] = rows[i];
    out_targets[slot] = targets[i];
    if (weights) out_weights[slot] = weights[i];
  }
}

extern "C" __global__ void place_arcs(i64 lo, i64 hi, const vertex_t* rows, const vertex_t* targets,
                                      const weight_t* weights, i64* cursors, vertex_t* out_targets,
                                      weight_t* out_weights) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 slot = atomic_add(&cursors[rows[i]], (i64)1);
    out_targets[slot] = targets[i];
    if (weights) out_weights[slot] = weights[i];
  }
}

extern "C" __global__ void pack_keys(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                     i64 shift, i64 first_row, i64* keys) {
  i64 base = indptr[first_row];
  for (i64 row = lo + warp_index(); row < hi; row += warp_count())
    for (i64 i = indptr[row] + lane_index(); i < indptr[row + 1]; i += 32)
      keys[i - base] = ((row - first_row) << shift) | (i64)targets[i];
}

extern "C" __global__ void lightest_of_runs(i64 lo, i64 hi, const i64* starts, const i64* order,
                                            const weight_t* weights, weight_t* out_weights) {
  for (i64 j = lo + thread_index(); j < hi; j += thread_count()) {
    weight_t lightest = weights[order[starts[j]]];
    for (i64 i = starts[j] + 1; i < starts[j + 1]; i++) {
      weight_t w = weights[order[i]];
      lightest = w < lightest ? w : lightest;
    }
    out_weights[j] = lightest;
  }
}

extern "C" __global__ void unpack_rows(i64 lo, i64 hi, const i64* indptr, i64 num_rows, i64 first,
                                       i64 multiplier, i64 begin, vertex_t* positions) {
  for (i64 arc = lo + thread_index(); arc < hi; arc += thread_count())
    positions[arc - begin] = (vertex_t)(row_of_arc(indptr, num_rows, arc) * multiplier + first);
}

extern "C" __global__ void first_targets(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                         i64 num_rows, i64 base, vertex_t* first_neighbors,
                                         i64* num_degree_at_most_one) {
  for (i64 u = lo + thread_index(); u < hi; u += thread_count()) {
    i64 length = indptr[u + 1] - indptr[u], rows_after = num_rows - 1 - u;
    first_neighbors[u] = length ? targets[indptr[u]] : (vertex_t)(base + u);
    // Race: `num_degree_at_most_one` only falls, so that a row skipped by this test would not lower
    // it.
    if (length > 1 && rows_after < load_relaxed(num_degree_at_most_one))
      atomic_min(num_degree_at_most_one, rows_after);
  }
}
