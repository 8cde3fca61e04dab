// The CUDA model on the CPU: what a .cu file of mgraph may use, so that g++ compiles the same text
// as NVRTC.
//
// A module is this header, then the text that NVRTC gets (typedefs, prelude.cuh, the .cu file), in
// a namespace without a name, then one wrapper a kernel (compile.py). runtime.cpp runs it: every
// CUDA thread is a fiber with a stack of its own, all blocks of the grid are there at once, one
// fiber runs at a time, and a seed decides which, so that a failing order runs again. g++'s
// ThreadSanitizer pass calls the runtime before every load and store that can reach memory (its own
// library is not linked), which is where threads are preempted and where checker.h finds accesses
// out of bounds, reads of unwritten memory, and races.
//
// What this cannot show:
// - the memory model of a real GPU: here every access is seen by all at once, in order. Whether a
// fence is of
//   the right kind or scope is not tested, only that there is one (a race is a conflict with none
//   at all);
// - lanes that run in step: here each lane runs alone between two warp operations, which CUDA
// allows;
// - rounding: a real GPU fuses a * b + c, this does not; speed, occupancy, registers, bank
// conflicts, launch limits;
// - CUDA outside this file: textures, cooperative_groups.h, dynamic parallelism, half floats,
// tensor cores, PTX.
#pragma once
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
// All blocks share the variable; the runtime swaps its content when it goes from one block to
// another.
#define __shared__ static __attribute__((section("emu_shared")))
#define dynamic_shared_bytes emu_dynamic_shared()
#define threadIdx emu_thread_idx()
#define blockIdx emu_block_idx()
#define blockDim emu_block_dim()
#define gridDim emu_grid_dim()
constexpr int warpSize = 32;

// Not watched itself: the runtime names its caller in a report.
#define EMU_PRIMITIVE __attribute__((noinline, no_sanitize("thread")))
#define EMU_CALLER __builtin_return_address(0)

// ---- synchronisation -------------------------------------------------------------------------------
inline void __syncthreads() { emu_syncthreads(0); }
inline int __syncthreads_count(int vote) { return (int)emu_syncthreads(vote != 0); }
inline int __syncthreads_or(int vote) { return emu_syncthreads(vote != 0) != 0; }
inline int __syncthreads_and(int vote) { return emu_syncthreads(vote == 0) == 0; }
inline void __threadfence() { emu_fence(); }
inline void __threadfence_block() { emu_fence(); }
inline void __threadfence_system() { emu_fence(); }
inline void __nanosleep(unsigned) { emu_sleep(); }
inline long long clock_ns() { return emu_clock_ns(); }
inline void fence_system() { emu_fence(); }
inline void pause_waiting() { emu_sleep(); }
inline void prefetch(const void*) {}
EMU_PRIMITIVE inline void __trap() { emu_trap("__trap()", EMU_CALLER); }

// ---- warps -----------------------------------------------------------------------------------------
namespace emu {
// What a thread's lane is called when a mask names it; width cuts the warp into equal parts.
inline int lane() { return threadIdx.x & 31; }
template <class T> uint64_t bits_of(T value) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8,
                "shuffles move 4 or 8 bytes, and integers of 2 as 4");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T> T shuffle(unsigned mask, T value, int source, void* pc) {
  uint64_t bits = emu_collective(EMU_SHUFFLE, mask, bits_of(value), (unsigned)source, pc);
  T result;
  memcpy(&result, &bits, sizeof result);
  return result;
}
}  // namespace emu

template <class T> EMU_PRIMITIVE T __shfl_sync(unsigned mask, T v, int source, int width = 32) {
  return emu::shuffle(mask, v, (emu::lane() & -width) | (source & (width - 1)), EMU_CALLER);
}
template <class T> EMU_PRIMITIVE T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  int source = emu::lane() ^ bits;
  return emu::shuffle(mask, v, source < (emu::lane() & -width) + width ? source : emu::lane(),
                      EMU_CALLER);
}
template <class T> EMU_PRIMITIVE T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
  int source = emu::lane() - (int)by;
  return emu::shuffle(mask, v, source >= (emu::lane() & -width) ? source : emu::lane(), EMU_CALLER);
}
template <class T>
EMU_PRIMITIVE T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
  int source = emu::lane() + (int)by;
  return emu::shuffle(mask, v, source < (emu::lane() & -width) + width ? source : emu::lane(),
                      EMU_CALLER);
}
EMU_PRIMITIVE inline unsigned __ballot_sync(unsigned mask, int vote) {
  return (unsigned)emu_collective(EMU_BALLOT, mask, vote != 0, 0, EMU_CALLER);
}
EMU_PRIMITIVE inline int __any_sync(unsigned mask, int vote) {
  return emu_collective(EMU_BALLOT, mask, vote != 0, 0, EMU_CALLER) != 0;
}
EMU_PRIMITIVE inline int __all_sync(unsigned mask, int vote) {
  return emu_collective(EMU_BALLOT, mask, vote == 0, 0, EMU_CALLER) == 0;
}
template <class T> EMU_PRIMITIVE unsigned __match_any_sync(unsigned mask, T value) {
  return (unsigned)emu_collective(EMU_MATCH, mask, emu::bits_of(value), 0, EMU_CALLER);
}
EMU_PRIMITIVE inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) {
  emu_collective(EMU_SYNCWARP, mask, 0, 0, EMU_CALLER);
}
EMU_PRIMITIVE inline unsigned __activemask() { return emu_activemask(EMU_CALLER); }

// ---- atomics: the types that CUDA has, no more -----------------------------------------------------
namespace emu {
template <class T, class F> EMU_PRIMITIVE T update(T* p, F change, void* pc) {
  emu_access(p, sizeof(T), EMU_READ | EMU_WRITE | EMU_ATOMIC, pc);
  T old, desired;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  do desired = change(old);
  while (!__atomic_compare_exchange(p, &old, &desired, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return old;
}
}  // namespace emu

#define EMU_ATOMIC_SCOPE(name, type, result)                                     \
  EMU_PRIMITIVE inline type name(type* p, type v) {                              \
    return emu::update(p, [v](type old) { return (type)(result); }, EMU_CALLER); \
  }
#define EMU_ATOMIC_ONE(name, type, result) \
  EMU_ATOMIC_SCOPE(name, type, result)     \
  EMU_ATOMIC_SCOPE(name##_system, type, result) EMU_ATOMIC_SCOPE(name##_block, type, result)
#define EMU_ATOMIC_WORDS(name, result) \
  EMU_ATOMIC_ONE(name, int, result)    \
  EMU_ATOMIC_ONE(name, unsigned, result) EMU_ATOMIC_ONE(name, unsigned long long, result)
EMU_ATOMIC_WORDS(atomicAdd, old + v)
EMU_ATOMIC_ONE(atomicAdd, float, old + v)
EMU_ATOMIC_ONE(atomicAdd, double, old + v)
EMU_ATOMIC_ONE(atomicSub, int, old - v)
EMU_ATOMIC_ONE(atomicSub, unsigned, old - v)
EMU_ATOMIC_WORDS(atomicMin, v < old ? v : old)
EMU_ATOMIC_ONE(atomicMin, long long, v < old ? v : old)
EMU_ATOMIC_WORDS(atomicMax, v > old ? v : old)
EMU_ATOMIC_ONE(atomicMax, long long, v > old ? v : old)
EMU_ATOMIC_WORDS(atomicOr, old | v)
EMU_ATOMIC_WORDS(atomicAnd, old& v)
EMU_ATOMIC_WORDS(atomicXor, old ^ v)
EMU_ATOMIC_WORDS(atomicExch, ((void)old, v))
EMU_ATOMIC_ONE(atomicExch, float, ((void)old, v))
#define EMU_CAS_ONE(name, type)                                                             \
  EMU_PRIMITIVE inline type name(type* p, type expected, type v) {                          \
    return emu::update(p, [=](type old) { return old == expected ? v : old; }, EMU_CALLER); \
  }
#define EMU_CAS(type)          \
  EMU_CAS_ONE(atomicCAS, type) \
  EMU_CAS_ONE(atomicCAS_system, type) EMU_CAS_ONE(atomicCAS_block, type)
EMU_CAS(int)
EMU_CAS(unsigned)
EMU_CAS(unsigned long long)
EMU_CAS(unsigned short)

EMU_PRIMITIVE inline long long add_ordered(long long* p, long long v) {
  emu_fence();
  return (long long)atomicAdd((unsigned long long*)p, (unsigned long long)v);
}
EMU_PRIMITIVE inline long long load_acquire(const long long* p) {
  emu_access(p, sizeof *p, EMU_READ | EMU_ATOMIC, EMU_CALLER);
  emu_fence();
  return *p;
}
EMU_PRIMITIVE inline long long load_acquire_system(const long long* p) {
  emu_access(p, sizeof *p, EMU_READ | EMU_ATOMIC, EMU_CALLER);
  emu_fence();
  return *p;
}

// ---- cache hints -----------------------------------------------------------------------------------
#define EMU_LOAD(name, how)                             \
  template <class T> EMU_PRIMITIVE T name(const T* p) { \
    emu_access(p, sizeof(T), how, EMU_CALLER);          \
    return *p;                                          \
  }
EMU_LOAD(__ldg, EMU_READ | EMU_READONLY)
EMU_LOAD(__ldcg, EMU_READ | EMU_ATOMIC)  // from L2, where other threads' writes are
EMU_LOAD(__ldcs, EMU_READ)
EMU_LOAD(__ldlu, EMU_READ)
// Through the cache of a multiprocessor, where what others have written since may not be seen.
template <class T> EMU_PRIMITIVE T __ldca(const T* p) {
  emu_access(p, sizeof(T), EMU_READ | EMU_ATOMIC, EMU_CALLER);
  T value = *p;
  emu_stale(p, sizeof(T), &value);
  return value;
}
template <class T> EMU_PRIMITIVE void __stcg(T* p, T v) {
  emu_access(p, sizeof(T), EMU_WRITE | EMU_ATOMIC, EMU_CALLER);
  *p = v;
}
template <class T> inline void __stcs(T* p, T v) { *p = v; }

// ---- integers, floats ------------------------------------------------------------------------------
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
  return r;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
namespace emu {
template <class To, class From> To cast_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
}  // namespace emu
inline float __int_as_float(int x) { return emu::cast_bits<float>(x); }
inline int __float_as_int(float x) { return emu::cast_bits<int>(x); }
inline float __uint_as_float(unsigned x) { return emu::cast_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return emu::cast_bits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return emu::cast_bits<double>(x); }
inline long long __double_as_longlong(double x) { return emu::cast_bits<long long>(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
template <class A, class B> auto min(A a, B b) -> decltype(true ? +a : +b) { return b < a ? b : a; }
template <class A, class B> auto max(A a, B b) -> decltype(true ? +a : +b) { return a < b ? b : a; }

// ---- from the runtime's untyped arguments to a kernel, and back what it declares -------------------
namespace emu {
template <class T> struct plain {
  typedef T type;
};
template <class T> struct plain<const T> {
  typedef T type;
};
template <size_t... I> struct places {};
template <size_t N, size_t... I> struct count_places : count_places<N - 1, N - 1, I...> {};
template <size_t... I> struct count_places<0, I...> {
  typedef places<I...> type;
};

template <class... P, size_t... I>
EMU_PRIMITIVE void call(void (*kernel)(P...), void** args, places<I...>) {
  kernel(*(typename plain<P>::type*)args[I]...);
}
template <class... P> EMU_PRIMITIVE void call(void (*kernel)(P...), void** args) {
  call(kernel, args, typename count_places<sizeof...(P)>::type());
}

// "i8" a scalar, "pf4" a pointer, "cu1" a pointer to const: kind and width as NumPy has them.
template <class T> struct describe {
  static void to(char* text) {
    T half = (T)0.5, below = (T)-1;
    text[0] = half > 0 ? 'f' : below < 0 ? 'i' : 'u';
    text[1] = (char)('0' + sizeof(T));
  }
};
template <class T> struct describe<T*> {
  static void to(char* text) { *text = 'p', describe<T>::to(text + 1); }
};
template <class T> struct describe<const T*> {
  static void to(char* text) { *text = 'c', describe<T>::to(text + 1); }
};
template <class... P> const char* signature(void (*)(P...)) {
  static char text[sizeof...(P) + 1][4];
  static char joined[4 * sizeof...(P) + 1];
  int i = 0;
  int unused[] = {0, (describe<typename plain<P>::type>::to(text[i++]), 0)...};
  (void)unused;
  joined[0] = 0;
  for (int k = 0; k < i; k++) strcat(strcat(joined, text[k]), k + 1 < i ? " " : "");
  return joined;
}
}  // namespace emu
