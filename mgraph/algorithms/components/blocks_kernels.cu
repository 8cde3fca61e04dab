#include "prelude.cuh"
#include "tiles.cuh"
#include "trees.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    link_edges(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
               const i64* tile_edges, const i64* tile_starts, const u32* words, i64 segment_bits,
               i64 stride, i64 multiplier, vertex_t* parents) {
  u32 mask = (u32)(((i64)1 << segment_bits) - 1);
  visit_edges(lo, hi, {unit_tiles, unit_segments, tile_edges, tile_starts, words},
              [&](i64 unit, i64 start, i64 e) {
                u32 word = load_readonly(&words[e]);
                i64 from = start + (word >> segment_bits), to = unit_segments[unit] + (word & mask);
                vertex_t u = position_of((vertex_t)from, stride, multiplier);
                vertex_t v = position_of((vertex_t)to, stride, multiplier);
                if (load_stale(&parents[u]) != load_stale(&parents[v])) link(parents, u, v);
              });
}
