#include "prelude.cuh"

extern "C" __global__ void count_lower(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                       i64 first, i64 stride, i64 multiplier, i64* counts) {
  for (i64 u = lo + thread_index(); u < hi; u += thread_count()) {
    i64 own = u * multiplier + first;
    i64 below = indptr[u], above = indptr[u + 1];
    while (below < above) {
      i64 middle = (below + above) >> 1;
      if ((i64)position_of(targets[middle], stride, multiplier) < own)
        below = middle + 1;
      else
        above = middle;
    }
    counts[u] = below - indptr[u];
  }
}

extern "C" __global__ void list_ends(i64 lo, i64 hi, const i64* offsets, i64 num_rows,
                                     const i64* indptr, const vertex_t* targets,
                                     const weight_t* weights, i64 base, i64 begin,
                                     vertex_t* out_sources, vertex_t* out_targets,
                                     weight_t* out_weights) {
  for (i64 edge = lo + thread_index(); edge < hi; edge += thread_count()) {
    i64 row = row_of_arc(offsets, num_rows, edge);
    i64 arc = indptr[row] + edge - offsets[row];
    out_sources[edge - begin] = (vertex_t)(base + row);
    out_targets[edge - begin] = targets[arc];
    if (weights) out_weights[edge - begin] = weights[arc];
  }
}
