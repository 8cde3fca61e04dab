// Barriers and sums over the kernels of ranks that access each other's memory. comm/peer_memory.py
// opens that memory.

#include "prelude.cuh"

// Atomics over the memory of all GPUs.
__device__ inline void atomic_min_system(u32* p, u32 v) { atomicMin_system(p, v); }
__device__ inline void atomic_min_system(i32* p, i32 v) { atomicMin_system(p, v); }
__device__ inline void atomic_min_system(i64* p, i64 v) { atomicMin_system(p, v); }
__device__ inline void atomic_min_system(float* p, float v) {
  atomic_min_system((u32*)p, (u32)__float_as_int(v));
}
__device__ inline void atomic_min_system(double* p, double v) {
  atomic_min_system((i64*)p, __double_as_longlong(v));
}
__device__ inline void atomic_or_system(u32* p, u32 v) { atomicOr_system(p, v); }

constexpr int MAX_RANKS = 8, NUM_SUMS = 4;
// A peer buffer begins with this head and with words written to wake links; the rest is the
// search's.
constexpr i64 HEAD_BYTES = 65536;
struct BufferHead {
  // Written by rank r: its sums above the barrier's number in the low 16 bits; double-buffered.
  i64 received[2][MAX_RANKS][NUM_SUMS];
  // The rest is this rank's alone. Sums of its blocks, above the number of blocks that added.
  i64 sums[2][NUM_SUMS];
  i64 arrived;   // counter of barriers of this rank only
  i64 barriers;  // number of barriers in the launches before
  u32 aborted;   // the first block has seen the abort word
};
static_assert(sizeof(BufferHead) <= HEAD_BYTES,
              "the search's part of a buffer begins after its head");
// Polls of peer memory before a look at the abort word: host memory that all blocks of a rank read
// at once is slower than a rank.
constexpr u32 POLLS_PER_RANK_ABORT_CHECK = 4096;
// What a block keeps of the ranks in shared memory.
struct RankScratch {
  i64 rank, size, peer_buffers[MAX_RANKS];  // addresses of all peer buffers
  i64 sums[32][NUM_SUMS];                   // of each warp
  i64 total[NUM_SUMS], own[NUM_SUMS];  // sums of the last barrier: over all ranks, of this rank
};
// One persistent kernel on every rank. All ranks reach the same barriers, with any number of
// blocks.
struct Ranks {
  RankScratch* here;
  u8* buffer;  // this rank's peer buffer: a kernel argument, known to be global memory
  const u32* abort;
  u32 barriers;
  // By all threads of a block; `table` has rank, size and addresses of peer buffers.
  __device__ Ranks(RankScratch* shared, const i64* table, const u8* own, const u32* abort_word)
      : here(shared), buffer((u8*)own), abort(abort_word) {
    if (threadIdx.x < 2 + MAX_RANKS)
      ((i64*)here)[threadIdx.x] = threadIdx.x < 2 + table[1] ? table[threadIdx.x] : 0;
    __syncthreads();
    barriers = (u32)head(buffer)->barriers;
  }
  __device__ u8* buffer_of(i64 r) const { return global((u8*)here->peer_buffers[r]); }
  // load(r) of every rank r, with all loads in flight together: one over a link takes microseconds.
  template <int MOST, class T, class Load>
  __device__ void from_all(T (&found)[MOST], Load load) const {
#pragma unroll
    for (int r = 0; r < MOST; r++) found[r] = r < here->size ? load(r) : T();
  }
  __device__ BufferHead* head(u8* of) const { return (BufferHead*)of; }

  // Barrier of all threads of all ranks: writes before it, wherever, are visible after it. `mine`
  // of all threads are summed (to less than 2^47) and cleared. False for all threads of a block
  // that saw *abort: other ranks' memory may be gone, and must not be accessed.
  __device__ bool barrier(i64* mine) {
    barriers++;
    sum_warps(mine);
    return __syncthreads_and(threadIdx.x >= 32 || (publish_sums(), await_sums()));
  }
  // Barrier of this rank's blocks only, without a sum.
  __device__ bool sync_blocks() const {
    bool passed = grid_barrier(&head(buffer)->arrived, abort);
    // Blocks that passed go on to a barrier that this block never reaches: abort that too.
    if (!passed && threadIdx.x == 0) store_relaxed(&head(buffer)->aborted, 1u);
    return passed;
  }
  __device__ void sum_warps(i64* mine) {
    for (int k = 0; k < NUM_SUMS; mine[k++] = 0) {
      i64 sum = __any_sync(0xFFFFFFFFu, mine[k] != 0) ? warp_sum(mine[k]) : 0;
      if (lane_index() == 0) here->sums[threadIdx.x >> 5][k] = sum;
    }
    __syncthreads();
  }
  // By the first warp: the sum over this block's threads of the k-th value.
  __device__ i64 block_sum(int k) {
    i64 sum = lane_index() < (int)blockDim.x >> 5 ? here->sums[lane_index()][k] : 0;
    return __any_sync(0xFFFFFFFFu, sum != 0) ? warp_sum(sum) : 0;
  }
  // By the first warp of each block: lane k adds the k-th sum of its block, and 1 in the low bits.
  // The last block publishes the rank's sums to every rank, in words with the barrier's
  // number in the low bits. It clears the other buffer: no block adds to the next barrier's sums
  // yet.
  __device__ void publish_sums() {
    int k = lane_index() % NUM_SUMS;
    i64 own = 0;
    for (int j = 0; j < NUM_SUMS; j++) {
      i64 sum = block_sum(j);
      if (j == k) own = sum;
    }
    if (lane_index() >= NUM_SUMS) return;
    BufferHead* of_rank = head(buffer);
    i64 before = add_ordered(&of_rank->sums[barriers & 1][k], own << 16 | 1);
    if ((before & 0xFFFF) + 1 != gridDim.x) return;
    store_relaxed(&of_rank->sums[~barriers & 1][k], (i64)0);
    fence_system();
    i64 word = ((before >> 16) + own) << 16 | (barriers & 0xFFFF);
    for (i64 r = 0; r < here->size; r++)
      store_relaxed(&head(buffer_of(r))->received[barriers & 1][here->rank][k], word);
  }
  // A rank can be one barrier ahead of blocks that still poll, and not two: the words are
  // double-buffered.
  __device__ bool await_sums() {
    int r = lane_index() / NUM_SUMS, k = lane_index() % NUM_SUMS;
    bool passed = true;
    i64 sum = 0;
    if (r < here->size) {
      const i64* place = &head(buffer)->received[barriers & 1][r][k];
      i64 word = load_acquire_system(place);
      for (u32 polls = 1; passed && (word & 0xFFFF) != (barriers & 0xFFFF); polls++) {
        if (polls % POLLS_PER_RANK_ABORT_CHECK == 0) passed = !aborted();
        pause_waiting();
        word = load_acquire_system(place);
      }
      sum = word >> 16;
      if (r == here->rank) here->own[k] = sum;
    }
    for (int d = NUM_SUMS; d < 32; d *= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, d);
    if (r == 0) here->total[k] = sum;
    return passed;
  }
  __device__ bool aborted() const {
    u32* word = &head(buffer)->aborted;
    if (blockIdx.x == 0 && load_relaxed(abort)) store_relaxed(word, 1u);
    return load_relaxed(word);
  }
  // After the last barrier, by all threads. True for those of the last block, which finds in `own`
  // the sums of `mine` over this rank.
  __device__ bool leave(i64* mine) {
    sum_warps(mine);
    bool last = false;
    if (threadIdx.x < 32) {
      i64 *sums = head(buffer)->sums[~barriers & 1], own[NUM_SUMS];
      for (int k = 0; k < NUM_SUMS; k++) own[k] = block_sum(k);
      if (lane_index() == 0) {
        for (int k = 1; k < NUM_SUMS; k++) atomic_add(&sums[k], own[k]);
        i64 before = add_ordered(&sums[0], own[0] << 16 | 1);
        last = (before & 0xFFFF) + 1 == gridDim.x;
        if (last) {
          here->own[0] = (before >> 16) + own[0];
          store_relaxed(&sums[0], (i64)0);
          for (int k = 1; k < NUM_SUMS; k++) here->own[k] = atomic_exchange(&sums[k], (i64)0);
        }
      }
    }
    if (thread_index() == 0) head(buffer)->barriers = barriers;
    return __syncthreads_or(last);
  }
};

// ---- sources -----------------------------------------------------------------------------------
// At most this many sources are translated to positions by the search itself.
constexpr i64 MAX_SHARED_SOURCES = 64;
// The sources: in `listed`, in host memory, as positions where `are_positions`, else as user ids:
// their positions are written there and to each block's `here`.
struct Sources {
  i64 count, *here, *listed;
  bool are_positions;

  __device__ i64 position(i64 k) const { return are_positions ? listed[k] : here[k]; }
  // Translate the sources. All ranks leave this at one barrier, with links awake, and report it in
  // *found; false after an abort. A user id is in one rank's range, from first_user on, with
  // `positions`, or ids that are positions; the other ranks add 0.
  __device__ bool find(Ranks& ranks, const id_t* positions, i64 first_user, i64 num_users,
                       i64* found) const {
    if (are_positions) return true;
    wake_links(ranks);
    i64 tally[NUM_SUMS] = {}, k = threadIdx.x;
    for (i64 group = 0; group < count; group += NUM_SUMS) {
      bool translates = k < NUM_SUMS && group + k < count, writes = translates && blockIdx.x == 0;
      i64 in_range = writes ? listed[group + k] - first_user : -1;
      if (0 <= in_range && in_range < num_users)
        tally[k] = positions ? (i64)positions[in_range] : first_user + in_range;
      if (!ranks.barrier(tally)) return false;
      if (translates) here[group + k] = ranks.here->total[k];
      if (writes) listed[group + k] = ranks.here->total[k];
    }
    __syncthreads();
    if (thread_index() == 0) {
      fence_system();
      store_relaxed(found, (i64)1);
    }
    return true;
  }
  // Idle links between GPUs sleep, and the first word over a sleeping link takes 0.1 ms. Words that
  // no rank reads, in a range that spans all links, wake all of them at once (BFS of rmat26 after
  // 50 ms idle on two H200: 1.35 ms, and 0.8 ms so).
  static __device__ void wake_links(const Ranks& ranks) {
    i64 first = (sizeof(BufferHead) + 7) / 8 + thread_index();
    for (i64 r = 0; r < ranks.here->size; r++)
      for (i64 i = first; r != ranks.here->rank && i < HEAD_BYTES / 8; i += thread_count())
        store_relaxed((i64*)ranks.buffer_of(r) + i, (i64)0);
  }
};
