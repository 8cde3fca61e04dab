#include "arc_bins_kernels.py"
#include "prelude.cuh"

extern "C" __global__ void count_tile_arcs(i64 lo, i64 hi, const i64* indptr, i64 num_rows,
                                           const vertex_t* targets, i64 segment_bits, i64 bin_bits,
                                           i64 num_segments, i64* counts) {
  each_arc_of_rows(lo, hi, indptr, num_rows, [&](i64 row, i64 arc) {
    reserve_of(counts, (row >> bin_bits) * num_segments + (targets[arc] >> segment_bits));
  });
}

extern "C" __global__ void place_in_tiles(i64 lo, i64 hi, const i64* indptr, i64 num_rows,
                                          const vertex_t* targets, i64 segment_bits, i64 bin_bits,
                                          i64 num_segments, const i64* first_stripes, i64* placed,
                                          u16* starts, u16* ends) {
  each_arc_of_rows(lo, hi, indptr, num_rows, [&](i64 row, i64 arc) {
    i64 tile = (row >> bin_bits) * num_segments + (targets[arc] >> segment_bits);
    i64 slot = STRIPE * first_stripes[tile] + reserve_of(placed, tile);
    starts[slot] = (u16)(targets[arc] & (((i64)1 << segment_bits) - 1));
    ends[slot] = (u16)(row & (((i64)1 << bin_bits) - 1));
  });
}

extern "C" __global__ void list_stripes(i64 lo, i64 hi, const i64* listed, i64 num_tiles,
                                        const i64* first_stripes, u32* stripes) {
  each_arc_of_rows(lo, hi, listed, num_tiles, [&](i64 tile, i64 i) {
    stripes[i] = (u32)(first_stripes[tile] + (i - listed[tile]));
  });
}
