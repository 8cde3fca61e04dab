// Each kernel has one fault that CUDA does not allow; test_emulator.py expects each one.

#include "prelude.cuh"

extern "C" __global__ void read_past_end(i64 lo, i64 hi, const u32* values, u32* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) out[i] = values[i + 1];
}

extern "C" __global__ void write_past_end(i64 lo, i64 hi, const u32* values, u32* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) out[i + 1] = values[i];
}

// Thread t reads what thread blockDim.x - 1 - t wrote.
extern "C" __global__ void miss_barrier(i64 lo, i64 hi, const u32* values, u32* out) {
  __shared__ u32 tile[1024];
  tile[threadIdx.x] = 0;
  __syncthreads();
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    tile[threadIdx.x] = values[i];
    out[i] = tile[blockDim.x - 1 - threadIdx.x];
  }
}

// Lanes do not run in step.
extern "C" __global__ void miss_syncwarp(i64 lo, i64 hi, const u32* values, u32* out) {
  __shared__ u32 tile[1024];
  u32* own = tile + (threadIdx.x & ~31u);
  own[lane_index()] = 0;
  __syncwarp();
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    own[lane_index()] = values[i];
    out[i] = own[31 - lane_index()];
  }
}

extern "C" __global__ void lose_updates(i64 lo, i64 hi, const u32* values, u32* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) out[0] += values[i];
}

extern "C" __global__ void read_unwritten(i64 lo, i64 hi, const u32* values, u32* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    out[i] = out[i] < values[i] ? out[i] : values[i];
}

// A byte has too few values to be recognized as a pattern: two runs with other patterns differ.
extern "C" __global__ void read_unwritten_bytes(i64 lo, i64 hi, const u32* values, u8* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) out[i] = (u8)(out[i] + values[i]);
}

extern "C" __global__ void read_unwritten_shared(i64 lo, i64 hi, const u32* values, u32* out) {
  __shared__ u32 tile[1024];
  u32* dynamic = dynamic_shared<u32>();
  if (values[0]) dynamic[threadIdx.x] = 1;
  __syncthreads();
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    out[i] = values[0] ? tile[threadIdx.x] : dynamic[threadIdx.x];
}

extern "C" __global__ void write_read_only(i64 lo, i64 hi, const u32* values, u32* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    if (load_readonly(&out[i]) > values[i]) atomic_min(&out[i], values[i]);
  }
}

// The last lanes have returned.
extern "C" __global__ void shuffle_with_absent(i64 lo, i64 hi, const u32* values, u32* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) out[i] = warp_sum(values[i]);
}

extern "C" __global__ void part_at_barrier(i64 lo, i64 hi, const u32* values, u32* out) {
  if (lane_index() < 16) __syncthreads();
  __syncwarp();
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) out[i] = values[i];
}

extern "C" __global__ void wait_forever(i64 lo, i64 hi, const u32* values, u32* out) {
  if (thread_index() > 0) return;
  while (!load_relaxed(&values[lo])) __nanosleep(20);
  out[lo] = 1;
}

// Within the memory that the kernel may touch, so only AddressSanitizer detects it; not inline, so
// that the compiler does not know the length of the array.
__device__ __noinline__ u32 load_from(const u32* array, u32 i) { return array[i]; }
extern "C" __global__ void overrun_shared(i64 lo, i64 hi, const u32* values, u32* out) {
  __shared__ u32 tile[64];
  tile[threadIdx.x & 63] = values[lo];
  __syncwarp();
  out[lo] = load_from(tile, 64 + values[lo]);
}

// For UndefinedBehaviorSanitizer.
extern "C" __global__ void shift_too_far(i64 lo, i64 hi, const u32* values, u32* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) out[i] = 1u << values[i];
}
