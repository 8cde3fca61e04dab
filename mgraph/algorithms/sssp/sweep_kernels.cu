#include "prelude.cuh"
#include "tiles.cuh"

// Edges that a thread has in flight: with one block on a multiprocessor, latency is hidden within a
// thread.
constexpr int DEPTH = 4;

// A thread block processes a unit: its segment is copied to shared memory, and improved distances
// are written back.
extern "C" __global__ void __launch_bounds__(1024)
    sweep_distances(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                    const i64* tile_edges, const i64* tile_starts, const u32* words,
                    const weight_t* weights, i64 segment_bits, i64 both_ways, const dist_t* limit,
                    const dist_t* before, dist_t* dist, i64* counters) {
  dist_t* segment = dynamic_shared<dist_t>();
  i64 length = (i64)1 << segment_bits, improved = 0;
  u32 mask = (u32)(length - 1);
  dist_t most = limit[0];
  for (i64 unit = lo + blockIdx.x; unit < hi; unit += gridDim.x) {
    dist_t* home = dist + unit_segments[unit];
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) segment[i] = load_relaxed(&home[i]);
    __syncthreads();
    bool changed = false;
    i64 first = unit_tiles[unit], last = unit_tiles[unit + 1];
    WarpShare share(tile_edges[first], tile_edges[last]);
    i64 e = share.begin + lane_index();
    if (e < share.end) {
      TileReader tiles(tile_edges, tile_starts, first, last, e);
      for (; e < share.end; e += 32 * DEPTH) {
        u32 word[DEPTH];
        dist_t w[DEPTH], near[DEPTH];
        i64 u[DEPTH];
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
          if (e + 32 * k >= share.end) continue;
          word[k] = load_readonly(&words[e + 32 * k]);
          w[k] = weight_of(weights, e + 32 * k);
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
          if (e + 32 * k >= share.end) continue;
          u[k] = tiles.start_of(e + 32 * k) + (word[k] >> segment_bits);
          near[k] = load_readonly(&before[u[k]]);
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
          if (e + 32 * k >= share.end) continue;
          dist_t* end = &segment[word[k] & mask];
          dist_t far = load_relaxed(end);
          if (near[k] < far) {
            dist_t through = near[k] + w[k];
            if (!(through < far && through <= most && lower(end, through))) continue;
            changed = true;
            improved++;
          } else if (both_ways && far < near[k]) {
            dist_t through = far + w[k];
            if (through < near[k] && through <= most && lower(&dist[u[k]], through)) improved++;
          }
        }
      }
    }
    // Also the barrier after the last write to the segment, and before the next unit's first.
    if (__syncthreads_or(changed)) {
      for (i64 i = threadIdx.x; i < length; i += blockDim.x) lower(&home[i], segment[i]);
      __syncthreads();
    }
  }
  warp_add(&counters[0], improved);
}

// Most states that fall have their bit already.
__device__ inline void lower_marked(dist_t* dist, i64 state, dist_t to, u32* lowered) {
  if (!lower(&dist[state], to)) return;
  u32* word = &lowered[state >> 5];
  u32 bit = 1u << (state & 31);
  if (!(load_relaxed(word) & bit)) atomic_or(word, bit);
}

extern "C" __global__ void __launch_bounds__(256)
    sweep_active(i64 lo, i64 hi, const i64* units, const i64* unit_tiles, const i64* unit_segments,
                 const i64* tile_edges, const i64* tile_starts, const u32* words,
                 const weight_t* weights, i64 segment_bits, i64 both_ways, const u64* marks,
                 dist_t* dist, u32* lowered) {
  auto visit = [&](i64 u, i64 v, i64 e) {
    dist_t near = load_relaxed(&dist[u]), far = load_relaxed(&dist[v]), w = weight_of(weights, e);
    if (near < far) {
      dist_t through = near + w;
      if (through < far) lower_marked(dist, v, through, lowered);
    } else if (both_ways && far < near) {
      dist_t through = far + w;
      if (through < near) lower_marked(dist, u, through, lowered);
    }
  };
  visit_marked_edges(lo, hi, {unit_tiles, unit_segments, tile_edges, tile_starts, words}, units,
                     segment_bits, both_ways, marks, visit);
}
