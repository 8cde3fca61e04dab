// How vertices that are not settled pull, over the arcs that lead there from what is.

#include "frontiers.cuh"
#include "persistent_multi_gpu_kernels.cuh"
#include "prelude.cuh"

// Of vertices that wait in a warp: 63, and those of a turn.
constexpr u32 MOST_WAITING = 128;
static_assert(MOST_WAITING / 32 * BLOCK * sizeof(u32) <= sizeof(Block::room),
              "they wait where rows are relaxed");

struct Pulls : Copies {
  // Of integers: where a class has several, no two of one are farther apart. It is a little wider
  // beyond 2^51, where doubles round.
  wide_t class_width = scale == 1  ? 0
                       : scale > 1 ? top_of<wide_t>::value()
                                   : (wide_t)(1.000001 / scale) + 1;

  // Lower one's own vertices: short rows, then the queue of long ones. A distance of a short row
  // has one writer, and others may look at it meanwhile: see pulled(). So it is queued here, behind
  // the long ones, if it is near. Those of whom the lightest arc is too heavy are done with it; the
  // others wait until a warp has some for all its lanes.
  __device__ void pull() {
    const dist_t* own = own_copy + base();
    const i64 num_owned = fact(NUM_OWNED), stride = fact(STRIDE), long_rows = fact(LONG_ROWS);
    i64 longs = queued_vertices(*queue_counter(turn)), first = warp_index() * 64,
        turn_length = warp_count() * 64;
    queue_begin = longs;
    u32 *list = (u32*)block->room + (threadIdx.x >> 5) * MOST_WAITING, num_waiting = 0;
    // What stands about the next turn's vertices is under way.
    dist_t coming[2];
    i64 begin[2], end[2];
    auto look_up = [&](i64 run) {
      for (int half = 0; half < 2; half++) {
        i64 v = run + half * 32 + lane_index();
        bool here = v < num_owned;
        // Those of long rows may be lowered meanwhile, and are not used.
        coming[half] = here ? load_stale(&own[v]) : top_of<dist_t>::value();
        begin[half] = here ? load_readonly(indptr + v) : 0;
        end[half] = here ? load_readonly(indptr + v + 1) : 0;
      }
    };
    look_up(first);
    for (i64 run = first; run < stride; run += turn_length) {
      i64 v[2] = {run + lane_index(), run + 32 + lane_index()}, at[2] = {begin[0], begin[1]};
      i64 length[2] = {end[0] - begin[0], end[1] - begin[1]};
      dist_t d[2] = {coming[0], coming[1]}, weight[2];
      bool pulls[2], near[2];
      look_up(run + turn_length);
      for (int half = 0; half < 2; half++) {
        pulls[half] = d[half] >= settled && v[half] < num_owned &&
                      (v[half] >= long_rows || length[half] <= LONG_ROW);
        weight[half] = pulls[half] && length[half] ? (dist_t)load_readonly(weights + at[half]) : 0;
      }
      for (int half = 0; half < 2; half++) {
        bool waits = pulls[half] && length[half] && may_lower(weight[half], d[half]);
        near[half] = pulls[half] && !waits && !finishes && d[half] < bound;
        u32 those = __ballot_sync(WARP, waits);
        if (waits) list[num_waiting + __popc(those & ((1u << lane_index()) - 1))] = (u32)v[half];
        num_waiting += __popc(those);
      }
      enqueue<LIGHT>(!turn, v, d, near);
      if (num_waiting >= 64) pull_rows(list + (num_waiting -= 64), 64);
    }
    pull_rows(list, num_waiting);
    queue_begin = 0;
    __syncthreads();  // none waits where the long ones take their place
    pull_long();
    queue_begin = longs;
  }
  // Two rows a lane, of a warp's list of at most 64.
  __device__ void pull_rows(const u32* list, u32 count) {
    dist_t* own = own_copy + base();
    i64 v[2], at[2] = {}, end[2] = {};
    dist_t d[2] = {}, before[2];
    bool near[2];
    __syncwarp();
    for (int half = 0; half < 2; half++) {
      u32 place = half * 32 + lane_index();
      near[half] = place < count;
      v[half] = near[half] ? list[place] : 0;
      if (near[half]) {
        at[half] = load_readonly(indptr + v[half]);
        end[half] = load_readonly(indptr + v[half] + 1);
      }
      if (near[half]) d[half] = load_stale(&own[v[half]]);
      before[half] = d[half];
    }
    __syncwarp();  // the list is read
    pull_alone(at, end, d);
    for (int half = 0; half < 2; half++) {
      pull_together(at[half], end[half], d[half]);
      bool fell = d[half] < before[half];
      if (fell) store_relaxed(&own[v[half]], d[half]);
      near[half] = near[half] && d[half] < bound && (fell || !finishes);
      if (near[half] && finishes) tell_others(v[half], d[half]);
      if (fell && !near[half] && d[half] < lowest) lowest = d[half];
    }
    enqueue<LIGHT>(!turn, v, d, near);
  }
  // Whether an arc is so light that what is settled since may be so near. The arcs of a row come in
  // order of class, or in any where all are of one.
  __device__ bool may_lower(dist_t weight, dist_t d) const {
    // Integers need no fraction: what is too heavy by no more than a class is wide may be of the
    // same one.
    if (!is_float<dist_t>::value)
      return weight <= (wide_t)(d - floor) || weight - (wide_t)(d - floor) < class_width;
    double edge = class_edge(d - floor, scale);
    return edge == top_of<double>::value() || (double)weight * scale < edge;
  }
  __device__ dist_t pulled(vertex_t u, dist_t weight) const {
    // What is settled was so when all met: any value that is seen of it is the last one. What is
    // not may fall after it was seen here, and is pushed then.
    dist_t near = load_stale(&own_copy[u]);
    if (near >= (finishes ? top_of<dist_t>::value() : settled)) return top_of<dist_t>::value();
    dist_t through = near + weight;
    return through <= cutoff ? through : top_of<dist_t>::value();
  }
  // Each lane looks at the first arcs of its two rows, one after another: what it finds makes most
  // of the others too heavy.
  __device__ void pull_alone(i64 (&at)[2], i64 (&end)[2], dist_t (&d)[2]) {
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
            at[half] < end[half] ? pulled(u[half], weight[half]) : top_of<dist_t>::value();
      for (int half = 0; half < 2; half++) {
        if (through[half] < d[half]) d[half] = through[half];
        tally[LOOKED] += at[half] < end[half];
        at[half] += at[half] < end[half];
      }
    }
  }
  // The warp looks at what is left of a row of each lane.
  __device__ void pull_together(i64 at, i64 end, dist_t& d) {
    for (u32 pending = __ballot_sync(WARP, at < end); pending; pending &= pending - 1) {
      int lane = __ffs(pending) - 1;
      i64 last = __shfl_sync(WARP, end, lane);
      dist_t least = __shfl_sync(WARP, d, lane);
      for (i64 i = __shfl_sync(WARP, at, lane) + lane_index(); __any_sync(WARP, i < last);
           i += 32) {
        dist_t weight = i < last ? (dist_t)load_readonly(weights + i) : 0,
               through = top_of<dist_t>::value();
        bool looks = i < last && may_lower(weight, least);
        if (looks) through = pulled(load_readonly(targets + i), weight);
        tally[LOOKED] += looks;
        through = warp_min(through);
        if (through < least) least = through;
        if (!__all_sync(WARP, looks)) break;
      }
      if (lane_index() == lane) d = least;
    }
  }
  __device__ void pull_long() {
    vertex_t first = (vertex_t)base();
    auto itself = [&](vertex_t v) { return (vertex_t)(first + v); };
    each_queued(itself, [&](const i64(&slot)[4], const vertex_t(&v)[4], const bool (&there)[4]) {
      dist_t through[4], seen[4];
      for (int k = 0; k < 4; k++) {
        seen[k] = load_stale(&own_copy[v[k]]);
        through[k] = top_of<dist_t>::value();
        if (there[k])
          through[k] =
              pulled(load_readonly(targets + slot[k]), (dist_t)load_readonly(weights + slot[k]));
      }
      lower(v, through, seen);
    });
  }
};
