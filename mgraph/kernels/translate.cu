extern "C" __global__ void find_positions(i64 lo, i64 hi, const vertex_t* positions, i64 first, i64 num_users,
                                          i64* words) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 user = words[i] - first;
    words[i] = 0 <= user && user < num_users ? (i64)positions[user] : -1;
  }
}

// A distance as users see it.
__device__ inline out_t seen_by_users(dist_t value) {
  bool reached = value != top_of<dist_t>::value();
  return reached ? (out_t)value : is_float<dist_t>::value ? (out_t)top_of<dist_t>::value() : (out_t)-1;
}

extern "C" __global__ void translate_distances(i64 lo, i64 hi, const vertex_t* positions, i64 first, i64 num_positions,
                                               i64 stride, i64 multiplier, const dist_t* values, out_t* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 position = positions ? (i64)positions[i] : first + i;
    dist_t value = top_of<dist_t>::value();
    if (position < num_positions) value = values[state_of(position, stride, multiplier)];
    out[i] = seen_by_users(value);
  }
}

// A thread takes four users at once: what they wait for comes at the same time.
extern "C" __global__ void translate_tree(i64 lo, i64 hi, const vertex_t* positions, i64 first, i64 num_positions,
                                          i64 stride, i64 multiplier, const dist_t* values, const vertex_t* parents,
                                          const id_t* users, out_t* out_distances, i64* out_parents) {
  constexpr int EACH = 4;
  constexpr vertex_t NONE = top_of<vertex_t>::value();
  for (i64 i = lo + thread_index(); i < hi; i += EACH * thread_count()) {
    i64 state[EACH], parent_of_user[EACH];
    dist_t value[EACH];
    vertex_t parent[EACH];
    for (int k = 0; k < EACH; k++) {
      i64 user = i + k * thread_count(), position = num_positions;
      if (user < hi) position = positions ? (i64)load_readonly(positions + user) : first + user;
      state[k] = position < num_positions ? state_of(position, stride, multiplier) : -1;
    }
    for (int k = 0; k < EACH; k++) {
      parent[k] = state[k] < 0 ? NONE : load_readonly(parents + state[k]);
      value[k] = state[k] < 0 || !out_distances ? top_of<dist_t>::value() : load_readonly(values + state[k]);
    }
    for (int k = 0; k < EACH; k++) {
      parent_of_user[k] = parent[k] == NONE ? -1 : (i64)parent[k];
      if (users && parent[k] != NONE)
        parent_of_user[k] = (i64)load_readonly(users + state_of((i64)parent[k], stride, multiplier));
    }
    for (int k = 0; k < EACH; k++) {
      i64 user = i + k * thread_count();
      if (user < hi) out_parents[user] = parent_of_user[k];
      if (user < hi && out_distances) out_distances[user] = seen_by_users(value[k]);
    }
  }
}
