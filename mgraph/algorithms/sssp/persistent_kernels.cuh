// What the rounds of both loops of sssp_fused.cu are made of: every warp relaxes a share of near,
// then all blocks meet.
//
// Races. Distances only fall, by atomic minima, and what a thread saw of one is never smaller than
// it is: an arc that is relaxed from a distance that falls meanwhile is relaxed again, for whoever
// lowered it queued the vertex. A block's copy of the hubs' distances is written by its threads as
// they come: any of those values was a distance once, and none is smaller than it is now. Queues
// are written in places that an atomic gave out, and read behind a meeting. Counters of three
// places in turn are read behind one meeting, cleared behind the next and counted up behind the
// third; a block reads them once, for all of its threads. A bit of a bitmap is changed by atomics
// alone.

#include "frontiers.cuh"
#include "persistent_kernels.py"
#include "prelude.cuh"

// Arcs that a queue entry stands for: longer rows are queued in pieces, so that no warp is long
// behind the others.
constexpr i64 PART = 128;
// Arcs that a thread has in flight; those of a row that it pulls over by itself, and distances
// where it looks at all.
constexpr int DEPTH = 2, LOOKS = 4;
// Arcs of a row that a thread pulls over alone.
constexpr i64 PULL_ALONE = 32;

// ---- choices: what decides how a round is done --------------------------------------------------
// Buckets of the tail are each so many times wider than the one before.
constexpr i64 TAIL_GROWTH = 8;
// Rounds of at most this many entries a warp go on within the warps, for up to HOPS steps of short
// rows, before all meet; of how many vertices, Rows::HOP_MOST says.
constexpr i64 FEW = 4, HOPS = 16, HOP_ARCS = 16;
__device__ inline bool is_worth_hops(i64 entries) { return entries <= FEW * warp_count(); }

// Numbers of a line of the log, and lines at most: the last one stands for all further rounds.
constexpr i64 LINE = 4, LINES = 1 << 14;
constexpr i64 APART = 16, THREE = 3 * APART;
// Of three places that are used in rotation, that of this round.
__device__ inline i64* in_turn(i64* counters, i64 place, int turn) {
  return &counters[place + turn % 3 * APART];
}
// A distance that stands in a counter.
__device__ inline dist_t* distance_at(i64* counter) { return (dist_t*)counter; }

// What a warp found, held back until there are 32: then one reservation serves all. Up to 32 are
// left over, and a step of DEPTH gives each lane as many.
struct Held {
  static constexpr int MOST = 32 + 32 * DEPTH;
  vertex_t* items;
  int length;
  // Take v of each lane that gives one.
  __device__ inline void add(bool gives, vertex_t v) {
    u32 givers = __ballot_sync(0xFFFFFFFFu, gives);
    if (gives) items[length + __popc(givers & ((1u << lane_index()) - 1))] = v;
    length += __popc(givers);
  }
  // Take out the last, up to 32, one a lane; how many.
  __device__ inline int take(vertex_t* v) {
    __syncwarp();
    int count = length < 32 ? length : 32;
    length -= count;
    if (lane_index() < count) *v = items[length + lane_index()];
    __syncwarp();
    return count;
  }
};

// What the threads of a block share: what they add up before they meet the others, what they are
// told then, and what one of them keeps for all.
enum Told { TOLD_NEAR, TOLD_PIECES, TOLD_ARCS, TOLD_ROWS, TOLD_FAR, TOLD_LOWEST };
struct Block {
  vertex_t held[2][16 * Held::MOST];
  i64 sums[3], told[5];
  i64 more;        // of long rows there are no more
  i64 done, most;  // arcs of this bucket, and of the largest so far
  i64 near_lengths,
      settled_lengths;  // of the rows that this bucket took, some twice; of all that are settled
  dist_t lowest, told_lowest, cutoff, delta;
};

// The arcs that a lane has relaxed: from u at `from`, or, pulled, to it.
struct Share {
  vertex_t u;
  dist_t from;
  i64 begin, end;
  bool pulled;
};

// One warp's view of the search. All warps take the same turns: `round` and `bucket` are equal
// everywhere. `Rows` says which arcs of a row are relaxed when.
template <class Rows> struct Search : Rows {
  using Rows::bound, Rows::indptr, Rows::weights;
  const vertex_t* targets;
  dist_t* dist;
  u32* bits;
  vertex_t* queues;
  u32* tags;
  i64* counters;
  i64 n;
  dist_t lowest;
  Block* block;
  dist_t* hub;  // what this block last saw of the distances of the first vertices, in shared memory
  u32 hubs;
  i64 long_rows;  // only before this vertex there are any
  bool keeps_far;
  int round, bucket;
  u32 arcs, vertices;  // of this lane in this round
  i64 lengths;         // of the rows that it took
  Held found, later;

  __device__ inline i64 cost(Cost which) { return load_relaxed(&counters[NUM_ORDERS + which]); }
  // Whether far is kept as a queue, rather than a pass over all vertices finds who waits there.
  __device__ inline bool is_queue_cheaper(i64 length, i64 n) {
    return length * cost(SPLITTING) <= n * cost(SCANNING);
  }
  // Whether those not settled pull, from rows so long in all, rather than that the bucket's push.
  __device__ inline bool is_pull_cheaper(i64 others, i64 members) {
    return others * cost(PULLING) < members * cost(PUSHING);
  }
  __device__ inline vertex_t* near_of(int r) { return queues + (r & 1) * n; }
  __device__ inline vertex_t* waiting(int b) { return queues + (2 + (b & 1)) * n; }
  __device__ inline vertex_t* pieces_of(int r) {
    return queues + (Rows::RESTS ? 2 : 4) * n + 4 * (r & 1) * block->more;
  }
  __device__ inline u32* tags_of(int r) { return tags + 4 * (r & 1) * block->more; }
  __device__ inline u32* marks_of(int r) { return bits + (r & 1) * ((n + 31) / 32); }
  __device__ inline u32* in_far() { return bits + 2 * ((n + 31) / 32); }
  // Places in a queue for the lanes that take one.
  __device__ inline i64 places(bool takes, i64* length) {
    u32 takers = __ballot_sync(0xFFFFFFFFu, takes);
    i64 at = 0;
    if (takers && lane_index() == 0) at = atomic_add(length, (i64)__popc(takers));
    return __shfl_sync(0xFFFFFFFFu, at, 0) + __popc(takers & ((1u << lane_index()) - 1));
  }

  // Queue the arcs of long rows in pieces, each as long as a short row, for the next round: those
  // of the lanes whose row is.
  __device__ inline void queue_pieces(bool is_long, const Share& share, i64 row, u32 tag) {
    u32 longs = __ballot_sync(0xFFFFFFFFu, is_long);
    if (!longs) return;
    i64 first = (share.begin - row) / PART,
        number = is_long ? (share.end - row + PART - 1) / PART - first : 0;
    i64 upto = scan_warp(number), base = 0;
    if (lane_index() == 31) base = atomic_add(in_turn(counters, PIECES, round + 1), upto);
    i64 at = __shfl_sync(0xFFFFFFFFu, base, 31) + upto - number;
    for (; longs; longs &= longs - 1) {
      int lane = __ffs(longs) - 1;
      vertex_t v = __shfl_sync(0xFFFFFFFFu, share.u, lane);
      u32 piece = __shfl_sync(0xFFFFFFFFu, (u32)first, lane) | tag,
          count = __shfl_sync(0xFFFFFFFFu, (u32)number, lane);
      i64 place = __shfl_sync(0xFFFFFFFFu, at, lane);
      for (u32 i = lane_index(); i < count; i += 32)
        pieces_of(round + 1)[place + i] = v, tags_of(round + 1)[place + i] = piece + i;
    }
  }
  // Queue for the next round the vertices of the lanes that have a new one.
  __device__ inline void queue_near(bool is_new, vertex_t v) {
    Share share = {v};
    bool is_long = false;
    if (is_new && v < long_rows) {
      share.begin = indptr[v];
      share.end = indptr[v + 1];
      // The distance may fall before the row is relaxed: as far as any of this bucket may go.
      is_long = share.end - share.begin > PART;
      if (is_long) share.end = Rows::end_of_near(share.begin, share.end);
    }
    i64 at = places(is_new && !is_long, in_turn(counters, NEAR, round + 1));
    if (is_new && !is_long) near_of(round + 1)[at] = v;
    queue_pieces(is_long, share, share.begin, 0);
  }
  // Queue what was found for the next round; what a relaxation found may have been found before.
  __device__ inline void flush_found(bool twice) {
    vertex_t v = 0;
    bool is_new = lane_index() < found.take(&v);
    if (twice) is_new = is_new && set_bit(marks_of(round + 1), v);
    queue_near(is_new, v);
  }
  __device__ inline void flush_later() {
    vertex_t v = 0;
    bool is_mine = lane_index() < later.take(&v);
    i64 at = places(is_mine, in_turn(counters, FAR, bucket));
    if (is_mine) waiting(bucket)[at] = v;
  }
  // Hand over what is held back, but for less than `least`.
  __device__ inline void flush(int least, bool twice) {
    while (found.length >= least && found.length) flush_found(twice);
    while (keeps_far && later.length >= least && later.length) flush_later();
  }

  // Take up the next bucket: nothing is known to wait yet.
  __device__ inline void next_bucket() {
    lowest = top_of<dist_t>::value();
    bucket++;
    if (thread_index() == 0) {
      store_relaxed(distance_at(in_turn(counters, LOWEST, bucket + 1)), lowest);
      store_relaxed(in_turn(counters, FAR, bucket + 1), (i64)0);
    }
    if (threadIdx.x) return;
    if (block->done > block->most) block->most = block->done;
    block->delta = next_delta();
    block->done = block->near_lengths = 0;
  }
  __device__ inline dist_t next_delta() {
    bool widens = is_tail(block->done, block->most) &&
                  block->delta < top_of<dist_t>::value() / (2 * TAIL_GROWTH);
    return widens ? block->delta * (dist_t)TAIL_GROWTH : block->delta;
  }

  // Queue the sources, which are few, for the first round.
  __device__ inline void begin(const i64* sources, i64 count) {
    for (i64 first = 0; first < count; first += 32) {
      bool mine = first + lane_index() < count;
      vertex_t v = mine ? (vertex_t)sources[first + lane_index()] : 0;
      if (mine) store_relaxed(&dist[v], (dist_t)0);
      found.add(mine, v);
      flush(32, false);
    }
  }

  // The piece at `place` of this round, where the lane has one; no arcs where it has none.
  __device__ inline Share take_piece(i64 place, bool is_there, bool marked) {
    Share share = {};
    if (!is_there) return share;
    u32 tag = load_relaxed(&tags_of(round)[place]), rests = tag & Rows::RESTS;
    share.u = load_relaxed(&pieces_of(round)[place]);
    share.from = load_relaxed(&dist[share.u]);
    i64 row = indptr[share.u], end = indptr[share.u + 1];
    share.begin = row + (i64)(tag ^ rests) * PART;
    share.end = share.begin + PART < end ? share.begin + PART : end;
    if (rests) {
      Rows::narrow_rest(&share);
      return share;
    }
    Rows::narrow_near(&share);
    if (tag) return share;
    if (marked) clear_bit(marks_of(round), share.u);
    vertices++;
    lengths += end - row;
    return share;
  }
  // The same of a vertex.
  __device__ inline Share take_near(i64 place, bool is_there, bool marked) {
    Share share = {};
    if (!is_there) return share;
    share.u = load_relaxed(&near_of(round)[place]);
    if (marked) clear_bit(marks_of(round), share.u);
    take_row(&share);
    return share;
  }
  // The same of what this warp itself found; longer rows are left for all warps, in the next round.
  __device__ inline Share take_found() {
    Share share = {};
    if (lane_index() < found.take(&share.u)) take_row(&share);
    bool is_longer = share.end - share.begin > HOP_ARCS;
    if (__any_sync(0xFFFFFFFFu, is_longer)) {
      queue_near(is_longer && set_bit(marks_of(round + 1), share.u), share.u);
      if (is_longer) {
        vertices--;
        lengths -= indptr[share.u + 1] - indptr[share.u];
        share.end = share.begin;
      }
    }
    return share;
  }
  __device__ inline void take_row(Share* share) {
    share->from = load_relaxed(&dist[share->u]);
    share->begin = indptr[share->u];
    share->end = indptr[share->u + 1];
    vertices++;
    lengths += share->end - share->begin;
    Rows::narrow_near(share);
  }
  // The distances of LOOKS vertices a lane, `first` and 32 on; 0 where there is none.
  __device__ inline void load_distances(i64 first, dist_t (&d)[LOOKS]) {
#pragma unroll
    for (int k = 0; k < LOOKS; k++) {
      i64 v = first + 32 * k + lane_index();
      d[k] = v < n ? load_relaxed(&dist[v]) : (dist_t)0;
    }
  }
  // Relax the arcs of one share a lane, all lanes taking their part of all.
  __device__ inline void relax(Share mine) {
    WarpScan scan((u32)(mine.end - mine.begin));
    u32 pulled = Rows::RESTS ? __ballot_sync(0xFFFFFFFFu, mine.pulled) : 0;
    arcs += (u32)(mine.end - mine.begin);
    i64 begin = mine.begin - scan.before;
    for (u32 base = 0; base < scan.total; base += 32 * DEPTH) {
      vertex_t v[DEPTH];
      dist_t through[DEPTH], seen[DEPTH];
      int owner[DEPTH];
      u32 pulls = 0;
#pragma unroll
      for (int k = 0; k < DEPTH; k++) {
        u32 arc = base + 32 * k + lane_index();
        owner[k] = scan.owner(arc);
        i64 slot = __shfl_sync(0xFFFFFFFFu, begin, owner[k]) + arc;
        through[k] = __shfl_sync(0xFFFFFFFFu, mine.from, owner[k]);
        if (pulled >> owner[k] & 1) pulls |= 1u << k;
        v[k] = 0;
        if (arc < scan.total) {
          v[k] = targets[slot];
          seen[k] = (dist_t)weights[slot];
        } else {
          through[k] = top_of<dist_t>::value();
          seen[k] = 0;
          pulls &= ~(1u << k);
        }
      }
      // Many arcs lead to hubs, in degree order the first vertices: this block has seen their
      // distances. What it saw is never smaller than they are, so that nothing is lost. What is
      // pulled must be what it is.
#pragma unroll
      for (int k = 0; k < DEPTH; k++) {
        bool pull = pulls >> k & 1;
        dist_t other = load_relaxed(v[k] < hubs && !pull ? &hub[v[k]] : &dist[v[k]]),
               weight = seen[k];
        seen[k] = pull ? through[k] : other;
        if (pull)
          through[k] = Rows::may_give(other) ? other + weight : top_of<dist_t>::value();
        else
          through[k] += weight;
      }
      if (pulled) {
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
          vertex_t u = __shfl_sync(0xFFFFFFFFu, mine.u, owner[k]);
          if (pulls >> k & 1) v[k] = u;
        }
      }
#pragma unroll
      for (int k = 0; k < DEPTH; k++) {
        if (through[k] > block->cutoff || through[k] >= seen[k]) {
          seen[k] = 0;
          continue;
        }
        seen[k] = atomic_min(&dist[v[k]], through[k]);
        if (v[k] < hubs) store_relaxed(&hub[v[k]], through[k] < seen[k] ? through[k] : seen[k]);
      }
#pragma unroll
      for (int k = 0; k < DEPTH; k++) {
        bool lowered = through[k] < seen[k], is_near = lowered && through[k] < bound;
        if (!__any_sync(0xFFFFFFFFu, lowered)) continue;
        if (lowered && !is_near && through[k] < lowest) lowest = through[k];
        found.add(is_near, v[k]);
        if (keeps_far) later.add(lowered && !is_near && set_bit(in_far(), v[k]), v[k]);
      }
      flush(32, true);
    }
  }

  // Relax all of near. Pieces, which stand together and are long, are dealt out to all blocks in
  // turn; vertices go to warps up to 32 at a time. Where there are few, a warp goes on with what it
  // found.
  __device__ inline void relax_all(bool marked) {
    i64 num_pieces = block->told[TOLD_PIECES], num_near = block->told[TOLD_NEAR];
    i64 place = (i64)(threadIdx.x >> 5) * gridDim.x + blockIdx.x, step = warp_count();
    for (i64 first = place; first < num_pieces; first += 32 * step) {
      i64 own = first + lane_index() * step;
      relax(take_piece(own, own < num_pieces, marked));
    }
    i64 each = (num_near + step - 1) / step;
    if (each > 32) each = 32;
    for (i64 first = warp_index() * each; first < num_near; first += step * each) {
      i64 own = first + lane_index();
      relax(take_near(own, own < num_near && lane_index() < each, marked));
    }
    if (!is_worth_hops(num_pieces + num_near)) return;
    for (int hops = HOPS; hops && found.length && found.length <= Rows::HOP_MOST; hops--)
      relax(take_found());
  }

  // End a round: hand over what is held back and what was counted, wait for all blocks, and hear
  // what they counted.
  __device__ inline bool meet(const u32* abort, bool twice) {
    flush(1, twice);
    i64 a = warp_sum((i64)arcs), l = warp_sum(lengths), v = warp_sum((i64)vertices);
    arcs = vertices = 0;
    lengths = 0;
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
      atomic_add(in_turn(counters, ARCS + t * THREE, round), block->sums[t]);
      block->sums[t] = 0;
    }
    if (t == 3 && block->lowest < top_of<dist_t>::value()) {
      atomic_min(distance_at(in_turn(counters, LOWEST, bucket)), block->lowest);
      block->lowest = top_of<dist_t>::value();
    }
    if (!grid_barrier(&counters[ARRIVED], abort)) return false;
    if (t < TOLD_ARCS)
      block->told[t] = load_relaxed(in_turn(counters, NEAR + t * THREE, round + 1));
    if (t >= TOLD_ARCS && t < TOLD_FAR)
      block->told[t] = load_relaxed(in_turn(counters, ARCS + (t - TOLD_ARCS) * THREE, round));
    if (t == TOLD_FAR) block->told[t] = load_relaxed(in_turn(counters, FAR, bucket));
    if (t == TOLD_LOWEST)
      block->told_lowest = load_relaxed(distance_at(in_turn(counters, LOWEST, bucket)));
    __syncthreads();
    return true;
  }

  // Of the places in turn one was filled in the last round, one is in this; the third was read in
  // the last.
  __device__ inline void open_round() {
    round++;
    if (thread_index() > 0) return;
    store_relaxed(in_turn(counters, NEAR, round + 2), (i64)0);
    store_relaxed(in_turn(counters, PIECES, round + 2), (i64)0);
  }
  __device__ inline bool is_near_empty() {
    return !(block->told[TOLD_NEAR] | block->told[TOLD_PIECES]);
  }
};
