// Integer types, sentinels, atomics, cache hints, warp helpers, barriers. A .cu file uses these
// only: no system header, no inline PTX, no bare `extern __shared__`. The typedefs of the module
// (TYPEDEFS in backends/kernel.py) precede this text.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

// clang-format off: a table
// ---- sentinels ----------------------------------------------------------------------------------
template <class T> struct top_of;  // largest value: "no vertex", "not reached"
template <> struct top_of<u8> { static __device__ constexpr u8 value() { return 255; } };
template <> struct top_of<u16> {  // infinity, as a float of 16 bits
  static __device__ constexpr u16 value() { return 0x7C00; }
};
template <> struct top_of<u32> { static __device__ constexpr u32 value() { return 0xFFFFFFFFu; } };
template <> struct top_of<i32> { static __device__ constexpr i32 value() { return 0x7FFFFFFF; } };
template <> struct top_of<i64> {
  static __device__ constexpr i64 value() { return 0x7FFFFFFFFFFFFFFFll; }
};
template <> struct top_of<float> {
  static __device__ float value() { return __int_as_float(0x7F800000); }
};
template <> struct top_of<double> {
  static __device__ double value() { return __longlong_as_double(0x7FF0000000000000ll); }
};

template <class T> struct is_float { static constexpr bool value = false; };
template <> struct is_float<float> { static constexpr bool value = true; };
template <> struct is_float<double> { static constexpr bool value = true; };

template <class T> struct wide_of { typedef T type; };  // at least 32 bits, as most atomics need
template <> struct wide_of<u16> { typedef u32 type; };

// clang-format on
// ---- indices of a thread ------------------------------------------------------------------------
__device__ inline i64 thread_index() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline i64 thread_count() { return (i64)gridDim.x * blockDim.x; }
__device__ inline i64 warp_index() { return thread_index() >> 5; }
__device__ inline i64 warp_count() { return thread_count() >> 5; }
__device__ inline int lane_index() { return threadIdx.x & 31; }
// How many lanes before this one are in a mask.
__device__ inline u32 lanes_before(u32 mask) { return __popc(mask & ((1u << lane_index()) - 1)); }

// ---- memory ------------------------------------------------------------------------------------
// Relaxed access to what other threads of the same launch write.
template <class T> __device__ inline T load_relaxed(const T* p) { return *(const volatile T*)p; }
template <class T> __device__ inline void store_relaxed(T* p, T v) { *(volatile T*)p = v; }
// A plain load of what other threads of the same launch write: the value that the nearest cache
// has, which may be any since the last barrier, or since before the launch. Only where each of
// these is correct; a word that all threads read is several times faster than from L2.
template <class T> __device__ inline T load_stale(const T* p) {
#ifdef __CUDACC__
  return *p;
#else  // tests/emulator returns a stale value now and then
  return __ldca(p);
#endif
}
// The read-only path: only for what no thread of this launch writes.
template <class T> __device__ inline T load_readonly(const T* p) { return __ldg(p); }

// A pointer to memory of the device, where the compiler does not see that it is one.
template <class T> __device__ inline T* global(T* p) {
#ifdef __CUDACC__
  __builtin_assume(__isGlobal(p));
#endif
  return p;
}

// 16 bytes by one load from the read-only path; p is aligned to them.
template <class T> struct alignas(16) Quad {
  static constexpr int size = 16 / sizeof(T);
  T of[size];
};
template <class T> __device__ inline Quad<T> load_quad(const T* p) {
#ifdef __CUDACC__
  union {
    uint4 words;
    Quad<T> quad;
  } loaded = {__ldg((const uint4*)p)};
  return loaded.quad;
#else
  return __ldg((const Quad<T>*)p);
#endif
}

template <class T> __device__ inline T* dynamic_shared() {
#ifdef __CUDACC__  // tests/emulator supplies the name
  extern __shared__ double dynamic_shared_bytes[];
#endif
  return (T*)dynamic_shared_bytes;
}

#ifdef __CUDACC__  // tests/emulator supplies these
// A clock in nanoseconds that all blocks share; its resolution may be a microsecond.
__device__ inline i64 clock_ns() {
  i64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
// Between two polls of a waiting thread: nothing.
__device__ inline void pause_waiting() {}
// Prefetch the line at p into L2.
__device__ inline void prefetch(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}
// A fence over all GPUs between accesses before and after it, of this thread and of those it
// synchronised with.
__device__ inline void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
// Add, ordered after all earlier writes of this thread and of those it synchronised with, and
// before their later accesses; load, ordered before later accesses.
__device__ inline i64 add_ordered(i64* p, i64 v) {
  i64 old;
  asm volatile("atom.add.acq_rel.gpu.u64 %0, [%1], %2;" : "=l"(old) : "l"(p), "l"(v) : "memory");
  return old;
}
__device__ inline i64 load_acquire(const i64* p) {
  i64 v;
  asm volatile("ld.acquire.gpu.s64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
// The same for writes of another GPU; half the time of a load and a fence.
__device__ inline i64 load_acquire_system(const i64* p) {
  i64 v;
  asm volatile("ld.acquire.sys.s64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
#endif

// ---- atomics: relaxed, returning the old value -------------------------------------------------
// In global memory, in an array that contains the whole aligned pair, with both values at most
// infinity: up to there the numbers order as 16-bit floats, and devices compute minima of pairs of
// these.
__device__ inline u16 atomic_min(u16* p, u16 v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  u32 *both = (u32*)((u64)p & ~3ull), shift = ((u64)p & 2) * 8, top = top_of<u16>::value();
  u32 old, word = (u32)v << shift | top << (16 - shift);
  asm volatile(
      "{.reg .b16 a, b; mov.b32 {a, b}, %2; atom.global.min.noftz.v2.f16 {a, b}, [%1], {a, b}; "
      "mov.b32 %0, {a, b};}"
      : "=r"(old)
      : "l"(both), "r"(word));
  return (u16)(old >> shift);
#else
  u16 seen = load_relaxed(p), before = seen;
  while (v < seen && (before = atomicCAS(p, seen, v)) != seen) seen = before;
  return seen;
#endif
}
__device__ inline u32 atomic_min(u32* p, u32 v) { return atomicMin(p, v); }
__device__ inline i32 atomic_min(i32* p, i32 v) { return atomicMin(p, v); }
__device__ inline i64 atomic_min(i64* p, i64 v) { return atomicMin(p, v); }
// Non-negative floats order as their bits do.
__device__ inline float atomic_min(float* p, float v) {
  return __int_as_float(atomicMin((int*)p, __float_as_int(v)));
}
__device__ inline double atomic_min(double* p, double v) {
  return __longlong_as_double(atomicMin((i64*)p, __double_as_longlong(v)));
}
__device__ inline u32 atomic_add(u32* p, u32 v) { return atomicAdd(p, v); }
__device__ inline i32 atomic_add(i32* p, i32 v) { return atomicAdd(p, v); }
__device__ inline i64 atomic_add(i64* p, i64 v) { return (i64)atomicAdd((u64*)p, (u64)v); }
__device__ inline u32 atomic_or(u32* p, u32 v) { return atomicOr(p, v); }
__device__ inline i64 atomic_or(i64* p, i64 v) { return (i64)atomicOr((u64*)p, (u64)v); }
__device__ inline u32 atomic_and(u32* p, u32 v) { return atomicAnd(p, v); }
__device__ inline u32 atomic_exchange(u32* p, u32 v) { return atomicExch(p, v); }
__device__ inline i64 atomic_exchange(i64* p, i64 v) { return (i64)atomicExch((u64*)p, (u64)v); }
// Lower *p; false where it is as small already. Most values fail at the load and leave the address
// alone.
template <class T> __device__ inline bool lower(T* p, T to) {
  return to < load_relaxed(p) && to < atomic_min(p, to);
}

// ---- warps -------------------------------------------------------------------------------------
template <class T> __device__ inline T warp_sum(T v) {
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xFFFFFFFFu, v, d);
  return v;
}
template <class T> __device__ inline T warp_min(T v) {
  for (int d = 16; d; d >>= 1) {
    T other = __shfl_xor_sync(0xFFFFFFFFu, v, d);
    if (other < v) v = other;
  }
  return v;
}
// Add a count of each thread; by a whole converged warp, with one atomic.
__device__ inline void warp_add(i64* p, i64 v) {
  v = (i64)warp_sum((u64)v);
  if (lane_index() == 0 && v) atomic_add(p, v);
}
// Inclusive prefix sum over the lanes of a warp.
template <class T> __device__ inline T scan_warp(T v) {
  for (int d = 1; d < 32; d <<= 1) {
    T other = __shfl_up_sync(0xFFFFFFFFu, v, d);
    if (lane_index() >= d) v += other;
  }
  return v;
}
// Prefix sums of the lanes' counts, which divide items 0 .. total.
struct WarpScan {
  u32 before, total;
  __device__ inline WarpScan(u32 mine) {
    u32 sum = scan_warp(mine);
    before = sum - mine;
    total = __shfl_sync(0xFFFFFFFFu, sum, 31);
  }
  // The lane with item i in its share.
  __device__ inline int owner(u32 i) const {
    int lane = 0;
    for (int step = 16; step; step >>= 1)
      if (__shfl_sync(0xFFFFFFFFu, before, lane + step) <= i) lane += step;
    return lane;
  }
};
// Reserve a slot of a queue for each calling thread, in divergent code too: one atomic for the
// active lanes. Inlined, since threads that call it elsewhere, for another queue, must not join
// them.
__device__ __forceinline__ i64 reserve(i64* count) {
  unsigned mask = __activemask();
  int lane = lane_index(), leader = __ffs(mask) - 1;
  i64 base = 0;
  if (lane == leader) base = atomic_add(count, (i64)__popc(mask));
  base = __shfl_sync(mask, base, leader);
  return base + lanes_before(mask);
}
// The same for different queues: one atomic for the lanes that reserve in one queue.
__device__ __forceinline__ i64 reserve_of(i64* counts, i64 which) {
  unsigned same = __match_any_sync(__activemask(), which);
  int lane = lane_index(), leader = __ffs(same) - 1;
  i64 base = 0;
  if (lane == leader) base = atomic_add(&counts[which], (i64)__popc(same));
  base = __shfl_sync(same, base, leader);
  return base + lanes_before(same);
}

// ---- what kernels share with numba_helpers.py --------------------------------------------------
__device__ inline bool test_bit(const u32* bits, i64 i) { return (bits[i >> 5] >> (i & 31)) & 1u; }
__device__ inline bool set_bit(u32* bits, i64 i) {
  u32 mask = 1u << (i & 31);
  return (atomic_or(&bits[i >> 5], mask) & mask) == 0;
}
__device__ inline void clear_bit(u32* bits, i64 i) { atomic_and(&bits[i >> 5], ~(1u << (i & 31))); }
// The number of set bits before bit i, from counts `before` each word.
template <class T> __device__ inline i64 ones_before(const u32* bits, const T* before, i64 i) {
  return (i64)before[i >> 5] + __popc(bits[i >> 5] & ((1u << (i & 31)) - 1));
}
// The row that holds an arc: the last with an offset not above it.
__device__ inline i64 row_of_arc(const i64* offsets, i64 num_rows, i64 arc) {
  i64 lo = 0, hi = num_rows;
  while (hi - lo > 1) {
    i64 middle = (lo + hi) >> 1;
    if (offsets[middle] <= arc)
      lo = middle;
    else
      hi = middle;
  }
  return lo;
}
// A tile of arcs that a block processes: the rows at its ends are located once, and an arc's own
// row is searched between them. By all threads of a block.
struct ArcTile {
  const i64* offsets;
  i64 first, count;
  __device__ inline ArcTile(const i64* all_offsets, i64 num_rows, i64 begin, i64 end) {
    __shared__ i64 ends[2];
    __syncthreads();  // all have read the ends of the previous tile
    if (threadIdx.x < 2)
      ends[threadIdx.x] = row_of_arc(all_offsets, num_rows, threadIdx.x ? end - 1 : begin);
    __syncthreads();
    offsets = all_offsets;
    first = ends[0];
    count = ends[1] - ends[0] + 1;
  }
  __device__ inline i64 row_of(i64 arc) const {
    return first + row_of_arc(offsets + first, count, arc);
  }
  // Arcs of a tile: few enough that every block has one, up to eight per thread.
  static __device__ inline i64 length(i64 num_arcs) {
    i64 each = num_arcs / thread_count();
    return blockDim.x * (each < 1 ? 1 : each > 8 ? 8 : each);
  }
};
// Call visit(row, arc) for the arcs lo .. hi of a list of rows, in tiles, by whole blocks.
template <class Visit> __device__ inline void each_arc_of_rows(i64 lo, i64 hi, const i64* offsets,
                                                               i64 num_rows, Visit visit) {
  i64 length = ArcTile::length(hi - lo);
  for (i64 begin = lo + blockIdx.x * length; begin < hi; begin += gridDim.x * length) {
    i64 end = begin + length < hi ? begin + length : hi;
    ArcTile tile(offsets, num_rows, begin, end);
    for (i64 arc = begin + threadIdx.x; arc < end; arc += blockDim.x) visit(tile.row_of(arc), arc);
  }
}
__device__ inline vertex_t position_of(vertex_t state, i64 stride, i64 multiplier) {
  if (multiplier == 1) return state;
  // In the width of a vertex: a 64-bit division takes several times as long as a 32-bit one.
  vertex_t owner = state / (vertex_t)stride;
  return (state - owner * (vertex_t)stride) * (vertex_t)multiplier + owner;
}
__device__ inline i64 state_of(i64 position, i64 stride, i64 multiplier) {
  if (multiplier == 1) return position;
  vertex_t local = (vertex_t)position / (vertex_t)multiplier;
  return (i64)((vertex_t)position - local * (vertex_t)multiplier) * stride + local;
}

// An integer that orders as the weight does, of 32 bits where the weight has no more.
template <class T> __device__ inline i64 weight_sort_key(T w) { return (i64)w; }
__device__ inline i64 weight_sort_key(u32 w) { return (i64)w - 0x80000000ll; }
__device__ inline i64 weight_sort_key(float w) {
  i32 bits = __float_as_int(w);
  return bits >= 0 ? bits : bits ^ 0x7FFFFFFF;
}
__device__ inline i64 weight_sort_key(double w) {
  i64 bits = __double_as_longlong(w);
  return bits >= 0 ? bits : bits ^ 0x7FFFFFFFFFFFFFFFll;
}

// Weights in 256 classes, heavier ones in higher classes: class c ends at edge c + 1, the last has
// no end.
constexpr int WEIGHT_CLASSES = 256;
template <class T> __device__ inline int class_of(T weight, double scale) {
  double x = (double)weight * scale;
  return x < WEIGHT_CLASSES - 1 ? (int)x : WEIGHT_CLASSES - 1;
}
// The edge after the class of the weight `weight`.
template <class T> __device__ inline double class_edge(T weight, double scale) {
  int last = class_of(weight, scale);
  return last < WEIGHT_CLASSES - 1 ? last + 1 : top_of<double>::value();
}
// Row begin .. end has the lightest arcs begin >> LIGHTEST_BITS .. end >> LIGHTEST_BITS, kept by
// class (shard/lightest_arcs.py); none where these are equal.
constexpr int LIGHTEST_BITS = 2;
__device__ inline i64 lightest_begin(i64 row_begin) { return row_begin >> LIGHTEST_BITS; }
// The end of the arcs below an edge, of arcs by class; exponential search from their beginning,
// where one access loads many weights.
template <class T>
__device__ inline i64 light_end(const T* weights, i64 begin, i64 end, double scale, double edge) {
  if (edge == top_of<double>::value()) return end;
  i64 at = begin;
  for (i64 step = 1; at < end && (double)weights[at] * scale < edge; step <<= 1) {
    begin = at + 1;
    at += step;
  }
  if (at < end) end = at;
  while (begin < end) {
    i64 middle = (begin + end) >> 1;
    if ((double)weights[middle] * scale < edge)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}
// The same of many arcs, by a whole warp.
template <class T> __device__ inline i64 light_end_by_warp(const T* weights, i64 begin, i64 end,
                                                           double scale, double edge) {
  while (begin < end) {
    i64 step = (end - begin + 31) / 32, at = begin + (lane_index() + 1) * step - 1;
    begin += __popc(__ballot_sync(
                 0xFFFFFFFFu, at < end && (double)weights[at < end ? at : begin] * scale < edge)) *
             step;
    if (begin + step - 1 < end) end = begin + step - 1;
  }
  return begin;
}

// ---- random numbers: the twins of generate/hashing.py, in plain C++ ----------------------------
constexpr u64 GOLDEN = 0x9E3779B97F4A7C15ull;
// splitmix64's hash, a bijection on 64 bits.
__device__ inline u64 mix(u64 z) {
  z += GOLDEN;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
// The upper 64 bits of the product: a random a becomes a number below b.
__device__ inline u64 multiply_high(u64 a, u64 b) {
  u64 a_low = (u32)a, a_high = a >> 32, b_low = (u32)b, b_high = b >> 32;
  u64 middle = a_high * b_low + (a_low * b_low >> 32);
  return a_high * b_high + (middle >> 32) + (((u64)(u32)middle + a_low * b_high) >> 32);
}
__device__ inline u64 permutation_key(u64 seed, u64 i) { return mix(seed * 4 + i + 0x5EED) | 1; }
// A bijection on `scale` bits: odd factors and xor-shifts can be undone.
__device__ inline u64 scrambled(u64 x, u64 scale, u64 k0, u64 k1, u64 k2, u64 k3) {
  u64 mask = (1ull << scale) - 1, shift = scale >> 1 ? scale >> 1 : 1;
  x = (x * k0) & mask;
  x = ((x ^ (x >> shift)) + (k3 >> 7)) & mask;
  x = (x * k1) & mask;
  x = ((x ^ (x >> shift)) + (k2 >> 7)) & mask;
  x = (x * k2) & mask;
  x = ((x ^ (x >> shift)) + (k1 >> 7)) & mask;
  x = (x * k3) & mask;
  return ((x ^ (x >> shift)) + (k0 >> 7)) & mask;
}
__device__ inline u64 weight_key(u64 seed) { return mix(seed + 99); }
// The weight 1..max_weight of the edge (a, b); for undirected edges a <= b.
__device__ inline u64 edge_weight(u64 key, u64 a, u64 b, u64 max_weight) {
  return mix(key ^ mix((a << 32 | a >> 32) ^ b)) % max_weight + 1;
}

// ---- waits -------------------------------------------------------------------------------------
// Polls before a look at the abort word, which is in host memory: reading it takes longer than most
// waits.
constexpr u32 POLLS_PER_ABORT_CHECK = 256;
// After this many polls a wait pauses between two: polls in quick succession slow down the threads
// that still work (a round of shortest paths at scale 22 on an H200: 19 ms, and 0.8 ms with
// pauses).
constexpr u32 QUICK_POLLS = 64;
// Barrier of all threads of a grid: its blocks must all be resident. False for all threads of a
// block that saw *abort. Each barrier adds 2^62 to *arrived, which shows that all blocks have
// arrived; it is 0 before the first barrier, and keeps its value between launches, unless one was
// aborted. One thread of each block calls then() before the rest of its block continues: a word
// that all blocks need is read once per block.
template <class Then>
__device__ inline bool grid_barrier(i64* arrived, const u32* abort, Then then) {
  __syncthreads();
  bool passed = true;
  if (threadIdx.x == 0) {
    constexpr u64 round = 1ull << 62;
    u64 own = blockIdx.x ? 1 : round - gridDim.x + 1, before = (u64)add_ordered(arrived, (i64)own),
        now = before + own;
    for (u32 polls = 1; passed && !((before ^ now) & round); polls++) {
      if (polls % POLLS_PER_ABORT_CHECK == 0) passed = !load_relaxed(abort);
      // Blocks that poll without pause slow those that still work tenfold and more, where work is
      // uneven.
      if (polls < QUICK_POLLS)
        pause_waiting();
      else
        __nanosleep(1000);
      now = (u64)load_acquire(arrived);
    }
    then();
  }
  return __syncthreads_and(passed);
}
__device__ inline bool grid_barrier(i64* arrived, const u32* abort) {
  return grid_barrier(arrived, abort, []() {});
}
