#include "prelude.cuh"

// pivot, factor, inverse, mask: see kernels.py. Products wrap, as those of NumPy's integers do.
__device__ inline vertex_t priority_of(i64 state, const i64* numbering) {
  return (vertex_t)((u64)(state - numbering[0]) * (u64)numbering[1] & (u64)numbering[3]);
}
__device__ inline i64 state_of_priority(vertex_t priority, const i64* numbering) {
  return (i64)((u64)priority * (u64)numbering[2] + (u64)numbering[0] & (u64)numbering[3]);
}

extern "C" __global__ void paint(i64 lo, i64 hi, const u32* live, const i64* numbering,
                                 vertex_t* colors) {
  for (i64 word = lo + warp_index(); word < hi; word += warp_count()) {
    i64 state = 32 * word + lane_index();
    if (live[word] >> lane_index() & 1) colors[state] = priority_of(state, numbering);
  }
}

extern "C" __global__ void push_colors(i64 lo, i64 hi, const vertex_t* frontier, i64 num_frontier,
                                       const i64* offsets, const i64* begins,
                                       const vertex_t* targets, const u32* live,
                                       const vertex_t* regions, vertex_t* colors, u32* marked,
                                       vertex_t* found, i64* counters) {
  each_arc_of_rows(lo, hi, offsets, num_frontier, [&](i64 k, i64 arc) {
    vertex_t u = frontier[k], v = targets[begins[k] + arc - offsets[k]];
    if (!test_bit(live, v) || regions[v] != regions[u]) return;
    if (lower(&colors[v], load_relaxed(&colors[u])) && set_bit(marked, v))
      found[reserve(&counters[0])] = v;
  });
}

extern "C" __global__ void follow_colors(i64 lo, i64 hi, const vertex_t* listed,
                                         const i64* numbering, vertex_t* colors, u32* marked,
                                         vertex_t* found, i64* counters) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t v = listed[i], before = load_relaxed(&colors[v]), color = before, further;
    while ((further = load_relaxed(&colors[state_of_priority(color, numbering)])) < color)
      color = further;
    if (color == before) continue;
    atomic_min(&colors[v], color);
    if (set_bit(marked, v)) found[reserve(&counters[0])] = v;
  }
}

extern "C" __global__ void merge_colors(i64 lo, i64 hi, const vertex_t* states,
                                        const vertex_t* values, i64 base, i64 num_owned,
                                        vertex_t* colors, u32* marked, vertex_t* found,
                                        i64* counters) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 v = states[i];
    lower(&colors[v], values[i]);
    if (v >= base && v < base + num_owned && set_bit(marked, v))
      found[reserve(&counters[0])] = (vertex_t)v;
  }
}

extern "C" __global__ void list_lowered(i64 lo, i64 hi, const vertex_t* listed,
                                        const vertex_t* before, i64 base, const vertex_t* colors,
                                        vertex_t* found, i64* counters) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t v = listed[i];
    if (colors[v] != before[v - base]) found[reserve(&counters[0])] = v;
  }
}

extern "C" __global__ void settle_colors(i64 lo, i64 hi, const vertex_t* listed, i64 base,
                                         const i64* numbering, const vertex_t* regions,
                                         const vertex_t* colors, vertex_t* roots, vertex_t* left,
                                         vertex_t* settled, i64* counters) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t v = listed[i];
    if (colors[v] != regions[v]) {
      left[reserve(&counters[0])] = v;
      continue;
    }
    roots[v - base] = (vertex_t)state_of_priority(colors[v], numbering);
    settled[reserve(&counters[1])] = v;
  }
}

extern "C" __global__ void trim(i64 lo, i64 hi, const vertex_t* listed, i64 base, const i64* indptr,
                                const vertex_t* targets, const u32* live, const vertex_t* regions,
                                vertex_t* left, vertex_t* trimmed, i64* counters) {
  i64 scanned = 0;
  for (i64 i = lo + warp_index(); i < hi; i += warp_count()) {
    vertex_t v = listed[i], region = regions[v];
    i64 begin = indptr[v - base], end = indptr[v - base + 1];
    u32 counting = 0;
    for (; begin < end && !counting; begin += 32) {
      i64 arc = begin + lane_index();
      bool counts = arc < end && test_bit(live, targets[arc]) && regions[targets[arc]] == region;
      counting = __ballot_sync(0xFFFFFFFFu, counts);
      scanned += counting ? __ffs(counting) : end - begin < 32 ? end - begin : 32;
    }
    if (lane_index()) continue;
    if (counting)
      left[reserve(&counters[0])] = v;
    else
      trimmed[reserve(&counters[1])] = v;
  }
  if (lane_index() == 0 && scanned) atomic_add(&counters[2], scanned);
}

extern "C" __global__ void lower_labels(i64 lo, i64 hi, const vertex_t* roots, const id_t* users,
                                        i64 base, id_t* smallest) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    lower(&smallest[roots[i]], users ? users[i] : (id_t)(base + i));
}

extern "C" __global__ void label_isolated(i64 lo, i64 hi, i64 first, i64* labels) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    if (labels[i] < 0) labels[i] = first + i;
}
