// What every access of a kernel is checked for: bounds, memory that nobody wrote, races.
#pragma once
#include "grid.h"

static bool unordered(const Access& first, bool was_write, bool atomic) {
  if (!first.thread || first.thread - 1 == (uint32_t)(self - fibers) || (first.atomic && atomic))
    return false;
  const Fiber& other = fibers[first.thread - 1];
  if (other.barriers != first.barriers) return false;
  bool same_warp = other.block == self->block && other.thread / 32 == self->thread / 32;
  return !(same_warp && (was_write ? other.syncwarps : other.collectives) != first.in_warp);
}

static void check_races(Region& r, const char* p, unsigned size, unsigned how, void* pc) {
  bool atomic = how & EMU_ATOMIC, writes = how & EMU_WRITE;
  Access mine = {(uint32_t)(self - fibers) + 1, self->barriers,
                 writes ? self->syncwarps : self->collectives, place(pc), atomic};
  size_t last = (size_t)(p + size - 1 - r.lo) / r.granule;
  for (size_t i = (size_t)(p - r.lo) / r.granule; i <= last; i++) {
    Granule& g = r.shadow[i];
    const Access* other = unordered(g.write, true, atomic)             ? &g.write
                          : writes && unordered(g.read, false, atomic) ? &g.read
                                                                       : nullptr;
    if (other)
      fail(pc, "%s %s[%zu], which thread %u of block %u %s at @%x@ with no barrier between: a race",
           writes ? "writes" : "reads", r.name, i, fibers[other->thread - 1].thread,
           fibers[other->thread - 1].block, other == &g.write ? "wrote" : "read", other->pc);
    if (writes ? r.readonly[i] : (how & EMU_READONLY) && g.write.thread)
      fail(pc, "%s %s[%zu], which this launch also %s: the read-only path need not see it",
           writes ? "writes" : "reads through the read-only path", r.name, i,
           writes ? "reads through the read-only path" : "writes");
    if (how & EMU_READONLY) r.readonly[i] = 1;
    (writes ? g.write : g.read) = mine;
    if (writes) r.written[i] = writes_so_far + 1;
  }
  if (!writes) return;
  memcpy(r.before + (p - r.lo), p, size);
  writes_so_far++;
}

static Region* find(const char* p) {
  if (last_region && last_region->holds(p)) return last_region;
  if (here->shared.holds(p)) return last_region = &here->shared;
  if (here->dynamic.holds(p)) return last_region = &here->dynamic;
  for (int64_t i = 0; i < L.num_arrays; i++)
    if (regions[i].holds(p)) return last_region = &regions[i];
  return nullptr;
}

__attribute__((noreturn)) static void out_of_bounds(const char* p, unsigned size, unsigned how,
                                                    void* pc) {
  const char* verb = how & EMU_WRITE ? "writes" : "reads";
  const Region* nearest = nullptr;
  int64_t distance = INT64_MAX;
  for (int64_t i = 0; i < L.num_arrays + 2; i++) {
    const Region& r = i < L.num_arrays    ? regions[i]
                      : i == L.num_arrays ? here->shared
                                          : here->dynamic;
    int64_t d = p < r.lo ? r.lo - p : p + size - r.hi;
    if (r.hi > r.lo && d < distance) nearest = &r, distance = d;
  }
  if (!nearest || distance > (1 << 20))
    fail(pc, "%s %u bytes at %p, far from every array: out of bounds", verb, size, (const void*)p);
  fail(pc, "%s %u bytes at byte %lld of %s, which has %lld bytes: out of bounds", verb, size,
       (long long)(p - nearest->lo), nearest->name, (long long)(nearest->hi - nearest->lo));
}
