// Fibers: stacks of their own, switched by hand, because a system call at each switch would cost
// more than the kernel.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "lock.h"
#include "runtime.h"

#ifdef EMU_SANITIZE
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
constexpr size_t STACK_BYTES = 256 << 10;
#else
constexpr size_t STACK_BYTES = 64 << 10;
#endif
constexpr size_t GUARD_BYTES =
    64 << 10;  // below each stack: an overflow ends the process instead of eating a neighbour

// A context that waits to go on. Entered for the first time by setcontext, then by longjmp.
struct Context {
  void* jump[5];
  char* stack = nullptr;
  bool entered = false;
#ifdef EMU_SANITIZE
  bool ended = false;  // it is left for the last time: its fake stack goes
  void* fake_stack = nullptr;
  const void* outer_stack = nullptr;
  size_t outer_bytes = 0;
#endif
};

static char* new_stack() {
  void* p = mmap(nullptr, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED || mprotect(p, GUARD_BYTES, PROT_NONE)) {
    perror("a stack of an emulated thread");
    abort();
  }
  return (char*)p + GUARD_BYTES;
}

static char* take_stack(EmuStacks& stacks) {
  Locked locked(stacks.lock);
  return stacks.num_idle ? stacks.idle[--stacks.num_idle] : new_stack();
}
// A process may have some 65,000 mappings, and a stack is two: not all are kept.
static void give_stack_back(EmuStacks& stacks, char* stack) {
#ifdef EMU_SANITIZE
  __asan_unpoison_memory_region(stack, STACK_BYTES);
#endif
  Locked locked(stacks.lock);
  if (stacks.num_idle < EMU_MAX_IDLE_STACKS)
    stacks.idle[stacks.num_idle++] = stack;
  else
    munmap(stack - GUARD_BYTES, GUARD_BYTES + STACK_BYTES);
}

// Leave `from` (which must be the one that runs) and go on with `to`; `entry` is where a new one
// starts.
__attribute__((noinline, no_sanitize("address"))) static void switch_context(Context& from,
                                                                             Context& to,
                                                                             void (*entry)()) {
#ifdef EMU_SANITIZE
  const void* bottom = to.stack ? to.stack : to.outer_stack;
  __sanitizer_start_switch_fiber(from.ended ? nullptr : &from.fake_stack, bottom,
                                 to.stack ? STACK_BYTES : to.outer_bytes);
#endif
  if (!__builtin_setjmp(from.jump)) {
    if (to.entered || !to.stack) __builtin_longjmp(to.jump, 1);
    to.entered = true;
    ucontext_t boot;
    getcontext(&boot);
    boot.uc_stack.ss_sp = to.stack;
    boot.uc_stack.ss_size = STACK_BYTES;
    boot.uc_link = nullptr;
    makecontext(&boot, entry, 0);
    setcontext(&boot);
  }
#ifdef EMU_SANITIZE
  const void* left;
  size_t left_bytes;
  __sanitizer_finish_switch_fiber(from.fake_stack, &left, &left_bytes);
#endif
}
