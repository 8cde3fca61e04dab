#include "prelude.cuh"

constexpr i64 TOP = top_of<i64>::value();

extern "C" __global__ void find_claimed(i64 lo, i64 hi, const i64* rows, const i64* positions,
                                        const i64* indptr, const vertex_t* targets, i64 stride,
                                        i64 multiplier, i64* arcs) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 first = indptr[rows[i]], end = indptr[rows[i] + 1], last = end;
    while (first < last) {
      i64 middle = (first + last) >> 1;
      if ((i64)position_of(targets[middle], stride, multiplier) < positions[i])
        first = middle + 1;
      else
        last = middle;
    }
    bool found =
        first < end && (i64)position_of(targets[first], stride, multiplier) == positions[i];
    arcs[i] = found ? first : TOP;
  }
}

extern "C" __global__ void check_outside(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                         const weight_t* weights, i64 base, const id_t* above,
                                         const out_t* heaviest, u8* crosses, u8* lighter) {
  for (i64 row = lo + warp_index(); row < hi; row += warp_count())
    for (i64 i = indptr[row] + lane_index(); i < indptr[row + 1]; i += 32) {
      i64 u = base + row, v = targets[i], path_max = -TOP - 1;
      while (u != v && (above[u] != u || above[v] != v)) {
        i64 w = heaviest[u] > heaviest[v] ? heaviest[u] : heaviest[v];
        path_max = w > path_max ? w : path_max;
        u = above[u], v = above[v];
      }
      // Race: several lanes may mark one row at a time; all of them write the same 1.
      if (u != v)
        store_relaxed(&crosses[row], (u8)1);
      else if (weight_sort_key(weights[i]) < path_max)
        store_relaxed(&lighter[row], (u8)1);
    }
}
