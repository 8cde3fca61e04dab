// What a module and the runtime of the emulator say to each other. See cuda_model.h for what this
// is.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct EmuDim {
  unsigned x, y, z;
};

// One array argument, as the runtime guards it. Overlapping arguments are merged before they come
// here.
struct EmuArray {
  char* data;
  int64_t num_bytes, itemsize;
  const char* name;
};

// Stacks of emulated threads that no launch of this process uses. Launches run at once, each with a
// module of its own: they take and give back stacks under a lock of one word.
constexpr unsigned EMU_MAX_IDLE_STACKS = 1 << 13;
struct EmuStacks {
  uint32_t lock, num_idle;
  char* idle[EMU_MAX_IDLE_STACKS];
};

// Memory for what is known of the bytes of an array (regions.h), by size, that no launch of this
// process uses. It is not emptied: a launch gives its threads numbers above those of all launches
// before it, and so knows what these have left.
constexpr unsigned EMU_SHADOW_SIZES = 21, EMU_MAX_IDLE_SHADOWS = 64;
struct EmuShadows {
  uint64_t num_threads;  // of all launches so far
  uint32_t lock, num_idle[EMU_SHADOW_SIZES];
  void* idle[EMU_SHADOW_SIZES][EMU_MAX_IDLE_SHADOWS];
};

// One launch. backend.py has the same structs in ctypes.
struct EmuLaunch {
  void (*body)(void** args);
  void** args;
  int64_t num_blocks, block_size, dynamic_shared_bytes;
  uint64_t seed;
  int64_t order;  // of threads: -1 drawn from the seed, 0 random, 1 stack (one thread as far as it
                  // goes), 2 queue (in turn)
  int64_t preempt;  // mean accesses between two preemptions: -1 drawn from the seed, 0 only at
                    // synchronisation
  int64_t poison;   // the 32-bit pattern of unwritten memory
  int64_t races;    // whether to report races
  double limit_s;
  const EmuArray* arrays;
  int64_t num_arrays;
  char* report;
  int64_t report_bytes;
  EmuStacks* stacks;
  EmuShadows* shadows;
};

enum EmuAccess { EMU_READ = 1, EMU_WRITE = 2, EMU_ATOMIC = 4, EMU_READONLY = 8 };
enum EmuCollective { EMU_SHUFFLE = 1, EMU_BALLOT, EMU_SYNCWARP, EMU_MATCH };

extern "C" {
__attribute__((const)) EmuDim emu_thread_idx();
__attribute__((const)) EmuDim emu_block_idx();
__attribute__((const)) EmuDim emu_block_dim();
__attribute__((const)) EmuDim emu_grid_dim();
__attribute__((const)) void* emu_dynamic_shared();

void emu_access(const volatile void* p, unsigned size, unsigned how, void* pc);
bool emu_stale(const void* p, unsigned size,
               void* value);              // whether a cache still had an older value
uint64_t emu_syncthreads(uint64_t vote);  // returns how many threads voted nonzero
uint64_t emu_collective(int kind, unsigned mask, uint64_t value, unsigned source, void* pc);
unsigned emu_activemask(void* pc);
void emu_fence();
void emu_sleep();
int64_t emu_clock_ns();
__attribute__((noreturn)) void emu_trap(const char* why, void* pc);
}
