// Breadth-first search in two kernels a level, one thread for each vertex, without a queue.

#include "prelude.cuh"

// A vertex that is next and not visited becomes visited, and marks its targets. All writers of a
// mark write the same value.
extern "C" __global__ void traversal(i64 lo, i64 hi, const u32* targets, i64 degree, const u8* next,
                                     i64 level, u8* visited, i32* levels, u8* marks) {
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) {
    if (!next[v] || visited[v]) continue;
    visited[v] = 1;
    levels[v] = (i32)level;
    for (i64 arc = v * degree; arc < (v + 1) * degree; arc++)
      store_relaxed(&marks[targets[arc]], (u8)1);
  }
}

// Marked vertices that are not visited become next; marks are cleared.
extern "C" __global__ void refresh(i64 lo, i64 hi, const u8* visited, u8* marks, u8* next,
                                   i64* is_any_next) {
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) {
    next[v] = marks[v] && !visited[v];
    marks[v] = 0;
    if (next[v]) store_relaxed(is_any_next, (i64)1);
  }
}
