#include "prelude.cuh"
#include "tiles.cuh"

// Most candidates fail at the load and leave the address alone.
__device__ inline void lower_parent(vertex_t* parent, i64 u, const i64* shape) {
  vertex_t position = position_of((vertex_t)u, shape[2], shape[3]);
  if (position < load_relaxed(parent)) atomic_min(parent, position);
}

extern "C" __global__ void sweep_nearer(i64 lo, i64 hi, const i64* unit_tiles,
                                        const i64* unit_segments, const i64* tile_edges,
                                        const i64* tile_starts, const u32* words,
                                        const weight_t* weights, const i64* shape,
                                        const dist_t* dist, vertex_t* parents) {
  auto visit = [&](i64 u, i64 v, dist_t w) {
    dist_t near = dist[u], own = dist[v];
    if (near < own && own != top_of<dist_t>::value() && (dist_t)(near + w) == own)
      lower_parent(&parents[v], u, shape);
  };
  visit_ends(lo, hi, {unit_tiles, unit_segments, tile_edges, tile_starts, words}, weights, shape,
             visit);
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
