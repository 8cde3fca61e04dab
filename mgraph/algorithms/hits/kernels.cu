#include "prelude.cuh"

extern "C" __global__ void scale_scores(i64 lo, i64 hi, const i64* received, double factor,
                                        double share, i64* scores, double* given, i64* counters) {
  i64 changed = 0;
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 score = (i64)((double)received[i] * factor);
    changed += score > scores[i] ? score - scores[i] : scores[i] - score;
    scores[i] = score;
    given[i] = (double)score * share;
  }
  warp_add(&counters[0], changed);
}
