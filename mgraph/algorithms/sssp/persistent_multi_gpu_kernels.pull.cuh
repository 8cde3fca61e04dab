// How unsettled vertices pull, over the arcs from settled neighbors.

#include "frontiers.cuh"
#include "lightest_arcs.cuh"
#include "persistent_multi_gpu_kernels.cuh"
#include "prelude.cuh"

// Vertices that wait to pull in a warp: up to 63, and those of one step.
constexpr u32 MAX_WAITING = 128;
static_assert(BLOCK * (MAX_WAITING / 32 * sizeof(u32) + sizeof(wide_t)) <=
                  sizeof(MultiGpuBlock::scratch),
              "waiting vertices and a distance for each thread fit the scratch");
// A lane pulls over all of a row of no more arcs.
constexpr i64 LANE_PULL_ROW = 8;

struct PullPhase : DistanceCopies {
  // For integers: the largest difference of two weights of one class. A little more beyond 2^51,
  // where doubles round.
  wide_t class_width = rows.lightest.scale == 1 ? 0 : (wide_t)(1.000001 / rows.lightest.scale) + 1;

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
    Slots row_of[2];
    auto prefetch_run = [&](i64 run) {
      for (int half = 0; half < 2; half++) {
        i64 v = run + half * 32 + lane_index();
        bool valid = v < num_owned;
        // The distance of a long row may be lowered meanwhile; it is not used.
        upcoming[half] = valid ? load_stale(&own[v]) : top_of<dist_t>::value();
        row_of[half] = valid ? row(v) : Slots{};
      }
    };
    prefetch_run(first);
    for (i64 run = first; run < stride; run += step) {
      i64 v[2] = {run + lane_index(), run + 32 + lane_index()};
      Slots arcs[2] = {row_of[0], row_of[1]};
      dist_t d[2] = {upcoming[0], upcoming[1]}, weight[2];
      bool pulls[2], has_arcs[2], near[2];
      prefetch_run(run + step);
      for (int half = 0; half < 2; half++) {
        i64 length = arcs[half].end - arcs[half].begin;
        pulls[half] = d[half] >= settled && v[half] < num_owned &&
                      (v[half] >= long_rows || length <= ALL_WARPS_ROW);
        has_arcs[half] = pulls[half] && length;
        // The first of a row's lightest arcs, or its only one; of others none is known to be light.
        Slots lightest =
            length == 1 ? arcs[half] : rows.lightest_of(arcs[half].begin, arcs[half].end);
        weight[half] =
            has_arcs[half] && lightest.begin < lightest.end ? rows.weight(lightest.begin) : 0;
      }
      for (int half = 0; half < 2; half++) {
        bool waits = has_arcs[half] && continues(weight[half], d[half]);
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
    i64 v[2];
    Slots arcs[2];
    dist_t d[2], before[2];
    bool near[2];
    __syncwarp();
    for (int half = 0; half < 2; half++) {
      u32 place = half * 32 + lane_index();
      near[half] = place < count;
      v[half] = near[half] ? waiting_list[place] : 0;
      arcs[half] = near[half] ? row(v[half]) : Slots{};
      d[half] = before[half] = near[half] ? load_stale(&own[v[half]]) : 0;
    }
    __syncwarp();  // the list has been read
    pull_by_lane(arcs, d);
    for (int half = 0; half < 2; half++) {
      pull_by_warp(arcs[half], d[half]);
      bool fell = d[half] < before[half];
      if (fell) store_relaxed(&own[v[half]], d[half]);
      near[half] = near[half] && d[half] < bound && (fell || !is_last_bucket);
      if (near[half] && is_last_bucket) broadcast(v[half], d[half]);
      if (fell && !near[half] && d[half] < lowest) lowest = d[half];
    }
    enqueue<LIGHT>(!parity, v, d, near);
  }
  // Whether an arc from a vertex of the last settled bucket, or a farther one, could lower d.
  __device__ bool may_lower(dist_t weight, dist_t d) const {
    return (dist_t)(bucket_begin + weight) < d;
  }
  // Whether arcs behind one of this weight could lower d: they may be lighter by less than a class.
  __device__ bool continues(dist_t weight, dist_t d) const {
    dist_t room = d - bucket_begin;
    // Integers need no fraction.
    if (!is_float<dist_t>::value) return weight <= room || (wide_t)(weight - room) < class_width;
    return (double)weight * rows.lightest.scale < class_edge(room, rows.lightest.scale);
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
  // Each lane pulls over its two rows, alternating, if they are short, or else over their lightest
  // arcs: the distances found make most other arcs too heavy. What is left of a row is nothing, or
  // all of it.
  __device__ void pull_by_lane(Slots (&arcs)[2], dist_t (&d)[2]) {
    Slots few[2];
    bool is_short[2];
    for (int half = 0; half < 2; half++) {
      is_short[half] = arcs[half].end - arcs[half].begin <= LANE_PULL_ROW;
      few[half] = is_short[half] ? arcs[half] : rows.lightest_of(arcs[half].begin, arcs[half].end);
      if (is_short[half]) arcs[half].end = arcs[half].begin;
    }
    while (few[0].begin < few[0].end || few[1].begin < few[1].end) {
      vertex_t u[2];
      dist_t weight[2], through[2];
      bool pulls[2];
      for (int half = 0; half < 2; half++) {
        bool valid = few[half].begin < few[half].end;
        weight[half] = valid ? rows.weight(few[half].begin) : 0;
        u[half] = valid ? rows.target(few[half].begin) : 0;
      }
      for (int half = 0; half < 2; half++) {
        pulls[half] = few[half].begin < few[half].end && continues(weight[half], d[half]);
        bool is_done = few[half].begin < few[half].end && !pulls[half] && !is_short[half];
        if (is_done) few[half].end = few[half].begin;
        if (is_done) arcs[half].end = arcs[half].begin;
      }
      for (int half = 0; half < 2; half++)
        through[half] =
            pulls[half] ? pulled_distance(u[half], weight[half]) : top_of<dist_t>::value();
      for (int half = 0; half < 2; half++) {
        if (through[half] < d[half]) d[half] = through[half];
        tally[SCANNED] += pulls[half];
        few[half].begin += few[half].begin < few[half].end;
      }
    }
  }
  // The warp pulls over what is left of each lane's row, its arcs dealt evenly to all lanes.
  __device__ void pull_by_warp(Slots arcs, dist_t& d) {
    WarpScan scan((u32)(arcs.end - arcs.begin));
    if (!scan.total) return;
    wide_t* nearest = nearest_of_lanes();
    nearest[lane_index()] = d;
    tally[SCANNED] += arcs.end - arcs.begin;
    __syncwarp();
    for (u32 base = 0; base < scan.total; base += 64) {
      vertex_t u[2];
      dist_t weight[2];
      int owner[2];
      for (int half = 0; half < 2; half++) {
        u32 arc = base + 32 * half + lane_index();
        owner[half] = scan.owner(arc);
        i64 slot = __shfl_sync(WARP, arcs.begin - scan.before, owner[half]) + arc;
        weight[half] = arc < scan.total ? rows.weight(slot) : top_of<dist_t>::value();
        u[half] = arc < scan.total ? rows.target(slot) : 0;
      }
      for (int half = 0; half < 2; half++) {
        dist_t least = (dist_t)load_relaxed(&nearest[owner[half]]);
        if (base + 32 * half + lane_index() >= scan.total || !may_lower(weight[half], least))
          continue;
        dist_t through = pulled_distance(u[half], weight[half]);
        if (through < least) atomic_min(&nearest[owner[half]], (wide_t)through);
      }
    }
    __syncwarp();
    d = (dist_t)nearest[lane_index()];
    __syncwarp();  // all lanes have read their distance
  }
  // Distances that a warp lowers together, behind the waiting lists.
  __device__ wide_t* nearest_of_lanes() const {
    return (wide_t*)((u32*)block->scratch + MAX_WAITING * (BLOCK / 32)) + (threadIdx.x & ~31);
  }
  __device__ void pull_long() {
    vertex_t first = (vertex_t)base();
    auto itself = [&](vertex_t v) { return (vertex_t)(first + v); };
    each_queued(itself, [&](const i64(&slot)[4], const vertex_t(&v)[4], const bool (&valid)[4]) {
      dist_t through[4], seen[4];
      for (int k = 0; k < 4; k++) {
        seen[k] = load_stale(&own_copy[v[k]]);
        through[k] = top_of<dist_t>::value();
        dist_t weight = valid[k] ? rows.weight(slot[k]) : 0;
        if (valid[k] && may_lower(weight, seen[k]))
          through[k] = pulled_distance(rows.target(slot[k]), weight);
      }
      lower(v, through, seen);
    });
  }
};
