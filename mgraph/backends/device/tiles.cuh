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
// Call visit(unit, start of the sub-window, edge) for every edge of the units lo .. hi; a block
// processes a unit.
template <class Visit> __device__ inline void visit_edges(i64 lo, i64 hi, const i64* unit_tiles,
                                                          const i64* tile_edges,
                                                          const i64* tile_starts, Visit visit) {
  for (i64 unit = lo + blockIdx.x; unit < hi; unit += gridDim.x) {
    i64 first = unit_tiles[unit], last = unit_tiles[unit + 1];
    WarpShare share(tile_edges[first], tile_edges[last]);
    i64 e = share.begin + lane_index();
    if (e >= share.end) continue;
    TileReader tiles(tile_edges, tile_starts, first, last, e);
    for (; e < share.end; e += 32) visit(unit, tiles.start_of(e), e);
  }
}
