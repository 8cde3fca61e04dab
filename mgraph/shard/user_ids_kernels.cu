#include "prelude.cuh"

extern "C" __global__ void find_positions(i64 lo, i64 hi, const vertex_t* positions, i64 first,
                                          i64 num_users, i64* words) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 user = words[i] - first;
    words[i] = 0 <= user && user < num_users ? (i64)positions[user] : -1;
  }
}

// Vertices that a thread processes at once, so that the latencies of their loads overlap.
constexpr int EACH = 4;

// Convert a distance to the dtype of results, with -1 (inf for floats) for unreached.
__device__ inline out_t result_distance(dist_t value) {
  bool reached = value != top_of<dist_t>::value();
  return reached                   ? (out_t)value
         : is_float<dist_t>::value ? (out_t)top_of<dist_t>::value()
                                   : (out_t)-1;
}

extern "C" __global__ void mark_serving_ranks(i64 lo, i64 hi, const id_t* users, i64 user_stride,
                                              i64 stride, u32* bits) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    set_bit(bits, (i64)(users[i] / (id_t)user_stride) * stride + i);
}

extern "C" __global__ void count_ones(i64 lo, i64 hi, const u32* bits, vertex_t* counts) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    counts[i] = (vertex_t)__popc(bits[i]);
}

// A thread processes EACH vertices at once, as in translate_tree.
extern "C" __global__ void deal_tree(i64 lo, i64 hi, const id_t* users, i64 user_stride,
                                     const u32* bits, const vertex_t* before, const dist_t* values,
                                     const parent_t* parents, const id_t* user_of_state, i64 stride,
                                     i64 multiplier, i64 step, dist_t* out_values,
                                     id_t* out_parents) {
  for (i64 i = lo + thread_index(); i < hi; i += EACH * thread_count()) {
    i64 place[EACH];
    parent_t parent[EACH];
    id_t user[EACH];
    for (int k = 0; k < EACH; k++) {
      i64 v = i + k * thread_count();
      if (v >= hi) continue;
      place[k] = ones_before(bits, before, (i64)(users[v] / (id_t)user_stride) * stride + v) * step;
      parent[k] = out_parents ? load_readonly(parents + v) : top_of<parent_t>::value();
    }
    for (int k = 0; k < EACH; k++) {
      user[k] = top_of<id_t>::value();
      if (i + k * thread_count() < hi && parent[k] != top_of<parent_t>::value())
        user[k] = load_readonly(user_of_state + state_of((i64)parent[k], stride, multiplier));
    }
    for (int k = 0; k < EACH; k++) {
      i64 v = i + k * thread_count();
      if (v < hi && out_parents) out_parents[place[k]] = user[k];
      if (v < hi && out_values) out_values[place[k]] = load_readonly(values + v);
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
                                          i64 num_positions, i64 stride, i64 multiplier,
                                          const u32* bits, const vertex_t* before, i64 step,
                                          const dist_t* values, const parent_t* parents,
                                          const id_t* users, out_t* out_distances,
                                          i64* out_parents) {
  constexpr parent_t NONE = top_of<parent_t>::value();
  for (i64 i = lo + thread_index(); i < hi; i += EACH * thread_count()) {
    i64 place[EACH], parent_of_user[EACH];
    dist_t value[EACH];
    parent_t parent[EACH];
    for (int k = 0; k < EACH; k++) {
      i64 user = i + k * thread_count(), position = num_positions;
      if (user < hi) position = positions ? (i64)load_readonly(positions + user) : user;
      place[k] = position < num_positions ? state_of(position, stride, multiplier) : -1;
    }
    for (int k = 0; k < EACH; k++)
      if (bits && place[k] >= 0) place[k] = ones_before(bits, before, place[k]) * step;
    for (int k = 0; k < EACH; k++) {
      parent[k] = place[k] < 0 || !out_parents ? NONE : load_readonly(parents + place[k]);
      value[k] = place[k] < 0 || !out_distances ? top_of<dist_t>::value()
                                                : load_readonly(values + place[k]);
    }
    for (int k = 0; k < EACH; k++) {
      parent_of_user[k] = parent[k] == NONE ? -1 : (i64)parent[k];
      if (users && parent[k] != NONE)
        parent_of_user[k] =
            (i64)load_readonly(users + state_of((i64)parent[k], stride, multiplier));
    }
    for (int k = 0; k < EACH; k++) {
      i64 user = i + k * thread_count();
      if (user < hi && out_parents) out_parents[user] = parent_of_user[k];
      if (user < hi && out_distances) out_distances[user] = result_distance(value[k]);
    }
  }
}
