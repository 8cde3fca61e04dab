#include "bins_kernels.py"
#include "prelude.cuh"

// Slots that a lane processes together, lanes of a stripe, and how often a lane loads slots before
// it uses the first.
constexpr int TOGETHER = 8, LANES = STRIPE / TOGETHER, IN_FLIGHT = 2;

__device__ inline u64 byte_of(u64 bytes, int k) { return bytes >> 8 * k & 0xFF; }

extern "C" __global__ void __launch_bounds__(1024)
    deal_scores(i64 lo, i64 hi, const i64* unit_stripes, const i64* unit_segments,
                const u32* stripes, const u16* starts, i64 segment_bits, i64 first_stripe,
                i64 num_states, const i64* given, u32* low, u8* high) {
  u32* low_of = dynamic_shared<u32>();
  u8* high_of = (u8*)(low_of + ((i64)1 << segment_bits));
  for (i64 unit = lo + blockIdx.x; unit < hi; unit += gridDim.x) {
    i64 segment = unit_segments[unit] << segment_bits, size = (i64)1 << segment_bits;
    if (segment + size > num_states) size = num_states - segment;
    for (i64 i = threadIdx.x; i < size; i += blockDim.x) {
      i64 brings = load_readonly(&given[segment + i]);
      low_of[i] = (u32)brings;
      high_of[i] = (u8)(brings >> 32 & ((1 << (HELD_BITS - 32)) - 1));
    }
    __syncthreads();
    i64 end = unit_stripes[unit + 1] * LANES;
    for (i64 begin = unit_stripes[unit] * LANES + threadIdx.x; begin < end;
         begin += IN_FLIGHT * blockDim.x) {
      i64 slots[IN_FLIGHT];
      Quad<u16> starts_of[IN_FLIGHT];
#pragma unroll
      for (int j = 0; j < IN_FLIGHT; j++) {
        i64 i = begin + j * blockDim.x;
        if (i >= end) break;
        slots[j] = (i64)load_readonly(&stripes[i / LANES]) * STRIPE + i % LANES * TOGETHER;
        starts_of[j] = load_quad(&starts[slots[j]]);
      }
#pragma unroll
      for (int j = 0; j < IN_FLIGHT; j++) {
        if (begin + j * blockDim.x >= end) break;
        Quad<u32> lows[2];
        u64 highs = 0;
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) {
          u16 start = starts_of[j].of[k];
          lows[k / 4].of[k % 4] = low_of[start];
          highs |= (u64)high_of[start] << 8 * k;
        }
        i64 at = slots[j] - first_stripe * STRIPE;
        *(Quad<u32>*)&low[at] = lows[0];
        *(Quad<u32>*)&low[at + 4] = lows[1];
        *(u64*)&high[at] = highs;
      }
    }
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(1024)
    add_not_held(i64 lo, i64 hi, const i64* unit_stripes, const i64* unit_segments,
                 const u32* stripes, const u16* starts, const u16* ends, const i64* bin_stripes,
                 i64 num_bins, i64 segment_bits, i64 bin_bits, i64 num_states, const i64* given,
                 i64* received) {
  u8* has_rest = dynamic_shared<u8>();
  for (i64 unit = lo + blockIdx.x; unit < hi; unit += gridDim.x) {
    i64 segment = unit_segments[unit] << segment_bits, size = (i64)1 << segment_bits;
    if (segment + size > num_states) size = num_states - segment;
    int any = 0;
    for (i64 i = threadIdx.x; i < size; i += blockDim.x)
      any |= has_rest[i] = load_readonly(&given[segment + i]) >> HELD_BITS ? 1 : 0;
    // Most segments have no such source.
    if (!__syncthreads_or(any)) continue;
    i64 end = unit_stripes[unit + 1] * STRIPE;
    for (i64 i = unit_stripes[unit] * STRIPE + threadIdx.x; i < end; i += blockDim.x) {
      i64 stripe = load_readonly(&stripes[i / STRIPE]), slot = stripe * STRIPE + i % STRIPE;
      u16 start = load_readonly(&starts[slot]), target = load_readonly(&ends[slot]);
      if (!has_rest[start] || target == NO_END) continue;
      i64 bin = row_of_arc(bin_stripes, num_bins, stripe) << bin_bits;
      i64 brings = load_readonly(&given[segment + start]);
      atomic_add(&received[bin + target], brings >> HELD_BITS << HELD_BITS);
    }
    __syncthreads();
  }
}

// Add a part to the sum of a target in shared memory, in two words: no atomic there adds 64 bits.
__device__ inline void add_part(u32* low_sums, u32* high_sums, u16 target, u64 part) {
  if (target == NO_END) return;
  u32 low = (u32)part, high = (u32)(part >> 32);
  // The carry.
  high += atomic_add(&low_sums[target], low) + low < low;
  if (high) atomic_add(&high_sums[target], high);
}

extern "C" __global__ void __launch_bounds__(1024)
    collect_scores(i64 lo, i64 hi, const i64* unit_stripes, const i64* unit_bins, const u16* ends,
                   i64 bin_bits, i64 first_stripe, i64 num_rows, const u32* low, const u8* high,
                   i64* received) {
  u32 *low_sums = dynamic_shared<u32>(), *high_sums = low_sums + ((i64)1 << bin_bits);
  for (i64 unit = lo + blockIdx.x; unit < hi; unit += gridDim.x) {
    i64 base = unit_bins[unit] << bin_bits, size = (i64)1 << bin_bits;
    if (base + size > num_rows) size = num_rows - base;
    for (i64 i = threadIdx.x; i < size; i += blockDim.x) low_sums[i] = high_sums[i] = 0;
    __syncthreads();
    i64 end = unit_stripes[unit + 1] * STRIPE;
    for (i64 slot = unit_stripes[unit] * STRIPE + threadIdx.x * TOGETHER; slot < end;
         slot += blockDim.x * TOGETHER) {
      i64 at = slot - first_stripe * STRIPE;
      Quad<u16> targets = load_quad(&ends[slot]);
      Quad<u32> lows[2] = {load_quad(&low[at]), load_quad(&low[at + 4])};
      u64 highs = load_readonly((const u64*)&high[at]);
      // Arcs of a hub lie side by side: one atomic for a run of equal targets.
      u64 part = 0;
#pragma unroll
      for (int k = 0; k < TOGETHER; k++) {
        if (k && targets.of[k] != targets.of[k - 1]) {
          add_part(low_sums, high_sums, targets.of[k - 1], part);
          part = 0;
        }
        part += lows[k / 4].of[k % 4] | byte_of(highs, k) << 32;
      }
      add_part(low_sums, high_sums, targets.of[TOGETHER - 1], part);
    }
    __syncthreads();
    for (i64 i = threadIdx.x; i < size; i += blockDim.x) {
      i64 sum = (i64)(low_sums[i] | (u64)high_sums[i] << 32);
      if (sum) atomic_add(&received[base + i], sum);
    }
    __syncthreads();
  }
}
