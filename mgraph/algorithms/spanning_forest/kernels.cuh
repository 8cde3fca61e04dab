// What the steps of a spanning forest and its rounds in one launch share.

#include "prelude.cuh"

// No edge: above any.
constexpr i64 TOP = top_of<i64>::value();

// What a warp appends to a work list waits in shared memory: one atomic and whole lines for dozens
// of edges.
struct Appender {
  static constexpr int ROOM = 96, MOST_WARPS = 8;
  i64 room;
  i64* count;
  vertex_t* ends;
  i64 *keys, *edges;
  vertex_t* waiting_ends;
  i64 *waiting_keys, *waiting_edges;
  int length;
  __device__ inline Appender(i64 room_, i64* count_, vertex_t* ends_, i64* keys_, i64* edges_)
      : room(room_), count(count_), ends(ends_), keys(keys_), edges(edges_), length(0) {
    __shared__ vertex_t all_ends[MOST_WARPS][2 * ROOM];
    __shared__ i64 all_keys[MOST_WARPS][ROOM], all_edges[MOST_WARPS][ROOM];
    int warp = threadIdx.x >> 5;
    waiting_ends = all_ends[warp];
    waiting_keys = all_keys[warp];
    waiting_edges = all_edges[warp];
  }
  // Append an edge of each lane that has one; all lanes come along.
  __device__ inline void push(bool has, vertex_t u, vertex_t v, i64 key, i64 edge) {
    u32 who = __ballot_sync(0xFFFFFFFFu, has);
    if (!who) return;
    if (has) {
      int place = length + __popc(who & ((1u << lane_index()) - 1));
      waiting_ends[2 * place] = u;
      waiting_ends[2 * place + 1] = v;
      waiting_keys[place] = key;
      if (edges) waiting_edges[place] = edge;
    }
    length += __popc(who);
    if (length > ROOM - 32) flush();
  }
  __device__ inline void flush() {
    i64 first = 0;
    if (lane_index() == 0 && length) first = atomic_add(count, (i64)length);
    __syncwarp();
    first = __shfl_sync(0xFFFFFFFFu, first, 0);
    int fitting = first + length <= room ? length : first < room ? (int)(room - first) : 0;
    for (int i = lane_index(); i < fitting; i += 32) {
      keys[first + i] = waiting_keys[i];
      if (edges) edges[first + i] = waiting_edges[i];
    }
    for (int i = lane_index(); i < 2 * fitting; i += 32) ends[2 * first + i] = waiting_ends[i];
    __syncwarp();  // all have read what the next push overwrites
    length = 0;
  }
};

// Lower best[tree] to the key of each lane that has one; all lanes come along. Where the list is
// about few trees many lanes have the same one: of those that have that of the first, the least is
// offered once.
__device__ inline void offer(i64* best, bool has, vertex_t tree, i64 key) {
  u32 who = __ballot_sync(0xFFFFFFFFu, has);
  if (!who) return;
  int first = __ffs(who) - 1;
  vertex_t common = __shfl_sync(0xFFFFFFFFu, tree, first);
  bool shares = has && tree == common;
  i64 least = warp_min(shares ? key : TOP);
  if (lane_index() == first) key = least;
  // Most edges are not the lightest: a look spares them the atomic. A stale value is only higher.
  if (has && (!shares || lane_index() == first) && key < load_relaxed(&best[tree]))
    atomic_min(&best[tree], key);
}
// Offer edges to the trees at both of their ends: where `least` is given, the names of those whose
// key is the least.
__device__ inline void offer_edges(i64 lo, i64 hi, const vertex_t* ends, const i64* keys,
                                   const i64* names, const i64* least, i64* best) {
  for (i64 begin = lo + warp_index() * 32; begin < hi; begin += warp_count() * 32) {
    i64 i = begin + lane_index(), key = i < hi ? keys[i] : TOP;
    for (int side = 0; side < 2; side++) {
      vertex_t tree = i < hi ? ends[2 * i + side] : 0;
      bool has = i < hi && (!least || key == least[tree]);
      offer(best, has, tree, has && least ? names[i] : key);
    }
  }
}
