// The grid that runs: its threads and blocks, chance, failure, and what runs next.
#pragma once
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fibers.h"
#include "regions.h"
#include "runtime.h"

extern "C" {
// The linker's: this module's image, and its __shared__ variables (none if no kernel has one).
extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
extern char __start_emu_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_emu_shared[] __attribute__((weak, visibility("hidden")));
}

enum State { READY, AT_BARRIER, AT_WARP, DONE };

struct Fiber {
  Context context;
  State state;
  unsigned thread, block, lane;
  uint32_t barriers, syncwarps, collectives;  // how many it has met
  uint64_t met;                               // when it was at the last barrier or fence
  // A warp operation: its kind, its lanes, this lane's operand and result.
  int kind;
  unsigned mask, source;
  uint64_t in, out;
  void* active_at;  // where it waits in __activemask
  unsigned active_mask;
};

struct Block {
  unsigned alive, arrived;
  uint64_t votes;
  char *saved_shared, *dynamic_shared;
  Region shared, dynamic;
};

static EmuLaunch L;
static uint64_t writes_so_far;  // of those that are checked
constexpr unsigned MAX_FIBERS = 1 << 14;
static Fiber fibers[MAX_FIBERS];  // never moved: each one's stack points here
static unsigned num_fibers;
static Block* blocks;
static Fiber* self;  // the running thread
static Block* here;  // its block
static unsigned shared_owner;
static Context outside;
static Region* regions;
static Region* last_region;
static bool failed;
static double deadline;
static unsigned switches;

// ---- chance ----------------------------------------------------------------------------------------
static uint64_t chance_state;
static uint64_t chance(uint64_t n) {  // splitmix64; the bias of % is of no matter here
  uint64_t z = (chance_state += 0x9E3779B97F4A7C15ull);
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ z >> 27) * 0x94D049BB133111EBull;
  return (z ^ z >> 31) % n;
}

// ---- failure: a message, and straight out of the grid ----------------------------------------------
static unsigned place(const void* pc) {
  return pc ? (unsigned)((const char*)pc - __ehdr_start - 1) : 0;
}

__attribute__((noreturn)) static void leave() {
  failed = true;
  switch_context(self->context, outside, nullptr);
  abort();
}

// "@pc@" is made a file and line by backend.py.
__attribute__((noreturn, format(printf, 2, 3))) static void fail(const void* pc, const char* format,
                                                                 ...) {
  va_list values;
  va_start(values, format);
  int n = snprintf(L.report, (size_t)L.report_bytes, "thread %u of block %u at @%x@ ", self->thread,
                   self->block, place(pc));
  vsnprintf(L.report + n, (size_t)(L.report_bytes - n), format, values);
  va_end(values);
  leave();
}

// ---- scheduling ------------------------------------------------------------------------------------
static unsigned ring[MAX_FIBERS];  // of those ready; a deque
constexpr unsigned ring_mask = MAX_FIBERS - 1;
static unsigned ring_head, ring_tail;
static int64_t budget;

static void push_back(Fiber* f) { ring[ring_tail++ & ring_mask] = (unsigned)(f - fibers); }
static void push_front(Fiber* f) { ring[--ring_head & ring_mask] = (unsigned)(f - fibers); }

static Fiber* next_ready() {
  if (ring_head == ring_tail) return nullptr;
  if (L.order == 1) return &fibers[ring[--ring_tail & ring_mask]];
  unsigned& head = ring[ring_head & ring_mask];
  if (L.order == 0) {
    unsigned& other = ring[(ring_head + (unsigned)chance(ring_tail - ring_head)) & ring_mask];
    unsigned picked = other;
    other = head, head = picked;
  }
  return &fibers[ring[ring_head++ & ring_mask]];
}

static void wake(Fiber* f) {
  f->state = READY;
  push_back(f);
}

static void pause() { switch_context(self->context, outside, nullptr); }

// Let others run: at the back of the queue, or under the stack.
static void yield() {
  L.order == 1 ? push_front(self) : push_back(self);
  pause();
}

// Without preemption a thread still stops at times, or one that spins would never see what it waits
// for.
static void refill() {
  budget = L.preempt ? 1 + (int64_t)chance(2 * (uint64_t)L.preempt) : 1 << 16;
}

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
