// What every access of a kernel is checked for: bounds, unwritten memory, races.
#pragma once
#include "grid.h"

static uint64_t number_of(const Fiber* f) { return threads_before + (uint64_t)(f - fibers) + 1; }
static const Fiber& fiber_of(const Access& access) {
  return fibers[access.thread - threads_before - 1];
}
static bool is_of_this_launch(const Access& access) { return access.thread > threads_before; }

static bool unordered(const Access& first, bool was_write, bool atomic) {
  if (!is_of_this_launch(first) || first.thread == number_of(self) || (first.atomic && atomic))
    return false;
  const Fiber& other = fiber_of(first);
  if (other.barriers != first.barriers) return false;
  bool same_warp = other.block == self->block && other.thread / 32 == self->thread / 32;
  return !(same_warp && (was_write ? other.syncwarps : other.collectives) != first.in_warp);
}

static void check_races(Region& r, const char* p, unsigned size, unsigned how, void* pc) {
  bool atomic = how & EMU_ATOMIC, writes = how & EMU_WRITE;
  Access mine = {number_of(self), place(pc), atomic, self->barriers,
                 writes ? self->syncwarps : self->collectives};
  size_t last = (size_t)(p + size - 1 - r.lo) / r.granule;
  for (size_t i = (size_t)(p - r.lo) / r.granule; i <= last; i++) {
    Granule& g = r.shadow[i];
    const Access* other = unordered(g.write, true, atomic)             ? &g.write
                          : writes && unordered(g.read, false, atomic) ? &g.read
                                                                       : nullptr;
    if (other)
      fail(pc, "%s %s[%zu], which thread %u of block %u %s at @%x@ with no barrier between: a race",
           writes ? "writes" : "reads", r.name, i, fiber_of(*other).thread, fiber_of(*other).block,
           other == &g.write ? "wrote" : "read", (unsigned)other->pc);
    if (writes ? r.readonly[i] == threads_before + 1
               : (how & EMU_READONLY) && is_of_this_launch(g.write))
      fail(pc, "%s %s[%zu], which this launch also %s: the read-only path need not see it",
           writes ? "writes" : "reads through the read-only path", r.name, i,
           writes ? "reads through the read-only path" : "writes");
    if (how & EMU_READONLY) r.readonly[i] = threads_before + 1;
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
