#include "prelude.cuh"
#include "tiles.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    find_claimed_edges(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                       const i64* tile_edges, const i64* tile_starts, const u32* words,
                       const weight_t* weights, const i64* bounds, const vertex_t* positions,
                       const i64* claimed, u8* is_there, i64* keys) {
  i64 segment_bits = bounds[0], stride = bounds[1], multiplier = bounds[2], count = bounds[4];
  u32 mask = (u32)(((i64)1 << segment_bits) - 1);
  visit_edges(lo, hi, {unit_tiles, unit_segments, tile_edges, tile_starts, words},
              [&](i64 unit, i64 start, i64 e) {
                i64 from = start + (words[e] >> segment_bits);
                i64 to = unit_segments[unit] + (words[e] & mask);
                vertex_t u = position_of((vertex_t)from, stride, multiplier);
                vertex_t v = position_of((vertex_t)to, stride, multiplier);
                i64 name = u < v ? (i64)u << 32 | (i64)v : (i64)v << 32 | (i64)u;
                i64 place = row_of_arc(claimed, count, name);
                if (!count || claimed[place] != name) return;
                i64 key = weight_sort_key(weights[e]);
                // Race: of parallel edges, which a graph does not have, all would write one key.
                store_relaxed(&is_there[place], (u8)1);
                store_relaxed(&keys[place], bounds[3] ? ~key : key);
              });
}

extern "C" __global__ void __launch_bounds__(1024)
    check_outside_edges(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                        const i64* tile_edges, const i64* tile_starts, const u32* words,
                        const weight_t* weights, const i64* bounds, const id_t* above,
                        const out_t* heaviest, u8* crosses, u8* lighter) {
  i64 segment_bits = bounds[0];
  u32 mask = (u32)(((i64)1 << segment_bits) - 1);
  visit_edges(lo, hi, {unit_tiles, unit_segments, tile_edges, tile_starts, words},
              [&](i64 unit, i64 start, i64 e) {
                i64 a = start + (words[e] >> segment_bits);
                i64 b = unit_segments[unit] + (words[e] & mask);
                i64 u = a, v = b, path_max = (i64)1 << 63;
                while (u != v && (above[u] != u || above[v] != v)) {
                  i64 w = heaviest[u] > heaviest[v] ? heaviest[u] : heaviest[v];
                  path_max = w > path_max ? w : path_max;
                  u = above[u], v = above[v];
                }
                i64 key = weight_sort_key(weights[e]);
                if (bounds[1]) key = ~key;
                // Race: several threads may mark a state at a time; all of them write the same 1.
                u8* marks = u != v ? crosses : key < path_max ? lighter : nullptr;
                if (!marks) return;
                store_relaxed(&marks[a], (u8)1);
                store_relaxed(&marks[b], (u8)1);
              });
}
