// Race: several threads may mark one target at a time; all of them write the same 1.

#include "prelude.cuh"
#include "tiles.cuh"

__device__ inline void check_arc(i64 u, i64 v, dist_t w, const vertex_t* parent, const dist_t* dist,
                                 dist_t bound, u8* is_explained, u8* is_shorter) {
  if (dist[u] > bound) return;
  dist_t candidate = dist[u] + w;
  if (candidate == dist[v] && parent[v] == (vertex_t)u) store_relaxed(&is_explained[v], (u8)1);
  if (candidate < dist[v] && candidate <= bound) store_relaxed(&is_shorter[v], (u8)1);
}

extern "C" __global__ void check_arcs(i64 lo, i64 hi, i64 first, const i64* indptr,
                                      const vertex_t* targets, const weight_t* weights,
                                      const vertex_t* parent, const dist_t* dist,
                                      const dist_t* bound, u8* is_explained, u8* is_shorter) {
  for (i64 row = lo + warp_index(); row < hi; row += warp_count())
    for (i64 i = indptr[row] + lane_index(); i < indptr[row + 1]; i += 32) {
      dist_t w = weights ? (dist_t)weights[i] : (dist_t)1;
      check_arc(first + row, targets[i], w, parent, dist, bound[0], is_explained, is_shorter);
    }
}

extern "C" __global__ void check_edges(i64 lo, i64 hi, const i64* unit_tiles,
                                       const i64* unit_segments, const i64* tile_edges,
                                       const i64* tile_starts, const u32* words,
                                       const weight_t* weights, const i64* shape,
                                       const vertex_t* parent, const dist_t* dist,
                                       const dist_t* bound, u8* is_explained, u8* is_shorter) {
  visit_ends(lo, hi, {unit_tiles, unit_segments, tile_edges, tile_starts, words}, weights, shape,
             [&](i64 u, i64 v, dist_t w) {
               check_arc(u, v, w, parent, dist, bound[0], is_explained, is_shorter);
             });
}
