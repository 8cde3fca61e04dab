// Boruvka's rounds in one launch; boruvka.py has the same, a launch a step. What joins trees does
// so in a total order of edges, so that which edges are taken does not depend on how trees are
// numbered: here as their roots are met.

#include "kernels.cuh"
#include "prelude.cuh"

// Places in `counters`, lines of memory apart. Those of three are used in turn: one is read, one is
// written, one is cleared.
constexpr i64 APART = 16;
constexpr i64 ARRIVED = 0, DONE = 1, TAKEN = APART, TREES = 2 * APART, EDGES = 5 * APART;
__device__ inline i64* in_turn(i64* counters, i64 place, int round) {
  return &counters[place + round % 3 * APART];
}

// Trees that a lane takes at a time where there are many: one reservation serves them all.
constexpr i64 MOST_EACH = 8;

// The root of a tree. A thread writes its own tree's entry alone, at each step, for others to skip
// along: who reads an older value since all met takes a longer way to the same root.
__device__ inline vertex_t root_of(vertex_t* above, i64 tree) {
  vertex_t next = load_stale(&above[tree]);
  while (true) {
    vertex_t further = load_stale(&above[next]);
    if (further == next) return next;
    store_relaxed(&above[tree], further);
    next = further;
  }
}

// Put every tree right below its root, number the roots, and take the best edges of all others.
__device__ inline void join_and_number(i64 num_trees, vertex_t* above, const i64* best, i64 mask,
                                       vertex_t* numbers, i64* num_roots, i64* num_taken,
                                       i64* taken) {
  i64 each = num_trees / thread_count();
  each = each < 1 ? 1 : each > MOST_EACH ? MOST_EACH : each;
  for (i64 begin = warp_index() * 32 * each; begin < num_trees; begin += warp_count() * 32 * each) {
    i64 end = begin + 32 * each < num_trees ? begin + 32 * each : num_trees, own = 0;
    for (i64 tree = begin + lane_index(); tree < end; tree += 32) {
      own += (i64)root_of(above, tree) == tree;
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
      u32 before = (1u << lane_index()) - 1, who = __ballot_sync(0xFFFFFFFFu, is_root);
      u32 others = __ballot_sync(0xFFFFFFFFu, is_below);
      if (is_root) numbers[tree] = (vertex_t)(root_place + __popc(who & before));
      if (is_below) taken[edge_place + __popc(others & before)] = best[tree] & mask;
      root_place += __popc(who);
      edge_place += __popc(others);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256, 4)
    join_vertices(i64 lo, i64 hi, const u32* abort, const i64* arcs, vertex_t* above,
                  vertex_t* numbers, vertex_t* labels, i64* taken, i64* counters) {
  // As remove_cycles does, and argues.
  for (i64 v = thread_index(); v < hi; v += thread_count()) {
    vertex_t other = load_relaxed(&above[v]);
    if (v < (i64)other && (i64)load_relaxed(&above[other]) == v)
      store_relaxed(&above[v], (vertex_t)v);
  }
  if (!grid_barrier(&counters[ARRIVED], abort)) return;
  join_and_number(hi, above, arcs, -1, numbers, in_turn(counters, TREES, 0), &counters[TAKEN],
                  taken);
  if (!grid_barrier(&counters[ARRIVED], abort)) return;
  for (i64 v = thread_index(); v < hi; v += thread_count()) labels[v] = numbers[above[v]];
  if (thread_index() == 0) counters[DONE] = 1;
}

// A work list: boruvka.py.
struct List {
  vertex_t* ends;
  i64 *keys, *edges;
};

// Hook every tree below the one that its best edge leads to. Two are below each other where the
// edge is the best of both: the smaller number becomes a root.
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
  Appender out(TOP, count, rest.ends, rest.keys, rest.edges);
  for (i64 begin = warp_index() * 32; begin < length; begin += warp_count() * 32) {
    i64 i = begin + lane_index();
    vertex_t u = 0, v = 0;
    if (i < length) {
      u = numbers[above[list.ends[2 * i]]];
      v = numbers[above[list.ends[2 * i + 1]]];
    }
    out.push(u != v, u, v, u != v ? list.keys[i] : 0, u != v && list.edges ? list.edges[i] : 0);
  }
  out.flush();
}

// Every tree alone, with no edge yet.
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
      store_relaxed(in_turn(counters, TREES, round + 2), (i64)0);
      store_relaxed(in_turn(counters, EDGES, round + 2), (i64)0);
    }
    offer_edges(0, length, list.ends, list.keys, nullptr, nullptr, best);
    if (!grid_barrier(arrived, abort)) return;
    if (first) {
      offer_edges(0, length, list.ends, list.keys, list.edges, best, first);
      if (!grid_barrier(arrived, abort)) return;
    }
    hook_trees(length, list, first ? first : best, above);
    if (!grid_barrier(arrived, abort)) return;
    join_and_number(left, above, first ? first : best, first ? -1 : 0xFFFFFFFFll, numbers,
                    in_turn(counters, TREES, round + 1), &counters[TAKEN], taken);
    if (!grid_barrier(arrived, abort)) return;
    contract_list(length, list, above, numbers, in_turn(counters, EDGES, round + 1), rest);
    for (i64 i = thread_index(); tree_of && i < num_trees; i += thread_count())
      tree_of[i] = numbers[above[tree_of[i]]];
    left = load_relaxed(in_turn(counters, TREES, round + 1));
    begin_round(left, best, first, next_above);
    if (!grid_barrier(arrived, abort)) return;
    length = load_relaxed(in_turn(counters, EDGES, round + 1));
    List was = list;
    list = rest;
    rest = was;
    vertex_t* done = above;
    above = next_above;
    next_above = done;
  }
  if (thread_index() == 0) counters[DONE] = 1;
}
