// The bytes a kernel may touch, and who touched them last.
//
// A race is two accesses of different threads to the same bytes in one launch, at least one a
// write, not both atomic (relaxed loads and stores count as atomic), where the first thread has not
// met a barrier or fence since its own. That is lenient on purpose: code that orders its accesses
// is never blamed, code without any order soon is.
#pragma once
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

// Who accessed last, and what it had synchronised until then.
struct Access {
  uint32_t thread;    // + 1; 0 is nobody
  uint32_t barriers;  // how many barriers and fences it had met
  uint32_t in_warp;   // a read: how many warp operations; a write: how many __syncwarp, as the
                      // others order no memory
  uint32_t pc : 31, atomic : 1;
};
struct Granule {
  Access write, read;
};

// Some bytes that kernels may touch. Shadow is kept for each `granule` bytes.
struct Region {
  char *lo, *hi;
  size_t granule;
  const char* name;
  Granule* shadow;
  unsigned char* readonly;  // which granules were read through the read-only path
  char* before;             // what stood there before it was last written
  uint64_t* written;        // when that was, of each granule

  void open(char* data, size_t bytes, size_t unit, const char* called) {
    lo = data, hi = data + bytes, granule = unit, name = called;
    // calloc of what is large touches no page: only what the kernel touches costs.
    shadow = (Granule*)calloc(bytes / unit + 1, sizeof(Granule));
    readonly = (unsigned char*)calloc(bytes / unit + 1, 1), before = (char*)calloc(bytes + 1, 1);
    written = (uint64_t*)calloc(bytes / unit + 1, sizeof(uint64_t));
    if (!shadow || !readonly || !before || !written) abort();
  }
  void close() {
    free(shadow), free(readonly), free(before), free(written);
    shadow = nullptr, readonly = nullptr, before = nullptr, written = nullptr;
  }
  bool holds(const char* p) const { return p >= lo && p < hi; }
};

static void poison(char* p, size_t bytes, uint32_t pattern) {
  for (size_t i = 0; i < bytes; i++) p[i] = ((const char*)&pattern)[i & 3];
}

// Whether all of an access is the pattern. One and two bytes have too few values to tell.
static bool is_poison(const char* p, unsigned size, uint32_t pattern) {
  if (size < 4) return false;
  for (unsigned i = 0; i < size; i += 4) {
    uint32_t word;
    memcpy(&word, p + i, 4);
    if (word != pattern) return false;
  }
  return true;
}
