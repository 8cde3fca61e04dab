#include "prelude.cuh"
#include "tiles.cuh"

__device__ inline i64 position_at(const u32* bits, const vertex_t* before, const vertex_t* table,
                                  i64 user) {
  return table[bits ? ones_before(bits, before, user) : user];
}

extern "C" __global__ void unpack_positions(i64 lo, i64 hi, const u32* bits, const vertex_t* before,
                                            const vertex_t* table, i64 first, vertex_t* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    out[i - first] = test_bit(bits, i) ? (vertex_t)position_at(bits, before, table, i)
                                       : top_of<vertex_t>::value();
}

extern "C" __global__ void orient_edges(i64 lo, i64 hi, const id_t* from_ids, const id_t* to_ids,
                                        const u32* bits, const vertex_t* before,
                                        const vertex_t* table, i64 stride, i64 multiplier,
                                        i64 directed, i64 by_parity, vertex_t* sources,
                                        vertex_t* targets) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 u = from_ids[i], v = to_ids[i];
    if (u == v) {
      sources[i] = targets[i] = top_of<vertex_t>::value();
      continue;
    }
    if (table) u = position_at(bits, before, table, u), v = position_at(bits, before, table, v);
    bool swap = !directed && (u < v) != (((u + v) & by_parity) == 1);
    sources[i] = (vertex_t)state_of(swap ? v : u, stride, multiplier);
    targets[i] = (vertex_t)state_of(swap ? u : v, stride, multiplier);
  }
}

extern "C" __global__ void key_edges(i64 lo, i64 hi, const vertex_t* sources,
                                     const vertex_t* targets, i64 first_window, i64 window_bits,
                                     i64 subwindow_bits, i64 segment_bits, i64 tile_bits,
                                     i64* keys) {
  i64 window_mask = ((i64)1 << window_bits) - 1, start_mask = ((i64)1 << subwindow_bits) - 1;
  i64 end_mask = ((i64)1 << segment_bits) - 1;
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    if (sources[i] == top_of<vertex_t>::value()) {
      keys[i] = -1;
      continue;
    }
    i64 u = sources[i], v = targets[i];
    i64 tile =
        (v >> segment_bits) << (window_bits - subwindow_bits) | (u & window_mask) >> subwindow_bits;
    i64 start = (((u >> window_bits) - first_window) << tile_bits | tile) << subwindow_bits |
                (u & start_mask);
    keys[i] = start << segment_bits | (v & end_mask);
  }
}

extern "C" __global__ void count_keys(i64 lo, i64 hi, const i64* keys, i64 shift, i64 first,
                                      i64 last, i64* counts) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 bucket = keys[i] >> shift;
    if (first <= bucket && bucket < last) atomic_add(&counts[bucket - first], (i64)1);
  }
}

extern "C" __global__ void place_keys(i64 lo, i64 hi, const i64* keys, const weight_t* weights,
                                      i64 shift, i64 first, i64 last, i64* cursors, i64* out_keys,
                                      weight_t* out_weights) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 bucket = keys[i] >> shift;
    if (bucket < first || bucket >= last) continue;
    i64 slot = atomic_add(&cursors[bucket - first], (i64)1);
    out_keys[slot] = keys[i];
    if (weights) out_weights[slot] = weights[i];
  }
}

extern "C" __global__ void count_ends(i64 lo, i64 hi, const i64* unit_tiles,
                                      const i64* unit_segments, const i64* tile_edges,
                                      const i64* tile_starts, const u32* words, i64 segment_bits,
                                      i64 both_ways, u32* degrees) {
  u32 mask = (u32)(((i64)1 << segment_bits) - 1);
  visit_edges(lo, hi, {unit_tiles, unit_segments, tile_edges, tile_starts, words},
              [&](i64 unit, i64 start, i64 e) {
                atomic_add(&degrees[start + (words[e] >> segment_bits)], 1u);
                if (both_ways) atomic_add(&degrees[unit_segments[unit] + (words[e] & mask)], 1u);
              });
}
