// Time memory accesses of a device: all blocks do one kind of access at a time, between two grid
// barriers. rates.py defines the words of the report.

#include "prelude.cuh"
#include "rates.py"

// Random accesses of a thread, words of a cache line, length of the chain that one thread follows,
// grid barriers.
constexpr int EACH = 64, LINE = 32, STEPS = 2048, BARRIERS = 64;

struct Measuring {
  const u32* abort;
  u32* table;
  i64 *arrived, *report;

  // Report how long the work takes all blocks; false if the launch was aborted.
  template <class Work> __device__ bool timed(i64 place, Work work) {
    if (!grid_barrier(arrived, abort)) return false;
    i64 began = clock_ns();
    work();
    if (!grid_barrier(arrived, abort)) return false;
    if (thread_index() == 0) report[place] = clock_ns() - began;
    return true;
  }
  // Call use(place, number) for random places below `words`, a power of two, and random numbers.
  template <class Use> __device__ void draw(i64 words, Use use) {
    u32 at = (u32)thread_index() * 2654435761u, mask = (u32)words - 1;
#pragma unroll 8
    for (int i = 0; i < EACH; i++)
      at = at * 1664525u + 1013904223u, use((at >> 3 ^ at << 7) & mask, at);
  }
  __device__ void load_at_random(i64 words) {
    u32 sum = 0;
    draw(words, [&](u32 place, u32) { sum += load_stale(&table[place]); });
    if (sum == 1)
      report[DONE] = 0;  // changes nothing, as it is 0; but the compiler cannot remove the loads
  }
  __device__ void min_at_random(i64 words) {
    draw(words, [&](u32 place, u32 drawn) { atomic_min(&table[place], drawn); });
  }
  // Copy the first half of the table to the second.
  __device__ void stream(i64 words) {
    const Quad<u32>* from = (const Quad<u32>*)table;
    i64 half = words / 8;
    Quad<u32>* to = (Quad<u32>*)table + half;
#pragma unroll 8
    for (i64 i = thread_index(); i < half; i += thread_count()) to[i] = from[i];
  }
  // Link the first STEPS lines to a ring in an order that no prefetcher predicts.
  __device__ void link() {
    for (u32 i = (u32)thread_index(); i < STEPS; i += (u32)thread_count())
      table[i * LINE] = ((i * 1664525u + 1013904223u) & (STEPS - 1)) * LINE;
  }
  // Report the latency of a chain of dependent accesses; the first round warms the cache. Runs on
  // one thread without others at a barrier, since waiting threads poll memory too.
  template <class Next> __device__ void chase(i64 place, Next next) {
    u32 at = 0;
    i64 began = 0;
    for (int round = 0; round < 2; round++) {
      began = clock_ns();
      for (int i = 0; i < STEPS; i++) at = next(&table[at]);
    }
    report[place] = at == 1 ? 0 : clock_ns() - began;
  }

  __device__ bool run(const i64* sizes, i64 num_sizes) {
    i64 largest = sizes[num_sizes - 1];
    for (i64 i = thread_index(); i < largest; i += thread_count()) table[i] = 0;
    for (i64 k = 0; k < num_sizes; k++) {
      i64 loads = NUM_REPORTS + k, atomics = loads + num_sizes;
      // The first round warms the cache; the second overwrites its report.
      for (int round = 0; round < 2; round++)
        if (!timed(loads, [&]() { load_at_random(sizes[k]); })) return false;
      for (int round = 0; round < 2; round++)
        if (!timed(atomics, [&]() { min_at_random(sizes[k]); })) return false;
    }
    if (!timed(STREAM, [&]() { stream(largest); })) return false;
    bool running = true;
    auto barriers = [&]() {
      for (int i = 0; running && i < BARRIERS; i++) running = grid_barrier(arrived, abort);
    };
    if (!timed(GRID_BARRIER, barriers) || !running) return false;
    link();
    if (!grid_barrier(arrived, abort)) return false;
    if (thread_index() > 0) return true;
    chase(LOAD_WAIT, [](u32* p) { return load_relaxed(p); });
    chase(ATOMIC_WAIT, [](u32* p) { return atomic_min(p, ~0u); });
    return true;
  }
};

extern "C" __global__ void __launch_bounds__(512, 2)
    measure_rates(i64 lo, i64 hi, const u32* abort, const i64* sizes, i64 num_sizes, u32* table,
                  i64* arrived, i64* report) {
  Measuring measuring = {abort, table, arrived, report};
  bool done = measuring.run(sizes, num_sizes);
  if (thread_index() == 0 && done) report[THREADS] = thread_count(), report[DONE] = 1;
}
