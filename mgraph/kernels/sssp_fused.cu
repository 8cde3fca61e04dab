// Near and far in one launch, in two forms: over whole rows, and over rows by weight, of which a round relaxes the
// light arcs alone.

// Far is kept as a queue while it holds less than this share of the vertices; then a pass over all distances is
// cheaper than looking up those of the queue.
constexpr i64 DENSE_SHARE = 16;

// Rows in any order, which are relaxed whole.
struct WholeRows {
  static constexpr u32 RESTS = 0;
  static constexpr bool pulls = false;
  const i64* indptr;
  const weight_t* weights;
  dist_t bound;
  __device__ inline void narrow_near(Share*) {}
  __device__ inline void narrow_rest(Share*) {}
  __device__ inline void narrow_long(Share*, u32) {}
  __device__ inline bool is_settled(dist_t) { return false; }
};

// Far is a queue, or all that has a distance from the bound on.
struct NearFar : Search<WholeRows> {
  static constexpr bool TURNS_MARK = false;
  __device__ inline void start() { keeps_far = true; }
  __device__ inline void count(Kind kind) {
    if (kind == PUSH) block->done += block->told[TOLD_ARCS];
  }
  // Move what the raised bound reaches from far to near. Entries that went through near meanwhile are dropped.
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
    for (i64 first = warp_index() * 32 * DEPTH; first < n; first += warp_count() * 32 * DEPTH) {
      dist_t d[DEPTH];
      load_distances(first, d);
#pragma unroll
      for (int k = 0; k < DEPTH; k++) {
        if (d[k] >= bound && d[k] < lowest) lowest = d[k];
        found.add(settled <= d[k] && d[k] < bound, (vertex_t)(first + 32 * k + lane_index()));
      }
      flush(32, false);
    }
  }
  // Near is empty: all below the bound is settled. Raise it, and move what it reaches to near; false where no vertex
  // waits. What waits is not nearer than the lowest that was seen to.
  __device__ inline bool turn(Kind* kind) {
    dist_t low = block->told_lowest, settled = bound;
    if (low == top_of<dist_t>::value()) return false;
    i64 length = block->told[TOLD_FAR];
    bound = raised(low, next_delta());
    keeps_far = keeps_far && length * DENSE_SHARE <= n;
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

// Rows by weight, light arcs first. Near vertices relax the arcs that may end below the bound; the others, which are
// heavy for the bucket, wait until it is done: then its vertices, from `floor` to `settled`, relax each of these once.
// Or, where fewer arcs lead to what is not settled, those vertices pull over the arcs that are light enough.
struct WeightRows {
  static constexpr u32 RESTS = 1u << 31;
  const i64* indptr;
  const weight_t* weights;
  dist_t bound, floor, settled;
  double scale;
  bool pulls;
  // What is left of a row: `room` is for light arcs, which go up to it; all that a bucket leaves is heavy.
  __device__ inline dist_t room_of(const Share& s, bool rests) {
    return rests ? pulls ? s.from - floor : settled - s.from : bound - s.from;
  }
  __device__ inline void narrow(Share* s, bool rests, i64 split) { *(rests && !pulls ? &s->begin : &s->end) = split; }
  __device__ inline void narrow_near(Share* s) {
    s->end = light_end(weights, s->begin, s->end, scale, class_edge(room_of(*s, false), scale));
  }
  __device__ inline void narrow_rest(Share* s) {
    s->pulled = pulls;
    narrow(s, true, light_end(weights, s->begin, s->end, scale, class_edge(room_of(*s, true), scale)));
  }
  // The same of a row that a whole warp looks at.
  __device__ inline void narrow_long(Share* s, u32 tag) {
    double edge = class_edge(room_of(*s, tag), scale);
    narrow(s, tag, light_end_by_warp(weights, s->begin, s->end, scale, edge));
  }
  __device__ inline bool is_settled(dist_t d) { return d < settled; }
};

struct LightHeavy : Search<WeightRows> {
  static constexpr bool TURNS_MARK = true;
  __device__ inline void start() {
    keeps_far = false, floor = settled = 0, pulls = false;
    scale = __longlong_as_double(counters[SCALE]);
  }
  __device__ inline void count(Kind kind) {
    if (kind != PULL) block->done += block->told[TOLD_ARCS];
    *(kind == PUSH ? &block->near_lengths : &block->settled_lengths) += block->told[TOLD_ROWS];
  }
  // Relax what a turn has found to do for up to 32 vertices.
  __device__ inline void relax_rest() {
    Share share = {};
    bool is_mine = lane_index() < later.take(&share.u);
    if (is_mine) {
      share.begin = indptr[share.u], share.end = indptr[share.u + 1], share.from = load_relaxed(&dist[share.u]);
      vertices++;
      narrow_rest(&share);
    }
    bool is_long = share.end - share.begin > PART;
    if (__any_sync(0xFFFFFFFFu, is_long)) {
      i64 at = places(is_long, in_turn(counters, REST, round + 1));
      if (is_long) waiting(0)[at] = share.u, share.end = share.begin;
    }
    relax(share);
  }
  // Look at every distance: whose rest is to be relaxed, and who is near now.
  __device__ inline void sort_all() {
    for (i64 first = warp_index() * 32 * DEPTH; first < n; first += warp_count() * 32 * DEPTH) {
      dist_t d[DEPTH];
      load_distances(first, d);
#pragma unroll
      for (int k = 0; k < DEPTH; k++) {
        i64 v = first + 32 * k + lane_index();
        bool is_member = v < n && floor <= d[k] && d[k] < settled, waits = v < n && d[k] >= settled;
        if (is_member) lengths += indptr[v + 1] - indptr[v];
        if (d[k] >= bound && d[k] < lowest) lowest = d[k];
        found.add(waits && d[k] < bound, (vertex_t)v);
        later.add(pulls ? waits : is_member, (vertex_t)v);
      }
      flush(32, true);
      while (later.length >= 32) relax_rest();
    }
    while (later.length) relax_rest();
  }
  // Near is empty: all below the bound is settled. Raise it, relax what is left to do for the vertices between, and
  // find who is near; false where nothing is left.
  __device__ inline bool turn(Kind* kind) {
    dist_t top = top_of<dist_t>::value(), low = block->told_lowest;
    i64 near_lengths = block->near_lengths, others = indptr[n] - block->settled_lengths - near_lengths;
    if (bound == top || (low == top && !near_lengths)) return false;
    pulls = load_relaxed(&counters[PULLS]) && others < near_lengths;
    floor = settled, settled = bound;
    bound = raised(near_lengths ? bound : low, next_delta());
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

template <class Loop> __device__ inline void run(Loop& search, const u32* abort, i64 num_bits, i64* log, i64* report) {
  dist_t top = top_of<dist_t>::value();
  i64 n = search.n, *counters = search.counters;
  for (i64 v = thread_index(); v < n; v += thread_count()) search.dist[v] = top;
  for (i64 i = thread_index(); i < num_bits; i += thread_count()) search.bits[i] = 0;
  if (thread_index() < 3) *distance_at(in_turn(counters, LOWEST, (int)thread_index())) = top;
  for (i64 i = threadIdx.x; i < search.hubs; i += blockDim.x) search.hub[i] = top;
  if (!grid_barrier(&counters[ARRIVED], abort)) return;
  // The last thread keeps the log: where there is little to do, it is others that do it.
  bool logs = thread_index() == thread_count() - 1, marks = false, is_empty;
  i64 began = clock_ns(), num_entries;
  // The sources make up round 0, below the first bound.
  Kind kind = PUSH;
  if (warp_index() == 0) search.begin(counters + SOURCES, counters[NUM_SOURCES]);
  while (search.meet(abort, marks)) {
    if (search.round >= 0) {
      if (threadIdx.x == 0) search.count(kind);
      if (logs) log_round(log, counters, kind, search.round);
    }
    search.round++;
    if (!search.open_round(abort, &num_entries, &is_empty)) return;
    if (!is_empty) {
      search.relax_all(num_entries, marks);
      kind = PUSH, marks = true;
      continue;
    }
    marks = Loop::TURNS_MARK;
    if (search.turn(&kind)) continue;
    // The block that kept the log copies it to the host.
    if (blockIdx.x < gridDim.x - 1) return;
    __syncthreads();
    i64 lines = search.round < LINES ? search.round : LINES;
    for (i64 i = threadIdx.x; i < lines * LINE; i += blockDim.x) report[NUM_REPORTS + i] = log[i];
    if (logs) report[DONE] = 1, report[NUM_LINES] = lines, report[BEGAN] = began;
    return;
  }
}

template <class Loop> __device__ inline Loop searching(i64 n, const i64* indptr, const vertex_t* targets,
                                                       const weight_t* weights, dist_t* dist, u32* bits,
                                                       vertex_t* queues, u32* tags, i64* counters, Block& block) {
  i64 warp = threadIdx.x >> 5;
  Loop search = {};
  search.n = n, search.indptr = indptr, search.targets = targets, search.weights = weights;
  search.dist = dist, search.bits = bits, search.queues = queues, search.tags = tags, search.counters = counters;
  search.bound = raised(0, *distance_at(&counters[DELTA])), search.lowest = top_of<dist_t>::value();
  search.hub = dynamic_shared<dist_t>(), search.hubs = (u32)counters[HUBS];
  search.round = -1;
  search.block = &block;
  search.found.items = block.held[0] + Held::MOST * warp, search.later.items = block.held[1] + Held::MOST * warp;
  if (threadIdx.x == 0) {
    for (i64& sum : block.sums) sum = 0;
    block.more = indptr[n] / PART;
    block.done = block.most = block.near_lengths = block.settled_lengths = block.num_pieces = 0;
    block.lowest = top_of<dist_t>::value();
    block.cutoff = *distance_at(&counters[CUTOFF]), block.delta = *distance_at(&counters[DELTA]);
  }
  search.start();
  return search;
}

extern "C" __global__ void __launch_bounds__(512, 2)
    find_distances(i64 lo, i64 hi, const u32* abort, const i64* indptr, const vertex_t* targets,
                   const weight_t* weights, dist_t* dist, u32* bits, vertex_t* queues, u32* tags, i64* counters,
                   i64* log, i64* report) {
  __shared__ Block block;
  auto search = searching<NearFar>(hi, indptr, targets, weights, dist, bits, queues, tags, counters, block);
  run(search, abort, 3 * ((hi + 31) / 32), log, report);
}

extern "C" __global__ void __launch_bounds__(512, 2)
    find_distances_by_weight(i64 lo, i64 hi, const u32* abort, const i64* indptr, const vertex_t* targets,
                             const weight_t* weights, dist_t* dist, u32* bits, vertex_t* queues, u32* tags,
                             i64* counters, i64* log, i64* report) {
  __shared__ Block block;
  auto search = searching<LightHeavy>(hi, indptr, targets, weights, dist, bits, queues, tags, counters, block);
  run(search, abort, 2 * ((hi + 31) / 32), log, report);
}
