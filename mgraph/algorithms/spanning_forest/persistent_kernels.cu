// Boruvka's rounds in one launch; boruvka.py runs the same rounds as one launch per step. Trees are
// joined in a total order of edges, so that the edges taken do not depend on the numbers of trees,
// which here follow the order of atomics.
//
// State of join_trees. Grid barriers separate its steps: select the best edges, hook, join
// (compress paths, number the roots), contract.
//   array       holds                                         written by, until
//   list        edges between trees                           contract; swapped with `rest`
//   best        least key of each tree's edges                select; begin_round
//   first       least edge of that key, if keys hold no edge  select; begin_round
//   above       the tree to which a tree is hooked            hook, join; swapped with next_above
//   next_above  itself, for each tree of the next round       begin_round; swapped
//   numbers     the next number of each root                  join; the next round's join
//   taken       edges of the forest                           join, from counters[TAKEN] on
//   tree_of     today's number of each first tree             contract; the next round's contract
//   counters    numbers of trees and edges                    warps; triple-buffered by round

#include "kernels.cuh"
#include "persistent_kernels.py"
#include "prelude.cuh"
#include "trees.cuh"

// The slot of a triple-buffered counter that belongs to a round: one is read, one is written, one
// is cleared.
__device__ inline i64* rotated(i64* counters, i64 place, int round) {
  return &counters[place + round % 3 * COUNTER_STRIDE];
}

// Trees per lane and reservation, where there are many: one reservation of a warp serves them all.
constexpr i64 MAX_TREES_PER_LANE = 8;

// Compress paths, number the roots, and take the best edges of all other trees.
__device__ inline void join_and_number(i64 num_trees, vertex_t* above, const i64* best,
                                       vertex_t* numbers, i64* num_roots, i64* num_taken,
                                       i64* taken) {
  i64 each = num_trees / thread_count();
  each = each < 1 ? 1 : each > MAX_TREES_PER_LANE ? MAX_TREES_PER_LANE : each;
  for (i64 begin = warp_index() * 32 * each; begin < num_trees; begin += warp_count() * 32 * each) {
    i64 end = begin + 32 * each < num_trees ? begin + 32 * each : num_trees, own = 0;
    for (i64 tree = begin + lane_index(); tree < end; tree += 32) {
      own += (i64)compress_path(above, tree) == tree;
    }
    i64 roots = warp_sum(own), root_place = 0, edge_place = 0;
    if (lane_index() == 0) {
      root_place = atomic_add(num_roots, roots);
      edge_place = atomic_add(num_taken, end - begin - roots);
    }
    root_place = __shfl_sync(0xFFFFFFFFu, root_place, 0);
    edge_place = __shfl_sync(0xFFFFFFFFu, edge_place, 0);
    for (i64 first = begin; first < end; first += 32) {
      i64 tree = first + lane_index();
      bool is_root = tree < end && (i64)load_relaxed(&above[tree]) == tree,
           is_below = tree < end && !is_root;
      u32 before = (1u << lane_index()) - 1, root_mask = __ballot_sync(0xFFFFFFFFu, is_root);
      u32 below_mask = __ballot_sync(0xFFFFFFFFu, is_below);
      if (is_root) numbers[tree] = (vertex_t)(root_place + __popc(root_mask & before));
      if (is_below) taken[edge_place + __popc(below_mask & before)] = best[tree];
      root_place += __popc(root_mask);
      edge_place += __popc(below_mask);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256, 4)
    join_vertices(i64 lo, i64 hi, const u32* abort, const i64* arcs, vertex_t* above,
                  vertex_t* numbers, vertex_t* labels, i64* taken, i64* counters) {
  cut_cycles(0, hi, above);
  if (!grid_barrier(&counters[ARRIVED], abort)) return;
  join_and_number(hi, above, arcs, numbers, rotated(counters, TREES, 0), &counters[TAKEN], taken);
  if (!grid_barrier(&counters[ARRIVED], abort)) return;
  for (i64 v = thread_index(); v < hi; v += thread_count()) labels[v] = numbers[above[v]];
  if (thread_index() == 0) counters[DONE] = 1;
}

// Hook every tree to the one that its best edge leads to. Two trees hooked to each other have the
// same best edge: the smaller number becomes a root.
__device__ inline void hook_trees(i64 length, List list, const i64* best, vertex_t* above) {
  for (i64 i = thread_index(); i < length; i += thread_count()) {
    vertex_t u = list.ends[2 * i], v = list.ends[2 * i + 1];
    i64 name = list.edges ? list.edges[i] : list.keys[i];
    bool of_u = name == best[u], of_v = name == best[v];
    if (of_u && !(of_v && u < v)) above[u] = v;
    if (of_v && !(of_u && v < u)) above[v] = u;
  }
}

// List the edges that still lead from one tree to another, by the trees' new numbers.
__device__ inline void contract_list(i64 length, List list, const vertex_t* above,
                                     const vertex_t* numbers, i64* count, List rest) {
  contract_edges(0, length, {list.ends, list.keys, list.edges}, count, rest,
                 [=](vertex_t tree) { return numbers[above[tree]]; });
}

// Make every tree a root without a best edge.
__device__ inline void begin_round(i64 num_trees, i64* best, i64* first, vertex_t* above) {
  for (i64 tree = thread_index(); tree < num_trees; tree += thread_count()) {
    best[tree] = TOP;
    above[tree] = (vertex_t)tree;
    if (first) first[tree] = TOP;
  }
}

extern "C" __global__ void __launch_bounds__(256, 4)
    join_trees(i64 lo, i64 hi, const u32* abort, i64 num_trees, vertex_t* ends, i64* keys,
               i64* edges, vertex_t* more_ends, i64* more_keys, i64* more_edges, i64* words,
               vertex_t* trees, vertex_t* tree_of, i64* counters) {
  List list = {ends, keys, edges}, rest = {more_ends, more_keys, more_edges};
  i64 *best = words, *first = edges ? words + num_trees : nullptr,
      *taken = words + (edges ? 2 : 1) * num_trees;
  vertex_t *above = trees, *next_above = trees + num_trees, *numbers = trees + 2 * num_trees;
  i64* arrived = &counters[ARRIVED];
  begin_round(num_trees, best, first, above);
  for (i64 i = thread_index(); tree_of && i < num_trees; i += thread_count())
    tree_of[i] = (vertex_t)i;
  if (!grid_barrier(arrived, abort)) return;
  i64 length = hi, left = num_trees;
  for (int round = 0; length; round++) {
    if (thread_index() == 0) {
      store_relaxed(rotated(counters, TREES, round + 2), (i64)0);
      store_relaxed(rotated(counters, EDGES, round + 2), (i64)0);
    }
    lower_best_of_edges(0, length, list.ends, list.keys, nullptr, nullptr, best);
    if (!grid_barrier(arrived, abort)) return;
    if (first) {
      lower_best_of_edges(0, length, list.ends, list.keys, list.edges, best, first);
      if (!grid_barrier(arrived, abort)) return;
    }
    hook_trees(length, list, first ? first : best, above);
    if (!grid_barrier(arrived, abort)) return;
    join_and_number(left, above, first ? first : best, numbers, rotated(counters, TREES, round + 1),
                    &counters[TAKEN], taken);
    if (!grid_barrier(arrived, abort)) return;
    contract_list(length, list, above, numbers, rotated(counters, EDGES, round + 1), rest);
    for (i64 i = thread_index(); tree_of && i < num_trees; i += thread_count())
      tree_of[i] = numbers[above[tree_of[i]]];
    left = load_relaxed(rotated(counters, TREES, round + 1));
    begin_round(left, best, first, next_above);
    if (!grid_barrier(arrived, abort)) return;
    length = load_relaxed(rotated(counters, EDGES, round + 1));
    List previous = list;
    list = rest;
    rest = previous;
    vertex_t* previous_above = above;
    above = next_above;
    next_above = previous_above;
  }
  if (thread_index() == 0) counters[DONE] = 1;
}
