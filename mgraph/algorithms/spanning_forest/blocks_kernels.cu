#include "kernels.cuh"
#include "prelude.cuh"
#include "tiles.cuh"

// The launch parameters: see blocks_kernels.py. Loaded once, which the compiler may not do itself:
// it does not know that no thread writes them.
struct Parameters {
  i64 segment_bits, stride, multiplier, is_inverted;
  __device__ inline Parameters(const i64* parameters)
      : segment_bits(parameters[0]),
        stride(parameters[1]),
        multiplier(parameters[2]),
        is_inverted(parameters[3]) {}
  __device__ inline vertex_t position(i64 state) const {
    return position_of((vertex_t)state, stride, multiplier);
  }
  __device__ inline i64 key(weight_t weight) const {
    i64 key = weight_sort_key(weight);
    return is_inverted ? ~key : key;
  }
};

// The positions of the ends of an edge.
struct EdgeEnds {
  vertex_t u, v;
  __device__ inline EdgeEnds(const Parameters& launch, i64 start, i64 segment, u32 word)
      : u(launch.position(start + (word >> launch.segment_bits))),
        v(launch.position(segment + (word & (u32)(((i64)1 << launch.segment_bits) - 1)))) {}
  __device__ inline i64 name() const {
    return u < v ? (i64)u << 32 | (i64)v : (i64)v << 32 | (i64)u;
  }
};

// Most words are not lower: a load spares them the atomic. A stale value is only higher.
__device__ inline void lower_word(i64* word, i64 key, vertex_t other) {
  i64 lowered = (i64)((u64)key << 32) | (i64)other;
  if (lowered < load_stale(word)) atomic_min(word, lowered);
}

extern "C" __global__ void __launch_bounds__(1024)
    find_lightest_ends(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                       const i64* tile_edges, const i64* tile_starts, const u32* words,
                       const weight_t* weights, const i64* parameters, i64* best) {
  Parameters launch(parameters);
  visit_edges(lo, hi, {unit_tiles, unit_segments, tile_edges, tile_starts, words},
              [&](i64 unit, i64 start, i64 e) {
                EdgeEnds ends(launch, start, unit_segments[unit], load_readonly(&words[e]));
                i64 key = launch.key(load_readonly(&weights[e]));
                lower_word(&best[ends.u], key, ends.v);
                lower_word(&best[ends.v], key, ends.u);
              });
}

extern "C" __global__ void hook_ends(i64 lo, i64 hi, i64* words, vertex_t* above, i64* names) {
  for (i64 position = lo + thread_index(); position < hi; position += thread_count()) {
    i64 word = words[position], other = word == TOP ? position : word & 0xFFFFFFFF;
    above[position] = (vertex_t)other;
    if (word != TOP) words[position] = word >> 32;
    names[position] = word == TOP        ? TOP
                      : position < other ? position << 32 | other
                                         : other << 32 | position;
  }
}

// Blocks that share a unit: a host part has few units, and an Appender is of a block of few warps.
constexpr int UNIT_BLOCKS = 4;

extern "C" __global__ void list_block_edges(i64 lo, i64 hi, const i64* unit_tiles,
                                            const i64* unit_segments, const i64* tile_edges,
                                            const i64* tile_starts, const u32* words,
                                            const weight_t* weights, const i64* parameters,
                                            const vertex_t* labels, i64* counters, vertex_t* ends,
                                            i64* keys, i64* edges) {
  Parameters launch(parameters);
  i64 low = parameters[4], high = parameters[5];
  Appender list(parameters[6], &counters[0], ends, keys, edges);
  for (i64 item = UNIT_BLOCKS * lo + blockIdx.x; item < UNIT_BLOCKS * hi; item += gridDim.x) {
    i64 unit = item / UNIT_BLOCKS, segment = unit_segments[unit];
    i64 first = unit_tiles[unit], last = unit_tiles[unit + 1];
    int warps = blockDim.x >> 5, warp = (int)(item % UNIT_BLOCKS) * warps + (threadIdx.x >> 5);
    WarpShare share(tile_edges[first], tile_edges[last], warp, UNIT_BLOCKS * warps);
    if (share.begin >= share.end) continue;
    i64 e = share.begin + lane_index();
    TileReader tiles(tile_edges, tile_starts, first, last, e < share.end ? e : share.end - 1);
    for (; e - lane_index() < share.end; e += 32) {
      i64 key = e < share.end ? launch.key(load_readonly(&weights[e])) : 0, name = 0;
      vertex_t u = 0, v = 0;
      if (e < share.end && key >= low && key <= high) {
        EdgeEnds edge(launch, tiles.start_of(e), segment, load_readonly(&words[e]));
        u = labels[edge.u];
        v = labels[edge.v];
        name = edge.name();
      }
      list.push(u != v, u, v, key, name);
    }
  }
  list.flush();
}
