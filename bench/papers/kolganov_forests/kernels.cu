// Boruvka's rounds on flat arrays: the lightest edge out of each tree, removal of cycles, join,
// renumbering. Edges are ordered by weight, then by number, so that the forest is one set of edges.

#include "prelude.cuh"

constexpr i64 NONE = 0x7FFFFFFFFFFFFFFFll;
constexpr u32 NO_BASE = 0xFFFFFFFFu;
constexpr u32 ALL_LANES = 0xFFFFFFFFu;

// ---- lightest edge: a warp for each list --------------------------------------------------------
// In a list sorted by weight the first arc to another tree is the lightest. Arcs before it are in
// the tree for good: the next round begins there.
template <class Target> __device__ inline void first_leaving(i64 lo, i64 hi, const i64* indptr,
                                                             const u32* tree, i64* begin,
                                                             i64* found, Target target) {
  for (i64 v = lo + warp_index(); v < hi; v += warp_count()) {
    // Lane 0 alone reads and writes where a list begins.
    i64 end = indptr[v + 1], at = __shfl_sync(ALL_LANES, lane_index() ? 0 : begin[v], 0);
    u32 own = tree[v], leaving = 0;
    for (; at < end && !leaving; at += 32) {
      i64 arc = at + lane_index();
      leaving = __ballot_sync(ALL_LANES, arc < end && tree[target(v, arc < end ? arc : at)] != own);
    }
    if (lane_index()) continue;
    i64 first = leaving ? at - 32 + __ffs(leaving) - 1 : end;
    begin[v] = first;
    found[v] = leaving ? first : NONE;
  }
}

extern "C" __global__ void first_leaving_arcs(i64 lo, i64 hi, const i64* indptr, const u32* targets,
                                              const u32* tree, i64* begin, i64* found) {
  first_leaving(lo, hi, indptr, tree, begin, found, [&](i64 v, i64 arc) { return targets[arc]; });
}

// The same from compressed neighbors: a base for each vertex, a byte and two bits for each arc.
// Where neighbors are too far apart there is no base, and they are read as they are.
extern "C" __global__ void first_leaving_compressed(i64 lo, i64 hi, const i64* indptr,
                                                    const u32* targets, const u32* bases,
                                                    const u8* remainders, const u8* multiples,
                                                    const u32* tree, i64* begin, i64* found) {
  first_leaving(lo, hi, indptr, tree, begin, found, [&](i64 v, i64 arc) {
    u32 base = bases[v];
    if (base == NO_BASE) return targets[arc];
    u32 multiple = multiples[arc >> 2] >> 2 * (arc & 3) & 3;
    return base + remainders[arc] + 256 * multiple;
  });
}

// In a list that is not sorted all arcs are scanned.
extern "C" __global__ void lightest_leaving_arcs(i64 lo, i64 hi, const i64* indptr,
                                                 const u32* targets, const weight_t* weights,
                                                 const u32* edges, const u32* tree, i64* found) {
  for (i64 v = lo + warp_index(); v < hi; v += warp_count()) {
    i64 best = NONE;
    for (i64 arc = indptr[v] + lane_index(); arc < indptr[v + 1]; arc += 32) {
      if (tree[targets[arc]] == tree[v]) continue;
      if (best == NONE || weights[arc] < weights[best] ||
          (weights[arc] == weights[best] && edges[arc] < edges[best]))
        best = arc;
    }
    for (int d = 16; d; d >>= 1) {
      i64 other = __shfl_xor_sync(ALL_LANES, best, d);
      if (other == NONE) continue;
      if (best == NONE || weights[other] < weights[best] ||
          (weights[other] == weights[best] && edges[other] < edges[best]))
        best = other;
    }
    if (lane_index() == 0) found[v] = best;
  }
}

// ---- lightest edge of a tree: weight and number in one word, or one after the other --------------
extern "C" __global__ void lightest_of_trees(i64 lo, i64 hi, const i64* found, const u32* weights,
                                             const u32* edges, const u32* tree, i64* best) {
  for (i64 v = lo + thread_index(); v < hi; v += thread_count())
    if (found[v] != NONE) lower(&best[tree[v]], (i64)weights[found[v]] << 32 | edges[found[v]]);
}

extern "C" __global__ void least_weights(i64 lo, i64 hi, const i64* found, const double* weights,
                                         const u32* tree, double* least) {
  for (i64 v = lo + thread_index(); v < hi; v += thread_count())
    if (found[v] != NONE) lower(&least[tree[v]], weights[found[v]]);
}

extern "C" __global__ void least_edges(i64 lo, i64 hi, const i64* found, const double* weights,
                                       const u32* edges, const u32* tree, const double* least,
                                       i64* best) {
  for (i64 v = lo + thread_index(); v < hi; v += thread_count())
    if (found[v] != NONE && weights[found[v]] == least[tree[v]])
      lower(&best[tree[v]], (i64)edges[found[v]]);
}

// ---- remove cycles: of two trees that point at each other the smaller number becomes a root ------
extern "C" __global__ void remove_cycles(i64 lo, i64 hi, const i64* best, const u32* starts,
                                         const u32* ends, const u32* tree, u32* parent, u32* forest,
                                         i64* num_forest) {
  for (i64 t = lo + thread_index(); t < hi; t += thread_count()) {
    if (best[t] == NONE) {
      parent[t] = (u32)t;
      continue;
    }
    u32 edge = (u32)best[t], a = tree[starts[edge]], b = tree[ends[edge]];
    u32 other = a == t ? b : a;
    bool is_mutual = best[other] != NONE && (u32)best[other] == edge;
    bool is_root = is_mutual && t < other;
    parent[t] = is_root ? (u32)t : other;
    if (!is_root) forest[reserve(num_forest)] = edge;
  }
}

// ---- join: pointers jump to the root --------------------------------------------------------------
// Race: another thread may lower a pointer that is read here, to one nearer to the same root.
extern "C" __global__ void join(i64 lo, i64 hi, u32* parent) {
  for (i64 t = lo + thread_index(); t < hi; t += thread_count()) {
    u32 above = load_relaxed(&parent[t]), next;
    while ((next = load_relaxed(&parent[above])) != above) above = next;
    store_relaxed(&parent[t], above);
  }
}

// ---- renumber: roots get numbers 0 .. P by atomics -----------------------------------------------
extern "C" __global__ void number_roots(i64 lo, i64 hi, const u32* parent, u32* new_of_old,
                                        u32* old_of_new, i64* num_roots) {
  for (i64 t = lo + thread_index(); t < hi; t += thread_count()) {
    if (parent[t] != t) continue;
    i64 number = reserve(num_roots);
    new_of_old[t] = (u32)number;
    old_of_new[number] = (u32)t;
  }
}

extern "C" __global__ void renumber(i64 lo, i64 hi, const u32* parent, const u32* new_of_old,
                                    u32* tree) {
  for (i64 v = lo + thread_index(); v < hi; v += thread_count())
    tree[v] = new_of_old[parent[tree[v]]];
}
