#include "prelude.cuh"
#include "tiles.cuh"

__device__ inline bool explains(dist_t near, dist_t w, dist_t own) {
  return near < own && own != top_of<dist_t>::value() && (dist_t)(near + w) == own;
}

// Most candidates fail at the load and leave the address alone.
__device__ inline void lower_parent(vertex_t* parent, i64 u, const i64* shape) {
  vertex_t position = position_of((vertex_t)u, shape[2], shape[3]);
  if (position < load_relaxed(parent)) atomic_min(parent, position);
}

// Lowers the parent of an edge's farther end, if the edge explains that end's distance.
struct Explanation {
  i64 both_ways;
  const i64* shape;
  const dist_t* dist;
  vertex_t* parents;
  __device__ void lower_farther(i64 u, dist_t near, dist_t w, i64 v, dist_t far) const {
    if (explains(near, w, far))
      lower_parent(&parents[v], u, shape);
    else if (both_ways && explains(far, w, near))
      lower_parent(&parents[u], v, shape);
  }
  // Process a warp's share of a unit with distances in global memory; its segment begins at `home`.
  __device__ void lower_in_place(i64 unit, WarpShare share, const Blocks& blocks,
                                 const weight_t* weights, i64 segment_bits, i64 home) const {
    visit_share(unit, share, blocks, weights, segment_bits, dist,
                [&](i64 u, dist_t near, dist_t w, u32 end) {
                  lower_farther(u, near, w, home + end, load_readonly(&dist[home + end]));
                });
  }
};

// A thread block processes a unit, with the distances of its segment in shared memory; those of a
// small unit stay in global memory.
extern "C" __global__ void __launch_bounds__(1024)
    sweep_nearer(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                 const i64* tile_edges, const i64* tile_starts, const u32* words,
                 const weight_t* weights, i64 segment_bits, const i64* shape, const dist_t* dist,
                 vertex_t* parents) {
  dist_t* segment = dynamic_shared<dist_t>();
  i64 length = (i64)1 << segment_bits;
  Blocks blocks{unit_tiles, unit_segments, tile_edges, tile_starts, words};
  Explanation explanation{shape[1], shape, dist, parents};
  for (i64 unit = lo + blockIdx.x; unit < hi; unit += gridDim.x) {
    i64 home = unit_segments[unit];
    WarpShare share = blocks.by_block(unit);
    if (blocks.is_small(unit, segment_bits)) {
      explanation.lower_in_place(unit, share, blocks, weights, segment_bits, home);
      continue;
    }
    for (i64 i = threadIdx.x; i < length; i += blockDim.x)
      segment[i] = load_readonly(&dist[home + i]);
    __syncthreads();
    visit_share(unit, share, blocks, weights, segment_bits, dist,
                [&](i64 u, dist_t near, dist_t w, u32 end) {
                  explanation.lower_farther(u, near, w, home + end, segment[end]);
                });
    __syncthreads();  // all threads have read the segment that the next unit overwrites
  }
}

// A warp processes a unit of few edges, with distances in global memory.
extern "C" __global__ void __launch_bounds__(256)
    sweep_nearer_by_warp(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                         const i64* tile_edges, const i64* tile_starts, const u32* words,
                         const weight_t* weights, i64 segment_bits, const i64* shape,
                         const dist_t* dist, vertex_t* parents) {
  Blocks blocks{unit_tiles, unit_segments, tile_edges, tile_starts, words};
  Explanation explanation{shape[1], shape, dist, parents};
  for (i64 unit = lo + warp_index(); unit < hi; unit += warp_count())
    explanation.lower_in_place(unit, blocks.by_warp(unit), blocks, weights, segment_bits,
                               unit_segments[unit]);
}

extern "C" __global__ void sweep_equal(i64 lo, i64 hi, const i64* unit_tiles,
                                       const i64* unit_segments, const i64* tile_edges,
                                       const i64* tile_starts, const u32* words,
                                       const weight_t* weights, const i64* shape,
                                       const dist_t* dist, const u8* hops, vertex_t* parents) {
  auto visit = [&](i64 u, i64 v, dist_t w) {
    dist_t own = dist[v];
    if (hops[u] && !hops[v] && dist[u] == own && (dist_t)(own + w) == own)
      lower_parent(&parents[v], u, shape);
  };
  visit_ends(lo, hi, {unit_tiles, unit_segments, tile_edges, tile_starts, words}, weights, shape,
             visit);
}

extern "C" __global__ void __launch_bounds__(256)
    sweep_marked(i64 lo, i64 hi, const i64* units, const i64* unit_tiles, const i64* unit_segments,
                 const i64* tile_edges, const i64* tile_starts, const u32* words,
                 const weight_t* weights, i64 segment_bits, const i64* shape, const u64* marks,
                 const dist_t* dist, vertex_t* parents) {
  i64 both_ways = shape[1];
  auto visit = [&](i64 u, i64 v, i64 e) {
    dist_t start = load_readonly(&dist[u]), end = load_readonly(&dist[v]);
    dist_t w = weight_of(weights, e);
    if (explains(start, w, end)) lower_parent(&parents[v], u, shape);
    if (both_ways && explains(end, w, start)) lower_parent(&parents[u], v, shape);
  };
  visit_marked_edges(lo, hi, {unit_tiles, unit_segments, tile_edges, tile_starts, words}, units,
                     segment_bits, both_ways, marks, visit);
}
