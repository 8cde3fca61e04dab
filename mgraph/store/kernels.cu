#include "prelude.cuh"

extern "C" __global__ void move_arcs(i64 lo, i64 hi, const i64* begins, i64 num_rows,
                                     const i64* shifts, const vertex_t* targets,
                                     const weight_t* weights, vertex_t* out_targets,
                                     weight_t* out_weights) {
  for (i64 arc = lo + thread_index(); arc < hi; arc += thread_count()) {
    i64 to = arc + shifts[row_of_arc(begins, num_rows, arc)];
    out_targets[to] = targets[arc];
    if (weights) out_weights[to] = weights[arc];
  }
}
