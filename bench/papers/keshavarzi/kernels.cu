// Breadth-first search by masks (Harish, Narayanan), by queues (Luo), by a warp for each vertex
// (Hong). Levels are stored; of a queue, all vertices reached so far are kept, in order of levels.

#include "prelude.cuh"

// ---- Harish: a thread for each vertex, masks in global memory ----------------------------------
extern "C" __global__ void expand_masked(i64 lo, i64 hi, const i64* indptr, const u32* targets,
                                         const u8* visited, u8* mask, i32* levels, u8* updating) {
  for (i64 u = lo + thread_index(); u < hi; u += thread_count()) {
    if (!mask[u]) continue;
    mask[u] = 0;
    i32 level = load_relaxed(&levels[u]);
    for (i64 arc = indptr[u]; arc < indptr[u + 1]; arc++) {
      u32 v = targets[arc];
      if (visited[v]) continue;
      // All writers of a level store the same level and mark.
      store_relaxed(&levels[v], level + 1);
      store_relaxed(&updating[v], (u8)1);
    }
  }
}

extern "C" __global__ void commit_masked(i64 lo, i64 hi, u8* updating, u8* mask, u8* visited,
                                         i64* is_any) {
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) {
    if (!updating[v]) continue;
    updating[v] = 0;
    mask[v] = 1;
    visited[v] = 1;
    store_relaxed(is_any, (i64)1);
  }
}

// ---- Hong: a warp for each vertex, no queue ----------------------------------------------------
extern "C" __global__ void expand_by_warps(i64 lo, i64 hi, const i64* indptr, const u32* targets,
                                           i64 level, i32* levels, i64* is_any) {
  for (i64 u = lo + warp_index(); u < hi; u += warp_count()) {
    // Of this level all lanes see the same: it is not stored in this launch.
    if (load_relaxed(&levels[u]) != level) continue;
    for (i64 arc = indptr[u] + lane_index(); arc < indptr[u + 1]; arc += 32) {
      i32* of = &levels[targets[arc]];
      if (load_relaxed(of) <= level + 1) continue;
      store_relaxed(of, (i32)(level + 1));
      store_relaxed(is_any, (i64)1);
    }
  }
}

// ---- Luo: queues of a block and of the grid ------------------------------------------------------
constexpr u32 BLOCK_QUEUE = 2048;

// New vertices of a level: first in the block's queue, in the grid's what does not fit there.
struct Found {
  u32 *block, *block_count, *grid;
  i64* count;

  __device__ inline void clear() {
    __syncthreads();
    if (threadIdx.x == 0) *block_count = 0;
    __syncthreads();
  }
  // One thread alone lowers a level from "not reached".
  __device__ inline void visit(u32 v, i32 level, i32* levels) {
    if (load_relaxed(&levels[v]) != top_of<i32>::value()) return;
    if (atomic_min(&levels[v], level + 1) != top_of<i32>::value()) return;
    u32 slot = atomic_add(block_count, 1u);
    if (slot < BLOCK_QUEUE)
      block[slot] = v;
    else
      grid[atomic_add(count, (i64)1)] = v;
  }
  __device__ inline void flush() {
    __shared__ i64 base;
    __syncthreads();
    u32 own = *block_count < BLOCK_QUEUE ? *block_count : BLOCK_QUEUE;
    if (threadIdx.x == 0 && own) base = atomic_add(count, (i64)own);
    __syncthreads();
    for (u32 i = threadIdx.x; i < own; i += blockDim.x) grid[base + i] = block[i];
    clear();
  }
};

// One level in one launch: a thread for each vertex of the queue.
extern "C" __global__ void expand_queue(i64 lo, i64 hi, const i64* indptr, const u32* targets,
                                        const u32* queue, i64 level, i32* levels, u32* next,
                                        i64* next_count) {
  __shared__ u32 block[BLOCK_QUEUE], block_count;
  Found found = {block, &block_count, next, next_count};
  found.clear();
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    u32 u = queue[i];
    for (i64 arc = indptr[u]; arc < indptr[u + 1]; arc++)
      found.visit(targets[arc], (i32)level, levels);
  }
  found.flush();
}

// Many levels in one launch, while each has at least `least` and fewer than `most` vertices.
// Vertices of more than `heavy` arcs are set aside for a second pass, in which all threads process
// the arcs of each. words: head and tail of the level in the queue, the level; then the numbers of
// vertices found in three levels, and of heavy ones in two, each cleared while no thread uses it.
extern "C" __global__ void expand_levels(i64 lo, i64 hi, const i64* indptr, const u32* targets,
                                         i64 least, i64 most, i64 heavy, const u32* abort,
                                         i64* arrived, i32* levels, u32* queue, u32* set_aside,
                                         i64* words) {
  __shared__ u32 block[BLOCK_QUEUE], block_count;
  const i64 first = words[2];
  i64 head = words[0], tail = words[1], level = first;
  i64 *counts = words + 3, *heavy_counts = words + 6;
  Found found = {block, &block_count, queue + tail, counts};
  found.clear();
  while (tail - head >= least && tail - head < most) {
    found.grid = queue + tail;
    found.count = &counts[level % 3];
    if (thread_index() == 0) store_relaxed(&counts[(level + 1) % 3], (i64)0);
    i64* num_heavy = &heavy_counts[level & 1];
    for (i64 i = head + thread_index(); i < tail; i += thread_count()) {
      u32 u = queue[i];
      if (indptr[u + 1] - indptr[u] > heavy)
        set_aside[atomic_add(num_heavy, (i64)1)] = u;
      else
        for (i64 arc = indptr[u]; arc < indptr[u + 1]; arc++)
          found.visit(targets[arc], (i32)level, levels);
    }
    if (!grid_barrier(arrived, abort)) return;
    if (thread_index() == 0) store_relaxed(&heavy_counts[~level & 1], (i64)0);
    for (i64 h = 0, count = load_relaxed(num_heavy); h < count; h++) {
      u32 u = set_aside[h];
      for (i64 arc = indptr[u] + thread_index(); arc < indptr[u + 1]; arc += thread_count())
        found.visit(targets[arc], (i32)level, levels);
    }
    found.flush();
    if (!grid_barrier(arrived, abort)) return;
    head = tail;
    tail += load_relaxed(&counts[level % 3]);
    level++;
  }
  if (thread_index() == 0 && level > first) {
    store_relaxed(&words[0], head);
    store_relaxed(&words[1], tail);
    store_relaxed(&words[2], level);
  }
}
