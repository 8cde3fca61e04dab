// A stable counting sort of each row, of which the first places are written. A warp sorts a row; a
// row of LONG arcs or more is sorted by all warps of a block, a slice each. Within a class the arcs
// of a slice follow those of earlier slices, so that the sort is stable.

#include "prelude.cuh"

constexpr i64 LONG = 4096;
constexpr int WARPS = 32;

// Add the number of arcs of begin .. end in each class to `counts`.
__device__ inline void count_classes(i64 begin, i64 end, const weight_t* weights, double scale,
                                     u32* counts) {
  for (i64 i = begin + lane_index(); i < end; i += 32)
    atomic_add(&counts[class_of(weights[i], scale)], 1u);
  __syncwarp();
}
// Write the arcs of begin .. end to a row's lightest ones, `num_places` from `first_place` on:
// those of class c from places[c] on, which advances. The others have no place.
__device__ inline void place_by_class(i64 first_place, i64 num_places, i64 begin, i64 end,
                                      const vertex_t* targets, const weight_t* weights,
                                      double scale, u32* places, vertex_t* lightest_targets,
                                      weight_t* lightest_weights) {
  for (i64 first = begin; first < end; first += 32) {
    i64 i = first + lane_index();
    int arc_class = i < end ? class_of(weights[i], scale) : WEIGHT_CLASSES;
    u32 same = __match_any_sync(0xFFFFFFFFu, arc_class);
    u32 place = i < end ? places[arc_class] : 0, before = lanes_before(same);
    __syncwarp();
    if (i < end && before == 0) places[arc_class] = place + __popc(same);
    if (i < end && place + before < num_places) {
      lightest_targets[first_place + place + before] = targets[i];
      lightest_weights[first_place + place + before] = weights[i];
    }
    __syncwarp();
  }
}

// Replace the counts of classes by their exclusive prefix sums, with one warp.
__device__ inline void start_classes(u32* counts) {
  constexpr int EACH = WEIGHT_CLASSES / 32;
  u32* own = counts + lane_index() * EACH;
  u32 sum = 0;
  for (int c = 0; c < EACH; c++) sum += own[c];
  u32 place = WarpScan(sum).before;
  for (int c = 0; c < EACH; c++) {
    u32 count = own[c];
    own[c] = place;
    place += count;
  }
  __syncwarp();
}

extern "C" __global__ void __launch_bounds__(1024)
    take_lightest(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                  const weight_t* weights, double scale, vertex_t* lightest_targets,
                  weight_t* lightest_weights) {
  __shared__ u32 counts[WARPS][WEIGHT_CLASSES], totals[WEIGHT_CLASSES];
  int warp = threadIdx.x >> 5, num_warps = blockDim.x >> 5;
  u32* own = counts[warp];
  // In degree order the longest rows are adjacent: consecutive rows are assigned to different
  // blocks.
  for (i64 first = lo; first < hi; first += (i64)gridDim.x * num_warps) {
    i64 row = first + (i64)warp * gridDim.x + blockIdx.x;
    i64 begin = row < hi ? indptr[row] : 0, end = row < hi ? indptr[row + 1] : 0;
    i64 first_place = lightest_begin(begin), num_places = lightest_begin(end) - first_place;
    bool is_long = end - begin >= LONG;
    if (num_places && !is_long) {
      for (int c = lane_index(); c < WEIGHT_CLASSES; c += 32) own[c] = 0;
      __syncwarp();
      count_classes(begin, end, weights, scale, own);
      start_classes(own);
      place_by_class(first_place, num_places, begin, end, targets, weights, scale, own,
                     lightest_targets, lightest_weights);
    }
    if (!__syncthreads_or(is_long)) continue;
    for (int other = 0; other < num_warps; other++) {
      i64 long_row = first + (i64)other * gridDim.x + blockIdx.x;
      if (long_row >= hi) break;
      begin = indptr[long_row], end = indptr[long_row + 1];
      if (end - begin < LONG) continue;
      first_place = lightest_begin(begin), num_places = lightest_begin(end) - first_place;
      i64 slice = (end - begin + num_warps - 1) / num_warps;
      i64 from = begin + warp * slice < end ? begin + warp * slice : end,
          to = from + slice < end ? from + slice : end;
      __syncthreads();  // all warps have placed the previous row
      for (int c = lane_index(); c < WEIGHT_CLASSES; c += 32) own[c] = 0;
      __syncwarp();
      count_classes(from, to, weights, scale, own);
      __syncthreads();
      for (int c = threadIdx.x; c < WEIGHT_CLASSES; c += blockDim.x) {
        u32 sum = 0;
        for (int w = 0; w < num_warps; w++) sum += counts[w][c];
        totals[c] = sum;
      }
      __syncthreads();
      for (int c = threadIdx.x; c < WEIGHT_CLASSES; c += blockDim.x) {
        u32 place = 0;
        for (int lower = 0; lower < c; lower++) place += totals[lower];
        for (int w = 0; w < num_warps; w++) {
          u32 count = counts[w][c];
          counts[w][c] = place;
          place += count;
        }
      }
      __syncthreads();
      place_by_class(first_place, num_places, from, to, targets, weights, scale, own,
                     lightest_targets, lightest_weights);
    }
    __syncthreads();  // before the next iteration overwrites the counts
  }
}
