// Trees of vertices, an array of parents in which a tree root is its own: what components and
// spanning forests share.

#include "prelude.cuh"

// Compress v's path: v becomes a child of its root, which is returned. A thread writes v's entry
// alone, at each hop, so that other threads skip along: one that reads a value from before takes a
// longer path to the same root.
__device__ inline vertex_t compress_path(vertex_t* parents, i64 v) {
  vertex_t parent = load_stale(&parents[v]), above = load_stale(&parents[parent]);
  while (above != parent) {
    store_relaxed(&parents[v], above);
    parent = above;
    above = load_stale(&parents[parent]);
  }
  return parent;
}

// Find the root of v's tree; entries on the path skip to their grandparents. components/kernels.py
// argues why any thread may do so at any time.
__device__ inline vertex_t find(vertex_t* parents, vertex_t v) {
  vertex_t parent = load_stale(&parents[v]);
  if (parent == v) return parent;
  vertex_t above = load_stale(&parents[parent]);
  while (above != parent) {
    store_relaxed(&parents[v], above);
    v = parent;
    parent = above;
    above = load_stale(&parents[parent]);
  }
  return parent;
}

// Join the trees of u and v: the larger root becomes a child of the smaller.
__device__ inline void link(vertex_t* parents, vertex_t u, vertex_t v) {
  vertex_t high = find(parents, u), low = find(parents, v);
  while (high != low) {
    if (high < low) {
      vertex_t former_low = low;
      low = high;
      high = former_low;
    }
    vertex_t previous = atomic_min(&parents[high], low);
    if (previous == high) break;
    // Another thread linked `high` first: join the tree that it became part of with `low` too.
    high = find(parents, previous);
  }
}
