#include "prelude.cuh"
#include "tiles.cuh"

// Edges that a thread has in flight.
constexpr int DEPTH = 4;

// A block processes a unit, with the bits of its segment in shared memory: in the upper half of
// each 64 which ends are in the frontier, in the lower half which are unreached; none where no
// start of its window is of the other kind.
extern "C" __global__ void __launch_bounds__(256)
    sweep_frontier(i64 lo, i64 hi, const i64* units, const i64* unit_tiles,
                   const i64* unit_segments, const i64* tile_edges, const i64* tile_starts,
                   const u32* words, i64 segment_bits, const i64* shape, const u32* frontier,
                   const u32* unreached, const u8* windows, vertex_t* parents) {
  u64* ends = dynamic_shared<u64>();
  u32 mask = (1u << segment_bits) - 1;
  i64 both_ways = shape[0], stride = shape[1], multiplier = shape[2], window_bits = shape[4];
  for (i64 place = lo + blockIdx.x; place < hi; place += gridDim.x) {
    i64 unit = units[place], first = unit_tiles[unit], last = unit_tiles[unit + 1];
    i64 segment = unit_segments[unit], word_0 = segment >> 5;
    u32 offset = (u32)segment & 31, num_words = ((offset + mask) >> 5) + 1;
    const u8* window = windows + 2 * (tile_starts[first] >> window_bits);
    u32 pulls = both_ways && window[1] ? ~0u : 0, pushes = window[0] ? ~0u : 0;
    for (u32 i = threadIdx.x; i < num_words; i += blockDim.x)
      ends[i] = (u64)(frontier[word_0 + i] & pulls) << 32 | (unreached[word_0 + i] & pushes);
    __syncthreads();
    WarpShare share(tile_edges[first], tile_edges[last]);
    i64 e = share.begin + lane_index();
    if (e < share.end) {
      TileReader tiles(tile_edges, tile_starts, first, last, e);
      for (; e < share.end; e += 32 * DEPTH) {
        u32 word[DEPTH], bits[DEPTH];
        vertex_t u[DEPTH];
        bool pull[DEPTH], is_wanted[DEPTH];
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
          if (e + 32 * k < share.end) word[k] = load_readonly(&words[e + 32 * k]);
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
          is_wanted[k] = false;
          if (e + 32 * k >= share.end) continue;
          u[k] = (vertex_t)(tiles.start_of(e + 32 * k) + (word[k] >> segment_bits));
          u32 end = offset + (word[k] & mask);
          u64 both = ends[end >> 5] >> (end & 31);
          pull[k] = (both >> 32) & 1;
          is_wanted[k] = pull[k] || (both & 1);
          const u32* others = pull[k] ? unreached : frontier;
          if (is_wanted[k]) bits[k] = load_readonly(&others[u[k] >> 5]);
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
          if (!is_wanted[k] || !((bits[k] >> (u[k] & 31)) & 1)) continue;
          vertex_t v = (vertex_t)(segment + (word[k] & mask));
          vertex_t* parent = &parents[pull[k] ? u[k] : v];
          vertex_t position = position_of(pull[k] ? v : u[k], stride, multiplier);
          // Most candidates fail at the load and leave the address alone.
          if (position < load_relaxed(parent)) atomic_min(parent, position);
        }
      }
    }
    // Before the next unit overwrites the bits of this one.
    __syncthreads();
  }
}

extern "C" __global__ void find_reached(i64 lo, i64 hi, i64 num_states, const u32* unreached,
                                        const vertex_t* parents, u32* frontier) {
  for (i64 word = lo + warp_index(); word < hi; word += warp_count()) {
    i64 state = (word << 5) + lane_index();
    u32 left = unreached[word];
    bool is_reached = state < num_states && (left >> lane_index()) & 1 &&
                      parents[state] != top_of<vertex_t>::value();
    u32 bits = __ballot_sync(0xFFFFFFFFu, is_reached);
    if (lane_index() == 0) frontier[word] = bits;
  }
}

extern "C" __global__ void settle_level(i64 lo, i64 hi, i64 level, i64 first, i64 last,
                                        const i64* shape, const u32* frontier, u32* unreached,
                                        i32* levels, u8* segments, u8* windows, i64* counters) {
  i64 count = 0;
  // A warp settles 32 words, of which each lane holds one.
  for (i64 words = lo + 32 * warp_index(); words < hi; words += 32 * warp_count()) {
    i64 word = words + lane_index();
    u32 bits = word < hi ? frontier[word] : 0, left = word < hi ? unreached[word] & ~bits : 0;
    if (word < hi) unreached[word] = left;
    count += __popc(bits);
    raise_flags(segments, (word << 5) >> shape[3], bits, left);
    raise_flags(windows, (word << 5) >> shape[4], bits, left);
    for (u32 some = __ballot_sync(0xFFFFFFFFu, bits); some; some &= some - 1) {
      int lane = __ffs(some) - 1;
      i64 state = ((words + lane) << 5) + lane_index();
      if ((__shfl_sync(0xFFFFFFFFu, bits, lane) >> lane_index()) & 1 && first <= state &&
          state < last)
        levels[state - first] = (i32)level;
    }
  }
  warp_add(&counters[0], count);
}
