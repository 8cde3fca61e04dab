// Values of owned vertices, packed in the order in which other ranks store them.

#include "prelude.cuh"

// Vertices that a thread processes at once, so that the latencies of their loads overlap.
constexpr int EACH = 4;

// Distances and predecessors of owned vertices, either of which may be null. Predecessors are
// positions; `users` has the user id of every state.
struct TreeOfVertices {
  const vertex_t* order;
  const dist_t* values;
  const parent_t* parents;
  const id_t* users;
  i64 stride, multiplier;
};

// Call write(i, distance, predecessor as user id) of the vertex order[i], for i = place(lo) ..
// place(hi - 1). Loads of a vertex's values are random; the order is read in a stream.
template <class Place, class Write>
__device__ inline void pack(const TreeOfVertices& tree, i64 lo, i64 hi, Place place, Write write) {
  for (i64 first = lo + thread_index(); first < hi; first += EACH * thread_count()) {
    i64 at[EACH], v[EACH];
    dist_t value[EACH];
    parent_t parent[EACH];
    id_t user[EACH];
    for (int k = 0; k < EACH; k++) {
      i64 i = first + k * thread_count();
      at[k] = i < hi ? place(i) : -1;
      v[k] = i < hi ? (i64)load_readonly(tree.order + at[k]) : 0;
    }
    for (int k = 0; k < EACH; k++) {
      bool valid = at[k] >= 0;
      parent[k] =
          valid && tree.parents ? load_readonly(tree.parents + v[k]) : top_of<parent_t>::value();
      value[k] = valid && tree.values ? load_readonly(tree.values + v[k]) : top_of<dist_t>::value();
    }
    for (int k = 0; k < EACH; k++) {
      user[k] = top_of<id_t>::value();
      if (parent[k] != top_of<parent_t>::value())
        user[k] =
            load_readonly(tree.users + state_of((i64)parent[k], tree.stride, tree.multiplier));
    }
    for (int k = 0; k < EACH; k++)
      if (at[k] >= 0) write(at[k], value[k], user[k]);
  }
}
