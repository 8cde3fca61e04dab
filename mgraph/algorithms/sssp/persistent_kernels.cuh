// The rounds that both loops of persistent_kernels.cu share. In a round every warp relaxes its part
// of near; a grid barrier ends the round.
//
// State, `r` the round and `b` the bucket; what one round or bucket writes is valid after the
// barrier that ends it:
//   array         holds                            written by               until
//   dist          distance of each vertex          any thread, minima       (falls only)
//   near_queue    vertices to relax                r - 1                    r, double-buffered
//   piece_queue   long rows to relax, in pieces    r - 1                    r, double-buffered
//   piece_tags    which piece, and of which arcs   with the entry           r, double-buffered
//   near_marks    vertices in near_queue           r - 1, with the entry    r clears as it loads
//   far_queue     vertices beyond the bound        b, as they are lowered   b + 1, double-buffered
//   far_marks     vertices in far_queue            b, with the entry        an entry leaves
//   hub           first vertices' distances        threads of the block     (upper bounds)
//   counters      queue lengths, sums, minima      warps and blocks add     triple-buffered by r, b
//   totals        counters as of the barrier       5 threads of each block  the next barrier
//   lowest        least distance seen to wait      this lane                the round ends
//
// far_queue, far_marks and keeps_far are used for whole rows alone: with lightest arcs far is found
// by a scan of all distances.
//
// Races. Distances only fall, by atomic minima, and a value read is never below the current one. If
// a distance falls while arcs are relaxed from it, the thread that lowered it has queued the
// vertex, and they are relaxed again. A block's copy of the hubs' distances is written by its
// threads without order: each of those values was a distance once, and is no smaller than the
// current one. Queue slots are reserved by an atomic and read after a barrier. Triple-buffered
// counters are read after one barrier, cleared after the next and added to after the third; a block
// reads them once, for all of its threads. Bits of bitmaps are changed by atomics alone.
//
// `lowest` is never above a distance that waits beyond the bound: the scan that begins a bucket,
// and each later lowering to beyond the bound, take the minimum with it. A bucket that begins at
// `lowest` relies on this: a nearer vertex would never be relaxed.

#include "frontiers.cuh"
#include "lightest_arcs.cuh"
#include "persistent_kernels.block.cuh"
#include "persistent_kernels.py"
#include "prelude.cuh"

// Lightest arcs of a row that one lane pulls over: all of those of a row that is not long.
constexpr i64 LANE_PULL_ARCS = PIECE_ARCS >> LIGHTEST_BITS;

// ---- choices: what decides how a round is done -------------------------------------------------
// In the tail each bucket is this many times wider than the one before.
constexpr i64 TAIL_GROWTH = 8;
// Where there are hubs, vertices pull once a bucket's rows have more than twice the arcs of all
// unsettled vertices. A bucket from which a pull does not pay yet is widened if to push the heavy
// arcs of its hubs would cost more than WIDENING femtoseconds for each arc of the graph. (Of 64
// roots of rmat20 to rmat28 on one H200 the slowest took 1.1 to 1.2 times the median; with twice as
// much up to 1.5 times, with eight times as much 2.4 times.)
constexpr i64 WIDENING = 2500;
// Rounds of at most this many entries per warp continue within the warps, for up to MAX_HOPS steps
// of short rows, before the barrier; Rows::MAX_HOP_VERTICES limits the vertices of a step.
constexpr i64 SMALL_ROUND = 4, MAX_HOPS = 16, MAX_HOP_ARCS = 16;
__device__ inline bool is_worth_hops(i64 entries) { return entries <= SMALL_ROUND * warp_count(); }

// One warp's view of the search. `round` and `bucket` are equal in all warps. `Rows` decides which
// arcs of a row are relaxed when.
template <class Rows> struct SsspSearch : Rows {
  using Rows::bound, Rows::indptr;
  dist_t* dist;
  u32* words;  // bitmaps, then tags
  vertex_t* queues;
  i64* counters;
  i64 n;
  dist_t lowest;
  SsspBlock* block;
  dist_t* hub;  // distances of the first vertices as this block last saw them, in shared memory
  u32 hubs;
  i64 long_rows;  // no row from this vertex on is long
  bool keeps_far;
  int round, bucket;
  u32 arcs, vertices;  // by this lane in this round
  i64 row_arcs;        // of the rows that it loaded
  Staging staged_near, staged_later, staged_whole;

  __device__ inline i64 cost(Cost which) { return load_relaxed(&counters[NUM_PARAMETERS + which]); }
  // Whether a queue of far is cheaper than a scan of all vertices.
  __device__ inline bool is_queue_cheaper(i64 length, i64 n) {
    return length * cost(SPLITTING) <= n * cost(SCANNING);
  }
  // Whether the unsettled vertices pull, over rows of this many arcs in all, rather than that the
  // bucket's vertices push.
  __device__ inline bool is_pull_cheaper(i64 unsettled_arcs, i64 in_bucket) {
    return unsettled_arcs * cost(PULLING) < in_bucket * cost(PUSHING);
  }
  // Whether to push a bucket of this many arcs costs more than to widen it.
  __device__ inline bool is_widening_cheaper(i64 all, i64 in_bucket) {
    return all * WIDENING < in_bucket * cost(PUSHING);
  }
  __device__ inline vertex_t* near_queue(int r) { return queues + (r & 1) * n; }
  __device__ inline vertex_t* far_queue(int b) { return queues + (2 + (b & 1)) * n; }
  __device__ inline vertex_t* piece_queue(int r) {
    return queues + (Rows::REMAINDER_FLAG ? 2 : 4) * n + 4 * (r & 1) * block->max_pieces;
  }
  __device__ inline u32* bitmap(int which) { return words + which * ((n + 31) / 32); }
  __device__ inline u32* tags() { return bitmap(Rows::NUM_BITMAPS); }
  __device__ inline u32* piece_tags(int r) { return tags() + 4 * (r & 1) * block->max_pieces; }
  __device__ inline u32* near_marks(int r) { return bitmap(r & 1); }
  __device__ inline u32* far_marks() { return bitmap(2); }
  // Reserve a slot of a queue for each lane that needs one.
  __device__ inline i64 reserve_by_warp(bool needs_slot, i64* length) {
    u32 mask = __ballot_sync(0xFFFFFFFFu, needs_slot);
    i64 at = 0;
    if (mask && lane_index() == 0) at = atomic_add(length, (i64)__popc(mask));
    return __shfl_sync(0xFFFFFFFFu, at, 0) + lanes_before(mask);
  }

  // Queue the long rows of the lanes that have one, in pieces as long as a short row, for the next
  // round.
  __device__ inline void queue_pieces(bool is_long, const LaneArcs& own, u32 flags) {
    u32 long_lanes = __ballot_sync(0xFFFFFFFFu, is_long);
    if (!long_lanes) return;
    i64 number = is_long ? (own.end - own.begin + PIECE_ARCS - 1) / PIECE_ARCS : 0;
    i64 sum_up_to = scan_warp(number), base = 0;
    if (lane_index() == 31) base = atomic_add(rotated(counters, PIECES, round + 1), sum_up_to);
    i64 at = __shfl_sync(0xFFFFFFFFu, base, 31) + sum_up_to - number;
    if (own.begin >= FIRST_LIGHTEST) flags |= Rows::LIGHTEST_FLAG;
    for (; long_lanes; long_lanes &= long_lanes - 1) {
      int lane = __ffs(long_lanes) - 1;
      vertex_t v = __shfl_sync(0xFFFFFFFFu, own.u, lane);
      u32 tag = __shfl_sync(0xFFFFFFFFu, flags, lane),
          count = __shfl_sync(0xFFFFFFFFu, (u32)number, lane);
      i64 place = __shfl_sync(0xFFFFFFFFu, at, lane);
      for (u32 i = lane_index(); i < count; i += 32) {
        piece_queue(round + 1)[place + i] = v;
        piece_tags(round + 1)[place + i] = tag | i;
      }
    }
  }
  // Queue the vertices of the lanes that have a new one, for the next round.
  __device__ inline void queue_near(bool is_new, vertex_t v) {
    LaneArcs own = {v};
    bool is_long = false;
    if (is_new && v < long_rows) {
      own.begin = indptr[v];
      own.end = indptr[v + 1];
      is_long = own.end - own.begin > PIECE_ARCS;
      if (is_long) own.from = load_relaxed(&dist[v]);
      if (is_long) Rows::limit_long_row(&own);
    }
    i64 at = reserve_by_warp(is_new && !is_long, rotated(counters, NEAR, round + 1));
    if (is_new && !is_long) near_queue(round + 1)[at] = v;
    queue_pieces(is_long, own, 0);
  }
  // Queue 32 staged vertices for the next round; `dedupe` where one may have been staged twice.
  __device__ inline void flush_near(bool dedupe) {
    vertex_t v = 0;
    bool is_new = lane_index() < staged_near.pop(&v);
    if (dedupe) is_new = is_new && set_bit(near_marks(round + 1), v);
    queue_near(is_new, v);
  }
  __device__ inline void flush_later() {
    vertex_t v = 0;
    bool valid = lane_index() < staged_later.pop(&v);
    i64 at = reserve_by_warp(valid, rotated(counters, FAR, bucket));
    if (valid) far_queue(bucket)[at] = v;
  }
  // Queue staged vertices while at least `min_length` are staged.
  __device__ inline void flush(int min_length, bool dedupe) {
    while (staged_near.length >= min_length && staged_near.length) flush_near(dedupe);
    while (keeps_far && staged_later.length >= min_length && staged_later.length) flush_later();
  }

  // Whether the search may end where near is empty, and so all below the bound is settled: after
  // its last round, or if all targets are. Race: blocks may be in the next bucket already, and
  // lower distances that others read here. No distance below the bound falls any more, and none
  // falls below it: all threads find the same.
  __device__ inline bool is_enough() {
    if (round >= block->max_rounds) return true;
    return block->target >= 0 && load_relaxed(&dist[block->target]) < bound &&
           !watch_open_target(block, counters, dist, bound);
  }
  // Not inlined: searches without targets would spill more.
  static __device__ __noinline__ bool watch_open_target(SsspBlock* block, const i64* counters,
                                                        const dist_t* dist, dist_t bound) {
    return watch_open(&block->target, counters + SOURCES + counters[NUM_SOURCES],
                      counters[NUM_TARGETS],
                      [&](i64 target) { return load_relaxed(&dist[target]) < bound; });
  }
  // Begin the next bucket: no vertex is known to wait.
  __device__ inline void begin_bucket() {
    lowest = top_of<dist_t>::value();
    bucket++;
    if (thread_index() == 0) {
      store_relaxed(distance_at(rotated(counters, LOWEST, bucket + 1)), lowest);
      store_relaxed(rotated(counters, FAR, bucket + 1), (i64)0);
    }
    if (threadIdx.x) return;
    if (block->bucket_arcs > block->max_bucket_arcs) block->max_bucket_arcs = block->bucket_arcs;
    block->delta = next_delta();
    block->bucket_arcs = block->bucket_row_arcs = 0;
  }
  __device__ inline dist_t next_delta() {
    bool grows = is_tail(block->bucket_arcs, block->max_bucket_arcs, indptr[n]) &&
                 block->delta < top_of<dist_t>::value() / (2 * TAIL_GROWTH);
    return grows ? block->delta * (dist_t)TAIL_GROWTH : block->delta;
  }

  // Queue the sources, which are few, for the first round.
  __device__ inline void begin(const i64* sources, i64 count) {
    for (i64 first = 0; first < count; first += 32) {
      bool valid = first + lane_index() < count;
      vertex_t v = valid ? (vertex_t)sources[first + lane_index()] : 0;
      if (valid) store_relaxed(&dist[v], (dist_t)0);
      staged_near.push(valid, v);
      flush(32, false);
    }
  }

  // Load the piece at `place` of this round; no arcs where the lane has none.
  __device__ inline LaneArcs load_piece(i64 place, bool has_entry, bool has_marks) {
    LaneArcs own = {};
    if (!has_entry) return own;
    u32 tag = load_relaxed(&piece_tags(round)[place]);
    i64 piece = tag & ~(Rows::REMAINDER_FLAG | Rows::LIGHTEST_FLAG);
    own.u = load_relaxed(&piece_queue(round)[place]);
    own.from = load_relaxed(&dist[own.u]);
    own.remainder = tag & Rows::REMAINDER_FLAG;
    own.begin = indptr[own.u];
    own.end = indptr[own.u + 1];
    i64 length = own.end - own.begin;
    if (tag & Rows::LIGHTEST_FLAG) Rows::load_lightest(&own);
    own.begin += piece * PIECE_ARCS;
    if (own.begin + PIECE_ARCS < own.end) own.end = own.begin + PIECE_ARCS;
    if (tag & Rows::LIGHTEST_FLAG) Rows::limit_piece(&own);
    if (piece || own.remainder) return own;
    if (has_marks) clear_bit(near_marks(round), own.u);
    vertices++;
    row_arcs += length;
    return own;
  }
  // Load the row of the vertex at `place` of near; no arcs where the lane has none.
  __device__ inline LaneArcs load_near(i64 place, bool has_entry, bool has_marks) {
    LaneArcs own = {};
    if (!has_entry) return own;
    own.u = load_relaxed(&near_queue(round)[place]);
    if (has_marks) clear_bit(near_marks(round), own.u);
    load_row(&own);
    return own;
  }
  // Load the row of a vertex that this warp staged; longer rows are queued for all warps, in the
  // next round.
  __device__ inline LaneArcs load_staged() {
    LaneArcs own = {};
    if (lane_index() < staged_near.pop(&own.u)) load_row(&own);
    bool is_longer = own.end - own.begin > MAX_HOP_ARCS;
    if (__any_sync(0xFFFFFFFFu, is_longer)) {
      queue_near(is_longer && set_bit(near_marks(round + 1), own.u), own.u);
      if (is_longer) {
        vertices--;
        row_arcs -= indptr[own.u + 1] - indptr[own.u];
        own.end = own.begin;
      }
    }
    return own;
  }
  __device__ inline void load_row(LaneArcs* own) {
    own->from = load_relaxed(&dist[own->u]);
    own->begin = indptr[own->u];
    own->end = indptr[own->u + 1];
    vertices++;
    row_arcs += own->end - own->begin;
    Rows::limit_to_light(own);
  }
  // Scan all distances: call stage(v, which), by a whole warp, for 32 adjacent vertices, one per
  // lane, if any is in an interval of `wanted`, a set of bits; `which` is IS_SETTLED where a lane's
  // is not. Lanes load adjacent distances, so that few accesses have many in flight. Of a small
  // graph only the first lanes do: a warp takes so few at once that all warps end together.
  template <class Stage>
  __device__ inline void scan_distances(dist_t begin, dist_t settled, u32 wanted, Stage stage) {
    i64 part = n / (SCANS * warp_count());
    int at_once = part < 32 ? 32 : part < 32 * SCAN_DEPTH ? (int)part / 32 * 32 : 32 * SCAN_DEPTH;
    for (i64 first = warp_index() * at_once; first < n; first += warp_count() * at_once) {
      bool loads = SCAN_DEPTH * lane_index() < at_once;
      u32 intervals =
          loads ? classify(first + SCAN_DEPTH * lane_index(), begin, settled, wanted) : 0;
      if (!__any_sync(0xFFFFFFFFu, intervals)) continue;
      for (int at = lane_index(); at < at_once; at += 32) {
        u32 of_lane = __shfl_sync(0xFFFFFFFFu, intervals, at / SCAN_DEPTH),
            which = of_lane >> 2 * (at % SCAN_DEPTH) & 3;
        if (__any_sync(0xFFFFFFFFu, which)) stage(first + at, which);
      }
    }
  }
  // The intervals of the distances of adjacent vertices, two bits each.
  __device__ inline u32 classify(i64 v, dist_t begin, dist_t settled, u32 wanted) {
    dist_t d[SCAN_DEPTH];
    if (v + SCAN_DEPTH <= n) {
      load_consecutive(&dist[v], d);
    } else {
#pragma unroll
      for (int k = 0; k < SCAN_DEPTH; k++) d[k] = v + k < n ? load_relaxed(&dist[v + k]) : bound;
    }
    u32 intervals = 0;
#pragma unroll
    for (int k = 0; k < SCAN_DEPTH; k++) {
      u32 which = d[k] < begin     ? IS_SETTLED
                  : d[k] < settled ? IN_BUCKET
                  : d[k] < bound   ? IS_NEAR
                                   : IS_FAR;
      if (which == IS_FAR && d[k] < lowest && v + k < n) lowest = d[k];
      if (wanted >> which & 1 && v + k < n) intervals |= which << 2 * k;
    }
    return intervals;
  }
  // Relax the arcs of all lanes, dealt evenly to the lanes of the warp.
  __device__ inline void relax(LaneArcs lane_arcs) {
    WarpScan scan((u32)(lane_arcs.end - lane_arcs.begin));
    u32 remainders = Rows::REMAINDER_FLAG ? __ballot_sync(0xFFFFFFFFu, lane_arcs.remainder) : 0;
    arcs += (u32)(lane_arcs.end - lane_arcs.begin);
    i64 begin = lane_arcs.begin - scan.before;
    for (u32 base = 0; base < scan.total; base += 32 * RELAX_DEPTH) {
      vertex_t v[RELAX_DEPTH];
      dist_t through[RELAX_DEPTH], seen[RELAX_DEPTH];
      int owner[RELAX_DEPTH];
      u32 wanted = 0, pulled = 0;
#pragma unroll
      for (int k = 0; k < RELAX_DEPTH; k++) {
        u32 arc = base + 32 * k + lane_index();
        owner[k] = scan.owner(arc);
        i64 slot = __shfl_sync(0xFFFFFFFFu, begin, owner[k]) + arc;
        through[k] = __shfl_sync(0xFFFFFFFFu, lane_arcs.from, owner[k]);
        v[k] = 0;
        seen[k] = 0;
        if (arc < scan.total) {
          v[k] = Rows::target(slot);
          seen[k] = Rows::weight(slot);
          wanted |= 1u << k;
        }
      }
      // Many arcs lead to hubs, in degree order the first vertices: read the block's copy of their
      // distances. It is never below the distance, so that no candidate is lost. A pull needs the
      // distance itself.
#pragma unroll
      for (int k = 0; k < RELAX_DEPTH; k++) {
        bool remainder = remainders >> owner[k] & 1, pull = remainder && Rows::pulls;
        dist_t weight = seen[k], from = through[k];
        bool is_wanted = wanted >> k & 1 && Rows::is_wanted(from, weight, remainder);
        if (!is_wanted) v[k] = 0;
        dist_t other = load_relaxed(v[k] < hubs && !pull ? &hub[v[k]] : &dist[v[k]]);
        seen[k] = pull ? from : other;
        through[k] = pull ? other : from;
        is_wanted = is_wanted && (!pull || Rows::can_pull_from(other));
        through[k] = is_wanted ? through[k] + weight : top_of<dist_t>::value();
        if (pull) pulled |= 1u << k;
      }
      if (remainders && Rows::pulls) {
#pragma unroll
        for (int k = 0; k < RELAX_DEPTH; k++) {
          vertex_t u = __shfl_sync(0xFFFFFFFFu, lane_arcs.u, owner[k]);
          if (pulled >> k & 1) v[k] = u;
        }
      }
#pragma unroll
      for (int k = 0; k < RELAX_DEPTH; k++) {
        if (through[k] > block->cutoff || through[k] >= seen[k]) {
          seen[k] = 0;
          continue;
        }
        seen[k] = atomic_min(&dist[v[k]], through[k]);
        if (v[k] < hubs) store_relaxed(&hub[v[k]], through[k] < seen[k] ? through[k] : seen[k]);
      }
      stage_lowered(v, through, seen);
    }
  }
  // Stage the targets that a relaxation lowered.
  __device__ inline void stage_lowered(const vertex_t (&v)[RELAX_DEPTH],
                                       const dist_t (&through)[RELAX_DEPTH],
                                       const dist_t (&before)[RELAX_DEPTH]) {
#pragma unroll
    for (int k = 0; k < RELAX_DEPTH; k++) {
      bool lowered = through[k] < before[k], is_near = lowered && through[k] < bound;
      if (!__any_sync(0xFFFFFFFFu, lowered)) continue;
      if (lowered && !is_near && through[k] < lowest) lowest = through[k];
      staged_near.push(is_near, v[k]);
      if (keeps_far) staged_later.push(lowered && !is_near && set_bit(far_marks(), v[k]), v[k]);
    }
    flush(32, true);
  }

  // Relax all of near. Pieces, which are adjacent and long, are dealt out to all blocks cyclically;
  // vertices go to warps up to 32 at a time. After a small round each warp continues with the
  // vertices that it staged.
  __device__ inline void relax_all(bool has_marks) {
    i64 num_pieces = block->totals[TOTAL_PIECES], num_near = block->totals[TOTAL_NEAR];
    i64 place = (i64)(threadIdx.x >> 5) * gridDim.x + blockIdx.x, step = warp_count();
    for (i64 first = place; first < num_pieces; first += 32 * step) {
      i64 own = first + lane_index() * step;
      relax(load_piece(own, own < num_pieces, has_marks));
    }
    i64 each = (num_near + step - 1) / step;
    if (each > 32) each = 32;
    for (i64 first = warp_index() * each; first < num_near; first += step * each) {
      i64 own = first + lane_index();
      relax(load_near(own, own < num_near && lane_index() < each, has_marks));
    }
    if (!is_worth_hops(num_pieces + num_near)) return;
    for (int hops = MAX_HOPS;
         hops && staged_near.length && staged_near.length <= Rows::MAX_HOP_VERTICES; hops--)
      relax(load_staged());
  }

  // End a round: queue staged vertices, add up counts, wait at the grid barrier, and read the
  // totals of all blocks.
  __device__ inline bool end_round(const u32* abort, bool dedupe) {
    flush(1, dedupe);
    i64 a = warp_sum((i64)arcs), l = warp_sum(row_arcs), v = warp_sum((i64)vertices);
    arcs = vertices = 0;
    row_arcs = 0;
    lowest = warp_min(lowest);
    if (lane_index() == 0) {
      if (a | v | l) {
        atomic_add(&block->sums[0], a);
        atomic_add(&block->sums[1], l);
        atomic_add(&block->sums[2], v);
      }
      if (lowest < load_relaxed(&block->lowest)) atomic_min(&block->lowest, lowest);
    }
    __syncthreads();
    int t = threadIdx.x;
    if (t < 3 && block->sums[t]) {
      atomic_add(rotated(counters, ARCS + t * TRIPLE, round), block->sums[t]);
      block->sums[t] = 0;
    }
    if (t == 3 && block->lowest < top_of<dist_t>::value()) {
      atomic_min(distance_at(rotated(counters, LOWEST, bucket)), block->lowest);
      block->lowest = top_of<dist_t>::value();
    }
    if (!grid_barrier(&counters[ARRIVED], abort)) return false;
    if (t < TOTAL_ARCS)
      block->totals[t] = load_relaxed(rotated(counters, NEAR + t * TRIPLE, round + 1));
    if (t >= TOTAL_ARCS && t < TOTAL_FAR)
      block->totals[t] = load_relaxed(rotated(counters, ARCS + (t - TOTAL_ARCS) * TRIPLE, round));
    if (t == TOTAL_FAR) block->totals[t] = load_relaxed(rotated(counters, FAR, bucket));
    if (t == TOTAL_LOWEST)
      block->lowest_waiting = load_relaxed(distance_at(rotated(counters, LOWEST, bucket)));
    __syncthreads();
    return true;
  }

  // Triple-buffered by round: slot r + 1 was filled in the last round, slot r + 2 is cleared in
  // this one.
  __device__ inline void begin_round() {
    round++;
    if (thread_index() > 0) return;
    store_relaxed(rotated(counters, NEAR, round + 2), (i64)0);
    store_relaxed(rotated(counters, PIECES, round + 2), (i64)0);
  }
  __device__ inline bool is_near_empty() {
    return !(block->totals[TOTAL_NEAR] | block->totals[TOTAL_PIECES]);
  }
};
