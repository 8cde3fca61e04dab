// Prepended to every .cu file after ranks.cuh: what searches of one launch share, on one rank and
// on several: bits and queues of vertices, the arcs of a queue, rows that look for a vertex in a
// bitmap, and bounds of buckets.

#include "prelude.cuh"

constexpr u32 WARP = 0xFFFFFFFFu;
// Targets that a thread looks at alone before its warp helps.
constexpr int ALONE = 32;

// ---- memory ----------------------------------------------------------------------------------------
// 16 bytes by one store; p is aligned to them.
template <class T> __device__ inline void store_quad(T* p, const Quad<T>& quad) {
#ifdef __CUDACC__
  union {
    Quad<T> quad;
    uint4 words;
  } stored = {quad};
  *(uint4*)p = stored.words;
#else
  *(Quad<T>*)p = quad;
#endif
}

// ---- bits ------------------------------------------------------------------------------------------
// Which bit is the n-th that is set.
__device__ inline int nth_bit(u32 word, int n) {
  int at = 0;
  for (int half = 16; half; half >>= 1) {
    int below = __popc(word & ((1u << half) - 1));
    if (n >= below) {
      n -= below;
      word >>= half;
      at += half;
    }
  }
  return at;
}
// Call take(v, there), a warp together, for every bit that is set in the words of its lanes, which
// follow `word`; v and there are of two vertices a lane, so that what they wait for comes at the
// same time.
template <class Take> __device__ inline void each_bit(i64 word, u32 own, Take take) {
  WarpScan scan(__popc(own));
  for (u32 k = 0; k < scan.total; k += 64) {
    i64 v[2];
    bool there[2];
    for (int half = 0; half < 2; half++) {
      u32 place = k + half * 32 + lane_index();
      int owner = scan.owner(place);
      u32 theirs = __shfl_sync(WARP, own, owner), before = __shfl_sync(WARP, scan.before, owner);
      v[half] = (word + owner) << 5 | nth_bit(theirs, (int)(place - before));
      there[half] = place < scan.total;
    }
    take(v, there);
  }
}

// Which runs of words from `begin` to `end` a warp takes, one after another. Multiprocessors are
// not equally fast: of the last quarter or more a warp takes the next when it asks for it (BFS of
// rmat28 on two H200: 1.36 and 1.32 ms).
struct Runs {
  i64 run, step, first, dealt;
  i64* taken;
  __device__ Runs(i64 begin, i64 end, i64 words, i64* counter)
      : run(words),
        step(warp_count() * words),
        first(begin + warp_index() * words),
        taken(counter) {
    u32 turns = (u32)((end - begin) * 3 / 4) / (u32)step;
    dealt = begin + (turns ? turns : 1) * step;
  }
  __device__ i64 begin() const { return known(first); }
  __device__ i64 behind(i64 word) const { return known(word + step); }
  __device__ i64 known(i64 word) const {
    if (word < dealt) return word;
    i64 nth = lane_index() == 0 ? atomic_add(taken, (i64)1) : 0;
    return dealt + __shfl_sync(WARP, nth, 0) * run;
  }
};

// Call take(v, there), a warp together, for the first `count` of a list of vertices, two a lane as
// above.
template <class Take>
__device__ inline void each_listed(const vertex_t* list, i64 count, Take take) {
  for (i64 first = warp_index() * 64; first < count; first += warp_count() * 64) {
    i64 v[2];
    bool there[2];
    for (int half = 0; half < 2; half++) {
      i64 place = first + half * 32 + lane_index();
      there[half] = place < count;
      v[half] = there[half] ? list[place] : 0;
    }
    take(v, there);
  }
}

// ---- firsts ----------------------------------------------------------------------------------------
// Lane k has in `open` who of the k-th word looks at the first of its row, and returns who of that
// finds it in `bits`, as its parent. All arrays begin where the first word does. Its loads are
// under way together, of WIDE words: a function that is called has registers for that where the
// loops of a search have none left; who does not look takes a first that all such lanes take, not a
// branch; and nobody looks at a word before all have been asked for (BFS of rmat26 on one H200:
// 0.64 and 0.61 ms).
template <class Of>
__device__ __noinline__ u32 look_at_firsts(const u32* bits, const vertex_t* firsts,
                                           vertex_t* parents, dist_t* levels, u32 open, int run,
                                           dist_t level, Of position_of) {
  constexpr int WIDE = 8;
  u32 found = 0;
  firsts = global(firsts);
  bits = global(bits);
  parents = global(parents) + lane_index();
  levels = global(levels) + lane_index();
  for (int k = 0; k < run; k += WIDE) {
    if (__any_sync(WARP, lane_index() >= k && lane_index() < k + WIDE && open)) {
      u32 looks[WIDE], near[WIDE];
      vertex_t first[WIDE];
#pragma unroll
      for (int j = 0; j < WIDE; j++)
        looks[j] = 0 - (__shfl_sync(WARP, open, k + j) >> lane_index() & 1);
#pragma unroll
      for (int j = 0; j < WIDE; j++) first[j] = firsts[(32 * j + lane_index()) & looks[j]];
      __syncwarp();
#pragma unroll
      for (int j = 0; j < WIDE; j++) near[j] = bits[first[j] >> 5];
      __syncwarp();
#pragma unroll
      for (int j = 0; j < WIDE; j++) looks[j] &= near[j] >> (first[j] & 31) & 1;
#pragma unroll
      for (int j = 0; j < WIDE; j++) {
        u32 who = __ballot_sync(WARP, looks[j]);
        if (lane_index() == k + j) found = who;
        if (looks[j]) {
          parents[32 * j] = position_of(first[j]);
          levels[32 * j] = level;
        }
      }
    }
    firsts += 32 * WIDE;
    parents += 32 * WIDE;
    levels += 32 * WIDE;
  }
  return found;
}
// How many arcs those have whom lane k has in `whose` of the k-th word.
__device__ __noinline__ i64 count_arcs(const i64* indptr, u32 whose, int run) {
  constexpr int WIDE = 4;
  i64 arcs = 0;
  indptr = global(indptr) + lane_index();
  for (int k = 0; k < run; k += WIDE, indptr += 32 * WIDE) {
    if (!__any_sync(WARP, lane_index() >= k && lane_index() < k + WIDE && whose)) continue;
    i64 begin[WIDE], end[WIDE];
#pragma unroll
    for (int j = 0; j < WIDE; j++) {
      bool there = __shfl_sync(WARP, whose, k + j) >> lane_index() & 1;
      begin[j] = there ? load_readonly(indptr + 32 * j) : 0;
      end[j] = there ? load_readonly(indptr + 32 * j + 1) : 0;
    }
#pragma unroll
    for (int j = 0; j < WIDE; j++) arcs += end[j] - begin[j];
  }
  return arcs;
}

// ---- queues ----------------------------------------------------------------------------------------
// Entry k is a vertex, with arcs offsets[k] .. offsets[k + 1] of the queue's: first[k] + offsets[k]
// and on in `targets`.
struct Queue {
  i64 *offsets, *first;
  vertex_t* vertices;
};
// How many vertices a queue has, above, and below how many arcs: both are taken by one atomic, so
// that offsets rise.
constexpr int ARC_BITS = 36;
__device__ inline i64 queued_vertices(i64 counter) { return counter >> ARC_BITS; }
__device__ inline i64 queued_arcs(i64 counter) { return counter & ((1ll << ARC_BITS) - 1); }
// A warp's vertices, EACH a lane, go to the queue with their arcs if they are `there`; those that
// find no place are counted only.
template <int EACH>
__device__ inline void enqueue(const Queue& queue, i64 capacity, i64* counter,
                               const vertex_t (&v)[EACH], const bool (&there)[EACH],
                               const i64 (&begin)[EACH], const i64 (&length)[EACH]) {
  i64 own = 0, base = 0;
  for (int k = 0; k < EACH; k++)
    if (there[k]) own += (1ll << ARC_BITS) + length[k];
  if (!__any_sync(WARP, own != 0)) return;
  i64 upto = scan_warp(own);
  if (lane_index() == 31) base = atomic_add(counter, upto);
  i64 at = __shfl_sync(WARP, base, 31) + upto - own;
  for (int k = 0; k < EACH; k++) {
    i64 slot = queued_vertices(at), offset = queued_arcs(at);
    if (!there[k]) continue;
    at += (1ll << ARC_BITS) + length[k];
    if (slot < capacity) {
      queue.vertices[slot] = v[k];
      queue.offsets[slot] = offset;
      queue.first[slot] = begin[k] - offset;
    }
  }
}
__device__ inline void enqueue(const Queue& queue, i64 capacity, i64* counter, vertex_t v,
                               bool there, i64 begin, i64 length) {
  enqueue<1>(queue, capacity, counter, {v}, {there}, {begin}, {length});
}
// The last of `count` rising offsets that is not above `arc`: a block looks at as many places at
// once as it has threads.
__device__ inline i64 row_of_arc_by_block(const i64* offsets, i64 count, i64 arc) {
  i64 first = 0;
  while (count > 1) {
    i64 step = (count + blockDim.x - 1) / blockDim.x, i = threadIdx.x * step;
    i64 last = (__syncthreads_count(i < count && offsets[first + i] <= arc) - 1) * step;
    first += last;
    count = count - last < step ? count - last : step;
  }
  return first;
}
// The part of arcs lo .. hi of a queue that this block takes.
struct BlockShare {
  i64 length, begin,
      end;  // `length` is the same for all blocks, of which the last ones may have less
  __device__ inline BlockShare() {}
  __device__ inline BlockShare(i64 lo, i64 hi) : length((hi - lo + gridDim.x - 1) / gridDim.x) {
    if (length < blockDim.x) length = blockDim.x;
    begin = lo + blockIdx.x * length;
    end = begin + length < hi ? begin + length : hi;
  }
};
// Arcs 0 .. `arcs` of a queue in parts, of which a block takes another when it is done with one: a
// run of arcs may take several times as long as another (rows of few arcs, whose targets are far
// apart). Parts of few arcs go to as many blocks as there are; still smaller ones would take longer
// to look up than to go through.
struct Parts {
  static constexpr i64 EACH = 16, ARCS_A_THREAD = 4;
  i64 arcs, length, count;
  __device__ inline Parts(i64 num_arcs)
      : arcs(num_arcs), length((num_arcs + gridDim.x - 1) / gridDim.x) {
    i64 least = blockDim.x, enough = ARCS_A_THREAD * blockDim.x;
    if (length > enough) {
      length = (length + EACH - 1) / EACH;
      least = enough;
    }
    if (length < least) length = least;
    count = (arcs + length - 1) / length;
  }
  __device__ inline BlockShare share(i64 k) const {
    BlockShare share;
    share.length = length;
    share.begin = k * length;
    share.end = share.begin + length < arcs ? share.begin + length : arcs;
    return share;
  }
};
// The last of `count` rising offsets, at most 1024, that is not above `arc`; a warp looks together.
__device__ inline u32 row_of_arc_by_warp(const u32* offsets, u32 count, u32 arc) {
  u32 step = (count + 31) / 32, at = lane_index() * step;
  u32 first = (__popc(__ballot_sync(WARP, at < count && offsets[at] <= arc)) - 1) * step;
  at = first + lane_index();
  return first +
         __popc(__ballot_sync(WARP, lane_index() < step && at < count && offsets[at] <= arc)) - 1;
}
// Call visit(slot, fact, there), by whole warps, for the arcs of a share: where each stands in the
// rows, and what fact_of says of its source; EACH arcs a lane, so that what they wait for comes at
// the same time. In `room` is place for a word and twice 32 bits a thread, or for three words where
// facts have 64. A warp takes neighbouring arcs: it looks for the rows at their ends, and its lanes
// only between those.
template <int EACH, class Of, class Visit>
__device__ inline void each_slot(const Queue& from, i64 num_queued, BlockShare share, i64* room,
                                 Of fact_of, Visit visit) {
  using Fact = decltype(fact_of(vertex_t()));
  if (share.begin >= share.end) return;
  i64* row_first = room;
  Fact* row_fact = (Fact*)(row_first + blockDim.x);
  u32 *row_offset = (u32*)(row_fact + blockDim.x), size = (u32)(share.end - share.begin);
  u32 begin = 0;  // arcs count from the share's begin
  // So few rows as a block has threads it looks at all.
  i64 row =
      num_queued > blockDim.x ? row_of_arc_by_block(from.offsets, num_queued, share.begin) : 0;
  for (; begin < size; row += blockDim.x) {
    i64 i = row + threadIdx.x, left = num_queued - row;
    u32 num_rows = left < blockDim.x ? (u32)left : blockDim.x;
    __syncthreads();  // all are done with the rows before
    if (threadIdx.x < num_rows) {
      i64 offset = from.offsets[i] - share.begin;
      row_offset[threadIdx.x] = offset < 0 ? 0 : (u32)(offset < size ? offset : size);
      row_first[threadIdx.x] = from.first[i] + share.begin;
      row_fact[threadIdx.x] = fact_of(from.vertices[i]);
    }
    __syncthreads();
    i64 next = left > num_rows ? from.offsets[row + num_rows] - share.begin : size;
    u32 after = next < size ? (u32)next : size;
    for (u32 own = begin + (threadIdx.x & ~31) * EACH; own < after; own += EACH * blockDim.x) {
      u32 last = own + 32 * EACH < after ? own + 32 * EACH - 1 : after - 1;
      u32 lowest = row_of_arc_by_warp(row_offset, num_rows, own);
      u32 highest = row_of_arc_by_warp(row_offset, num_rows, last);
      i64 slot[EACH];
      Fact fact[EACH];
      bool there[EACH];
      for (u32 k = 0; k < EACH; k++) {
        u32 arc = own + k * 32 + lane_index(), r = lowest, above = highest + 1;
        there[k] = arc < after;
        while (above - r > 1) {
          u32 middle = (r + above) >> 1;
          if (row_offset[middle] <= arc)
            r = middle;
          else
            above = middle;
        }
        fact[k] = row_fact[r];
        slot[k] = row_first[r] + arc;
      }
      visit(slot, fact, there);
    }
    begin = after;
  }
}
// Call offer(v, u, there) for targets v of those arcs and name_of their sources.
template <int EACH, class Name, class Offer>
__device__ inline void each_arc(const Queue& from, i64 num_queued, const vertex_t* targets,
                                BlockShare share, i64* room, Name name_of, Offer offer) {
  each_slot<EACH>(from, num_queued, share, room, name_of,
                  [&](const i64(&slot)[EACH], const vertex_t(&u)[EACH], const bool (&there)[EACH]) {
                    vertex_t v[EACH];
                    for (int k = 0; k < EACH; k++)
                      v[k] = there[k] ? load_readonly(targets + slot[k]) : 0;
                    offer(v, u, there);
                  });
}

// ---- rows ------------------------------------------------------------------------------------------
// Which target of a row is the first in a bitmap. All lanes of a warp come together, each with two
// rows.
struct RowSearch {
  const u32* bits;
  const vertex_t* targets;
  i64 num_arcs;

  // `place` is where in the row `parent` stands; the row's length if there is none.
  __device__ inline void find(const i64 (&begin)[2], const i64 (&length)[2], i64 (&place)[2],
                              vertex_t (&parent)[2]) const {
    find_alone(begin, length, place, parent);
    for (int half = 0; half < 2; half++)
      find_together(begin[half], length[half], place[half], parent[half]);
  }
  // Look at the first targets of two rows, which come 16 bytes at a time: the bits of all of them
  // together, and nothing beyond before these are known, as what limits a pull is how many lines a
  // multiprocessor looks up.
  __device__ inline void find_alone(const i64 (&begin)[2], const i64 (&length)[2], i64 (&place)[2],
                                    vertex_t (&parent)[2]) const {
    constexpr int WIDE = Quad<vertex_t>::size;
    int skew = (int)((u64)targets / sizeof(vertex_t) % WIDE), at[2];
    Quad<vertex_t> near[2];
    for (int half = 0; half < 2; half++) {
      place[half] = length[half];
      at[half] = -(int)((begin[half] + skew) % WIDE);
    }
    auto looking = [&](int half) {
      return at[half] < ALONE && at[half] < length[half] && place[half] == length[half];
    };
    while (looking(0) || looking(1)) {
      for (int half = 0; half < 2; half++)
        near[half] = quad_of(begin[half] + at[half], looking(half));
      // Who does not look takes the word that all such lanes take: no branch, so that all are under
      // way together.
      u32 word[2][WIDE];
      bool here[2][WIDE];
      for (int k = 0; k < WIDE; k++) {
        for (int half = 0; half < 2; half++) {
          int i = at[half] + k;
          here[half][k] = looking(half) && i >= 0 && i < length[half];
          word[half][k] = bits[here[half][k] ? near[half].of[k] >> 5 : 0];
        }
      }
      for (int k = WIDE - 1; k >= 0; k--)
        for (int half = 0; half < 2; half++)
          if (here[half][k] && word[half][k] >> (near[half].of[k] & 31) & 1) {
            place[half] = at[half] + k;
            parent[half] = near[half].of[k];
          }
      at[0] += WIDE;
      at[1] += WIDE;
    }
  }
  // The targets from `arc` on, which is aligned, if they are `wanted`; no further than there are
  // any.
  __device__ inline Quad<vertex_t> quad_of(i64 arc, bool wanted) const {
    constexpr int WIDE = Quad<vertex_t>::size;
    if (wanted && arc >= 0 && arc + WIDE <= num_arcs) return load_quad(targets + arc);
    Quad<vertex_t> near = {};
    for (int k = 0; k < WIDE; k++)
      if (wanted && arc + k >= 0 && arc + k < num_arcs)
        near.of[k] = load_readonly(targets + arc + k);
    return near;
  }
  // The warp looks together at the rest of the rows in which a lane alone has found nothing.
  __device__ inline void find_together(i64 begin, i64 length, i64& place, vertex_t& parent) const {
    for (u32 pending = __ballot_sync(WARP, length > ALONE && place == length); pending;
         pending &= pending - 1) {
      int lane = __ffs(pending) - 1;
      i64 row = __shfl_sync(WARP, begin, lane), end = __shfl_sync(WARP, length, lane), found = end;
      for (i64 i = ALONE; i < end && found == end; i += 32) {
        bool here = i + lane_index() < end;
        vertex_t u = here ? load_readonly(targets + row + i + lane_index()) : 0;
        u32 agreeing = __ballot_sync(WARP, here && test_bit(bits, u));
        if (agreeing) found = i + __ffs(agreeing) - 1;
      }
      if (lane_index() == lane && found < end) {
        place = found;
        parent = load_readonly(targets + row + found);
      }
    }
  }
};

// ---- buckets ---------------------------------------------------------------------------------------
// The smallest bound that is at least `delta` above `low`, and above it where rounding absorbs
// delta.
__device__ inline dist_t raised(dist_t low, dist_t delta) {
  dist_t top = top_of<dist_t>::value();
  if (top - low <= delta) return top;
  dist_t sum = low + delta;
  if (sum > low) return sum;
  while (!(sum > low)) sum = low + (delta += delta);
  return sum;
}
// Behind the peak, in buckets with less than this share of the arcs of the largest one, few arcs
// are left, and to look at some of them twice costs less than the rounds of a bucket: they are
// widened.
constexpr i64 TAIL_SHARE = 16;
__device__ inline bool is_tail(i64 arcs, i64 most) { return arcs * TAIL_SHARE < most; }
// Once what is left has pulled, hardly any of it falls again: to look at all of it bucket by bucket
// costs more than to push what does. If it has less than this share of all arcs, it makes up one
// last bucket.
constexpr i64 LAST_SHARE = 8;
__device__ inline bool is_finish(i64 others, i64 all) { return others * LAST_SHARE < all; }

// ---- the trace -------------------------------------------------------------------------------------
constexpr i64 ROW = 5;  // words of a superstep; the first says what was done, the others add up
// Write the row of a superstep; those `beyond` the trace are added to its last.
__device__ inline void note(i64* row, bool beyond, const i64 (&facts)[ROW]) {
  row[0] = facts[0];
  for (int k = 1; k < ROW; k++) row[k] = (beyond ? row[k] : 0) + facts[k];
}
