#include "fixed_point.cuh"
#include "prelude.cuh"
#include "tiles.cuh"

// Call visit(start, end, edge) for every edge of the units lo .. hi, by whole converged warps; ends
// are -1 in lanes without an edge.
template <class Visit> __device__ inline void sweep_edges(i64 lo, i64 hi, const Blocks& blocks,
                                                          i64 segment_bits, Visit visit) {
  u32 mask = (u32)(((i64)1 << segment_bits) - 1);
  for (i64 unit = lo + blockIdx.x; unit < hi; unit += gridDim.x) {
    i64 first = blocks.unit_tiles[unit], last = blocks.unit_tiles[unit + 1];
    WarpShare share(blocks.tile_edges[first], blocks.tile_edges[last]);
    if (share.begin >= share.end) continue;
    i64 e = share.begin + lane_index();
    TileReader tiles(blocks.tile_edges, blocks.tile_starts, first, last,
                     e < share.end ? e : share.end - 1);
    for (; e - lane_index() < share.end; e += 32) {
      i64 u = -1, v = -1;
      if (e < share.end) {
        u32 word = load_readonly(&blocks.words[e]);
        u = tiles.start_of(e) + (word >> segment_bits);
        v = blocks.unit_segments[unit] + (word & mask);
      }
      visit(u, v, e);
    }
  }
}

extern "C" __global__ void __launch_bounds__(1024)
    sweep_scores(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                 const i64* tile_edges, const i64* tile_starts, const u32* words,
                 const weight_t* weights, i64 segment_bits, i64 ways, const dist_t* given,
                 i64* received, i64* counters) {
  u64 passed = 0;
  Blocks blocks = {unit_tiles, unit_segments, tile_edges, tile_starts, words};
  sweep_edges(lo, hi, blocks, segment_bits, [&](i64 u, i64 v, i64 e) {
    if (u >= 0 && ways & 1) {
      i64 part = along(load_readonly(&given[u]), weights, e);
      atomic_add(&received[v], part);
      passed += part;
    }
    if (!(ways & 2)) return;
    // Edges of a tile are in order of their starts.
    i64 part = u >= 0 ? along(load_readonly(&given[v]), weights, e) : 0;
    passed += part;
    add_by_key(received, u, part);
  });
  warp_add(&counters[0], (i64)passed);
}

extern "C" __global__ void __launch_bounds__(1024)
    find_greatest(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                  const i64* tile_edges, const i64* tile_starts, const u32* words,
                  const weight_t* weights, i64 segment_bits, i64 both_ways, i64* least) {
  Blocks blocks = {unit_tiles, unit_segments, tile_edges, tile_starts, words};
  sweep_edges(lo, hi, blocks, segment_bits, [&](i64 u, i64 v, i64 e) {
    if (u < 0) return;
    // Of a zero with a sign the bits have no order.
    i64 bits = -__double_as_longlong((double)weights[e] + 0.0);
    lower(&least[u], bits);
    if (both_ways) lower(&least[v], bits);
  });
}

extern "C" __global__ void __launch_bounds__(1024)
    add_weights(i64 lo, i64 hi, const i64* unit_tiles, const i64* unit_segments,
                const i64* tile_edges, const i64* tile_starts, const u32* words,
                const weight_t* weights, i64 segment_bits, i64 both_ways, const double* greatest,
                i64* sums) {
  Blocks blocks = {unit_tiles, unit_segments, tile_edges, tile_starts, words};
  sweep_edges(lo, hi, blocks, segment_bits, [&](i64 u, i64 v, i64 e) {
    if (u < 0) return;
    for (int end = 0; end <= (both_ways ? 1 : 0); end++) {
      i64 state = end ? v : u;
      if (!(greatest[state] > 0)) continue;
      double share = (double)weights[e] / greatest[state] * 0x1p30;
      i64 whole = (i64)share;
      atomic_add(&sums[2 * state], whole);
      atomic_add(&sums[2 * state + 1], (i64)((share - (double)whole) * 0x1p32));
    }
  });
}

extern "C" __global__ void join_sums(i64 lo, i64 hi, const double* greatest, const i64* sums,
                                     double* totals, i64* counters) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    double total =
        greatest[i] * ((double)sums[2 * i] * 0x1p-30 + (double)sums[2 * i + 1] * 0x1p-62);
    totals[i] = total;
    if (total > 0 && !(0x1p-900 < total && total < 0x1p1000)) atomic_add(&counters[0], (i64)1);
  }
}
