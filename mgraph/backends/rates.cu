// What a device's memory gives: all blocks do one thing at a time, between two meetings. rates.py
// says what the words of the report are.

#include "prelude.cuh"
#include "rates.py"

// Accesses of a thread at random, words of a cache line, lines that a thread visits in turn,
// meetings.
constexpr int EACH = 64, LINE = 32, STEPS = 2048, MEETINGS = 64;

struct Measuring {
  const u32* abort;
  u32* table;
  i64 *arrived, *report;

  // Note how long it takes all blocks; false where they were told to stop.
  template <class Work> __device__ bool timed(i64 place, Work work) {
    if (!grid_barrier(arrived, abort)) return false;
    i64 began = clock_ns();
    work();
    if (!grid_barrier(arrived, abort)) return false;
    if (thread_index() == 0) report[place] = clock_ns() - began;
    return true;
  }
  // Call use(place, draw) for places drawn below a power of two.
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
      report[DONE] = 0;  // it is 0 and stays so; but the compiler does not know what the loads give
  }
  __device__ void min_at_random(i64 words) {
    draw(words, [&](u32 place, u32 drawn) { atomic_min(&table[place], drawn); });
  }
  // Half of the table becomes what the other half is.
  __device__ void stream(i64 words) {
    const Quad<u32>* from = (const Quad<u32>*)table;
    i64 half = words / 8;
    Quad<u32>* to = (Quad<u32>*)table + half;
#pragma unroll 8
    for (i64 i = thread_index(); i < half; i += thread_count()) to[i] = from[i];
  }
  // A ring through the first lines, in an order that nothing foresees.
  __device__ void link() {
    for (u32 i = (u32)thread_index(); i < STEPS; i += (u32)thread_count())
      table[i * LINE] = ((i * 1664525u + 1013904223u) & (STEPS - 1)) * LINE;
  }
  // What a thread waits for one access after another, once around without the clock; alone, for
  // threads that wait to meet look at the memory too.
  template <class Next> __device__ void chase(i64 place, Next next) {
    u32 at = 0;
    i64 began = 0;
    for (int time = 0; time < 2; time++) {
      began = clock_ns();
      for (int i = 0; i < STEPS; i++) at = next(&table[at]);
    }
    report[place] = at == 1 ? 0 : clock_ns() - began;
  }

  __device__ bool run(const i64* sizes, i64 num_sizes) {
    i64 most = sizes[num_sizes - 1];
    for (i64 i = thread_index(); i < most; i += thread_count()) table[i] = 0;
    for (i64 k = 0; k < num_sizes; k++) {
      i64 loads = NUM_REPORTS + k, atomics = loads + num_sizes;
      // The first time brings as much of it into the cache as that holds.
      for (int time = 0; time < 2; time++)
        if (!timed(loads, [&]() { load_at_random(sizes[k]); })) return false;
      for (int time = 0; time < 2; time++)
        if (!timed(atomics, [&]() { min_at_random(sizes[k]); })) return false;
    }
    if (!timed(STREAM, [&]() { stream(most); })) return false;
    bool met = true;
    auto meet = [&]() {
      for (int i = 0; met && i < MEETINGS; i++) met = grid_barrier(arrived, abort);
    };
    if (!timed(MEETING, meet) || !met) return false;
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
