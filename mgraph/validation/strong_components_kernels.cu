#include "prelude.cuh"

extern "C" __global__ void visit_rows(i64 lo, i64 hi, const vertex_t* frontier, i64 base,
                                      const i64* indptr, const vertex_t* targets,
                                      const vertex_t* names, u32* noted, i64* counts,
                                      vertex_t* found, vertex_t* touched, i64* counters) {
  for (i64 k = lo + warp_index(); k < hi; k += warp_count()) {
    i64 u = frontier[k], row = u - base;
    for (i64 i = indptr[row] + lane_index(); i < indptr[row + 1]; i += 32) {
      vertex_t v = targets[i], name = names[v];
      if (name == names[u]) {
        // Race: bits are only set, so that a load that finds one set remains valid.
        if (!(load_relaxed(&noted[v >> 5]) >> (v & 31) & 1) && set_bit(noted, v))
          found[atomic_add(&counters[0], (i64)1)] = v;
      } else if (counts && atomic_add(&counts[name], (i64)1) == 0) {
        touched[atomic_add(&counters[1], (i64)1)] = name;
      }
    }
  }
}

extern "C" __global__ void release_names(i64 lo, i64 hi, const vertex_t* touched, const i64* counts,
                                         i64* pending, vertex_t* released, i64* counters) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    if (atomic_add(&pending[touched[i]], -counts[i]) == counts[i])
      released[reserve(&counters[0])] = touched[i];
  }
}

extern "C" __global__ void enter_states(i64 lo, i64 hi, const vertex_t* states, i64 base,
                                        i64 num_owned, u32* visited, vertex_t* frontier,
                                        i64* counters) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 v = states[i];
    if (set_bit(visited, v) && v >= base && v < base + num_owned)
      frontier[reserve(&counters[0])] = (vertex_t)v;
  }
}
