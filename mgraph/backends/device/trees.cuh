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
