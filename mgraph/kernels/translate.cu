extern "C" __global__ void find_positions(i64 lo, i64 hi, const vertex_t* positions, i64 first, i64 num_users,
                                          i64* words) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 user = words[i] - first;
    words[i] = 0 <= user && user < num_users ? (i64)positions[user] : -1;
  }
}

extern "C" __global__ void translate_distances(i64 lo, i64 hi, const vertex_t* positions, i64 first, i64 num_positions,
                                               i64 stride, i64 multiplier, const dist_t* values, out_t* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 position = positions ? (i64)positions[i] : first + i;
    dist_t value = top_of<dist_t>::value();
    if (position < num_positions) value = values[state_of(position, stride, multiplier)];
    bool reached = value != top_of<dist_t>::value();
    out[i] = reached ? (out_t)value : is_float<dist_t>::value ? (out_t)top_of<dist_t>::value() : (out_t)-1;
  }
}

extern "C" __global__ void translate_predecessors(i64 lo, i64 hi, const vertex_t* positions, i64 first,
                                                  i64 num_positions, i64 stride, i64 multiplier,
                                                  const vertex_t* parents, const id_t* users, i64* out) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 position = positions ? (i64)positions[i] : first + i;
    vertex_t parent = top_of<vertex_t>::value();
    if (position < num_positions) parent = parents[state_of(position, stride, multiplier)];
    if (parent == top_of<vertex_t>::value())
      out[i] = -1;
    else
      out[i] = users ? (i64)users[state_of((i64)parent, stride, multiplier)] : (i64)parent;
  }
}
