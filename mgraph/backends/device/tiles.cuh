// What sweeps share: a thread reads edges of a run of tiles (shard/edge_blocks.py) in rising order.

#include "prelude.cuh"

struct TileReader {
  const i64 *edges, *starts;
  i64 tile, end, start;
  // Begin at the tile among first .. last that holds `edge`.
  __device__ TileReader(const i64* tile_edges, const i64* tile_starts, i64 first, i64 last,
                        i64 edge)
      : edges(tile_edges),
        starts(tile_starts),
        tile(first + row_of_arc(tile_edges + first, last - first, edge)) {
    end = edges[tile + 1];
    start = starts[tile];
  }
  // The first state of an edge's sub-window.
  __device__ i64 start_of(i64 edge) {
    for (; edge >= end; start = starts[tile]) end = edges[++tile + 1];
    return start;
  }
};
// Those of the edges first .. last that a warp reads, as one of `warps`: 32 consecutive ones at a
// time, from `begin`.
struct WarpShare {
  i64 begin, end;
  __device__ WarpShare(i64 first, i64 last, int warp, int warps) {
    i64 size = ((last - first + warps - 1) / warps + 31) / 32 * 32;
    begin = first + warp * size;
    end = begin + size < last ? begin + size : last;
  }
  // The share of this warp among those of its block.
  __device__ WarpShare(i64 first, i64 last)
      : WarpShare(first, last, threadIdx.x >> 5, blockDim.x >> 5) {}
};
// Raise the two flags of a range of states for each lane of a warp, once for lanes with one range.
// Many warps raise a flag, all of them to 1.
__device__ inline void raise_flags(u8* flags, i64 range, bool is_active, bool is_open) {
  u32 same = __match_any_sync(0xFFFFFFFFu, range);
  u32 active = __ballot_sync(0xFFFFFFFFu, is_active) & same;
  u32 open = __ballot_sync(0xFFFFFFFFu, is_open) & same;
  if (lane_index() != __ffs(same) - 1) return;
  if (active && !load_relaxed(&flags[2 * range])) store_relaxed(&flags[2 * range], (u8)1);
  if (open && !load_relaxed(&flags[2 * range + 1])) store_relaxed(&flags[2 * range + 1], (u8)1);
}
// The arrays of edge blocks: see Blocks in shard/shard.py.
struct Blocks {
  const i64 *unit_tiles, *unit_segments, *tile_edges, *tile_starts;
  const u32* words;
  // Whether a block reads the states of a unit's segment from global memory: to copy them all to
  // shared memory would take more accesses than the unit's edges do.
  __device__ bool is_small(i64 unit, i64 segment_bits) const {
    constexpr int SEGMENT_SHARE = 4;
    i64 num_edges = tile_edges[unit_tiles[unit + 1]] - tile_edges[unit_tiles[unit]];
    return num_edges < ((i64)1 << segment_bits) / SEGMENT_SHARE;
  }
  // The edges that this warp reads of a unit, if its block processes the unit.
  __device__ WarpShare by_block(i64 unit) const {
    return {tile_edges[unit_tiles[unit]], tile_edges[unit_tiles[unit + 1]]};
  }
  // All of them, if the warp processes the unit alone.
  __device__ WarpShare by_warp(i64 unit) const {
    return {tile_edges[unit_tiles[unit]], tile_edges[unit_tiles[unit + 1]], 0, 1};
  }
};
// Every edge counts as 1 where `weights` is None.
__device__ inline dist_t weight_of(const weight_t* weights, i64 e) {
  return weights ? (dist_t)load_readonly(&weights[e]) : (dist_t)1;
}
// Call visit(unit, start of the sub-window, edge) for every edge of the units lo .. hi; a block
// processes a unit.
template <class Visit>
__device__ inline void visit_edges(i64 lo, i64 hi, const Blocks& blocks, Visit visit) {
  for (i64 unit = lo + blockIdx.x; unit < hi; unit += gridDim.x) {
    i64 first = blocks.unit_tiles[unit], last = blocks.unit_tiles[unit + 1];
    WarpShare share(blocks.tile_edges[first], blocks.tile_edges[last]);
    i64 e = share.begin + lane_index();
    if (e >= share.end) continue;
    TileReader tiles(blocks.tile_edges, blocks.tile_starts, first, last, e);
    for (; e < share.end; e += 32) visit(unit, tiles.start_of(e), e);
  }
}
// Edges that a thread has in flight: with one block on a multiprocessor, latency is hidden within a
// thread.
constexpr int EDGES_IN_FLIGHT = 4;
// Call visit(u, state of u, w, end) for every edge of a warp's share of a unit; the end is within
// the unit's segment. No thread of the launch writes `states`.
template <class Visit> __device__ inline void visit_share(i64 unit, WarpShare share,
                                                          const Blocks& blocks,
                                                          const weight_t* weights, i64 segment_bits,
                                                          const dist_t* states, Visit visit) {
  constexpr int DEPTH = EDGES_IN_FLIGHT;
  u32 mask = (u32)(((i64)1 << segment_bits) - 1);
  i64 first = blocks.unit_tiles[unit], last = blocks.unit_tiles[unit + 1];
  i64 e = share.begin + lane_index();
  if (e >= share.end) return;
  TileReader tiles(blocks.tile_edges, blocks.tile_starts, first, last, e);
  for (; e < share.end; e += 32 * DEPTH) {
    u32 word[DEPTH];
    dist_t w[DEPTH], state[DEPTH];
    i64 u[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      if (e + 32 * k >= share.end) continue;
      word[k] = load_readonly(&blocks.words[e + 32 * k]);
      w[k] = weight_of(weights, e + 32 * k);
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      if (e + 32 * k >= share.end) continue;
      u[k] = tiles.start_of(e + 32 * k) + (word[k] >> segment_bits);
      state[k] = load_readonly(&states[u[k]]);
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
      if (e + 32 * k < share.end) visit(u[k], state[k], w[k], word[k] & mask);
  }
}
// Call visit(u, v, w) with the ends and the weight of every edge, and visit(v, u, w) with
// both_ways.
template <class Visit> __device__ inline void visit_ends(i64 lo, i64 hi, const Blocks& blocks,
                                                         const weight_t* weights, const i64* shape,
                                                         Visit visit) {
  i64 segment_bits = shape[0], both_ways = shape[1];
  u32 mask = (u32)(((i64)1 << segment_bits) - 1);
  visit_edges(lo, hi, blocks, [&](i64 unit, i64 start, i64 e) {
    i64 u = start + (blocks.words[e] >> segment_bits),
        v = blocks.unit_segments[unit] + (blocks.words[e] & mask);
    dist_t w = weight_of(weights, e);
    visit(u, v, w);
    if (both_ways) visit(v, u, w);
  });
}
// Edges of which a thread tests the marks at once.
constexpr int TEST_DEPTH = 4;
// Pairs that a warp holds at most: fewer than a visit takes, and those of the edges tested at once.
constexpr int MARKED_PAIRS = 32 * (1 + TEST_DEPTH);
// The pairs of states that a warp has found in a unit, in shared memory: in the upper half of 64
// bits the start, in the lower half the edge and the end, which fit as a unit has few edges
// (shard/block_headers.py).
struct PairQueue {
  u64* pairs;
  int count = 0;
  i64 start, segment, edge;
  i64 segment_bits;
  __device__ void add(bool is_wanted, i64 u, i64 e, u32 end) {
    u32 found = __ballot_sync(0xFFFFFFFFu, is_wanted);
    if (is_wanted)
      pairs[count + lanes_before(found)] =
          (u64)(u - start) << 32 | (u32)(e - edge) << segment_bits | end;
    count += __popc(found);
  }
  // Visit the last pair of each thread, or all that are left.
  template <class Visit> __device__ void visit_last(Visit visit) {
    int end = count;
    count = count > 32 ? count - 32 : 0;
    __syncwarp();
    int at = count + lane_index();
    if (at < end) {
      u64 pair = pairs[at];
      i64 v = segment + ((u32)pair & ((1u << segment_bits) - 1));
      visit(start + (i64)(pair >> 32), v, edge + ((u32)pair >> segment_bits));
    }
    // Before the next pairs overwrite these.
    __syncwarp();
  }
};
// Call visit(u, v, edge) for every edge of the units listed at lo .. hi that leads from an active
// state to an open one, or back with both_ways. A block processes a unit, with the marks of its
// segment in shared memory. Few edges are visited as a rule: a warp collects them, so that none of
// its threads is idle in a visit.
template <class Visit>
__device__ inline void visit_marked_edges(i64 lo, i64 hi, const Blocks& blocks, const i64* units,
                                          i64 segment_bits, i64 both_ways, const u64* marks,
                                          Visit visit) {
  u64* ends = dynamic_shared<u64>();
  u32 mask = (1u << segment_bits) - 1;
  PairQueue queue{ends + (mask >> 5) + 2 + MARKED_PAIRS * (threadIdx.x >> 5)};
  queue.segment_bits = segment_bits;
  // An end's active bit counts only where edges go both ways.
  u64 counted = both_ways ? ~0ull : 0xFFFFFFFFull;
  for (i64 place = lo + blockIdx.x; place < hi; place += gridDim.x) {
    i64 unit = units[place], first = blocks.unit_tiles[unit], last = blocks.unit_tiles[unit + 1];
    i64 segment = blocks.unit_segments[unit], word_0 = segment >> 5;
    u32 offset = (u32)segment & 31, num_words = ((offset + mask) >> 5) + 1;
    for (u32 i = threadIdx.x; i < num_words; i += blockDim.x) ends[i] = marks[word_0 + i] & counted;
    __syncthreads();
    queue.segment = segment;
    queue.start = blocks.tile_starts[first];
    queue.edge = blocks.tile_edges[first];
    WarpShare share(queue.edge, blocks.tile_edges[last]);
    if (share.begin < share.end) {
      i64 begin = share.begin, edge = begin + lane_index(), final = share.end - 1;
      TileReader tiles(blocks.tile_edges, blocks.tile_starts, first, last,
                       edge < final ? edge : final);
      while (begin < share.end) {
        u32 word[TEST_DEPTH], wanted[TEST_DEPTH];
        u64 starts[TEST_DEPTH];
        i64 u[TEST_DEPTH];
        edge = begin + lane_index();
#pragma unroll
        for (int k = 0; k < TEST_DEPTH; k++)
          if (edge + 32 * k < share.end) word[k] = load_readonly(&blocks.words[edge + 32 * k]);
#pragma unroll
        for (int k = 0; k < TEST_DEPTH; k++) {
          wanted[k] = 0;
          if (edge + 32 * k >= share.end) continue;
          u[k] = tiles.start_of(edge + 32 * k) + (word[k] >> segment_bits);
          u32 end = offset + (word[k] & mask);
          u64 bits = ends[end >> 5] >> (end & 31);
          // An end that is open takes an active start, and one that is active an open start.
          wanted[k] = (u32)bits & 1 | (u32)(bits >> 31) & 2;
          if (wanted[k]) starts[k] = load_readonly(&marks[u[k] >> 5]) >> (u[k] & 31);
        }
#pragma unroll
        for (int k = 0; k < TEST_DEPTH; k++) {
          // Of the start bit 0 tells whether it is active, bit 1 whether it is open.
          u32 has = wanted[k] ? (u32)(starts[k] >> 32) & 1 | (u32)starts[k] << 1 & 2 : 0;
          queue.add(wanted[k] & has, u[k], edge + 32 * k, word[k] & mask);
        }
        begin += 32 * TEST_DEPTH;
        int least = begin < share.end ? 32 : 1;
        while (queue.count >= least) queue.visit_last(visit);
      }
    }
    // Before the next unit overwrites the marks of this one.
    __syncthreads();
  }
}
