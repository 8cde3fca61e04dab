// Prepended to every .cu file after prelude.cuh: how the kernels of ranks that reach each other's
// memory meet. How the ranks come by that memory is in comm/peers.py.

#include "prelude.cuh"

// Seen whole by other GPUs too: for what their threads change as well.
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

constexpr int MOST_RANKS = 8, NUM_SUMS = 4;
// What a window begins with, and what links are woken by; the rest of it is the search's.
constexpr i64 HEAD_BYTES = 65536;
struct WindowHead {
  i64 came[2][MOST_RANKS]
          [NUM_SUMS];     // written by rank r: what it adds, above the number of the meeting
  i64 sums[2][NUM_SUMS];  // the rest is the owner's alone: what its blocks add, above how many came
  i64 arrived;            // its blocks, where they meet without the other ranks
  i64 meetings;           // how many there were in the launches before
  u32 aborted;            // the first block has seen the abort word
};
static_assert(sizeof(WindowHead) <= HEAD_BYTES,
              "the search's part of a window begins behind its head");
// All blocks of a rank that read host memory at once would wait for it longer than for a rank.
constexpr u32 LOOKS_A_LONG_WAIT = 4096;
// What a block keeps in shared memory of them.
struct RanksHere {
  i64 rank, size, windows[MOST_RANKS];  // where each rank's window is
  i64 sums[32][NUM_SUMS];               // of each warp
  i64 total[NUM_SUMS],
      own[NUM_SUMS];  // what the last meeting added up: over the ranks, and of this one
};
// One fused loop on every rank. All must come to the same meetings, with however many blocks.
struct Ranks {
  RanksHere* here;
  u8* window;  // one's own: the compiler sees where it is
  const u32* abort;
  u32 meetings;
  // All threads of a block together; `table` has rank, size and windows.
  __device__ Ranks(RanksHere* shared, const i64* table, const u8* own, const u32* abort_word)
      : here(shared), window((u8*)own), abort(abort_word) {
    if (threadIdx.x < 2 + MOST_RANKS)
      ((i64*)here)[threadIdx.x] = threadIdx.x < 2 + table[1] ? table[threadIdx.x] : 0;
    __syncthreads();
    meetings = (u32)head(window)->meetings;
  }
  __device__ u8* window_of(i64 r) const { return global((u8*)here->windows[r]); }
  // What load(r) gives of every rank: all under way together, and one load over a link takes
  // microseconds.
  template <int MOST, class T, class Load>
  __device__ void from_all(T (&found)[MOST], Load load) const {
#pragma unroll
    for (int r = 0; r < MOST; r++) found[r] = r < here->size ? load(r) : T();
  }
  __device__ WindowHead* head(u8* of) const { return (WindowHead*)of; }

  // All threads of all ranks meet: what any wrote before, wherever, all see behind. `mine` of all
  // threads are added up (to less than 2^47) and then 0. False for all threads of a block that saw
  // *abort: the memory of others may be gone, and is not to be touched.
  __device__ bool meet(i64* mine) {
    meetings++;
    add_up(mine);
    return __syncthreads_and(threadIdx.x >= 32 || (tell_all(), look_for_all()));
  }
  // The blocks of this rank meet, without the other ranks: nothing is added up.
  __device__ bool meet_here() const {
    bool met = grid_barrier(&head(window)->arrived, abort);
    // Blocks that met go on to a meeting at which this one is missed.
    if (!met && threadIdx.x == 0) store_relaxed(&head(window)->aborted, 1u);
    return met;
  }
  __device__ void add_up(i64* mine) {
    for (int k = 0; k < NUM_SUMS; mine[k++] = 0) {
      i64 sum = __any_sync(0xFFFFFFFFu, mine[k] != 0) ? warp_sum(mine[k]) : 0;
      if (lane_index() == 0) here->sums[threadIdx.x >> 5][k] = sum;
    }
    __syncthreads();
  }
  // By the first warp: what this block's threads have added to the k-th sum.
  __device__ i64 sum_of_block(int k) {
    i64 sum = lane_index() < (int)blockDim.x >> 5 ? here->sums[lane_index()][k] : 0;
    return __any_sync(0xFFFFFFFFu, sum != 0) ? warp_sum(sum) : 0;
  }
  // In the first warp of each block lane k adds the k-th sum of its rank, and itself: whoever is
  // the last tells every rank, in a word that says by its lowest bits to which meeting it belongs.
  // Nobody adds to the next meeting's yet.
  __device__ void tell_all() {
    int k = lane_index() % NUM_SUMS;
    i64 own = 0;
    for (int j = 0; j < NUM_SUMS; j++) {
      i64 sum = sum_of_block(j);
      if (j == k) own = sum;
    }
    if (lane_index() >= NUM_SUMS) return;
    WindowHead* of_rank = head(window);
    i64 before = add_ordered(&of_rank->sums[meetings & 1][k], own << 16 | 1);
    if ((before & 0xFFFF) + 1 != gridDim.x) return;
    store_relaxed(&of_rank->sums[~meetings & 1][k], (i64)0);
    fence_system();
    i64 word = ((before >> 16) + own) << 16 | (meetings & 0xFFFF);
    for (i64 r = 0; r < here->size; r++)
      store_relaxed(&head(window_of(r))->came[meetings & 1][here->rank][k], word);
  }
  // A rank can be one meeting ahead of blocks that have not yet looked, and not two: words of two
  // meetings in turn have places of their own.
  __device__ bool look_for_all() {
    int r = lane_index() / NUM_SUMS, k = lane_index() % NUM_SUMS;
    bool met = true;
    i64 sum = 0;
    if (r < here->size) {
      const i64* place = &head(window)->came[meetings & 1][r][k];
      i64 word = load_acquire_system(place);
      for (u32 looks = 1; met && (word & 0xFFFF) != (meetings & 0xFFFF); looks++) {
        if (looks % LOOKS_A_LONG_WAIT == 0) met = !aborted();
        pause_waiting();
        word = load_acquire_system(place);
      }
      sum = word >> 16;
      if (r == here->rank) here->own[k] = sum;
    }
    for (int d = NUM_SUMS; d < 32; d *= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, d);
    if (r == 0) here->total[k] = sum;
    return met;
  }
  __device__ bool aborted() const {
    u32* word = &head(window)->aborted;
    if (blockIdx.x == 0 && load_relaxed(abort)) store_relaxed(word, 1u);
    return load_relaxed(word);
  }
  // After the last meeting, by all threads. True for those of the block that comes last, which
  // finds added up in `own` what all of this rank had as `mine`.
  __device__ bool leave(i64* mine) {
    add_up(mine);
    bool last = false;
    if (threadIdx.x < 32) {
      i64 *sums = head(window)->sums[~meetings & 1], own[NUM_SUMS];
      for (int k = 0; k < NUM_SUMS; k++) own[k] = sum_of_block(k);
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
    if (thread_index() == 0) head(window)->meetings = meetings;
    return __syncthreads_or(last);
  }
};

// ---- how a search begins ---------------------------------------------------------------------------
// As many sources, at most, are found by the search itself.
constexpr i64 FEW_SOURCES = 64;
// Where sources stand: in `listed`, in host memory, as positions if they are found already, else as
// user ids, which become positions there and in `here`, for each block.
struct Sources {
  i64 count, *here, *listed;
  bool were_found;

  __device__ i64 position(i64 k) const { return were_found ? listed[k] : here[k]; }
  // All ranks leave this together, with links awake, and say so in *found; false as meet() is. A
  // user id is in one rank's range, and the others add nothing to its position: first_user and on,
  // whose positions are given, or are the ids themselves.
  __device__ bool find(Ranks& ranks, const id_t* positions, i64 first_user, i64 num_users,
                       i64* found) const {
    if (were_found) return true;
    wake_links(ranks);
    i64 tally[NUM_SUMS] = {}, k = threadIdx.x;
    for (i64 group = 0; group < count; group += NUM_SUMS) {
      bool asks = k < NUM_SUMS && group + k < count, tells = asks && blockIdx.x == 0;
      i64 in_range = tells ? listed[group + k] - first_user : -1;
      if (0 <= in_range && in_range < num_users)
        tally[k] = positions ? (i64)positions[in_range] : first_user + in_range;
      if (!ranks.meet(tally)) return false;
      if (asks) here[group + k] = ranks.here->total[k];
      if (tells) listed[group + k] = ranks.here->total[k];
    }
    __syncthreads();
    if (thread_index() == 0) {
      fence_system();
      store_relaxed(found, (i64)1);
    }
    return true;
  }
  // Links between GPUs that are idle sleep, each by itself, and the first word over one takes 0.1
  // ms. Words that nobody reads, in a stretch that all links share, wake all at once (BFS of rmat26
  // after 50 ms on two H200: 1.35 ms and 0.8).
  static __device__ void wake_links(const Ranks& ranks) {
    i64 first = (sizeof(WindowHead) + 7) / 8 + thread_index();
    for (i64 r = 0; r < ranks.here->size; r++)
      for (i64 i = first; r != ranks.here->rank && i < HEAD_BYTES / 8; i += thread_count())
        store_relaxed((i64*)ranks.window_of(r) + i, (i64)0);
  }
};
