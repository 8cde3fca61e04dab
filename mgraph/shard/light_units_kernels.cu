#include "prelude.cuh"

extern "C" __global__ void place_light_first(i64 lo, i64 hi, const i64* unit_edges, i64 num_units,
                                             const i32* light_before, const u32* words,
                                             const weight_t* weights, u32* sorted_words,
                                             weight_t* sorted_weights) {
  for (i64 e = lo + thread_index(); e < hi; e += thread_count()) {
    i64 unit = row_of_arc(unit_edges, num_units, e), first = unit_edges[unit];
    i64 before = light_before[e], place = first + before - light_before[first];
    if (light_before[e + 1] == before) place = e + light_before[unit_edges[unit + 1]] - before;
    sorted_words[place] = words[e];
    sorted_weights[place] = weights[e];
  }
}
