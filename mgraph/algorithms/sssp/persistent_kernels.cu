// Near and far in one launch, by two kernels: over rows in any order, relaxed whole, and over
// weight-sorted rows, of which a round relaxes the light arcs alone.

#include "frontiers.cuh"
#include "persistent_kernels.cuh"
#include "prelude.cuh"

// The loop of both kernels: rounds while near has vertices, then the next bucket. Variant is
// NearFar or LightHeavy.
template <class Variant> __device__ inline void run_search(Variant& search, const u32* abort,
                                                           i64 num_bits, i64* log, i64* report) {
  dist_t top = top_of<dist_t>::value();
  i64 n = search.n, *counters = search.counters;
  for (i64 v = thread_index(); v < n; v += thread_count()) search.dist[v] = top;
  for (i64 i = thread_index(); i < num_bits; i += thread_count()) search.bits[i] = 0;
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
  static constexpr u32 REMAINDER_FLAG = 0;
  static constexpr int MAX_HOP_VERTICES = 64;
  static constexpr bool pulls = false;
  const i64* indptr;
  const weight_t* weights;
  dist_t bound;
  __device__ inline void limit_to_light(LaneArcs*) {}
  __device__ inline void limit_remainder(LaneArcs*) {}
  __device__ inline i64 end_of_light_pieces(i64, i64 end) { return end; }
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
    for (i64 first = warp_index() * 32 * SCAN_DEPTH; first < n;
         first += warp_count() * 32 * SCAN_DEPTH) {
      dist_t d[SCAN_DEPTH];
      u32 near = 0;
      load_distances(first, d);
#pragma unroll
      for (int k = 0; k < SCAN_DEPTH; k++) {
        if (d[k] >= bound && d[k] < lowest) lowest = d[k];
        if (settled <= d[k] && d[k] < bound) near |= 1u << k;
      }
      for (int k = 0; k < SCAN_DEPTH; k++) {
        if (!__any_sync(0xFFFFFFFFu, near >> k & 1)) continue;
        staged_near.push(near >> k & 1, (vertex_t)(first + 32 * k + lane_index()));
        flush(32, false);
      }
    }
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

// Weight-sorted rows, light arcs first. Near vertices relax the arcs that may end below the bound.
// The others, heavy for the bucket, wait until it is settled: then its vertices, those in
// [bucket_begin, settled), relax each of them once. Or, from where fewer arcs lead to unsettled
// vertices, these pull over the arcs that are light enough. When the vertices that pulled have few
// arcs left, they pull from each other too, in a last bucket without an upper bound.
struct WeightRows {
  static constexpr u32 REMAINDER_FLAG = 1u << 31;
  static constexpr int MAX_HOP_VERTICES = 8;
  const i64* indptr;
  const weight_t* weights;
  dist_t bound, bucket_begin, settled;
  double scale;
  bool pulls, is_last_bucket;
  // The weight up to which an arc is light. What a bucket leaves of a row, its remainder, is heavy.
  __device__ inline dist_t max_light_weight(const LaneArcs& s, bool remainder) {
    return remainder ? pulls ? s.from - bucket_begin : settled - s.from : bound - s.from;
  }
  __device__ inline void limit(LaneArcs* s, bool remainder, i64 split) {
    *(remainder && !pulls ? &s->begin : &s->end) = split;
  }
  __device__ inline void limit_to_light(LaneArcs* s) {
    s->end =
        light_end(weights, s->begin, s->end, scale, class_edge(max_light_weight(*s, false), scale));
  }
  __device__ inline void limit_remainder(LaneArcs* s) {
    s->pulled = pulls;
    limit(
        s, true,
        light_end(weights, s->begin, s->end, scale, class_edge(max_light_weight(*s, true), scale)));
  }
  // Count the pieces of a long row that have arcs below a class edge, the first included; probe
  // eight at a time.
  __device__ inline i64 count_light_pieces(i64 begin, i64 end, double edge) {
    i64 low = 1, high = (end - begin + PIECE_ARCS - 1) / PIECE_ARCS;
    while (low < high) {
      i64 step = (high - low + 7) / 8, num_light = 0;
#pragma unroll
      for (int k = 1; k <= 8; k++) {
        i64 piece = low + k * step - 1;
        num_light += piece < high && (double)weights[begin + piece * PIECE_ARCS] * scale < edge;
      }
      low += num_light * step;
      if (low + step - 1 < high) high = low + step - 1;
    }
    return low;
  }
  // Where the light arcs of a long row end for the least distance of the bucket.
  __device__ inline i64 end_of_light_pieces(i64 begin, i64 end) {
    i64 last =
        begin +
        count_light_pieces(begin, end, class_edge((dist_t)(bound - settled), scale)) * PIECE_ARCS;
    return last < end ? last : end;
  }
  // Whether a vertex may pull from a neighbor at this distance.
  __device__ inline bool can_pull_from(dist_t d) {
    return d < (is_last_bucket ? top_of<dist_t>::value() : settled);
  }
};

struct LightHeavy : SsspSearch<WeightRows> {
  static constexpr bool MARKS_ON_ADVANCE = true;
  __device__ inline void start() {
    keeps_far = false;
    bucket_begin = settled = 0;
    pulls = is_last_bucket = false;
    scale = __longlong_as_double(counters[SCALE]);
  }
  __device__ inline void count(Kind kind) {
    if (kind != PULL) block->bucket_arcs += block->totals[TOTAL_ARCS];
    *(kind == PUSH ? &block->bucket_row_arcs : &block->settled_row_arcs) +=
        block->totals[TOTAL_ROWS];
  }
  // Pull over the first arcs of a row by one lane: after the lightest that lead to settled
  // vertices few are light enough.
  __device__ inline void pull_by_lane(LaneArcs* own) {
    i64 row_end = own->end, last = own->begin + LANE_PULL_ARCS;
    if (last > row_end) last = row_end;
    double edge = class_edge((dist_t)(own->from - bucket_begin), scale);
    bool continues = true;
    for (i64 at = own->begin; continues && at < last; at += SCAN_DEPTH) {
      dist_t w[SCAN_DEPTH], other[SCAN_DEPTH];
#pragma unroll
      for (int k = 0; k < SCAN_DEPTH; k++) {
        i64 i = at + k < last ? at + k : last - 1;
        vertex_t u = targets[i];
        w[k] = (dist_t)weights[i];
        other[k] = (double)w[k] * scale < edge ? load_relaxed(&dist[u]) : top_of<dist_t>::value();
      }
#pragma unroll
      for (int k = 0; k < SCAN_DEPTH; k++) {
        if (!can_pull_from(other[k])) continue;
        dist_t through = other[k] + w[k];
        if (through < own->from && through <= block->cutoff) own->from = through;
      }
      edge = class_edge((dist_t)(own->from - bucket_begin), scale);
      continues = (double)w[SCAN_DEPTH - 1] * scale < edge;
      own->begin = at + SCAN_DEPTH < last ? at + SCAN_DEPTH : last;
      arcs += SCAN_DEPTH;
    }
    if (!continues) own->end = own->begin;
  }
  // Relax the remainders of up to 32 staged vertices.
  __device__ inline void relax_remainders() {
    LaneArcs own = {};
    i64 row = 0;
    dist_t before = 0;
    bool is_long = false;
    if (lane_index() < staged_later.pop(&own.u)) {
      own.begin = row = indptr[own.u];
      own.end = indptr[own.u + 1];
      before = load_relaxed(&dist[own.u]);
      own.from = before;
      own.pulled = pulls;
      is_long = own.end - own.begin > PIECE_ARCS;
      vertices++;
      if (pulls) pull_by_lane(&own);
      if (own.from < before) atomic_min(&dist[own.u], own.from);
      if (own.from < before && own.from >= bound && own.from < lowest) lowest = own.from;
    }
    if (pulls) {
      staged_near.push(own.from < before && own.from < bound && (is_last_bucket || before >= bound),
                       own.u);
      flush(32, true);
    }
    if (own.begin < own.end) {
      double edge = class_edge(max_light_weight(own, true), scale);
      if (is_long) {
        i64 split = row + count_light_pieces(row, own.end, edge) * PIECE_ARCS;
        if (!pulls)
          own.begin = split - PIECE_ARCS;
        else if (split < own.end)
          own.end = split;
      } else {
        limit(&own, true, light_end(weights, own.begin, own.end, scale, edge));
      }
    }
    is_long = is_long && own.begin < own.end;
    queue_pieces(is_long, own, row, REMAINDER_FLAG);
    if (is_long) own.end = own.begin;
    relax(own);
  }
  // Scan all distances: stage the vertices that are near and, if `has_remainders`, those with a
  // remainder to relax.
  __device__ inline void classify_all(bool has_remainders) {
    for (i64 first = warp_index() * 32 * SCAN_DEPTH; first < n;
         first += warp_count() * 32 * SCAN_DEPTH) {
      dist_t d[SCAN_DEPTH];
      u32 in_bucket = 0, unsettled = 0, near = 0;
      load_distances(first, d);
#pragma unroll
      for (int k = 0; k < SCAN_DEPTH; k++) {
        if (has_remainders && bucket_begin <= d[k] && d[k] < settled) in_bucket |= 1u << k;
        if (has_remainders && settled <= d[k]) unsettled |= 1u << k;
        if (!is_last_bucket && settled <= d[k] && d[k] < bound) near |= 1u << k;
        if (d[k] >= bound && d[k] < lowest) lowest = d[k];
      }
      u32 remainder = pulls ? unsettled : in_bucket;
      for (int k = 0; k < SCAN_DEPTH; k++) {
        if (!__any_sync(0xFFFFFFFFu, (in_bucket | near | remainder) >> k & 1)) continue;
        i64 v = first + 32 * k + lane_index();
        bool has_entry = v < n;
        if (has_entry && in_bucket >> k & 1) row_arcs += indptr[v + 1] - indptr[v];
        staged_near.push(has_entry && near >> k & 1, (vertex_t)v);
        staged_later.push(has_entry && remainder >> k & 1, (vertex_t)v);
        flush(32, true);
        while (staged_later.length >= 32) relax_remainders();
      }
    }
    while (staged_later.length) relax_remainders();
  }
  // Near is empty: all below the bound is settled. Raise the bound, relax the remainders of the
  // bucket, and find the vertices that are near; false where nothing is left, or enough is settled.
  // Or widen the bucket: its vertices are near again, and its remainders wait.
  __device__ inline bool advance_bucket(Kind* kind) {
    dist_t top = top_of<dist_t>::value(), low = block->lowest_waiting;
    i64 all = indptr[n], in_bucket = block->bucket_row_arcs,
        unsettled_arcs = all - block->settled_row_arcs - in_bucket;
    if (bound == top || (low == top && !in_bucket) || is_enough()) return false;
    bool can_pull = load_relaxed(&counters[PULLS]), pulled = pulls;
    // Rows that were relaxed twice are in the bucket twice.
    bool pays = hubs ? 2 * unsettled_arcs < in_bucket : is_pull_cheaper(unsettled_arcs, in_bucket);
    pulls = can_pull && (pulled || pays);
    is_last_bucket = pulled && is_finish(unsettled_arcs, all);
    bool is_widened = hubs && can_pull && !pulls && low < top && in_bucket * WIDENED_SHARE > all;
    if (!is_widened) {
      bucket_begin = settled;
      settled = bound;
    }
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
                                      const weight_t* weights, dist_t* dist, u32* bits,
                                      vertex_t* queues, u32* tags, i64* counters,
                                      SsspBlock& block) {
  i64 warp = threadIdx.x >> 5;
  Variant search = {};
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
  search.staged_near.items = block.staged[0] + Staging::CAPACITY * warp;
  search.staged_later.items = block.staged[1] + Staging::CAPACITY * warp;
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
                   const weight_t* weights, dist_t* dist, u32* bits, vertex_t* queues, u32* tags,
                   i64* counters, i64* log, i64* report) {
  __shared__ SsspBlock block;
  auto search =
      make_search<NearFar>(hi, indptr, targets, weights, dist, bits, queues, tags, counters, block);
  run_search(search, abort, 3 * ((hi + 31) / 32), log, report);
}

extern "C" __global__ void __launch_bounds__(512, 2)
    find_distances_by_weight(i64 lo, i64 hi, const u32* abort, const i64* indptr,
                             const vertex_t* targets, const weight_t* weights, dist_t* dist,
                             u32* bits, vertex_t* queues, u32* tags, i64* counters, i64* log,
                             i64* report) {
  __shared__ SsspBlock block;
  auto search = make_search<LightHeavy>(hi, indptr, targets, weights, dist, bits, queues, tags,
                                        counters, block);
  run_search(search, abort, 2 * ((hi + 31) / 32), log, report);
}
