#include "prelude.cuh"
#include "tiles.cuh"

// Relaxes an edge in both directions, and marks the grains of distances that fall.
struct Relaxation {
  i64 both_ways, grain_bits;
  dist_t most;
  dist_t* dist;
  u8* lowered;
  __device__ Relaxation(const i64* shape, const dist_t* limit, dist_t* dist, u8* lowered)
      : both_ways(shape[0]), grain_bits(shape[1]), most(limit[0]), dist(dist), lowered(lowered) {}
  // Flags are only raised within a launch: a stale one is 0 at worst, which costs a store.
  __device__ void mark(i64 state) const {
    u8* grain = &lowered[state >> grain_bits];
    if (!load_stale(grain)) store_relaxed(grain, (u8)1);
  }
  // Lower the farther end of an edge, and mark it if it is the start; return whether it was the
  // end.
  __device__ bool relax(i64 u, dist_t near, dist_t w, dist_t* end) const {
    dist_t far = load_relaxed(end);
    if (near < far) {
      dist_t through = near + w;
      return through < far && through <= most && lower(end, through);
    }
    if (both_ways && far < near) {
      dist_t through = far + w;
      if (through < near && through <= most && lower(&dist[u], through)) mark(u);
    }
    return false;
  }
  // Process a warp's share of a unit with distances in global memory; its segment begins at `home`.
  __device__ void relax_in_place(i64 unit, WarpShare share, const Blocks& blocks,
                                 const weight_t* weights, i64 segment_bits, i64 home,
                                 const dist_t* before) const {
    visit_share(unit, share, blocks, weights, segment_bits, before,
                [&](i64 u, dist_t near, dist_t w, u32 end) {
                  if (relax(u, near, w, &dist[home + end])) mark(home + end);
                });
  }
};

// A thread block processes a unit: its segment is copied to shared memory, and improved distances
// are written back. Those of a small unit are lowered in global memory.
extern "C" __global__ void __launch_bounds__(1024)
    sweep_distances(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                    const i64* tile_edges, const i64* tile_starts, const u32* words,
                    const weight_t* weights, i64 segment_bits, const i64* shape,
                    const dist_t* limit, const dist_t* before, dist_t* dist, u8* lowered) {
  dist_t* segment = dynamic_shared<dist_t>();
  i64 length = (i64)1 << segment_bits;
  Blocks blocks{unit_tiles, unit_segments, tile_edges, tile_starts, words};
  Relaxation relaxation(shape, limit, dist, lowered);
  for (i64 unit = lo + blockIdx.x; unit < hi; unit += gridDim.x) {
    i64 home = unit_segments[unit];
    WarpShare share = blocks.by_block(unit);
    if (blocks.is_small(unit, segment_bits)) {
      relaxation.relax_in_place(unit, share, blocks, weights, segment_bits, home, before);
      continue;
    }
    for (i64 i = threadIdx.x; i < length; i += blockDim.x)
      segment[i] = load_relaxed(&dist[home + i]);
    __syncthreads();
    bool changed = false;
    visit_share(unit, share, blocks, weights, segment_bits, before,
                [&](i64 u, dist_t near, dist_t w, u32 end) {
                  if (relaxation.relax(u, near, w, &segment[end])) changed = true;
                });
    // Also the barrier after the last write to the segment, and before the next unit's first.
    if (__syncthreads_or(changed)) {
      for (i64 i = threadIdx.x; i < length; i += blockDim.x)
        if (lower(&dist[home + i], segment[i])) relaxation.mark(home + i);
      __syncthreads();
    }
  }
}

// A warp processes a unit of few edges, with distances in global memory.
extern "C" __global__ void __launch_bounds__(256)
    sweep_distances_by_warp(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                            const i64* tile_edges, const i64* tile_starts, const u32* words,
                            const weight_t* weights, i64 segment_bits, const i64* shape,
                            const dist_t* limit, const dist_t* before, dist_t* dist, u8* lowered) {
  Blocks blocks{unit_tiles, unit_segments, tile_edges, tile_starts, words};
  Relaxation relaxation(shape, limit, dist, lowered);
  for (i64 unit = lo + warp_index(); unit < hi; unit += warp_count())
    relaxation.relax_in_place(unit, blocks.by_warp(unit), blocks, weights, segment_bits,
                              unit_segments[unit], before);
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
