// What sweeps share: a thread reads edges of a run of tiles (shard/edge_blocks.py) in rising order.

#include "prelude.cuh"

struct TileReader {
  const i64 *edges, *starts;
  i64 tile, end, start;
  // Begin at the tile among first .. last that holds `edge`.
  __device__ TileReader(const i64* tile_edges, const i64* tile_starts, i64 first, i64 last,
                        i64 edge)
      : edges(tile_edges),
        starts(tile_starts),
        tile(first + row_of_arc(tile_edges + first, last - first, edge)) {
    end = edges[tile + 1];
    start = starts[tile];
  }
  // The first state of an edge's sub-window.
  __device__ i64 start_of(i64 edge) {
    for (; edge >= end; start = starts[tile]) end = edges[++tile + 1];
    return start;
  }
};
// The edges of a unit that this thread's warp reads: 32 consecutive ones at a time, from `begin`.
struct WarpShare {
  i64 begin, end;
  __device__ WarpShare(i64 first, i64 last) {
    i64 warps = blockDim.x >> 5, size = ((last - first + warps - 1) / warps + 31) / 32 * 32;
    begin = first + (threadIdx.x >> 5) * size;
    end = begin + size < last ? begin + size : last;
  }
};
// The arrays of edge blocks: see Blocks in shard/shard.py.
struct Blocks {
  const i64 *unit_tiles, *unit_segments, *tile_edges, *tile_starts;
  const u32* words;
};
// Call visit(unit, start of the sub-window, edge) for every edge of the units lo .. hi; a block
// processes a unit.
template <class Visit>
__device__ inline void visit_edges(i64 lo, i64 hi, const Blocks& blocks, Visit visit) {
  for (i64 unit = lo + blockIdx.x; unit < hi; unit += gridDim.x) {
    i64 first = blocks.unit_tiles[unit], last = blocks.unit_tiles[unit + 1];
    WarpShare share(blocks.tile_edges[first], blocks.tile_edges[last]);
    i64 e = share.begin + lane_index();
    if (e >= share.end) continue;
    TileReader tiles(blocks.tile_edges, blocks.tile_starts, first, last, e);
    for (; e < share.end; e += 32) visit(unit, tiles.start_of(e), e);
  }
}
// Call visit(u, v, w) with the ends and the weight of every edge, and visit(v, u, w) with
// both_ways.
template <class Visit> __device__ inline void visit_ends(i64 lo, i64 hi, const Blocks& blocks,
                                                         const weight_t* weights, const i64* shape,
                                                         Visit visit) {
  i64 segment_bits = shape[0], both_ways = shape[1];
  u32 mask = (u32)(((i64)1 << segment_bits) - 1);
  visit_edges(lo, hi, blocks, [&](i64 unit, i64 start, i64 e) {
    i64 u = start + (blocks.words[e] >> segment_bits),
        v = blocks.unit_segments[unit] + (blocks.words[e] & mask);
    dist_t w = weights ? (dist_t)weights[e] : (dist_t)1;
    visit(u, v, w);
    if (both_ways) visit(v, u, w);
  });
}
