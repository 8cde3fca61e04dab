// Rows by target, and the lightest arcs of each again by class of weight, as shard/lightest_arcs.py
// takes them.

#include "prelude.cuh"

// A range of arcs.
struct Slots {
  i64 begin, end;
};

// `weights` are null on a rank that had no memory for them: there no row has any.
struct LightestArcs {
  const vertex_t* targets;
  const weight_t* weights;
  double scale;
  __device__ inline Slots of_row(i64 row_begin, i64 row_end) const {
    if (!weights) return {0, 0};
    return {lightest_begin(row_begin), lightest_begin(row_end)};
  }
  __device__ inline bool is_below(i64 slot, double edge) const {
    return (double)weights[slot] * scale < edge;
  }
  // Whether all of a row's lightest arcs are below an edge, so that further arcs may be.
  __device__ inline bool are_all_below(Slots arcs, double edge) const {
    return arcs.begin == arcs.end || is_below(arcs.end - 1, edge);
  }
  __device__ inline Slots limited(Slots arcs, double edge) const {
    return {arcs.begin, light_end(weights, arcs.begin, arcs.end, scale, edge)};
  }
};

// Slots number the arcs of rows, and from FIRST_LIGHTEST on their lightest arcs.
constexpr i64 FIRST_LIGHTEST = 1ll << 40;
struct RowsAndLightest {
  const i64* indptr;
  const vertex_t* targets;
  const weight_t* weights;
  LightestArcs lightest;
  __device__ inline vertex_t target(i64 slot) const {
    return load_readonly(slot >= FIRST_LIGHTEST ? lightest.targets + (slot - FIRST_LIGHTEST)
                                                : targets + slot);
  }
  __device__ inline dist_t weight(i64 slot) const {
    return (dist_t)load_readonly(slot >= FIRST_LIGHTEST ? lightest.weights + (slot - FIRST_LIGHTEST)
                                                        : weights + slot);
  }
  static __device__ inline Slots numbered(Slots arcs) {
    return {FIRST_LIGHTEST + arcs.begin, FIRST_LIGHTEST + arcs.end};
  }
  __device__ inline Slots lightest_of(i64 row_begin, i64 row_end) const {
    return numbered(lightest.of_row(row_begin, row_end));
  }
  // All arcs of a row below an edge, and more where all of its lightest are below it: then the row.
  __device__ inline Slots light_of(i64 row_begin, i64 row_end, double edge) const {
    Slots arcs = lightest.of_row(row_begin, row_end), light = lightest.limited(arcs, edge);
    return light.end < arcs.end ? numbered(light) : Slots{row_begin, row_end};
  }
};
