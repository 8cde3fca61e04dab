#include "packed_tree.cuh"
#include "prelude.cuh"

extern "C" __global__ void find_positions(i64 lo, i64 hi, const vertex_t* positions, i64 first,
                                          i64 num_users, i64* words) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 user = words[i] - first;
    words[i] = 0 <= user && user < num_users ? (i64)positions[user] : -1;
  }
}

// Convert a distance to the dtype of results, with -1 (inf for floats) for unreached.
__device__ inline out_t result_distance(dist_t value) {
  bool reached = value != top_of<dist_t>::value();
  return reached                   ? (out_t)value
         : is_float<dist_t>::value ? (out_t)top_of<dist_t>::value()
                                   : (out_t)-1;
}

// The bit of a user id where each rank's range of `user_stride` ids has `stride` bits.
__device__ inline i64 bit_of_user(id_t user, i64 user_stride, i64 stride) {
  id_t each = (id_t)user_stride;
  return (i64)(user / each) * stride + (i64)(user % each);
}

extern "C" __global__ void mark_users(i64 lo, i64 hi, const id_t* users, i64 user_stride,
                                      i64 stride, u32* bits) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    set_bit(bits, bit_of_user(users[i], user_stride, stride));
}

extern "C" __global__ void count_ones(i64 lo, i64 hi, const u32* bits, vertex_t* counts) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    counts[i] = (vertex_t)__popc(bits[i]);
}

extern "C" __global__ void order_by_user(i64 lo, i64 hi, const id_t* users, i64 user_stride,
                                         i64 stride, const u32* bits, const vertex_t* before,
                                         vertex_t* order) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    order[ones_before(bits, before, bit_of_user(users[i], user_stride, stride))] = (vertex_t)i;
}

extern "C" __global__ void pack_tree(i64 lo, i64 hi, const vertex_t* order, const dist_t* values,
                                     const parent_t* parents, const id_t* user_of_state, i64 stride,
                                     i64 multiplier, dist_t* out_values, id_t* out_parents) {
  TreeOfVertices tree = {order,
                         out_values ? values : nullptr,
                         out_parents ? parents : nullptr,
                         user_of_state,
                         stride,
                         multiplier};
  pack(
      tree, lo, hi, [&](i64 i) { return i; },
      [&](i64 i, dist_t value, id_t parent) {
        if (out_values) out_values[i] = value;
        if (out_parents) out_parents[i] = parent;
      });
}

// Words of a group of user ids: each lane of a warp has one bit of each.
constexpr int WORDS = 4;

template <class T> __device__ inline void load_group(const T* from, T (&to)[WORDS]) {
  for (int k = 0; k < WORDS; k += Quad<T>::size) {
    Quad<T> quad = load_quad(from + k);
    for (int i = 0; i < Quad<T>::size; i++) to[k + i] = quad.of[i];
  }
}

// Lanes load the same words, each by one transaction for the warp; values are read and written in
// streams.
extern "C" __global__ void merge_trees(i64 lo, i64 hi, i64 num_users, const u32* bits,
                                       const vertex_t* before, i64 stride, i64 num_ranks,
                                       const dist_t* values, const id_t* parents,
                                       out_t* out_distances, i64* out_parents) {
  int lane = lane_index();
  for (i64 group = lo + warp_index(); group < hi; group += warp_count()) {
    i64 place[WORDS];
    for (int k = 0; k < WORDS; k++) place[k] = -1;
#pragma unroll 4
    for (i64 r = 0; r < num_ranks; r++) {
      i64 first = r * (stride >> 5) + group * WORDS;
      u32 marked[WORDS];
      vertex_t index[WORDS];
      load_group(bits + first, marked);
      load_group(before + first, index);
      for (int k = 0; k < WORDS; k++)
        if (marked[k] >> lane & 1) place[k] = (i64)index[k] + lanes_before(marked[k]);
    }
    dist_t value[WORDS];
    id_t parent[WORDS];
    for (int k = 0; k < WORDS; k++) {
      bool has = place[k] >= 0;
      value[k] = has && out_distances ? load_readonly(values + place[k]) : top_of<dist_t>::value();
      parent[k] = has && out_parents ? load_readonly(parents + place[k]) : top_of<id_t>::value();
    }
    for (int k = 0; k < WORDS; k++) {
      i64 user = (group * WORDS + k) * 32 + lane;
      if (user < num_users && out_parents)
        out_parents[user] = parent[k] == top_of<id_t>::value() ? -1 : (i64)parent[k];
      if (user < num_users && out_distances) out_distances[user] = result_distance(value[k]);
    }
  }
}

// A level is the predecessor's plus one: most predecessors are hubs, with their levels in the
// cache, while the vertex's own level would be loaded from memory (rmat28 on an H200: 2.7 ms
// instead of 3.7).
extern "C" __global__ void translate_levels(i64 lo, i64 hi, const vertex_t* positions,
                                            i64 num_positions, const dist_t* values,
                                            const parent_t* parents, const id_t* users,
                                            out_t* out_distances, i64* out_parents) {
  constexpr parent_t NONE = top_of<parent_t>::value();
  for (i64 i = lo + thread_index(); i < hi; i += EACH * thread_count()) {
    parent_t position[EACH], parent[EACH];
    out_t level[EACH];
    i64 parent_of_user[EACH];
    for (int k = 0; k < EACH; k++) {
      i64 user = i + k * thread_count();
      position[k] = user < hi ? (parent_t)load_readonly(positions + user) : NONE;
    }
    for (int k = 0; k < EACH; k++)
      parent[k] = (i64)position[k] < num_positions ? load_readonly(parents + position[k]) : NONE;
    for (int k = 0; k < EACH; k++) {
      bool reached = parent[k] != NONE;
      level[k] = reached ? (out_t)load_readonly(values + parent[k]) + (parent[k] != position[k])
                         : (out_t)-1;
      parent_of_user[k] = reached ? (i64)load_readonly(users + parent[k]) : -1;
    }
    for (int k = 0; k < EACH; k++) {
      i64 user = i + k * thread_count();
      if (user < hi) out_parents[user] = parent_of_user[k], out_distances[user] = level[k];
    }
  }
}

// Parents are read and written in a stream, each warp 32 neighbors. Most lookups are of a few hubs.
extern "C" __global__ void translate_parents(i64 lo, i64 hi, const vertex_t* parents, i64 stride,
                                             i64 multiplier, const id_t* users, i64* out_parents) {
  constexpr vertex_t NONE = top_of<vertex_t>::value();
  for (i64 i = lo + thread_index(); i < hi; i += EACH * thread_count()) {
    vertex_t parent[EACH];
    i64 user[EACH];
    for (int k = 0; k < EACH; k++) {
      i64 v = i + k * thread_count();
      parent[k] = v < hi ? load_readonly(parents + v) : NONE;
    }
    for (int k = 0; k < EACH; k++) {
      user[k] = parent[k] == NONE ? -1 : (i64)parent[k];
      if (users && parent[k] != NONE)
        user[k] = (i64)load_readonly(users + state_of((i64)parent[k], stride, multiplier));
    }
    for (int k = 0; k < EACH; k++) {
      i64 v = i + k * thread_count();
      if (v < hi) out_parents[v] = user[k];
    }
  }
}

extern "C" __global__ void translate_tree(i64 lo, i64 hi, const vertex_t* positions,
                                          i64 num_positions, const dist_t* values,
                                          const parent_t* parents, const id_t* users,
                                          out_t* out_distances, i64* out_parents) {
  constexpr parent_t NONE = top_of<parent_t>::value();
  for (i64 i = lo + thread_index(); i < hi; i += EACH * thread_count()) {
    i64 place[EACH], parent_of_user[EACH];
    dist_t value[EACH];
    parent_t parent[EACH];
    for (int k = 0; k < EACH; k++) {
      i64 user = i + k * thread_count(), position = num_positions;
      if (user < hi) position = positions ? (i64)load_readonly(positions + user) : user;
      place[k] = position < num_positions ? position : -1;
    }
    for (int k = 0; k < EACH; k++) {
      parent[k] = place[k] < 0 || !out_parents ? NONE : load_readonly(parents + place[k]);
      value[k] = place[k] < 0 || !out_distances ? top_of<dist_t>::value()
                                                : load_readonly(values + place[k]);
    }
    for (int k = 0; k < EACH; k++) {
      parent_of_user[k] = parent[k] == NONE ? -1 : (i64)parent[k];
      if (users && parent[k] != NONE) parent_of_user[k] = (i64)load_readonly(users + parent[k]);
    }
    for (int k = 0; k < EACH; k++) {
      i64 user = i + k * thread_count();
      if (user < hi && out_parents) out_parents[user] = parent_of_user[k];
      if (user < hi && out_distances) out_distances[user] = result_distance(value[k]);
    }
  }
}
