// What the step kernels of a spanning forest and its persistent kernel share.

#include "prelude.cuh"

// No edge: larger than any key.
constexpr i64 TOP = top_of<i64>::value();

// Appends edges to a work list, a warp together. They are staged in shared memory: one atomic and
// whole cache lines serve dozens of edges.
struct Appender {
  static constexpr int CAPACITY = 96, MAX_WARPS = 8;
  i64 capacity;
  i64* count;
  vertex_t* ends;
  i64 *keys, *edges;
  vertex_t* staged_ends;
  i64 *staged_keys, *staged_edges;
  int length;
  __device__ inline Appender(i64 capacity_, i64* count_, vertex_t* ends_, i64* keys_, i64* edges_)
      : capacity(capacity_), count(count_), ends(ends_), keys(keys_), edges(edges_), length(0) {
    __shared__ vertex_t all_ends[MAX_WARPS][2 * CAPACITY];
    __shared__ i64 all_keys[MAX_WARPS][CAPACITY], all_edges[MAX_WARPS][CAPACITY];
    int warp = threadIdx.x >> 5;
    staged_ends = all_ends[warp];
    staged_keys = all_keys[warp];
    staged_edges = all_edges[warp];
  }
  // Append an edge of each lane that has one; called by the whole warp.
  __device__ inline void push(bool has_edge, vertex_t u, vertex_t v, i64 key, i64 edge) {
    u32 mask = __ballot_sync(0xFFFFFFFFu, has_edge);
    if (!mask) return;
    if (has_edge) {
      int place = length + lanes_before(mask);
      staged_ends[2 * place] = u;
      staged_ends[2 * place + 1] = v;
      staged_keys[place] = key;
      if (edges) staged_edges[place] = edge;
    }
    length += __popc(mask);
    if (length > CAPACITY - 32) flush();
  }
  __device__ inline void flush() {
    i64 first = 0;
    if (lane_index() == 0 && length) first = atomic_add(count, (i64)length);
    __syncwarp();
    first = __shfl_sync(0xFFFFFFFFu, first, 0);
    int fitting = first + length <= capacity ? length
                  : first < capacity         ? (int)(capacity - first)
                                             : 0;
    for (int i = lane_index(); i < fitting; i += 32) {
      keys[first + i] = staged_keys[i];
      if (edges) edges[first + i] = staged_edges[i];
    }
    for (int i = lane_index(); i < 2 * fitting; i += 32) ends[2 * first + i] = staged_ends[i];
    __syncwarp();  // all lanes have read what the next push overwrites
    length = 0;
  }
};

// Lower best[tree] to the key of each lane that has one; called by the whole warp. Where few trees
// are left many lanes have the same one: among those with the first lane's tree, the smallest key
// alone is a candidate.
__device__ inline void lower_best(i64* best, bool has_edge, vertex_t tree, i64 key) {
  u32 mask = __ballot_sync(0xFFFFFFFFu, has_edge);
  if (!mask) return;
  int first = __ffs(mask) - 1;
  vertex_t shared_tree = __shfl_sync(0xFFFFFFFFu, tree, first);
  bool shares = has_edge && tree == shared_tree;
  i64 least = warp_min(shares ? key : TOP);
  if (lane_index() == first) key = least;
  // Most edges are not the lightest: a load spares them the atomic. A stale value is only higher.
  if (has_edge && (!shares || lane_index() == first) && key < load_relaxed(&best[tree]))
    atomic_min(&best[tree], key);
}
// Lower the best key of the trees at both ends of each edge: its key, or, where `least` is given,
// its name if its key is the tree's least.
__device__ inline void lower_best_of_edges(i64 lo, i64 hi, const vertex_t* ends, const i64* keys,
                                           const i64* names, const i64* least, i64* best) {
  for (i64 begin = lo + warp_index() * 32; begin < hi; begin += warp_count() * 32) {
    i64 i = begin + lane_index(), key = i < hi ? keys[i] : TOP;
    for (int side = 0; side < 2; side++) {
      vertex_t tree = i < hi ? ends[2 * i + side] : 0;
      bool has_edge = i < hi && (!least || key == least[tree]);
      lower_best(best, has_edge, tree, has_edge && least ? names[i] : key);
    }
  }
}

// Make a root of the smaller of two trees that are hooked to each other. kernels.py argues the
// race.
__device__ inline void cut_cycles(i64 lo, i64 hi, vertex_t* above) {
  for (i64 tree = lo + thread_index(); tree < hi; tree += thread_count()) {
    vertex_t other = load_relaxed(&above[tree]);
    if (tree < (i64)other && (i64)load_relaxed(&above[other]) == tree)
      store_relaxed(&above[tree], (vertex_t)tree);
  }
}

// A work list: see boruvka.py.
struct List {
  vertex_t* ends;
  i64 *keys, *edges;
};
struct ReadList {
  const vertex_t* ends;
  const i64 *keys, *edges;
};
// Append the edges lo .. hi that still lead from one tree to another, by the trees' new numbers.
template <class Number> __device__ inline void contract_edges(i64 lo, i64 hi, const ReadList& list,
                                                              i64* count, const List& rest,
                                                              Number number_of) {
  Appender out(TOP, count, rest.ends, rest.keys, rest.edges);
  for (i64 begin = lo + warp_index() * 32; begin < hi; begin += warp_count() * 32) {
    i64 i = begin + lane_index();
    vertex_t u = 0, v = 0;
    if (i < hi) {
      u = number_of(list.ends[2 * i]);
      v = number_of(list.ends[2 * i + 1]);
    }
    out.push(u != v, u, v, u != v ? list.keys[i] : 0, u != v && list.edges ? list.edges[i] : 0);
  }
  out.flush();
}
