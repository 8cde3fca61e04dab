// Near and far in one launch, in two forms: over whole rows, and over rows by weight, of which a
// round relaxes the light arcs alone.

#include "frontiers.cuh"
#include "persistent_kernels.cuh"
#include "prelude.cuh"

// Rows in any order, which are relaxed whole.
struct WholeRows {
  static constexpr u32 RESTS = 0;
  static constexpr int HOP_MOST = 64;
  static constexpr bool pulls = false;
  const i64* indptr;
  const weight_t* weights;
  dist_t bound;
  __device__ inline void narrow_near(Share*) {}
  __device__ inline void narrow_rest(Share*) {}
  __device__ inline i64 end_of_near(i64, i64 end) { return end; }
  __device__ inline bool may_give(dist_t) { return false; }
};

// Far is a queue, or all that has a distance from the bound on.
struct NearFar : Search<WholeRows> {
  static constexpr bool TURNS_MARK = false;
  __device__ inline void start() { keeps_far = true; }
  __device__ inline void count(Kind kind) {
    if (kind == PUSH) block->done += block->told[TOLD_ARCS];
  }
  // Move what the raised bound reaches from far to near. Entries that went through near meanwhile
  // are dropped.
  __device__ inline void split_far(i64 length, dist_t settled) {
    const vertex_t* far = waiting(bucket - 1);
    for (i64 first = warp_index() * 32; first < length; first += warp_count() * 32) {
      bool mine = first + lane_index() < length;
      vertex_t v = mine ? load_relaxed(&far[first + lane_index()]) : 0;
      dist_t d = mine ? load_relaxed(&dist[v]) : 0;
      bool stays = mine && d >= bound, goes = mine && d < bound;
      if (goes) clear_bit(in_far(), v);
      if (stays && d < lowest) lowest = d;
      found.add(goes && d >= settled, v);
      later.add(stays, v);
      flush(32, false);
    }
  }
  // The same where far is not kept: look at every distance.
  __device__ inline void scan_all(dist_t settled) {
    for (i64 first = warp_index() * 32 * LOOKS; first < n; first += warp_count() * 32 * LOOKS) {
      dist_t d[LOOKS];
      u32 near = 0;
      load_distances(first, d);
#pragma unroll
      for (int k = 0; k < LOOKS; k++) {
        if (d[k] >= bound && d[k] < lowest) lowest = d[k];
        if (settled <= d[k] && d[k] < bound) near |= 1u << k;
      }
      for (int k = 0; k < LOOKS; k++) {
        if (!__any_sync(0xFFFFFFFFu, near >> k & 1)) continue;
        found.add(near >> k & 1, (vertex_t)(first + 32 * k + lane_index()));
        flush(32, false);
      }
    }
  }
  // Near is empty: all below the bound is settled. Raise it, and move what it reaches to near;
  // false where no vertex waits. What waits is not nearer than the lowest that was seen to.
  __device__ inline bool turn(Kind* kind) {
    dist_t low = block->told_lowest, settled = bound;
    if (low == top_of<dist_t>::value()) return false;
    i64 length = block->told[TOLD_FAR];
    bound = raised(low, next_delta());
    keeps_far = keeps_far && is_queue_cheaper(length, n);
    __syncthreads();  // all have read what the next bucket changes
    next_bucket();
    *kind = keeps_far ? SPLIT : SCAN;
    if (keeps_far)
      split_far(length, settled);
    else
      scan_all(settled);
    return true;
  }
};

// Rows by weight, light arcs first. Near vertices relax the arcs that may end below the bound; the
// others, which are heavy for the bucket, wait until it is done: then its vertices, from `floor` to
// `settled`, relax each of these once. Or, from where fewer arcs lead to what is not settled, those
// vertices pull over the arcs that are light enough. When those that have pulled have few arcs
// left, the search finishes: they pull from each other too, in a bucket without end.
struct WeightRows {
  static constexpr u32 RESTS = 1u << 31;
  static constexpr int HOP_MOST = 8;
  const i64* indptr;
  const weight_t* weights;
  dist_t bound, floor, settled;
  double scale;
  bool pulls, finishes;
  // What is left of a row: `room` is for light arcs, which go up to it; all that a bucket leaves is
  // heavy.
  __device__ inline dist_t room_of(const Share& s, bool rests) {
    return rests ? pulls ? s.from - floor : settled - s.from : bound - s.from;
  }
  __device__ inline void narrow(Share* s, bool rests, i64 split) {
    *(rests && !pulls ? &s->begin : &s->end) = split;
  }
  __device__ inline void narrow_near(Share* s) {
    s->end = light_end(weights, s->begin, s->end, scale, class_edge(room_of(*s, false), scale));
  }
  __device__ inline void narrow_rest(Share* s) {
    s->pulled = pulls;
    narrow(s, true,
           light_end(weights, s->begin, s->end, scale, class_edge(room_of(*s, true), scale)));
  }
  // Of a long row: how many pieces have arcs below an edge, but for the first; eight looks at a
  // time.
  __device__ inline i64 light_pieces(i64 begin, i64 end, double edge) {
    i64 low = 1, high = (end - begin + PART - 1) / PART;
    while (low < high) {
      i64 step = (high - low + 7) / 8, lights = 0;
#pragma unroll
      for (int k = 1; k <= 8; k++) {
        i64 piece = low + k * step - 1;
        lights += piece < high && (double)weights[begin + piece * PART] * scale < edge;
      }
      low += lights * step;
      if (low + step - 1 < high) high = low + step - 1;
    }
    return low;
  }
  // Of a long row of a near vertex at any distance.
  __device__ inline i64 end_of_near(i64 begin, i64 end) {
    i64 last =
        begin + light_pieces(begin, end, class_edge((dist_t)(bound - settled), scale)) * PART;
    return last < end ? last : end;
  }
  // Whether what a vertex pulls may come from such a distance.
  __device__ inline bool may_give(dist_t d) {
    return d < (finishes ? top_of<dist_t>::value() : settled);
  }
};

struct LightHeavy : Search<WeightRows> {
  static constexpr bool TURNS_MARK = true;
  __device__ inline void start() {
    keeps_far = false;
    floor = settled = 0;
    pulls = finishes = false;
    scale = __longlong_as_double(counters[SCALE]);
  }
  __device__ inline void count(Kind kind) {
    if (kind != PULL) block->done += block->told[TOLD_ARCS];
    *(kind == PUSH ? &block->near_lengths : &block->settled_lengths) += block->told[TOLD_ROWS];
  }
  // Pull over the first arcs of a row, alone: behind the lightest that lead to what is settled few
  // are light enough.
  __device__ inline void pull_alone(Share* share) {
    i64 row_end = share->end, last = share->begin + PULL_ALONE;
    if (last > row_end) last = row_end;
    double edge = class_edge((dist_t)(share->from - floor), scale);
    bool goes_on = true;
    for (i64 at = share->begin; goes_on && at < last; at += LOOKS) {
      dist_t w[LOOKS], other[LOOKS];
#pragma unroll
      for (int k = 0; k < LOOKS; k++) {
        i64 i = at + k < last ? at + k : last - 1;
        vertex_t u = targets[i];
        w[k] = (dist_t)weights[i];
        other[k] = (double)w[k] * scale < edge ? load_relaxed(&dist[u]) : top_of<dist_t>::value();
      }
#pragma unroll
      for (int k = 0; k < LOOKS; k++) {
        if (!may_give(other[k])) continue;
        dist_t through = other[k] + w[k];
        if (through < share->from && through <= block->cutoff) share->from = through;
      }
      edge = class_edge((dist_t)(share->from - floor), scale);
      goes_on = (double)w[LOOKS - 1] * scale < edge;
      share->begin = at + LOOKS < last ? at + LOOKS : last;
      arcs += LOOKS;
    }
    if (!goes_on) share->end = share->begin;
  }
  // Relax what a turn has found to do for up to 32 vertices.
  __device__ inline void relax_rest() {
    Share share = {};
    i64 row = 0;
    dist_t before = 0;
    bool is_long = false;
    if (lane_index() < later.take(&share.u)) {
      share.begin = row = indptr[share.u];
      share.end = indptr[share.u + 1];
      before = load_relaxed(&dist[share.u]);
      share.from = before;
      share.pulled = pulls;
      is_long = share.end - share.begin > PART;
      vertices++;
      if (pulls) pull_alone(&share);
      if (share.from < before) atomic_min(&dist[share.u], share.from);
      if (share.from < before && share.from >= bound && share.from < lowest) lowest = share.from;
    }
    if (pulls) {
      found.add(share.from < before && share.from < bound && (finishes || before >= bound),
                share.u);
      flush(32, true);
    }
    if (share.begin < share.end) {
      double edge = class_edge(room_of(share, true), scale);
      if (is_long) {
        i64 split = row + light_pieces(row, share.end, edge) * PART;
        if (!pulls)
          share.begin = split - PART;
        else if (split < share.end)
          share.end = split;
      } else {
        narrow(&share, true, light_end(weights, share.begin, share.end, scale, edge));
      }
    }
    is_long = is_long && share.begin < share.end;
    queue_pieces(is_long, share, row, RESTS);
    if (is_long) share.end = share.begin;
    relax(share);
  }
  // Look at every distance: whose rest is to be relaxed, and who is near now.
  __device__ inline void sort_all() {
    for (i64 first = warp_index() * 32 * LOOKS; first < n; first += warp_count() * 32 * LOOKS) {
      dist_t d[LOOKS];
      u32 members = 0, waits = 0, near = 0;
      load_distances(first, d);
#pragma unroll
      for (int k = 0; k < LOOKS; k++) {
        if (floor <= d[k] && d[k] < settled) members |= 1u << k;
        if (settled <= d[k]) waits |= 1u << k;
        if (!finishes && settled <= d[k] && d[k] < bound) near |= 1u << k;
        if (d[k] >= bound && d[k] < lowest) lowest = d[k];
      }
      u32 rests = pulls ? waits : members;
      for (int k = 0; k < LOOKS; k++) {
        if (!__any_sync(0xFFFFFFFFu, (members | near | rests) >> k & 1)) continue;
        i64 v = first + 32 * k + lane_index();
        bool is_there = v < n;
        if (is_there && members >> k & 1) lengths += indptr[v + 1] - indptr[v];
        found.add(is_there && near >> k & 1, (vertex_t)v);
        later.add(is_there && rests >> k & 1, (vertex_t)v);
        flush(32, true);
        while (later.length >= 32) relax_rest();
      }
    }
    while (later.length) relax_rest();
  }
  // Near is empty: all below the bound is settled. Raise it, relax what is left to do for the
  // vertices between, and find who is near; false where nothing is left.
  __device__ inline bool turn(Kind* kind) {
    dist_t top = top_of<dist_t>::value(), low = block->told_lowest;
    i64 near_lengths = block->near_lengths,
        others = indptr[n] - block->settled_lengths - near_lengths;
    if (bound == top || (low == top && !near_lengths)) return false;
    bool pulled = pulls;
    pulls = load_relaxed(&counters[PULLS]) && (pulled || is_pull_cheaper(others, near_lengths));
    finishes = pulled && is_finish(others, indptr[n]);
    floor = settled;
    settled = bound;
    bound = finishes ? top : raised(near_lengths ? bound : low, next_delta());
    __syncthreads();  // all have read what the next bucket changes
    next_bucket();
    sort_all();
    *kind = pulls ? PULL : HEAVY;
    return true;
  }
};

// Note what a round did, and clear the counts of the one before, which all have read.
__device__ inline void log_round(i64* log, i64* counters, Kind kind, int round) {
  i64* line = log + (round < LINES ? round : LINES - 1) * LINE;
  bool adds = round >= LINES;
  line[0] = kind;
  line[1] = (adds ? line[1] : 0) + load_relaxed(in_turn(counters, VERTICES, round));
  line[2] = (adds ? line[2] : 0) + load_relaxed(in_turn(counters, ARCS, round));
  line[3] = clock_ns();
  store_relaxed(in_turn(counters, VERTICES, round + 2), (i64)0);
  store_relaxed(in_turn(counters, ARCS, round + 2), (i64)0);
  store_relaxed(in_turn(counters, ROWS, round + 2), (i64)0);
}

template <class Loop>
__device__ inline void run(Loop& search, const u32* abort, i64 num_bits, i64* log, i64* report) {
  dist_t top = top_of<dist_t>::value();
  i64 n = search.n, *counters = search.counters;
  for (i64 v = thread_index(); v < n; v += thread_count()) search.dist[v] = top;
  for (i64 i = thread_index(); i < num_bits; i += thread_count()) search.bits[i] = 0;
  if (thread_index() < 3) *distance_at(in_turn(counters, LOWEST, (int)thread_index())) = top;
  for (i64 i = threadIdx.x; i < search.hubs; i += blockDim.x) search.hub[i] = top;
  if (!grid_barrier(&counters[ARRIVED], abort)) return;
  // The last thread keeps the log: where there is little to do, it is others that do it.
  bool logs = thread_index() == thread_count() - 1, marks = false;
  i64 began = clock_ns();
  // The sources make up round 0, below the first bound.
  Kind kind = PUSH;
  if (warp_index() == 0) search.begin(counters + SOURCES, counters[NUM_SOURCES]);
  while (search.meet(abort, marks)) {
    if (search.round >= 0) {
      if (threadIdx.x == 0) search.count(kind);
      if (logs) log_round(log, counters, kind, search.round);
    }
    search.open_round();
    if (!search.is_near_empty()) {
      search.relax_all(marks);
      kind = PUSH;
      marks = true;
      continue;
    }
    marks = Loop::TURNS_MARK;
    __syncthreads();  // what was counted is there for all
    if (search.turn(&kind)) continue;
    // The block that kept the log copies it to the host.
    if (blockIdx.x < gridDim.x - 1) return;
    __syncthreads();
    i64 lines = search.round < LINES ? search.round : LINES;
    for (i64 i = threadIdx.x; i < lines * LINE; i += blockDim.x) report[NUM_REPORTS + i] = log[i];
    if (logs) {
      report[DONE] = 1;
      report[NUM_LINES] = lines;
      report[BEGAN] = began;
    }
    return;
  }
}

template <class Loop>
__device__ inline Loop searching(i64 n, const i64* indptr, const vertex_t* targets,
                                 const weight_t* weights, dist_t* dist, u32* bits, vertex_t* queues,
                                 u32* tags, i64* counters, Block& block) {
  i64 warp = threadIdx.x >> 5;
  Loop search = {};
  search.n = n;
  search.indptr = indptr;
  search.targets = targets;
  search.weights = weights;
  search.dist = dist;
  search.bits = bits;
  search.queues = queues;
  search.tags = tags;
  search.counters = counters;
  search.bound = raised(0, *distance_at(&counters[DELTA]));
  search.lowest = top_of<dist_t>::value();
  search.hub = dynamic_shared<dist_t>();
  search.hubs = (u32)counters[HUBS];
  search.long_rows = counters[LONG_ROWS];
  search.round = -1;
  search.block = &block;
  search.found.items = block.held[0] + Held::MOST * warp;
  search.later.items = block.held[1] + Held::MOST * warp;
  if (threadIdx.x == 0) {
    for (i64& sum : block.sums) sum = 0;
    block.more = indptr[n] / PART;
    block.done = block.most = block.near_lengths = block.settled_lengths = 0;
    block.lowest = top_of<dist_t>::value();
    block.cutoff = *distance_at(&counters[CUTOFF]);
    block.delta = *distance_at(&counters[DELTA]);
  }
  search.start();
  return search;
}

extern "C" __global__ void __launch_bounds__(512, 2)
    find_distances(i64 lo, i64 hi, const u32* abort, const i64* indptr, const vertex_t* targets,
                   const weight_t* weights, dist_t* dist, u32* bits, vertex_t* queues, u32* tags,
                   i64* counters, i64* log, i64* report) {
  __shared__ Block block;
  auto search =
      searching<NearFar>(hi, indptr, targets, weights, dist, bits, queues, tags, counters, block);
  run(search, abort, 3 * ((hi + 31) / 32), log, report);
}

extern "C" __global__ void __launch_bounds__(512, 2)
    find_distances_by_weight(i64 lo, i64 hi, const u32* abort, const i64* indptr,
                             const vertex_t* targets, const weight_t* weights, dist_t* dist,
                             u32* bits, vertex_t* queues, u32* tags, i64* counters, i64* log,
                             i64* report) {
  __shared__ Block block;
  auto search = searching<LightHeavy>(hi, indptr, targets, weights, dist, bits, queues, tags,
                                      counters, block);
  run(search, abort, 2 * ((hi + 31) / 32), log, report);
}
