// What persistent searches share, on one rank and on several: bits and queues of vertices, the arcs
// of a queue, bounds of buckets, trace records. algorithms/bfs/parent_scans.cuh has more for BFS.

#include "prelude.cuh"

constexpr u32 WARP = 0xFFFFFFFFu;
// Targets that a thread scans by itself before its warp helps.
constexpr int ALONE = 32;

// ---- memory ------------------------------------------------------------------------------------
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

// NUM consecutive values that other threads may lower meanwhile, 16 bytes by one load; p is aligned
// to them.
template <int NUM, class T> __device__ inline void load_consecutive(const T* p, T (&values)[NUM]) {
#ifdef __CUDACC__
  constexpr int LOADS = NUM * sizeof(T) / 16;
  union {
    uint4 words[LOADS];
    T of[NUM];
  } loaded;
#pragma unroll
  for (int k = 0; k < LOADS; k++) loaded.words[k] = __ldcg((const uint4*)p + k);
#pragma unroll
  for (int k = 0; k < NUM; k++) values[k] = loaded.of[k];
#else
  for (int k = 0; k < NUM; k++) values[k] = load_relaxed(p + k);
#endif
}

// ---- targets -----------------------------------------------------------------------------------
// A block watches one target, in shared memory (-1: none). When it is settled, watch any unsettled
// one of the `num` listed; return false if all are settled. Called by all threads of a block.
template <class IsSettled>
__device__ inline bool watch_open(i64* watched, const i64* listed, i64 num, IsSettled is_settled) {
  i64 open = -1;
  for (i64 k = threadIdx.x; open < 0 && k < num; k += blockDim.x)
    if (!is_settled(listed[k])) open = listed[k];
  if (!__syncthreads_or(open >= 0)) return false;
  if (open >= 0) store_relaxed(watched, open);
  __syncthreads();
  return true;
}
// Whether all targets are settled; by all threads of a block.
template <class IsSettled>
__device__ inline bool are_settled(i64* watched, const i64* listed, i64 num, IsSettled is_settled) {
  return *watched >= 0 && is_settled(*watched) && !watch_open(watched, listed, num, is_settled);
}

// ---- bits --------------------------------------------------------------------------------------
// The index of the n-th set bit.
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
// Call take(v, valid), by a whole warp, for every set bit of the words of its lanes, which begin at
// `word`; v and valid are of two vertices per lane, so that the loads of both overlap.
template <class Take> __device__ inline void each_bit(i64 word, u32 own, Take take) {
  WarpScan scan(__popc(own));
  for (u32 k = 0; k < scan.total; k += 64) {
    i64 v[2];
    bool valid[2];
    for (int half = 0; half < 2; half++) {
      u32 place = k + half * 32 + lane_index();
      int owner = scan.owner(place);
      u32 theirs = __shfl_sync(WARP, own, owner), before = __shfl_sync(WARP, scan.before, owner);
      v[half] = (word + owner) << 5 | nth_bit(theirs, (int)(place - before));
      valid[half] = place < scan.total;
    }
    take(v, valid);
  }
}

// Call take(v, valid), by whole warps, for every bit that is set in bits_of(w), of the search's own
// words; v counts from the first of them. A warp takes `run` adjacent words at once, one per lane.
template <class Search, class Of, class Take>
__device__ inline void each_bit_of_words(const Search& search, i64 run, Of bits_of, Take take) {
  for (i64 word = warp_index() * run; word < search.words(); word += warp_count() * run) {
    i64 w = search.own_words() + word + lane_index();
    each_bit(word, lane_index() < run && word + lane_index() < search.words() ? bits_of(w) : 0,
             take);
  }
}

// Runs of words from `begin` to `end` that a warp processes. The first three quarters or less are
// assigned statically; since multiprocessors differ in speed, warps fetch the remaining runs one by
// one (BFS of rmat28 on two H200: 1.36 ms static, 1.32 ms so).
struct Runs {
  i64 run, step, first, dealt;
  i64* taken;
  __device__ Runs(i64 begin, i64 end, i64 words, i64* counter)
      : run(words),
        step(warp_count() * words),
        first(begin + warp_index() * words),
        taken(counter) {
    u32 rounds = (u32)((end - begin) * 3 / 4) / (u32)step;
    dealt = begin + (rounds ? rounds : 1) * step;
  }
  __device__ i64 begin() const { return known(first); }
  __device__ i64 behind(i64 word) const { return known(word + step); }
  __device__ i64 known(i64 word) const {
    if (word < dealt) return word;
    i64 nth = lane_index() == 0 ? atomic_add(taken, (i64)1) : 0;
    return dealt + __shfl_sync(WARP, nth, 0) * run;
  }
};

// Call take(v, valid), by a whole warp, for the first `count` vertices of a list, two per lane.
template <class Take>
__device__ inline void each_listed(const vertex_t* list, i64 count, Take take) {
  for (i64 first = warp_index() * 64; first < count; first += warp_count() * 64) {
    i64 v[2];
    bool valid[2];
    for (int half = 0; half < 2; half++) {
      i64 place = first + half * 32 + lane_index();
      valid[half] = place < count;
      v[half] = valid[half] ? list[place] : 0;
    }
    take(v, valid);
  }
}

// ---- queues ------------------------------------------------------------------------------------
// Entry k is a vertex, with arcs offsets[k] .. offsets[k + 1] of the queue; in `targets` they begin
// at first[k] + offsets[k].
struct Queue {
  i64 *offsets, *first;
  vertex_t* vertices;
};
// A queue's counter: its vertices above ARC_BITS, its arcs below. One atomic reserves both, so that
// offsets rise.
constexpr int ARC_BITS = 36;
__device__ inline i64 queued_vertices(i64 counter) { return counter >> ARC_BITS; }
__device__ inline i64 queued_arcs(i64 counter) { return counter & ((1ll << ARC_BITS) - 1); }
__device__ inline i64 row_length(const i64* indptr, i64 v) {
  return load_readonly(indptr + v + 1) - load_readonly(indptr + v);
}
// Append a warp's vertices, EACH per lane, where `valid` is set, with their arcs; those over
// capacity are counted only.
template <int EACH>
__device__ inline void enqueue(const Queue& queue, i64 capacity, i64* counter,
                               const vertex_t (&v)[EACH], const bool (&valid)[EACH],
                               const i64 (&begin)[EACH], const i64 (&length)[EACH]) {
  i64 own = 0, base = 0;
  for (int k = 0; k < EACH; k++)
    if (valid[k]) own += (1ll << ARC_BITS) + length[k];
  if (!__any_sync(WARP, own != 0)) return;
  i64 upto = scan_warp(own);
  if (lane_index() == 31) base = atomic_add(counter, upto);
  i64 at = __shfl_sync(WARP, base, 31) + upto - own;
  for (int k = 0; k < EACH; k++) {
    i64 slot = queued_vertices(at), offset = queued_arcs(at);
    if (!valid[k]) continue;
    at += (1ll << ARC_BITS) + length[k];
    if (slot < capacity) {
      queue.vertices[slot] = v[k];
      queue.offsets[slot] = offset;
      queue.first[slot] = begin[k] - offset;
    }
  }
}
__device__ inline void enqueue(const Queue& queue, i64 capacity, i64* counter, vertex_t v,
                               bool valid, i64 begin, i64 length) {
  enqueue<1>(queue, capacity, counter, {v}, {valid}, {begin}, {length});
}
// The last of `count` rising offsets that is not above `arc`; a block tests one candidate per
// thread at once.
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
// This block's share of arcs lo .. hi of a queue.
struct BlockShare {
  i64 length;  // the same for all blocks; the last ones may have fewer arcs
  i64 begin, end;
  __device__ inline BlockShare() {}
  __device__ inline BlockShare(i64 lo, i64 hi) : length((hi - lo + gridDim.x - 1) / gridDim.x) {
    if (length < blockDim.x) length = blockDim.x;
    begin = lo + blockIdx.x * length;
    end = begin + length < hi ? begin + length : hi;
  }
};
// Arcs 0 .. `arcs` of a queue in parts, which blocks fetch one after another: one range of arcs may
// take several times as long as another (short rows with distant targets). Few arcs are divided
// over all blocks; parts of fewer than a block's threads would take longer to locate than to
// process.
struct Parts {
  static constexpr i64 EACH = 16, ARCS_PER_THREAD = 4;
  i64 arcs, length, count;
  __device__ inline Parts(i64 num_arcs)
      : arcs(num_arcs), length((num_arcs + gridDim.x - 1) / gridDim.x) {
    i64 least = blockDim.x, enough = ARCS_PER_THREAD * blockDim.x;
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
// The last of `count` rising offsets, at most 1024, that is not above `arc`; by a whole warp.
__device__ inline u32 row_of_arc_by_warp(const u32* offsets, u32 count, u32 arc) {
  u32 step = (count + 31) / 32, at = lane_index() * step;
  u32 first = (__popc(__ballot_sync(WARP, at < count && offsets[at] <= arc)) - 1) * step;
  at = first + lane_index();
  return first +
         __popc(__ballot_sync(WARP, lane_index() < step && at < count && offsets[at] <= arc)) - 1;
}
// Call visit(slot, fact, valid), by whole warps, for the arcs of a share: `slot` is the arc's index
// in the rows, `fact` is fact_of(its source), of EACH arcs per lane, so that their loads overlap.
// `scratch` has a word and two 32-bit values per thread, or three words where facts have 64 bits. A
// warp processes consecutive arcs: it locates the rows at their ends, and its lanes search only
// between those.
template <int EACH, class Of, class Visit>
__device__ inline void each_slot(const Queue& from, i64 num_queued, BlockShare share, i64* scratch,
                                 Of fact_of, Visit visit) {
  using Fact = decltype(fact_of(vertex_t()));
  if (share.begin >= share.end) return;
  i64* row_first = scratch;
  Fact* row_fact = (Fact*)(row_first + blockDim.x);
  u32 *row_offset = (u32*)(row_fact + blockDim.x), size = (u32)(share.end - share.begin);
  u32 begin = 0;  // arcs count from the share's begin
  // A block loads up to as many rows as it has threads without locating the first.
  i64 row =
      num_queued > blockDim.x ? row_of_arc_by_block(from.offsets, num_queued, share.begin) : 0;
  for (; begin < size; row += blockDim.x) {
    i64 i = row + threadIdx.x, left = num_queued - row;
    u32 num_rows = left < blockDim.x ? (u32)left : blockDim.x;
    __syncthreads();  // all have read the rows before
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
      bool valid[EACH];
      for (u32 k = 0; k < EACH; k++) {
        u32 arc = own + k * 32 + lane_index(), r = lowest, above = highest + 1;
        valid[k] = arc < after;
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
      visit(slot, fact, valid);
    }
    begin = after;
  }
}
// Call propose(v, u, valid) for targets v of those arcs and name_of their sources.
template <int EACH, class Name, class Propose>
__device__ inline void each_arc(const Queue& from, i64 num_queued, const vertex_t* targets,
                                BlockShare share, i64* scratch, Name name_of, Propose propose) {
  each_slot<EACH>(from, num_queued, share, scratch, name_of,
                  [&](const i64(&slot)[EACH], const vertex_t(&u)[EACH], const bool (&valid)[EACH]) {
                    vertex_t v[EACH];
                    for (int k = 0; k < EACH; k++)
                      v[k] = valid[k] ? load_readonly(targets + slot[k]) : 0;
                    propose(v, u, valid);
                  });
}

// ---- buckets -----------------------------------------------------------------------------------
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
// Buckets after the largest one with less than 1 / TAIL_SHARE of its arcs are widened: few arcs are
// left, and scanning some twice costs less than the rounds of a bucket. The first buckets of a
// search may have few arcs too, and do not count as the largest: that has more than PEAK_ARCS arcs,
// or than 1 / PEAK_SHARE of all.
constexpr i64 TAIL_SHARE = 16, PEAK_ARCS = 1 << 16, PEAK_SHARE = 64;
__device__ inline bool is_tail(i64 arcs, i64 most, i64 all) {
  return arcs * TAIL_SHARE < most && (most > PEAK_ARCS || most * PEAK_SHARE > all);
}
// Once the remaining vertices have pulled, hardly any distance falls again: scanning all of them
// bucket by bucket costs more than pushing what falls. When they have less than 1 / LAST_SHARE of
// all arcs they form one last bucket.
constexpr i64 LAST_SHARE = 8;
__device__ inline bool is_finish(i64 others, i64 all) { return others * LAST_SHARE < all; }

// ---- the trace ---------------------------------------------------------------------------------
constexpr i64 TRACE_WORDS = 5;  // words of a record: the method, and numbers that add up
// Write the record of a superstep; those `beyond` the trace are added to its last.
__device__ inline void note(i64* record, bool beyond, const i64 (&facts)[TRACE_WORDS]) {
  record[0] = facts[0];
  for (int k = 1; k < TRACE_WORDS; k++) record[k] = (beyond ? record[k] : 0) + facts[k];
}
