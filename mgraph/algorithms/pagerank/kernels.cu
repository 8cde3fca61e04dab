#include "fixed_point.cuh"
#include "prelude.cuh"

extern "C" __global__ void total_weights(i64 lo, i64 hi, const i64* indptr, const weight_t* weights,
                                         double* totals, i64* counters) {
  for (i64 row = lo + warp_index(); row < hi; row += warp_count()) {
    double greatest = 0;
    i64 high = 0, low = 0;
    for (i64 arc = indptr[row] + lane_index(); arc < indptr[row + 1]; arc += 32)
      if ((double)weights[arc] > greatest) greatest = (double)weights[arc];
    greatest = -warp_min(-greatest);
    for (i64 arc = indptr[row] + lane_index(); arc < indptr[row + 1] && greatest > 0; arc += 32) {
      // The product and the difference are exact, also if the compiler fuses them.
      double share = (double)weights[arc] / greatest * 0x1p30;
      i64 whole = (i64)share;
      high += whole;
      low += (i64)((share - (double)whole) * 0x1p32);
    }
    high = warp_sum(high);
    low = warp_sum(low);
    if (lane_index()) continue;
    double total = greatest * ((double)high * 0x1p-30 + (double)low * 0x1p-62);
    totals[row] = total;
    if (total > 0 && !(0x1p-900 < total && total < 0x1p1000)) atomic_add(&counters[0], (i64)1);
  }
}

// Whether sources give integers; floats may be multiplied by weights.
constexpr bool GIVES_INTEGERS = (dist_t)0.5 == 0;
// Length of a run, the arcs that a lane reads at once: as many loads in flight as leave registers
// for 1,024 threads of a multiprocessor.
constexpr int RUN = (GIVES_INTEGERS ? 64 : 32) / sizeof(vertex_t);

// Read the values of a run at p, zeros from `end` on.
template <class T> __device__ inline void load_run(const T* p, const T* end, T (&values)[RUN]) {
  if constexpr (Quad<T>::size <= RUN) {
    if (p + RUN <= end && !((u64)p & 15)) {
#pragma unroll
      for (int k = 0; k < RUN; k += Quad<T>::size) {
        Quad<T> quad = load_quad(p + k);
#pragma unroll
        for (int j = 0; j < Quad<T>::size; j++) values[k + j] = quad.of[j];
      }
      return;
    }
  }
#pragma unroll
  for (int k = 0; k < RUN; k++) values[k] = p + k < end ? p[k] : (T)0;
}
// What the arcs first .. end of a run bring, then zeros: all loads are in flight before the first
// is used.
__device__ inline void load_parts(i64 first, i64 end, i64 hi, const vertex_t* targets,
                                  const weight_t* weights, const dist_t* given, i64 (&parts)[RUN]) {
  vertex_t sources[RUN];
  dist_t given_by[RUN];
  load_run(targets + first, targets + hi, sources);
#pragma unroll
  for (int k = 0; k < RUN; k++)
    given_by[k] = first + k < end ? load_readonly(&given[sources[k]]) : (dist_t)0;
  if (!GIVES_INTEGERS && weights) {
    weight_t shares[RUN];
    load_run(weights + first, weights + hi, shares);
#pragma unroll
    for (int k = 0; k < RUN; k++) parts[k] = share_of(given_by[k], shares[k]);
  } else {
#pragma unroll
    for (int k = 0; k < RUN; k++) parts[k] = (i64)given_by[k];
  }
}
// The row that holds an arc, the same for all lanes of a converged warp: each step leaves a part of
// 32 of the rows, where a thread alone halves them.
__device__ inline i64 row_of_arc_by_warp(const i64* offsets, i64 num_rows, i64 arc) {
  i64 row = 0;
  for (i64 rows = num_rows; rows > 1;) {
    i64 step = (rows + 31) >> 5, at = lane_index() * step;
    u32 before = __ballot_sync(0xFFFFFFFFu, at < rows && offsets[row + at] <= arc);
    at = (__popc(before) - 1) * step;
    row += at;
    rows = rows - at < step ? rows - at : step;
  }
  return row;
}

// A lane adds up the arcs of its run, row by row. Race: a row that begins and ends in the run is
// this lane's alone, and is written; of the others the lanes of a warp add up their parts, and all
// warps add theirs by atomics.
extern "C" __global__ void __launch_bounds__(256, 4)
    pull_scores(i64 lo, i64 hi, const i64* indptr, i64 num_rows, const vertex_t* targets,
                const weight_t* weights, const dist_t* given, i64* received, i64* counters) {
  i64 passed = 0;
  for (i64 begin = lo + 32 * RUN * warp_index(); begin < hi; begin += 32 * RUN * warp_count()) {
    i64 first = begin + RUN * lane_index(), end = first + RUN < hi ? first + RUN : hi;
    i64 parts[RUN];
    load_parts(first, end, hi, targets, weights, given, parts);
    i64 row = row_of_arc_by_warp(indptr, num_rows, begin);
    i64 last_arc = (begin + 32 * RUN < hi ? begin + 32 * RUN : hi) - 1;
    // All warps search from the same offsets on, which the cache has.
    i64 rows = row_of_arc_by_warp(indptr, num_rows, last_arc) - row + 1;
    // What the run adds to its last row, and to its first one if that began before the run.
    i64 last_row = -1, part = 0, first_row = -1, part_of_first = 0;
    if (first < end) {
      row += row_of_arc(indptr + row, rows, first);
      i64 row_begin = indptr[row], row_end = indptr[row + 1];
#pragma unroll
      for (int k = 0; k < RUN; k++) {
        if (first + k >= end) break;
        if (first + k == row_end) {
          if (row_begin >= first) {
            received[row] += part;
          } else {
            first_row = row;
            part_of_first = part;
          }
          passed += part;
          part = 0;
          do {
            row_begin = row_end;
            row_end = indptr[++row + 1];
          } while (first + k == row_end);
        }
        part += parts[k];
      }
      passed += part;
      last_row = row;
      if (row_begin >= first && row_end <= end) {
        received[row] += part;
        last_row = -1;
      }
    }
    // A row that began before a run is the last row of the lane before, for lane 0 of another warp.
    i64 part_of_next = __shfl_down_sync(0xFFFFFFFFu, part_of_first, 1);
    if (lane_index() < 31) part += part_of_next;
    if (lane_index() == 0 && first_row >= 0) atomic_add(&received[first_row], part_of_first);
    add_by_key(received, last_row, part);
  }
  warp_add(&counters[0], passed);
}

extern "C" __global__ void settle_scores(i64 lo, i64 hi, const i64* received, const id_t* degrees,
                                         const double* totals, const i64* teleport, i64 rest,
                                         i64 damping, i64* scores, dist_t* given, i64* counters) {
  i64 rises = 0, falls = 0;
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 score = received[i] + (teleport ? scaled(teleport[i], rest) : rest);
    i64 change = score - scores[i], passed = scaled(damping, score);
    if (change > 0)
      rises += change;
    else
      falls -= change;
    scores[i] = score;
    if (totals)
      given[i] = (dist_t)(totals[i] > 0 ? (double)passed / totals[i] : 0.0);
    else
      given[i] = (dist_t)(degrees[i] > 0 ? passed / (i64)degrees[i] : 0);
  }
  warp_add(&counters[0], rises);
  warp_add(&counters[1], falls);
}

extern "C" __global__ void finish_scores(i64 lo, i64 hi, const i64* units, i64 share,
                                         double* scores) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    scores[i] = (double)(units[i] < 0 ? share : units[i]) * 0x1p-62;
}
