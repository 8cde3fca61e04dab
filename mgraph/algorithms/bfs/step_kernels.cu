#include "prelude.cuh"

extern "C" __global__ void push_level(i64 lo, i64 hi, const vertex_t* frontier, i64 num_frontier,
                                      const i64* offsets, const i64* indptr,
                                      const vertex_t* targets, const u32* visited, i64 base,
                                      i64 first, i64 multiplier, vertex_t* parents, vertex_t* found,
                                      i64* counters) {
  each_arc_of_rows(lo, hi, offsets, num_frontier, [&](i64 k, i64 arc) {
    i64 u = (i64)frontier[k] - base;
    vertex_t position = (vertex_t)(u * multiplier + first);
    vertex_t v = targets[indptr[u] + arc - offsets[k]];
    if (test_bit(visited, v) || load_relaxed(&parents[v]) <= position) return;
    if (atomic_min(&parents[v], position) == top_of<vertex_t>::value())
      found[reserve(&counters[0])] = v;
  });
}

extern "C" __global__ void merge_parents(i64 lo, i64 hi, const vertex_t* states,
                                         const vertex_t* positions, const u32* visited,
                                         vertex_t* parents, vertex_t* found, i64* counters) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t v = states[i];
    if (!test_bit(visited, v) && atomic_min(&parents[v], positions[i]) == top_of<vertex_t>::value())
      found[reserve(&counters[0])] = v;
  }
}

extern "C" __global__ void pull_level(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                      const u32* frontier, const u32* visited, i64 base, i64 stride,
                                      i64 multiplier, vertex_t* parents, vertex_t* found,
                                      i64* counters) {
  i64 scanned = 0;
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) {
    if (test_bit(visited, base + v)) continue;
    for (i64 i = indptr[v]; i < indptr[v + 1]; i++) {
      scanned++;
      vertex_t u = targets[i];
      if (!test_bit(frontier, u)) continue;
      parents[base + v] = position_of(u, stride, multiplier);
      found[reserve(&counters[0])] = (vertex_t)(base + v);
      break;
    }
  }
  warp_add(&counters[2], scanned);
}

extern "C" __global__ void settle_level(i64 lo, i64 hi, const vertex_t* found, const i64* indptr,
                                        i64 base, i64 level, u32* visited, i32* levels,
                                        i64* lengths, i64* counters) {
  i64 arcs = 0;
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 local = (i64)found[i] - base;
    set_bit(visited, found[i]);
    levels[local] = (i32)level;
    lengths[i] = indptr[local + 1] - indptr[local];
    arcs += lengths[i];
  }
  warp_add(&counters[1], arcs);
}

extern "C" __global__ void mark_bits(i64 lo, i64 hi, const vertex_t* states, u32* bits) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) set_bit(bits, states[i]);
}
