#include "prelude.cuh"

extern "C" __global__ void push_words(i64 lo, i64 hi, const vertex_t* frontier, i64 num_frontier,
                                      const i64* offsets, const i64* indptr,
                                      const vertex_t* targets, const i64* front, i64* incoming,
                                      vertex_t* found, i64* counters) {
  each_arc_of_rows(lo, hi, offsets, num_frontier, [&](i64 k, i64 arc) {
    i64 u = frontier[k], word = front[u];
    vertex_t v = targets[indptr[u] + arc - offsets[k]];
    if (!(word & ~load_relaxed(&incoming[v]))) return;
    if (atomic_or(&incoming[v], word) == 0) found[reserve(&counters[0])] = v;
  });
}

extern "C" __global__ void merge_words(i64 lo, i64 hi, const vertex_t* states, const i64* words,
                                       i64* incoming) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    atomic_or(&incoming[states[i]], words[i]);
}

// A thread processes consecutive arcs: it locates a row once, and updates each row with one word.
extern "C" __global__ void pull_words(i64 lo, i64 hi, const vertex_t* rows, i64 num_rows,
                                      const i64* offsets, const i64* indptr,
                                      const vertex_t* targets, const i64* fronts, const i64* seen,
                                      i64 all_roots_mask, i64* incoming) {
  i64 length = ArcTile::length(hi - lo), each = length / blockDim.x;
  for (i64 begin = lo + blockIdx.x * length; begin < hi; begin += gridDim.x * length) {
    i64 end = begin + length < hi ? begin + length : hi;
    ArcTile tile(offsets, num_rows, begin, end);
    i64 arc = begin + threadIdx.x * each, last = arc + each < end ? arc + each : end;
    if (arc >= last) continue;
    for (i64 k = tile.row_of(arc); arc < last; k++) {
      i64 v = rows[k], shift = indptr[v] - offsets[k], word = 0;
      i64 stop = offsets[k + 1] < last ? offsets[k + 1] : last;
      for (; arc < stop; arc++) word |= load_readonly(&fronts[targets[shift + arc]]);
      word &= all_roots_mask & ~seen[v];
      // Bits that are set already need no atomic: a word changes 64 times at most.
      if (word & ~load_relaxed(&incoming[v])) atomic_or(&incoming[v], word);
    }
  }
}

extern "C" __global__ void settle_words(i64 lo, i64 hi, const i64* indptr, const i64* in_indptr,
                                        i64 level, i64 num_owned, i64 all_roots_mask, i64* incoming,
                                        i64* seen, i64* front, i64* planes, vertex_t* frontier,
                                        vertex_t* rows, i64* counters) {
  i64 leaving = 0, entering = 0;
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) {
    i64 before = seen[v], fresh = incoming[v] & ~before;
    incoming[v] = 0;
    front[v] = fresh;
    if (fresh) {
      seen[v] = before | fresh;
      frontier[reserve(&counters[0])] = (vertex_t)v;
      leaving += indptr[v + 1] - indptr[v];
      for (i64 k = 0; level >> k; k++)
        if ((level >> k) & 1) planes[k * num_owned + v] |= fresh;
    }
    if ((before | fresh) != all_roots_mask) {
      rows[reserve(&counters[2])] = (vertex_t)v;
      entering += in_indptr[v + 1] - in_indptr[v];
    }
  }
  warp_add(&counters[1], leaving);
  warp_add(&counters[3], entering);
}

// A warp transposes 32 words by ballots: lane l then has the bits of roots l and 32 + l in a word
// each, and counts them.
extern "C" __global__ void count_roots(i64 lo, i64 hi, const vertex_t* frontier, const i64* front,
                                       i64* counts) {
  i64 low = 0, high = 0;
  for (i64 first = lo + thread_index() - lane_index(); first < hi; first += thread_count()) {
    i64 i = first + lane_index(), word = i < hi ? front[frontier[i]] : 0;
    for (u32 bit = 0; bit < 32; bit++) {
      u32 of_low = __ballot_sync(0xFFFFFFFFu, word >> bit & 1);
      u32 of_high = __ballot_sync(0xFFFFFFFFu, word >> (32 + bit) & 1);
      if (lane_index() == bit) low += __popc(of_low), high += __popc(of_high);
    }
  }
  if (low) atomic_add(&counts[lane_index()], low);
  if (high) atomic_add(&counts[32 + lane_index()], high);
}

extern "C" __global__ void levels_of_root(i64 lo, i64 hi, const i64* seen, const i64* planes,
                                          i64 num_planes, i64 num_owned, i64 root, i32* levels) {
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) {
    i64 level = 0;
    for (i64 k = 0; k < num_planes; k++) level |= ((planes[k * num_owned + v] >> root) & 1) << k;
    levels[v] = (seen[v] >> root) & 1 ? (i32)level : top_of<i32>::value();
  }
}
