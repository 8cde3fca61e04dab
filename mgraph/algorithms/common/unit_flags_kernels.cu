#include "prelude.cuh"
#include "tiles.cuh"

extern "C" __global__ void gather_lowered(i64 lo, i64 hi, i64 num_states, const dist_t* limit,
                                          const dist_t* dist, const u32* lowered, u32* pending,
                                          dist_t* least, i64* counters) {
  const dist_t top = top_of<dist_t>::value();
  dist_t nearest = top;
  i64 count = 0;
  // A warp reads 32 words, of which each lane holds one.
  for (i64 words = lo + 32 * warp_index(); words < hi; words += 32 * warp_count()) {
    i64 word = words + lane_index();
    u32 before = word < hi ? pending[word] : 0, fallen = word < hi ? lowered[word] : 0, added = 0;
    if (!__any_sync(0xFFFFFFFFu, before | fallen)) continue;
#pragma unroll 8
    for (int lane = 0; lane < 32; lane++) {
      i64 state = ((words + lane) << 5) + lane_index();
      bool is_old = __shfl_sync(0xFFFFFFFFu, before, lane) >> lane_index() & 1;
      bool is_new = __shfl_sync(0xFFFFFFFFu, fallen, lane) >> lane_index() & 1;
      dist_t own = (is_old || is_new) && state < num_states ? dist[state] : top;
      is_new = is_new && own <= limit[0] && own != top;
      u32 found = __ballot_sync(0xFFFFFFFFu, is_new);
      if ((is_old || is_new) && own < nearest) nearest = own;
      if (lane == lane_index()) added = found;
    }
    if (word < hi) pending[word] = before | added;
    count += __popc(added);
  }
  nearest = warp_min(nearest);
  if (lane_index() == 0) lower(&least[0], nearest);
  warp_add(&counters[0], count);
}

extern "C" __global__ void mark_states(i64 lo, i64 hi, i64 num_states, const dist_t* bound,
                                       const i64* shape, const u32* active, const dist_t* dist,
                                       u64* marks, u8* segments, u8* windows) {
  // A warp marks 32 words, of which each lane holds one.
  for (i64 words = lo + 32 * warp_index(); words < hi; words += 32 * warp_count()) {
    i64 word = words + lane_index();
    u32 bits = word < hi ? active[word] : 0, is_open = 0;
#pragma unroll 8
    for (int lane = 0; lane < 32; lane++) {
      i64 state = ((words + lane) << 5) + lane_index();
      u32 found = __ballot_sync(0xFFFFFFFFu,
                                words + lane < hi && state < num_states && dist[state] > bound[0]);
      if (lane == lane_index()) is_open = found;
    }
    if (word < hi) marks[word] = (u64)bits << 32 | is_open;
    raise_flags(segments, (word << 5) >> shape[3], bits, is_open);
    raise_flags(windows, (word << 5) >> shape[4], bits, is_open);
  }
}

extern "C" __global__ void mark_units(i64 lo, i64 hi, const i64* unit_tiles,
                                      const i64* unit_segments, const i64* tile_edges,
                                      const i64* tile_starts, const i64* shape, const u8* segments,
                                      const u8* windows, u8* is_read, i64* counters) {
  i64 edges = 0;
  for (i64 unit = lo + thread_index(); unit < hi; unit += thread_count()) {
    i64 first = unit_tiles[unit];
    const u8* segment = segments + 2 * (unit_segments[unit] >> shape[3]);
    const u8* window = windows + 2 * (tile_starts[first] >> shape[4]);
    if (!((shape[0] && segment[0] && window[1]) || (segment[1] && window[0]))) is_read[unit] = 0;
    if (is_read[unit]) edges += tile_edges[unit_tiles[unit + 1]] - tile_edges[first];
  }
  warp_add(&counters[0], edges);
}
