#include "prelude.cuh"
#include "tiles.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    list_block_edges(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                     const i64* tile_edges, const i64* tile_starts, const u32* words,
                     const weight_t* weights, const i64* bounds, const vertex_t* labels,
                     i64* counters, i64* names, i64* keys) {
  i64 segment_bits = bounds[0], stride = bounds[1], multiplier = bounds[2];
  u32 mask = (u32)(((i64)1 << segment_bits) - 1);
  visit_edges(lo, hi, {unit_tiles, unit_segments, tile_edges, tile_starts, words},
              [&](i64 unit, i64 start, i64 e) {
                u32 word = load_readonly(&words[e]);
                i64 from = start + (word >> segment_bits), to = unit_segments[unit] + (word & mask);
                vertex_t u = position_of((vertex_t)from, stride, multiplier);
                vertex_t v = position_of((vertex_t)to, stride, multiplier);
                i64 key = weight_sort_key(load_readonly(&weights[e]));
                if (bounds[3]) key = ~key;
                i64 name = u < v ? (i64)u << 32 | (i64)v : (i64)v << 32 | (i64)u;
                bool is_after = key > bounds[4] || (key == bounds[4] && name > bounds[5]);
                if (is_after && labels[u] == labels[v]) return;
                i64 slot = reserve(&counters[0]);
                names[slot] = name;
                keys[slot] = key;
              });
}
