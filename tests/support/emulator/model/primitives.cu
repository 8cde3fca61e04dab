// Every primitive of the model, with a result that NumPy computes too.

#include "prelude.cuh"
#include "ranks.cuh"

// A shuffle of each kind, among parts of a warp too.
extern "C" __global__ void shuffle(i64 lo, i64 hi, const u32* values, i64* out) {
  i64 i = thread_index();
  u32 v = values[i];
  out[8 * i] = __shfl_sync(0xFFFFFFFFu, v, 5);
  out[8 * i + 1] = __shfl_xor_sync(0xFFFFFFFFu, v, 3);
  out[8 * i + 2] = __shfl_up_sync(0xFFFFFFFFu, v, 2);
  out[8 * i + 3] = __shfl_down_sync(0xFFFFFFFFu, v, 2, 8);
  out[8 * i + 4] = (i64)__shfl_sync(0xFFFFFFFFu, (double)v, 1, 4);
  out[8 * i + 5] = warp_sum((i64)v);
  // Halves of a warp by themselves.
  u32 half = lane_index() < 16 ? 0x0000FFFFu : 0xFFFF0000u;
  out[8 * i + 6] = __ballot_sync(half, v & 1);
  out[8 * i + 7] = __any_sync(0xFFFFFFFFu, v == 7) + 2 * __all_sync(0xFFFFFFFFu, v < 1000) +
                   4 * (__activemask() >> lane_index() & 1);
}

struct Words {
  u32 words[16];
};

// Each block sums in shared memory of both kinds, filled by statements of many words, and counts
// votes.
extern "C" __global__ void block_sums(i64 lo, i64 hi, const u32* values, i64* out) {
  __shared__ u32 tile[1024];
  u32* rotated = dynamic_shared<u32>();
  i64 i = thread_index();
  if (threadIdx.x % 16 == 0) *(Words*)&tile[threadIdx.x] = *(const Words*)&values[i];
  __syncthreads();
  rotated[threadIdx.x] = tile[(threadIdx.x + 1) % blockDim.x];
  int odd = __syncthreads_count(values[i] & 1);
  for (u32 half = blockDim.x / 2; half; half /= 2) {
    if (threadIdx.x < half) tile[threadIdx.x] += tile[threadIdx.x + half];
    __syncthreads();
  }
  out[i] = rotated[threadIdx.x] + 1000ll * tile[0] + 1000000000ll * odd;
}

// Rounds with grid barriers: each thread adds its neighbor's value of the round before; the
// neighbor may be in another block.
extern "C" __global__ void rounds(i64 lo, i64 hi, const u32* abort, i64 n, u32* state,
                                  i64* arrived) {
  for (int round = 0; round < 5; round++) {
    u32* from = state + (round & 1) * n;
    u32* to = state + (~round & 1) * n;
    for (i64 i = thread_index(); i < n; i += thread_count()) to[i] = from[i] + from[(i + 1) % n];
    if (!grid_barrier(arrived, abort)) return;
  }
}

// The last block returns early, so that only the abort word ends the others' grid barrier.
extern "C" __global__ void miss_barrier(i64 lo, i64 hi, const u32* abort, u32* passed,
                                        i64* arrived) {
  if (blockIdx.x + 1 == gridDim.x) return;
  bool all_arrived = grid_barrier(arrived, abort);
  if (threadIdx.x == 0) passed[blockIdx.x] = all_arrived;
}

// Rounds in which each rank adds its number to its values and writes them into the next rank's
// buffer; the barriers sum the values of all ranks.
extern "C" __global__ void pass_on(i64 lo, i64 hi, const u32* abort, const i64* peer_buffers,
                                   const u8* buffer, i64 num_rounds, i64* out) {
  __shared__ RankScratch here;
  Ranks ranks(&here, peer_buffers, buffer, abort);
  i64 next = (here.rank + 1) % here.size;
  u32 *own = (u32*)(ranks.buffer + HEAD_BYTES),
      *theirs = (u32*)(ranks.buffer_of(next) + HEAD_BYTES);
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) own[i] = (u32)(i + here.rank);
  i64 mine[NUM_SUMS] = {};
  bool passed = ranks.barrier(mine);
  for (i64 round = 0; passed && round < num_rounds; round++) {
    u32 *from = own + (round & 1) * hi, *to = theirs + (~round & 1) * hi;
    for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
      to[i] = from[i] + (u32)here.rank;
      mine[1] += to[i];
      atomic_min_system(&theirs[2 * hi + i], (u32)(i + 10 * round + here.rank));
    }
    mine[3] = 1;
    passed = ranks.barrier(mine);
    if (passed && thread_index() == 0)
      out[2 * round] = here.total[1], out[2 * round + 1] = here.own[3];
  }
  mine[2] = 1;
  if (!passed) {
    if (thread_index() == 0) out[2 * num_rounds] = 0;
  } else if (ranks.leave(mine)) {  // one block finds all threads counted
    if (threadIdx.x == 0) out[2 * num_rounds] = here.own[2] == thread_count();
  }
}

// Every thread reserves places in one queue, some in a branch; the bits and integers of the model.
extern "C" __global__ void queue_up(i64 lo, i64 hi, const u32* values, i64* count, u32* queue,
                                    u64* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    u32 v = values[i];
    if (v % 3 == 0) queue[reserve(count)] = v;
    u64 wide = (u64)v * 0x9E3779B97F4A7C15ull;
    out[i] = __umul64hi(wide, wide) ^ (u64)__popcll(wide) ^ (u64)__clzll((i64)wide) << 8 ^
             (u64)__ffsll((i64)wide) << 16 ^ (u64)__brev(v) << 24;
  }
}

extern "C" __global__ void update(i64 lo, i64 hi, const u32* values, u32* words, i64* wide,
                                  float* floats) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    u32 v = values[i];
    atomicMin(&words[0], v), atomicMax(&words[1], v), atomicAdd(&words[2], v),
        atomicOr(&words[3], v);
    atomicAnd(&words[4], v | 0xFF00u), atomicXor(&words[5], v), atomicSub(&words[6], v);
    atomicAdd_system(&words[7], 1u);
    atomic_min(&wide[0], -(i64)v), atomic_add(&wide[1], (i64)v);
    atomic_min(&floats[0], (float)v);
    // A lock: compare and swap until it was free.
    while (atomicCAS(&words[8], 0u, 1u)) __nanosleep(20);
    u32 held = load_relaxed(&words[9]);
    store_relaxed(&words[9], held + 1);
    __threadfence();
    atomic_exchange(&words[8], 0u);
  }
}

extern "C" __global__ void wait_for_flag(i64 lo, i64 hi, const u32* flag, const u32* abort,
                                         u32* out) {
  bool waits = true;
  while (waits && !load_relaxed(flag)) waits = !load_relaxed(abort), __nanosleep(20);
  if (thread_index() == 0) out[0] = waits;
}

// Each thread writes a word of its own, then reads it and its neighbor's.
extern "C" __global__ void read_own(i64 lo, i64 hi, const u32* values, u32* words, u32* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    store_relaxed(&words[i], values[i]);
    out[2 * i] = load_stale(&words[i]);
    out[2 * i + 1] = load_stale(&words[(i + 1) % hi]);
  }
}

// The same, with a grid barrier before the reads.
extern "C" __global__ void read_after_barrier(i64 lo, i64 hi, const u32* abort, const u32* values,
                                              u32* words, i64* arrived, u32* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    store_relaxed(&words[i], values[i]);
  if (!grid_barrier(arrived, abort)) return;
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    out[i] = load_stale(&words[(i + 1) % hi]);
}

// The same, where each thread writes its word again after the barrier.
extern "C" __global__ void read_rewritten_after_barrier(i64 lo, i64 hi, const u32* abort,
                                                        const u32* values, u32* words, i64* arrived,
                                                        u32* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    store_relaxed(&words[i], values[i]);
  if (!grid_barrier(arrived, abort)) return;
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    store_relaxed(&words[i], values[i] + 1);
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    out[i] = load_stale(&words[(i + 1) % hi]);
}
