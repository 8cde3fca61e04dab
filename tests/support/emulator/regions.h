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

#include "runtime.h"

// The last access, and what its thread had synchronised until then.
struct Access {
  uint32_t thread;    // + 1; 0 is none
  uint32_t barriers;  // how many barriers and fences it had met
  uint32_t in_warp;   // a read: how many warp operations; a write: how many __syncwarp, as the
                      // others order no memory
  uint32_t pc : 31, atomic : 1;
};
struct Granule {
  Access write, read;
};

// Zeroed memory of which only the pages that are touched cost. Of calloc they do not: what is freed
// raises the size from which it maps, and below that it writes all zeros.
constexpr size_t MAPPED_BYTES = 64 << 10;
static void* new_zeros(size_t bytes) {
  void* p = bytes < MAPPED_BYTES ? calloc(bytes, 1)
                                 : mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!p || p == MAP_FAILED) abort();
  return p;
}
static void free_zeros(void* p, size_t bytes) {
  if (bytes < MAPPED_BYTES)
    free(p);
  else
    munmap(p, bytes);
}

// Some bytes that kernels may touch. Shadow is kept for each `granule` bytes.
struct Region {
  char *lo, *hi;
  size_t granule;
  const char* name;
  Granule* shadow;
  unsigned char* readonly;  // which granules were read through the read-only path
  char* before;             // what stood there before it was last written
  uint64_t* written;        // when that was, of each granule

  size_t granules() const { return (size_t)(hi - lo) / granule + 1; }
  void open(char* data, size_t bytes, size_t unit, const char* called) {
    lo = data, hi = data + bytes, granule = unit, name = called;
    shadow = (Granule*)new_zeros(granules() * sizeof(Granule));
    readonly = (unsigned char*)new_zeros(granules()), before = (char*)new_zeros(bytes + 1);
    written = (uint64_t*)new_zeros(granules() * sizeof(uint64_t));
  }
  void close() {
    free_zeros(shadow, granules() * sizeof(Granule)), free_zeros(readonly, granules());
    free_zeros(before, (size_t)(hi - lo) + 1), free_zeros(written, granules() * sizeof(uint64_t));
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
