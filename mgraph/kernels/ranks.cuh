// Prepended to every .cu file after prelude.cuh: how the kernels of ranks that reach each other's memory meet. How the
// ranks come by that memory is in comm/peers.py.

// Seen whole by other GPUs too: for what their threads change as well.
__device__ inline void atomic_min_system(u32* p, u32 v) { atomicMin_system(p, v); }
__device__ inline void atomic_min_system(i32* p, i32 v) { atomicMin_system(p, v); }
__device__ inline void atomic_min_system(i64* p, i64 v) { atomicMin_system(p, v); }
__device__ inline void atomic_min_system(float* p, float v) { atomic_min_system((u32*)p, (u32)__float_as_int(v)); }
__device__ inline void atomic_min_system(double* p, double v) { atomic_min_system((i64*)p, __double_as_longlong(v)); }
__device__ inline void atomic_or_system(u32* p, u32 v) { atomicOr_system(p, v); }
__device__ inline void atomic_and_system(u32* p, u32 v) { atomicAnd_system(p, v); }

constexpr int MOST_RANKS = 8, NUM_SUMS = 4;
// What a window begins with, and what links are woken by; the rest of it is the search's.
constexpr i64 HEAD_BYTES = 65536;
struct WindowHead {
  u64 came[2][MOST_RANKS][NUM_SUMS];  // written by rank r: what it adds, above the number of the meeting
  i64 sums[NUM_SUMS];                 // the rest is the owner's alone: what its blocks add
  i64 arrived;                        // its blocks, in this launch
  i64 meetings;                       // how many there were in the launches before
  u32 aborted;                        // the first block has seen the abort word
};
static_assert(sizeof(WindowHead) <= HEAD_BYTES, "the search's part of a window begins behind its head");
// All blocks of a rank that read host memory at once would wait for it longer than for a rank.
constexpr u32 LOOKS_A_LONG_WAIT = 4096;
// What a block keeps in shared memory of them.
struct RanksHere {
  i64 rank, size, windows[MOST_RANKS];  // where each rank's window is
  i64 sums[NUM_SUMS];
  i64 total[NUM_SUMS], own[NUM_SUMS];  // what the last meeting added up: over the ranks, and of this one
};
// One fused loop on every rank. All must come to the same meetings, with however many blocks.
struct Ranks {
  RanksHere* here;
  u8* window;  // one's own: the compiler sees where it is
  const u32* abort;
  u32 meetings, met_before;
  // All threads of a block together; `table` has rank, size and windows.
  __device__ Ranks(RanksHere* shared, const i64* table, const u8* own, const u32* abort_word)
      : here(shared), window((u8*)own), abort(abort_word) {
    if (threadIdx.x < 2 + MOST_RANKS) ((i64*)here)[threadIdx.x] = threadIdx.x < 2 + table[1] ? table[threadIdx.x] : 0;
    if (threadIdx.x < NUM_SUMS) here->sums[threadIdx.x] = 0;
    __syncthreads();
    meetings = met_before = (u32)head(window)->meetings;
  }
  // Links between GPUs that are idle sleep, each by itself, and the first word over one takes 0.1 ms. Words that nobody
  // reads, in a stretch that all links share, wake all at once (BFS of rmat26 after 50 ms on two H200: 1.35 ms and
  // 0.8).
  __device__ void wake_links() const {
    i64 first = (sizeof(WindowHead) + 7) / 8 + thread_index();
    for (i64 r = 0; r < here->size; r++)
      for (i64 i = first; r != here->rank && i < HEAD_BYTES / 8; i += thread_count())
        store_relaxed((i64*)window_of(r) + i, (i64)0);
  }
  __device__ u8* window_of(i64 r) const {
    u8* found = (u8*)here->windows[r];
#ifdef __CUDACC__
    __builtin_assume(__isGlobal(found));
#endif
    return found;
  }
  // What load(r) gives of every rank: all under way together, and one load over a link takes microseconds.
  template <class T, class Load> __device__ void from_all(T (&found)[MOST_RANKS], Load load) const {
#pragma unroll
    for (int r = 0; r < MOST_RANKS; r++) found[r] = r < here->size ? load(r) : T();
  }
  __device__ WindowHead* head(u8* of) const { return (WindowHead*)of; }

  // All threads of all ranks meet: what any wrote before, wherever, all see behind. `mine` of all threads are added up
  // (to less than 2^48) and then 0. False for all threads of a block that saw *abort: the memory of others may be gone,
  // and is not to be touched.
  __device__ bool meet(i64* mine) {
    meetings++;
    for (int k = 0; k < NUM_SUMS; mine[k++] = 0)
      if (__any_sync(0xFFFFFFFFu, mine[k] != 0)) warp_add(&here->sums[k], mine[k]);
    __syncthreads();
    return __syncthreads_and(threadIdx.x >= 32 || (tell_all(), look_for_all()));
  }
  // The first warp of the last block of a rank tells every rank; a word of it carries a sum and says by its lowest bits
  // to which meeting it belongs.
  __device__ void tell_all() {
    int r = lane_index() / NUM_SUMS, k = lane_index() % NUM_SUMS;
    WindowHead* own = head(window);
    if (r == 0 && here->sums[k]) atomic_add(&own->sums[k], here->sums[k]), here->sums[k] = 0;
    __syncwarp();
    i64 before = lane_index() == 0 ? add_ordered(&own->arrived, (i64)1) : 0;
    if (__shfl_sync(0xFFFFFFFFu, before, 0) + 1 != (i64)gridDim.x * (meetings - met_before)) return;
    fence_system();
    i64 sum = r == 0 ? atomic_exchange(&own->sums[k], (i64)0) : 0;
    u64 word = (u64)__shfl_sync(0xFFFFFFFFu, sum, k) << 16 | (meetings & 0xFFFF);
    if (r < here->size) store_relaxed(&head(window_of(r))->came[meetings & 1][here->rank][k], word);
  }
  // A rank can be one meeting ahead of blocks that have not yet looked, and not two: words of two meetings in turn have
  // places of their own.
  __device__ bool look_for_all() {
    int r = lane_index() / NUM_SUMS, k = lane_index() % NUM_SUMS;
    bool met = true;
    i64 sum = 0;
    if (r < here->size) {
      const u64* place = &head(window)->came[meetings & 1][r][k];
      u64 word = load_relaxed(place);
      for (u32 looks = 1; met && (word & 0xFFFF) != (meetings & 0xFFFF); looks++) {
        if (looks % LOOKS_A_LONG_WAIT == 0) met = !aborted();
        pause_waiting();
        word = load_relaxed(place);
      }
      sum = (i64)(word >> 16);
      if (r == here->rank) here->own[k] = sum;
    }
    fence_system();
    for (int d = NUM_SUMS; d < 32; d *= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, d);
    if (r == 0) here->total[k] = sum;
    return met;
  }
  __device__ bool aborted() const {
    u32* word = &head(window)->aborted;
    if (blockIdx.x == 0 && load_relaxed(abort)) store_relaxed(word, 1u);
    return load_relaxed(word);
  }
  // After the last meeting, by all threads.
  __device__ void leave() const {
    if (thread_index() == 0) head(window)->meetings = meetings, head(window)->arrived = 0;
  }
};
