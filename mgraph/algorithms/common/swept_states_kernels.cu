#include "prelude.cuh"

// A type of a state that lanes can exchange: shuffles do not move bytes.
template <class T> struct Exchanged {
  using type = T;
};
template <> struct Exchanged<u8> {
  using type = u32;
};

// A warp scans a segment twice, the second time from cache.
extern "C" __global__ void find_extremes(i64 lo, i64 hi, i64 segment_bits, const dist_t* states,
                                         const dist_t* before, dist_t* lowest, dist_t* highest) {
  using State = Exchanged<dist_t>::type;
  i64 length = (i64)1 << segment_bits;
  for (i64 segment = lo + warp_index(); segment < hi; segment += warp_count()) {
    i64 first = segment << segment_bits;
    State most = states[first];
    for (i64 i = lane_index(); i < length; i += 32)
      if (most < states[first + i]) most = states[first + i];
    for (int d = 16; d; d >>= 1) {
      State other = __shfl_xor_sync(0xFFFFFFFFu, most, d);
      if (most < other) most = other;
    }
    State least = lowest[segment];
    // All lanes have read it: lane 0 writes it below.
    __syncwarp();
    for (i64 i = lane_index(); i < length; i += 32)
      if (states[first + i] != before[first + i] && states[first + i] < least)
        least = states[first + i];
    least = warp_min(least);
    if (lane_index() == 0) {
      lowest[segment] = (dist_t)least;
      highest[segment] = (dist_t)most;
    }
  }
}
