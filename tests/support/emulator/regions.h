// The bytes a kernel may touch, and their last accesses.
//
// A race is two accesses of different threads to the same bytes in one launch, at least one a
// write, not both atomic (relaxed loads and stores count as atomic), where the first thread has not
// met a barrier or fence since its own. That is lenient on purpose: code that orders its accesses
// is never blamed, code without any order soon is.
#pragma once
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lock.h"
#include "runtime.h"

// The last access, and what its thread had synchronised until then.
struct Access {
  uint64_t thread : 39, pc : 24, atomic : 1;  // the thread's number; 0 is none
  uint32_t barriers;                          // how many barriers and fences it had met
  uint32_t in_warp;  // a read: how many warp operations; a write: how many __syncwarp, as the
                     // others order no memory
};
struct Granule {
  Access write, read;
};

// The threads of all launches before this one have numbers up to this; what they left is none.
static uint64_t threads_before;

// What is known of up to 2^size granules: memory of which only the pages that are touched cost.
constexpr size_t MAX_ITEM = 8;
constexpr size_t SHADOW_BYTES = sizeof(Granule) + 2 * sizeof(uint64_t) + MAX_ITEM;
constexpr unsigned MIN_SHADOW_SIZE = 6;
static char* take_shadow(EmuShadows& shadows, unsigned size) {
  if (size < EMU_SHADOW_SIZES) {
    Locked locked(shadows.lock);
    if (shadows.num_idle[size]) return (char*)shadows.idle[size][--shadows.num_idle[size]];
  }
  void* p = mmap(nullptr, SHADOW_BYTES << size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) abort();
  return (char*)p;
}
static void give_shadow_back(EmuShadows& shadows, char* shadow, unsigned size) {
  if (size < EMU_SHADOW_SIZES) {
    Locked locked(shadows.lock);
    if (shadows.num_idle[size] < EMU_MAX_IDLE_SHADOWS) {
      shadows.idle[size][shadows.num_idle[size]++] = shadow;
      return;
    }
  }
  munmap(shadow, SHADOW_BYTES << size);
}

// Some bytes that kernels may touch. Shadow is kept for each `granule` bytes.
struct Region {
  char *lo, *hi;
  size_t granule;
  const char* name;
  unsigned size;
  Granule* shadow;     // first in its memory, with the others behind it
  uint64_t* written;   // when each granule was last written
  uint64_t* readonly;  // the launch that last read it through the read-only path
  char* before;        // what stood there before it was last written

  void open(EmuShadows& shadows, char* data, size_t bytes, size_t unit, const char* called) {
    lo = data, hi = data + bytes, granule = unit, name = called, size = MIN_SHADOW_SIZE;
    if (granule > MAX_ITEM) abort();
    while (bytes / granule >= (size_t)1 << size) size++;
    shadow = (Granule*)take_shadow(shadows, size);
    written = (uint64_t*)(shadow + ((size_t)1 << size)), readonly = written + ((size_t)1 << size);
    before = (char*)(readonly + ((size_t)1 << size));
  }
  void close(EmuShadows& shadows) {
    give_shadow_back(shadows, (char*)shadow, size);
    shadow = nullptr, readonly = nullptr, before = nullptr, written = nullptr;
  }
  bool holds(const char* p) const { return p >= lo && p < hi; }
};

static void poison(char* p, size_t bytes, uint32_t pattern) {
  for (size_t i = 0; i < bytes; i++) p[i] = ((const char*)&pattern)[i & 3];
}

// Whether all of an access is the pattern. One and two bytes have too few values to decide.
static bool is_poison(const char* p, unsigned size, uint32_t pattern) {
  if (size < 4) return false;
  for (unsigned i = 0; i < size; i += 4) {
    uint32_t word;
    memcpy(&word, p + i, 4);
    if (word != pattern) return false;
  }
  return true;
}
