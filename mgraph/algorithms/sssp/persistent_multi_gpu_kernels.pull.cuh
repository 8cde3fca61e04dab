// How unsettled vertices pull, over the arcs from settled neighbors.

#include "frontiers.cuh"
#include "persistent_multi_gpu_kernels.cuh"
#include "prelude.cuh"

// Vertices that wait to pull in a warp: up to 63, and those of one step.
constexpr u32 MAX_WAITING = 128;
static_assert(MAX_WAITING / 32 * BLOCK * sizeof(u32) <= sizeof(MultiGpuBlock::scratch),
              "waiting vertices fit the scratch");

struct PullPhase : DistanceCopies {
  // For integers: the largest difference of two weights of one class. A little more beyond 2^51,
  // where doubles round.
  wide_t class_width = scale == 1  ? 0
                       : scale > 1 ? top_of<wide_t>::value()
                                   : (wide_t)(1.000001 / scale) + 1;

  // Lower the own unsettled vertices: short rows, then the queue of long ones. The distance of a
  // vertex with a short row has one writer, and others may read it meanwhile: see
  // pulled_distance(). So it is queued here, after the long rows, if it is near. A vertex is done
  // if its lightest arc is too heavy; the others wait until the warp has two for each lane.
  __device__ void pull() {
    const dist_t* own = own_copy + base();
    const i64 num_owned = parameter(NUM_OWNED), stride = parameter(STRIDE),
              long_rows = parameter(LONG_ROWS);
    i64 num_long = queued_vertices(*queue_counter(parity)), first = warp_index() * 64,
        step = warp_count() * 64;
    queue_begin = num_long;
    u32 *waiting_list = (u32*)block->scratch + (threadIdx.x >> 5) * MAX_WAITING, num_waiting = 0;
    // Distances and row bounds of the next step's vertices are in flight.
    dist_t upcoming[2];
    i64 begin[2], end[2];
    auto prefetch_run = [&](i64 run) {
      for (int half = 0; half < 2; half++) {
        i64 v = run + half * 32 + lane_index();
        bool valid = v < num_owned;
        // The distance of a long row may be lowered meanwhile; it is not used.
        upcoming[half] = valid ? load_stale(&own[v]) : top_of<dist_t>::value();
        begin[half] = valid ? load_readonly(indptr + v) : 0;
        end[half] = valid ? load_readonly(indptr + v + 1) : 0;
      }
    };
    prefetch_run(first);
    for (i64 run = first; run < stride; run += step) {
      i64 v[2] = {run + lane_index(), run + 32 + lane_index()}, at[2] = {begin[0], begin[1]};
      i64 length[2] = {end[0] - begin[0], end[1] - begin[1]};
      dist_t d[2] = {upcoming[0], upcoming[1]}, weight[2];
      bool pulls[2], near[2];
      prefetch_run(run + step);
      for (int half = 0; half < 2; half++) {
        pulls[half] = d[half] >= settled && v[half] < num_owned &&
                      (v[half] >= long_rows || length[half] <= ALL_WARPS_ROW);
        weight[half] = pulls[half] && length[half] ? (dist_t)load_readonly(weights + at[half]) : 0;
      }
      for (int half = 0; half < 2; half++) {
        bool waits = pulls[half] && length[half] && may_lower(weight[half], d[half]);
        near[half] = pulls[half] && !waits && !is_last_bucket && d[half] < bound;
        u32 those = __ballot_sync(WARP, waits);
        if (waits) waiting_list[num_waiting + lanes_before(those)] = (u32)v[half];
        num_waiting += __popc(those);
      }
      enqueue<LIGHT>(!parity, v, d, near);
      if (num_waiting >= 64) pull_rows(waiting_list + (num_waiting -= 64), 64);
    }
    pull_rows(waiting_list, num_waiting);
    queue_begin = 0;
    __syncthreads();  // all waiting lists are empty: the scratch is used for long rows
    pull_long();
    queue_begin = num_long;
  }
  // Pull over two rows per lane, of a warp's list of at most 64.
  __device__ void pull_rows(const u32* waiting_list, u32 count) {
    dist_t* own = own_copy + base();
    i64 v[2], at[2] = {}, end[2] = {};
    dist_t d[2] = {}, before[2];
    bool near[2];
    __syncwarp();
    for (int half = 0; half < 2; half++) {
      u32 place = half * 32 + lane_index();
      near[half] = place < count;
      v[half] = near[half] ? waiting_list[place] : 0;
      if (near[half]) {
        at[half] = load_readonly(indptr + v[half]);
        end[half] = load_readonly(indptr + v[half] + 1);
      }
      if (near[half]) d[half] = load_stale(&own[v[half]]);
      before[half] = d[half];
    }
    __syncwarp();  // the list has been read
    pull_by_lane(at, end, d);
    for (int half = 0; half < 2; half++) {
      pull_by_warp(at[half], end[half], d[half]);
      bool fell = d[half] < before[half];
      if (fell) store_relaxed(&own[v[half]], d[half]);
      near[half] = near[half] && d[half] < bound && (fell || !is_last_bucket);
      if (near[half] && is_last_bucket) broadcast(v[half], d[half]);
      if (fell && !near[half] && d[half] < lowest) lowest = d[half];
    }
    enqueue<LIGHT>(!parity, v, d, near);
  }
  // Whether an arc is light enough for a vertex of the last settled bucket. Arcs of a row are
  // sorted by class, or in any order where all are of one class.
  __device__ bool may_lower(dist_t weight, dist_t d) const {
    // Integers need no fraction: a weight that exceeds the difference by less than a class width
    // may be of its class.
    if (!is_float<dist_t>::value)
      return weight <= (wide_t)(d - bucket_begin) ||
             weight - (wide_t)(d - bucket_begin) < class_width;
    double edge = class_edge(d - bucket_begin, scale);
    return edge == top_of<double>::value() || (double)weight * scale < edge;
  }
  __device__ dist_t pulled_distance(vertex_t u, dist_t weight) const {
    // A settled distance was settled at the barrier: any value read is the final one. An unsettled
    // one may fall after it was read, and is pushed then.
    dist_t near = load_stale(&own_copy[u]);
    if (near >= (is_last_bucket ? top_of<dist_t>::value() : settled))
      return top_of<dist_t>::value();
    dist_t through = near + weight;
    return through <= cutoff ? through : top_of<dist_t>::value();
  }
  // Each lane pulls over the first arcs of its two rows, alternating: the distances found make most
  // other arcs too heavy.
  __device__ void pull_by_lane(i64 (&at)[2], i64 (&end)[2], dist_t (&d)[2]) {
    for (int k = 0; k < ALONE && (at[0] < end[0] || at[1] < end[1]); k++) {
      vertex_t u[2];
      dist_t weight[2], through[2];
      for (int half = 0; half < 2; half++) {
        weight[half] = at[half] < end[half] ? (dist_t)load_readonly(weights + at[half]) : 0;
        u[half] = at[half] < end[half] ? load_readonly(targets + at[half]) : 0;
      }
      for (int half = 0; half < 2; half++)
        if (at[half] < end[half] && !may_lower(weight[half], d[half])) end[half] = at[half];
      for (int half = 0; half < 2; half++)
        through[half] =
            at[half] < end[half] ? pulled_distance(u[half], weight[half]) : top_of<dist_t>::value();
      for (int half = 0; half < 2; half++) {
        if (through[half] < d[half]) d[half] = through[half];
        tally[SCANNED] += at[half] < end[half];
        at[half] += at[half] < end[half];
      }
    }
  }
  // The warp pulls over the rest of each lane's row.
  __device__ void pull_by_warp(i64 at, i64 end, dist_t& d) {
    for (u32 pending = __ballot_sync(WARP, at < end); pending; pending &= pending - 1) {
      int lane = __ffs(pending) - 1;
      i64 last = __shfl_sync(WARP, end, lane);
      dist_t nearest = __shfl_sync(WARP, d, lane);
      for (i64 i = __shfl_sync(WARP, at, lane) + lane_index(); __any_sync(WARP, i < last);
           i += 32) {
        dist_t weight = i < last ? (dist_t)load_readonly(weights + i) : 0,
               through = top_of<dist_t>::value();
        bool is_light = i < last && may_lower(weight, nearest);
        if (is_light) through = pulled_distance(load_readonly(targets + i), weight);
        tally[SCANNED] += is_light;
        through = warp_min(through);
        if (through < nearest) nearest = through;
        if (!__all_sync(WARP, is_light)) break;
      }
      if (lane_index() == lane) d = nearest;
    }
  }
  __device__ void pull_long() {
    vertex_t first = (vertex_t)base();
    auto itself = [&](vertex_t v) { return (vertex_t)(first + v); };
    each_queued(itself, [&](const i64(&slot)[4], const vertex_t(&v)[4], const bool (&valid)[4]) {
      dist_t through[4], seen[4];
      for (int k = 0; k < 4; k++) {
        seen[k] = load_stale(&own_copy[v[k]]);
        through[k] = top_of<dist_t>::value();
        if (valid[k])
          through[k] = pulled_distance(load_readonly(targets + slot[k]),
                                       (dist_t)load_readonly(weights + slot[k]));
      }
      lower(v, through, seen);
    });
  }
};
