// Runs one grid on one CPU thread: fibers, their order, barriers and warp operations. See
// cuda_model.h.
//
// Everything here is one copy a loaded module: backend.py loads a module again where two launches
// of it overlap.
#include "runtime.h"

#include <sched.h>

#include "checker.h"
#include "grid.h"

static void release_barrier(Block& block) {
  Fiber* first = &fibers[(size_t)(&block - blocks) * L.block_size];
  for (Fiber* f = first; f < first + L.block_size; f++)
    if (f->state == AT_BARRIER) {
      f->out = block.votes;
      f->barriers++, f->met = writes_so_far;
      wake(f);
    }
  block.arrived = 0;
  block.votes = 0;
}

static void finish_switch() {
#ifdef EMU_SANITIZE
  const void* left;
  size_t bytes;
  __sanitizer_finish_switch_fiber(self->context.fake_stack, &left, &bytes);
  if (!outside.outer_stack) outside.outer_stack = left, outside.outer_bytes = bytes;
#endif
}

static void fiber_main() {
  finish_switch();
  L.body(L.args);
  self->state = DONE;
  Block& block = *here;
  if (--block.alive && block.arrived == block.alive) release_barrier(block);
#ifdef EMU_SANITIZE
  self->context.ended = true;
#endif
  switch_context(self->context, outside, nullptr);
}

static size_t shared_bytes() { return (size_t)(__stop_emu_shared - __start_emu_shared); }

// Under a sanitizer not memcpy, which would take the guards between the variables for overruns.
__attribute__((no_sanitize("address"))) static void copy(char* to, const char* from, size_t bytes) {
#ifdef EMU_SANITIZE
  struct Line {
    char bytes[64];
  };
  size_t i = 0;
  for (; i + sizeof(Line) <= bytes; i += sizeof(Line)) {
    *(Line*)(to + i) = *(const Line*)(from + i);
    __asm__ volatile("" ::: "memory");
  }
  for (; i < bytes; i++) {
    to[i] = from[i];
    __asm__ volatile("" ::: "memory");
  }
#else
  memcpy(to, from, bytes);
#endif
}

// Put the running block's shared memory in place.
static void swap_shared() {
  if (shared_owner == self->block || !shared_bytes()) return;
  copy(blocks[shared_owner].saved_shared, __start_emu_shared, shared_bytes());
  copy(__start_emu_shared, here->saved_shared, shared_bytes());
  shared_owner = self->block;
}

static void enter(Fiber* f) {
  self = f;
  here = &blocks[f->block];
#ifdef EMU_SANITIZE
  swap_shared();  // no access is seen: see emu_access
#endif
  last_region = nullptr;
  switch_context(outside, f->context, fiber_main);
}

static const char* waits(const Fiber& f) {
  return f.state == AT_BARRIER    ? "__syncthreads"
         : f.kind == EMU_SYNCWARP ? "__syncwarp"
         : f.kind == EMU_BALLOT   ? "a vote"
         : f.kind == EMU_MATCH    ? "a match"
                                  : "a shuffle";
}

static void report_stuck() {
  int n = snprintf(L.report, (size_t)L.report_bytes, "no thread can go on:");
  unsigned shown = 0, done = 0;
  for (unsigned i = 0; i < num_fibers; i++) {
    const Fiber& f = fibers[i];
    done += f.state == DONE;
    if (f.state == DONE || shown == 4) continue;
    n += snprintf(L.report + n, (size_t)(L.report_bytes - n),
                  " thread %u of block %u waits in %s%s;", f.thread, f.block, waits(f),
                  f.state == AT_WARP ? " for lanes that do not come" : "");
    shown++;
  }
  snprintf(L.report + n, (size_t)(L.report_bytes - n), " %u of %u threads have returned", done,
           num_fibers);
}

// ---- one launch ------------------------------------------------------------------------------------
static void set_up() {
  num_fibers = (unsigned)(L.num_blocks * L.block_size);
  chance_state = L.seed;
  if (L.order < 0) L.order = (int64_t)chance(3);
  if (L.preempt < 0) {
    static const int64_t means[] = {0, 4, 32, 256};
    L.preempt = means[chance(4)];
  }
  refill();
  ring_head = ring_tail = 0;
  for (unsigned i = 0; i < num_fibers; i++) {
    Fiber& f = fibers[i];
    f = Fiber();
    f.context.stack = take_stack(*L.stacks);
    f.thread = i % (unsigned)L.block_size, f.block = i / (unsigned)L.block_size,
    f.lane = f.thread & 31;
    push_back(&f);
  }
  for (unsigned i = num_fibers; i > 1; i--) {
    unsigned j = (unsigned)chance(i), t = ring[i - 1];
    ring[i - 1] = ring[j], ring[j] = t;
  }
  blocks = (Block*)calloc((size_t)L.num_blocks, sizeof(Block));
  for (int64_t b = 0; b < L.num_blocks; b++) {
    Block& block = blocks[b];
    block.alive = (unsigned)L.block_size;
    block.saved_shared = (char*)malloc(shared_bytes() + 1);
    copy(block.saved_shared, __start_emu_shared, shared_bytes());  // the guards of a sanitizer
    block.shared.open(*L.shadows, __start_emu_shared, shared_bytes(), 1, "static shared memory");
    if (posix_memalign((void**)&block.dynamic_shared, 64,
                       (size_t)L.dynamic_shared_bytes + !L.dynamic_shared_bytes))
      abort();
    poison(block.dynamic_shared, (size_t)L.dynamic_shared_bytes, (uint32_t)L.poison);
    block.dynamic.open(*L.shadows, block.dynamic_shared, (size_t)L.dynamic_shared_bytes, 1,
                       "dynamic shared memory");
#ifndef EMU_SANITIZE
    poison(block.saved_shared, shared_bytes(), (uint32_t)L.poison);
#endif
  }
  shared_owner = 0;
  copy(__start_emu_shared, blocks[0].saved_shared, shared_bytes());
  regions = (Region*)calloc((size_t)L.num_arrays + 1, sizeof(Region));
  for (int64_t i = 0; i < L.num_arrays; i++) {
    regions[i].open(*L.shadows, L.arrays[i].data, (size_t)L.arrays[i].num_bytes,
                    (size_t)L.arrays[i].itemsize, L.arrays[i].name);
  }
  // Only now: what is in the memory taken was left by threads counted before.
  threads_before = __atomic_fetch_add(&L.shadows->num_threads, num_fibers, __ATOMIC_RELAXED);
}

static void tear_down() {
  for (unsigned i = 0; i < num_fibers; i++) give_stack_back(*L.stacks, fibers[i].context.stack);
  for (int64_t b = 0; b < L.num_blocks; b++) {
    blocks[b].shared.close(*L.shadows), blocks[b].dynamic.close(*L.shadows);
    free(blocks[b].saved_shared), free(blocks[b].dynamic_shared);
  }
  for (int64_t i = 0; i < L.num_arrays; i++) regions[i].close(*L.shadows);
  free(blocks), free(regions);
}

extern "C" __attribute__((visibility("default"))) int emu_launch(const EmuLaunch* launch) {
  L = *launch;
  failed = false;
#ifdef EMU_SANITIZE
  outside.outer_stack = nullptr;  // launches may come from different threads of the process
#endif
  set_up();
  deadline = now() + L.limit_s;
  while (Fiber* f = next_ready()) {
    enter(f);
    if (failed) break;
    if (++switches % 1024 == 0 && now() > deadline) {
      failed = true;
      snprintf(L.report, (size_t)L.report_bytes,
               "still running after %g s; thread %u of block %u ran last", L.limit_s, self->thread,
               self->block);
      break;
    }
  }
  if (!failed)
    for (unsigned i = 0; i < num_fibers; i++)
      if (fibers[i].state != DONE) {
        failed = true;
        report_stuck();
        break;
      }
  tear_down();
  self = nullptr;
  return failed;
}

// ---- what kernels call -----------------------------------------------------------------------------
extern "C" {
EmuDim emu_thread_idx() { return {self->thread, 0, 0}; }
EmuDim emu_block_idx() { return {self->block, 0, 0}; }
EmuDim emu_block_dim() { return {(unsigned)L.block_size, 1, 1}; }
EmuDim emu_grid_dim() { return {(unsigned)L.num_blocks, 1, 1}; }
void* emu_dynamic_shared() { return here->dynamic_shared; }
void emu_fence() { self->barriers++, self->met = writes_so_far; }
void emu_trap(const char* why, void* pc) { fail(pc, "called %s", why); }

// Not the time: what ran before may not decide what a kernel writes.
int64_t emu_clock_ns() {
  static int64_t ticks;
  return ++ticks;
}

void emu_sleep() {
  // Another rank's launch, on another CPU thread, may be what this one waits for.
  if (chance(16) == 0) sched_yield();
  yield();
}

uint64_t emu_syncthreads(uint64_t vote) {
  self->state = AT_BARRIER;
  here->votes += vote;
  if (++here->arrived == here->alive) release_barrier(*here);
  pause();
  return self->out;
}

uint64_t emu_collective(int kind, unsigned mask, uint64_t value, unsigned source, void* pc) {
  if (!(mask >> self->lane & 1)) fail(pc, "is not in the mask 0x%x that it names", mask);
  self->state = AT_WARP;
  self->kind = kind, self->mask = mask, self->in = value, self->source = source;
  Fiber* warp = self - self->lane;
  bool complete = true;
  for (unsigned lane = 0; lane < 32; lane++) {
    if (!(mask >> lane & 1)) continue;
    const Fiber& f = warp[lane];
    if (f.state == DONE)
      fail(pc, "waits for lane %u of the mask 0x%x, which has returned", lane, mask);
    if (f.state == AT_WARP && f.mask == mask && f.kind != kind)
      fail(pc, "is in %s while lane %u of the same mask is in %s", waits(*self), lane, waits(f));
    complete &= f.state == AT_WARP && f.mask == mask;
  }
  if (complete)
    for (unsigned lane = 0; lane < 32; lane++) {
      if (!(mask >> lane & 1)) continue;
      Fiber& f = warp[lane];
      f.out = 0;
      if (kind == EMU_SHUFFLE) {
        if (!(mask >> f.source & 1))
          fail(pc, "lane %u reads lane %u, which is not in the mask 0x%x", lane, f.source, mask);
        f.out = warp[f.source].in;
      } else if (kind != EMU_SYNCWARP) {
        for (unsigned other = 0; other < 32; other++)
          if (mask >> other & 1 && (kind == EMU_BALLOT ? warp[other].in : warp[other].in == f.in))
            f.out |= 1ull << other;
      }
      f.syncwarps += kind == EMU_SYNCWARP;
      f.collectives++;
      wake(&f);
    }
  pause();
  return self->out;
}

// Threads of a warp at the same place may or may not be together: any of them is a legal
// answer.
unsigned emu_activemask(void* pc) {
  self->active_at = pc;
  yield();
  if (!self->active_at) return self->active_mask;
  Fiber* warp = self - self->lane;
  uint64_t leave_out = chance(2) ? 0 : chance(1ull << 32);
  unsigned mask = 0;
  for (unsigned lane = 0; lane < 32; lane++)
    if (warp[lane].active_at == pc && (lane == self->lane || !(leave_out >> lane & 1)))
      mask |= 1u << lane;
  for (unsigned lane = 0; lane < 32; lane++)
    if (mask >> lane & 1) warp[lane].active_at = nullptr, warp[lane].active_mask = mask;
  return mask;
}

void emu_access(const volatile void* address, unsigned size, unsigned how, void* pc) {
  const char* p = (const char*)address;
  if (!self) return;  // not in a launch: a wrapper
  if (p >= self->context.stack && p < self->context.stack + STACK_BYTES) return;
  // Every third atomic is a place to stop too, whatever the budget: there threads interact.
  if (--budget <= 0 || (how & EMU_ATOMIC && L.preempt && chance(3) == 0)) {
    refill();
    bool owned = shared_owner == self->block;
    yield();
    // A statement that copies into shared memory is announced by two calls: this may be the second.
    if (owned) swap_shared();
  }
#ifndef EMU_SANITIZE
  Region* r = find(p);
  // Only now: most threads that run wait for others, and touch none of it.
  if (r == &here->shared) swap_shared();
  if (!r) {
    if (p >= __ehdr_start && p < _end) return;  // the module's constants
    out_of_bounds(p, size, how, pc);
  }
  if (p + size > r->hi) out_of_bounds(p, size, how, pc);
  if (how & EMU_READ && is_poison(p, size, (uint32_t)L.poison))
    fail(pc, "reads byte %lld of %s, which was not written: uninitialised", (long long)(p - r->lo),
         r->name);
  if (L.races) check_races(*r, p, size, how, pc);
#endif
}

// A cache may still have what stood there before it was last written, unless this thread wrote
// that, or has met others since: then caches let go of what they have.
bool emu_stale(const void* address, unsigned size, void* value) {
  const char* p = (const char*)address;
  Region* r = self && L.races ? find(p) : nullptr;
  if (!r || chance(2)) return false;
  size_t at = (size_t)(p - r->lo), first = at / r->granule, last = (at + size - 1) / r->granule;
  for (size_t i = first; i <= last; i++)
    if (!is_of_this_launch(r->shadow[i].write) || r->written[i] != r->written[first]) return false;
  if (r->written[first] <= self->met || r->shadow[first].write.thread == number_of(self))
    return false;
  memcpy(value, r->before + at, size);
  return true;
}

// ---- what g++ -fsanitize=thread puts before every access -------------------------------------------
#define HOOK(name, size, how) \
  void __tsan_##name(void* p) { emu_access(p, size, how, __builtin_return_address(0)); }
#define HOOKS(size)                                                \
  HOOK(read##size, size, EMU_READ)                                 \
  HOOK(write##size, size, EMU_WRITE)                               \
  HOOK(unaligned_read##size, size, EMU_READ)                       \
  HOOK(unaligned_write##size, size, EMU_WRITE)                     \
  HOOK(volatile_read##size, size, EMU_READ | EMU_ATOMIC)           \
  HOOK(volatile_write##size, size, EMU_WRITE | EMU_ATOMIC)         \
  HOOK(unaligned_volatile_read##size, size, EMU_READ | EMU_ATOMIC) \
  HOOK(unaligned_volatile_write##size, size, EMU_WRITE | EMU_ATOMIC)
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16) void __tsan_read_range(void* p, size_t n) {
  emu_access(p, (unsigned)n, EMU_READ, __builtin_return_address(0));
}
void __tsan_write_range(void* p, size_t n) {
  emu_access(p, (unsigned)n, EMU_WRITE, __builtin_return_address(0));
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
}
