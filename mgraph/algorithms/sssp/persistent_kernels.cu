// Near and far in one launch, by two kernels: over rows in any order, relaxed whole, and over rows
// with their lightest arcs, of which a round relaxes the light ones alone.

#include "frontiers.cuh"
#include "lightest_arcs.cuh"
#include "persistent_kernels.cuh"
#include "prelude.cuh"

// The loop of both kernels: rounds while near has vertices, then the next bucket. Variant is
// NearFar or LightHeavy.
template <class Variant>
__device__ inline void run_search(Variant& search, const u32* abort, i64* log, i64* report) {
  dist_t top = top_of<dist_t>::value();
  i64 n = search.n, *counters = search.counters;
  for (i64 v = thread_index(); v < n; v += thread_count()) search.dist[v] = top;
  for (i64 i = thread_index(); i < search.tags() - search.words; i += thread_count())
    search.words[i] = 0;
  if (thread_index() < 3) *distance_at(rotated(counters, LOWEST, (int)thread_index())) = top;
  for (i64 i = threadIdx.x; i < search.hubs; i += blockDim.x) search.hub[i] = top;
  if (!grid_barrier(&counters[ARRIVED], abort)) return;
  // The last thread writes the log: small rounds use the first warps alone.
  bool writes_log = thread_index() == thread_count() - 1, marks = false;
  i64 started = clock_ns();
  // The sources are round 0, below the first bound.
  Kind kind = PUSH;
  if (warp_index() == 0) search.begin(counters + SOURCES, counters[NUM_SOURCES]);
  while (search.end_round(abort, marks)) {
    if (search.round >= 0) {
      if (threadIdx.x == 0) search.count(kind);
      if (writes_log) record_round(log, counters, kind, search.round);
    }
    search.begin_round();
    if (!search.is_near_empty()) {
      search.relax_all(marks);
      kind = PUSH;
      marks = true;
      continue;
    }
    marks = Variant::MARKS_ON_ADVANCE;
    __syncthreads();  // all threads see the counts
    if (search.advance_bucket(&kind)) continue;
    // The block that wrote the log copies it to the host.
    if (blockIdx.x < gridDim.x - 1) return;
    __syncthreads();
    i64 num_records = search.round < MAX_RECORDS ? search.round : MAX_RECORDS;
    for (i64 i = threadIdx.x; i < num_records * RECORD_WORDS; i += blockDim.x)
      report[NUM_REPORTS + i] = log[i];
    if (writes_log) {
      report[DONE] = 1;
      report[NUM_RECORDS] = num_records;
      report[STARTED] = started;
      *distance_at(&report[SETTLED]) = search.bound;
    }
    return;
  }
}

// Rows in any order, relaxed whole.
struct WholeRows {
  static constexpr u32 REMAINDER_FLAG = 0, LIGHTEST_FLAG = 0;
  static constexpr int MAX_HOP_VERTICES = 64, NUM_BITMAPS = 3;
  static constexpr bool pulls = false;
  const i64* indptr;
  const vertex_t* targets;
  const weight_t* weights;
  dist_t bound;
  __device__ inline vertex_t target(i64 slot) const { return targets[slot]; }
  __device__ inline dist_t weight(i64 slot) const { return (dist_t)weights[slot]; }
  __device__ inline void limit_to_light(LaneArcs*) {}
  __device__ inline void limit_long_row(LaneArcs*) {}
  __device__ inline void load_lightest(LaneArcs*) {}
  __device__ inline void limit_piece(LaneArcs*) {}
  __device__ inline bool is_wanted(dist_t, dist_t, bool) { return true; }
  __device__ inline bool can_pull_from(dist_t) { return false; }
};

// Far is a queue, or every vertex at a distance of at least the bound.
struct NearFar : SsspSearch<WholeRows> {
  static constexpr bool MARKS_ON_ADVANCE = false;
  __device__ inline void start() { keeps_far = true; }
  __device__ inline void count(Kind kind) {
    if (kind == PUSH) block->bucket_arcs += block->totals[TOTAL_ARCS];
  }
  // Move vertices below the raised bound from far to near. Entries that were relaxed meanwhile are
  // dropped.
  __device__ inline void split_far(i64 length, dist_t settled) {
    const vertex_t* far = far_queue(bucket - 1);
    for (i64 first = warp_index() * 32; first < length; first += warp_count() * 32) {
      bool valid = first + lane_index() < length;
      vertex_t v = valid ? load_relaxed(&far[first + lane_index()]) : 0;
      dist_t d = valid ? load_relaxed(&dist[v]) : 0;
      bool remains = valid && d >= bound, moves = valid && d < bound;
      if (moves) clear_bit(far_marks(), v);
      if (remains && d < lowest) lowest = d;
      staged_near.push(moves && d >= settled, v);
      staged_later.push(remains, v);
      flush(32, false);
    }
  }
  // Find the vertices below the raised bound where far is not kept as a queue: scan all distances.
  __device__ inline void scan_all(dist_t settled) {
    scan_distances(settled, settled, 1 << IS_NEAR, [&](i64 v, u32 which) {
      staged_near.push(which == IS_NEAR, (vertex_t)v);
      flush(32, false);
    });
  }
  // Near is empty: all below the bound is settled. Raise the bound and move vertices below it to
  // near; false where no vertex waits, or enough is settled. No waiting vertex is nearer than
  // `lowest_waiting`.
  __device__ inline bool advance_bucket(Kind* kind) {
    dist_t low = block->lowest_waiting, settled = bound;
    if (low == top_of<dist_t>::value() || is_enough()) return false;
    i64 length = block->totals[TOTAL_FAR];
    bound = raised(low, next_delta());
    keeps_far = keeps_far && is_queue_cheaper(length, n);
    __syncthreads();  // all threads have read what begin_bucket changes
    begin_bucket();
    *kind = keeps_far ? SPLIT : SCAN;
    if (keeps_far)
      split_far(length, settled);
    else
      scan_all(settled);
    return true;
  }
};

// Rows with their lightest arcs. Near vertices relax the arcs that may end below the bound. The
// others, heavy for the bucket, wait until it is settled: then its vertices, those in
// [bucket_begin, settled), relax each of them once. Or, from where fewer arcs lead to unsettled
// vertices, these pull over the arcs that are light enough. When the vertices that pulled have few
// arcs left, they pull from each other too, in a last bucket without an upper bound.
struct LightHeavyRows : RowsAndLightest {
  static constexpr u32 REMAINDER_FLAG = 1u << 31, LIGHTEST_FLAG = 1u << 30;
  static constexpr int MAX_HOP_VERTICES = 8, NUM_BITMAPS = 2;
  // All distances below `final_below` were final when the bound was raised.
  dist_t bound, bucket_begin, settled, final_below;
  bool pulls, is_last_bucket;
  // The edge of the arcs that are light; of a remainder, of those light enough to be pulled over.
  __device__ inline double edge_of(dist_t room) const { return class_edge(room, lightest.scale); }
  __device__ inline double light_edge(const LaneArcs& s) const {
    return edge_of(s.remainder ? s.from - bucket_begin : bound - s.from);
  }
  __device__ inline void set(LaneArcs* s, Slots arcs) const {
    s->begin = arcs.begin;
    s->end = arcs.end;
  }
  __device__ inline void limit_to_light(LaneArcs* s) const {
    set(s, light_of(s->begin, s->end, light_edge(*s)));
  }
  __device__ inline void load_lightest(LaneArcs* s) const { set(s, lightest_of(s->begin, s->end)); }
  // Limit a piece of a row's lightest arcs again when it is loaded: the vertex may have become
  // nearer, or have been farther than the bucket's least distance.
  __device__ inline void limit_piece(LaneArcs* s) const {
    Slots piece = {s->begin - FIRST_LIGHTEST, s->end - FIRST_LIGHTEST};
    set(s, numbered(lightest.limited(piece, light_edge(*s))));
  }
  // Count the pieces of a long row's lightest arcs that have one below an edge, the first included;
  // probe eight at a time.
  __device__ inline i64 count_light_pieces(Slots arcs, double edge) const {
    i64 low = 1, high = (arcs.end - arcs.begin + PIECE_ARCS - 1) / PIECE_ARCS;
    while (low < high) {
      i64 step = (high - low + 7) / 8, num_light = 0;
#pragma unroll
      for (int k = 1; k <= 8; k++) {
        i64 piece = low + k * step - 1;
        num_light += piece < high && lightest.is_below(arcs.begin + piece * PIECE_ARCS, edge);
      }
      low += num_light * step;
      if (low + step - 1 < high) high = low + step - 1;
    }
    return low;
  }
  // Limit a long row to whole pieces: those with light arcs, or all of the row. The distance of a
  // near vertex may fall before they are relaxed, though not below what was final when the bound
  // was raised.
  __device__ inline void limit_long_row(LaneArcs* s) const {
    dist_t least = s->from < final_below ? s->from : final_below;
    double edge = s->remainder ? light_edge(*s) : edge_of(bound - least);
    Slots arcs = lightest.of_row(s->begin, s->end);
    if (lightest.are_all_below(arcs, edge)) return;
    i64 end = arcs.begin + count_light_pieces(arcs, edge) * PIECE_ARCS;
    set(s, numbered({arcs.begin, end < arcs.end ? end : arcs.end}));
  }
  // Whether an arc of a light range, or of a remainder, could lower a distance. An arc that is not
  // below the edge of bound - from ends at the bound or beyond, though sums are rounded: so a push
  // and the remainder, which takes what ends there or beyond, leave none out.
  __device__ inline bool is_wanted(dist_t from, dist_t weight, bool remainder) const {
    if (remainder && pulls) return bucket_begin + weight < from;
    return remainder ? from + weight >= settled : from + weight <= bound;
  }
  // Whether a vertex may pull from a neighbor at this distance.
  __device__ inline bool can_pull_from(dist_t d) {
    return d < (is_last_bucket ? top_of<dist_t>::value() : settled);
  }
};

struct LightHeavy : SsspSearch<LightHeavyRows> {
  static constexpr bool MARKS_ON_ADVANCE = true;
  __device__ inline void start() {
    keeps_far = false;
    bucket_begin = settled = final_below = 0;
    pulls = is_last_bucket = false;
    lightest.scale = __longlong_as_double(counters[SCALE]);
  }
  __device__ inline void count(Kind kind) {
    if (kind != PULL) block->bucket_arcs += block->totals[TOTAL_ARCS];
    *(kind == PUSH ? &block->bucket_row_arcs : &block->settled_row_arcs) +=
        block->totals[TOTAL_ROWS];
  }
  // Pull by one lane, over all arcs of a short row, or else over the first of its lightest arcs,
  // until one is too heavy. The row's range is then empty; or it is still the whole row, where
  // further arcs may be light.
  __device__ inline void pull_by_lane(LaneArcs* row) {
    bool is_short = row->end - row->begin <= PULL_DEPTH;
    i64 first = is_short ? row->begin : lightest_begin(row->begin),
        last = is_short ? row->end : lightest_begin(row->end);
    int count = (int)(last - first < LANE_PULL_ARCS ? last - first : LANE_PULL_ARCS);
    const vertex_t* from = (is_short ? targets : lightest.targets) + first;
    const weight_t* lengths = (is_short ? weights : lightest.weights) + first;
    double edge = light_edge(*row);
    for (int at = 0; at < count; at += PULL_DEPTH) {
      dist_t w[PULL_DEPTH], other[PULL_DEPTH];
#pragma unroll
      for (int k = 0; k < PULL_DEPTH; k++) {
        int i = at + k < count ? at + k : count - 1;
        vertex_t u = from[i];
        w[k] = (dist_t)lengths[i];
        other[k] =
            (double)w[k] * lightest.scale < edge ? load_relaxed(&dist[u]) : top_of<dist_t>::value();
      }
#pragma unroll
      for (int k = 0; k < PULL_DEPTH; k++) {
        if (!can_pull_from(other[k])) continue;
        dist_t through = other[k] + w[k];
        if (through < row->from && through <= block->cutoff) row->from = through;
      }
      arcs += PULL_DEPTH;
      edge = light_edge(*row);
      if (!is_short && (double)w[PULL_DEPTH - 1] * lightest.scale < edge) continue;
      row->end = row->begin;
      return;
    }
  }
  // Relax the remainders of up to 32 staged vertices. If these pull, each lane pulls over the first
  // arcs of one row. If further arcs of the row may be light too, the vertex is staged again: a
  // pull over whole rows begins once 32 vertices are.
  __device__ inline void relax_remainders() {
    LaneArcs own = {};
    dist_t before = 0;
    if (lane_index() < staged_later.pop(&own.u)) {
      load_remainder(&own);
      vertices++;
      before = own.from;
      if (pulls) pull_by_lane(&own);
      if (own.from < before) atomic_min(&dist[own.u], own.from);
      if (own.from < before && own.from >= bound && own.from < lowest) lowest = own.from;
    }
    bool is_long = own.end - own.begin > PIECE_ARCS;
    if (is_long && pulls) limit_long_row(&own);
    queue_pieces(is_long, own, REMAINDER_FLAG);
    if (is_long) own.end = own.begin;
    if (pulls) {
      staged_near.push(own.from < before && own.from < bound && (is_last_bucket || before >= bound),
                       own.u);
      flush(32, true);
      staged_whole.push(own.begin < own.end, own.u);
      own = {};
      if (staged_whole.length >= 32 || !staged_later.length)
        if (lane_index() < staged_whole.pop(&own.u)) load_remainder(&own);
    }
    relax(own);
  }
  __device__ inline void load_remainder(LaneArcs* own) {
    own->begin = indptr[own->u];
    own->end = indptr[own->u + 1];
    own->from = load_relaxed(&dist[own->u]);
    own->remainder = true;
  }
  // Scan all distances: stage the vertices that are near and, if `has_remainders`, those with a
  // remainder to relax.
  __device__ inline void classify_all(bool has_remainders) {
    u32 wanted = 1 << IS_NEAR | has_remainders << IN_BUCKET | pulls << IS_FAR;
    scan_distances(bucket_begin, settled, wanted, [&](i64 v, u32 which) {
      if (which == IN_BUCKET) row_arcs += indptr[v + 1] - indptr[v];
      staged_near.push(which == IS_NEAR && !is_last_bucket, (vertex_t)v);
      bool has_remainder = pulls ? which >= IS_NEAR : which == IN_BUCKET;
      staged_later.push(has_remainder, (vertex_t)v);
      flush(32, true);
      while (staged_later.length >= 32) relax_remainders();
    });
    while (staged_later.length || staged_whole.length) relax_remainders();
  }
  // Near is empty: all below the bound is settled. Raise the bound, relax the remainders of the
  // bucket, and find the vertices that are near; false where nothing is left, or enough is settled.
  // Or widen the bucket: its vertices are near again, and its remainders wait.
  __device__ inline bool advance_bucket(Kind* kind) {
    dist_t top = top_of<dist_t>::value(), low = block->lowest_waiting;
    i64 all = indptr[n], in_bucket = block->bucket_row_arcs,
        unsettled_arcs = all - block->settled_row_arcs - in_bucket;
    // Rows that were relaxed twice are in the bucket twice.
    if (unsettled_arcs < 0) unsettled_arcs = 0;
    if (bound == top || (low == top && !in_bucket) || is_enough()) return false;
    bool can_pull = load_relaxed(&counters[PULLS]), pulled = pulls;
    bool pays = hubs ? 2 * unsettled_arcs < in_bucket : is_pull_cheaper(unsettled_arcs, in_bucket);
    pulls = can_pull && (pulled || pays);
    is_last_bucket = pulled && is_finish(unsettled_arcs, all);
    bool is_widened =
        hubs && can_pull && !pulls && low < top && is_widening_cheaper(all, in_bucket);
    if (!is_widened) {
      bucket_begin = settled;
      settled = bound;
    }
    final_below = bound;
    // With no remainder all below the lowest waiting distance is final.
    if (!in_bucket) settled = final_below = low;
    bound = is_last_bucket ? top : raised(in_bucket && !is_widened ? bound : low, next_delta());
    __syncthreads();  // all threads have read what begin_bucket changes
    begin_bucket();
    classify_all(!is_widened);
    *kind = is_widened ? SCAN : pulls ? PULL : HEAVY;
    return true;
  }
};

template <class Variant>
__device__ inline Variant make_search(i64 n, const i64* indptr, const vertex_t* targets,
                                      const weight_t* weights, dist_t* dist, u32* words,
                                      vertex_t* queues, i64* counters, SsspBlock& block) {
  i64 warp = threadIdx.x >> 5;
  Variant search = {};
  search.n = n;
  search.indptr = indptr;
  search.targets = targets;
  search.weights = weights;
  search.dist = dist;
  search.words = words;
  search.queues = queues;
  search.counters = counters;
  search.bound = raised(0, *distance_at(&counters[DELTA]));
  search.lowest = top_of<dist_t>::value();
  search.hub = dynamic_shared<dist_t>();
  search.hubs = (u32)counters[HUBS];
  search.long_rows = counters[LONG_ROWS];
  search.round = -1;
  search.block = &block;
  search.staged_near.items = block.staged[0] + Staging::CAPACITY * warp;
  search.staged_later.items = block.staged[1] + Staging::CAPACITY * warp;
  search.staged_whole.items = block.staged[2] + Staging::CAPACITY * warp;
  if (threadIdx.x == 0) {
    for (i64& sum : block.sums) sum = 0;
    block.max_pieces = indptr[n] / PIECE_ARCS;
    block.bucket_arcs = block.max_bucket_arcs = block.bucket_row_arcs = block.settled_row_arcs = 0;
    block.lowest = top_of<dist_t>::value();
    block.cutoff = *distance_at(&counters[CUTOFF]);
    block.delta = *distance_at(&counters[DELTA]);
    block.max_rounds = counters[MAX_ROUNDS];
    block.target = counters[TARGET];
  }
  search.start();
  return search;
}

extern "C" __global__ void __launch_bounds__(512, 2)
    find_distances(i64 lo, i64 hi, const u32* abort, const i64* indptr, const vertex_t* targets,
                   const weight_t* weights, dist_t* dist, u32* words, vertex_t* queues,
                   i64* counters, i64* log, i64* report) {
  __shared__ SsspBlock block;
  auto search =
      make_search<NearFar>(hi, indptr, targets, weights, dist, words, queues, counters, block);
  run_search(search, abort, log, report);
}

extern "C" __global__ void __launch_bounds__(512, 2)
    find_distances_by_weight(i64 lo, i64 hi, const u32* abort, const i64* indptr,
                             const vertex_t* targets, const weight_t* weights,
                             const vertex_t* lightest_targets, const weight_t* lightest_weights,
                             dist_t* dist, u32* words, vertex_t* queues, i64* counters, i64* log,
                             i64* report) {
  __shared__ SsspBlock block;
  auto search =
      make_search<LightHeavy>(hi, indptr, targets, weights, dist, words, queues, counters, block);
  search.lightest.targets = lightest_targets;
  search.lightest.weights = lightest_weights;
  run_search(search, abort, log, report);
}
