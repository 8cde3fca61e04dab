// How owners process their slices: they settle marked distances, and scan the whole slice when the
// bound is raised.

#include "frontiers.cuh"
#include "persistent_multi_gpu_kernels.cuh"
#include "persistent_multi_gpu_kernels.pull.cuh"
#include "prelude.cuh"
#include "ranks.cuh"

struct OwnedSlice : PullPhase {
  static constexpr int QUAD = Quad<dist_t>::size;

  // The owner keeps the smallest distance that any rank has for each marked vertex, and queues
  // those that fell below the bound. Lanes read distinct summary words; then each lane gets a word
  // of marks found by any lane, and then two marked vertices found by any lane: their loads are in
  // flight together, however few marks a word has.
  __device__ void settle() {
    for (i64 group = warp_index(); group < summary_words(); group += 32 * warp_count()) {
      each_bit(0, take_summary(group + lane_index() * warp_count()),
               [&](const i64(&at)[2], const bool (&valid)[2]) {
                 for (int half = 0; half < 2; half++)
                   if (__any_sync(WARP, valid[half]))
                     settle_words(word_of(group + (at[half] >> 5) * warp_count(), at[half] & 31),
                                  valid[half]);
               });
    }
  }
  // Return and clear a summary word of the own slice, over all ranks; in a dense round all words
  // may have marks.
  __device__ u32 take_summary(i64 summary_index) {
    bool valid = summary_index < summary_words();
    if (is_dense) return valid ? WARP : 0;
    i64 place = rank() * summary_words() + summary_index;
    u32 any = 0, of_ranks[MAX_RANKS];
    ranks.from_all(of_ranks, [&](i64 r) { return valid ? summary_in(buffer(r))[place] : 0; });
#pragma unroll
    for (int r = 0; r < MAX_RANKS; r++) {
      any |= of_ranks[r];
      if (of_ranks[r]) summary_in(buffer(r))[place] = 0;
    }
    if (valid) tally[SENT] += 4 * (size() - 1);
    return any;
  }
  // Settle a word of the own slice for each lane, if it is `valid`.
  __device__ void settle_words(i64 word, bool valid) {
    i64 first = threadIdx.x & ~31, place = base() / 32 + word;
    valid = valid && word < slice_words();
    u32 any = 0, of_ranks[MAX_RANKS];
    ranks.from_all(of_ranks, [&](i64 r) { return valid ? marks_in(buffer(r))[place] : 0; });
#pragma unroll
    for (int r = 0; r < MAX_RANKS; r++) {
      if (r >= size()) break;
      any |= block->marks[r][threadIdx.x] = of_ranks[r];
      if (of_ranks[r]) marks_in(buffer(r))[place] = 0;
      if (valid && r != rank()) tally[SENT] += 4 + sizeof(dist_t) * __popc(of_ranks[r]);
    }
    __syncwarp();
    each_bit(0, any, [&](const i64(&at)[2], const bool (&marked)[2]) {
      i64 v[2];
      dist_t fell[2];
      bool near[2];
      for (int half = 0; half < 2; half++)
        v[half] = __shfl_sync(WARP, word, (int)(at[half] >> 5)) << 5 | (at[half] & 31);
      lower_to_smallest(first, at, v, marked, fell);
      for (int half = 0; half < 2; half++) {
        near[half] = fell[half] < bound;
        if (near[half] && is_last_bucket) broadcast(v[half], fell[half]);
        if (!near[half] && fell[half] < lowest) lowest = fell[half];
      }
      enqueue<LIGHT>(parity, v, fell, near);
    });
    __syncwarp();
  }
  // The new distances of vertices that any rank marked, in the word of thread `at >> 5`, bit `at &
  // 31`. All loads are in flight before the first store.
  __device__ void lower_to_smallest(i64 first, const i64 (&at)[2], const i64 (&v)[2],
                                    const bool (&marked)[2], dist_t (&fell)[2]) {
    dist_t* own = own_copy + base();
    wide_t before[2], of_ranks[2][MAX_RANKS], top = top_of<dist_t>::value();
    auto marked_by = [&](i64 r, int half) {
      return marked[half] && block->marks[r][first + (at[half] >> 5)] >> (at[half] & 31) & 1;
    };
    for (int half = 0; half < 2; half++) {
      before[half] = marked[half] ? own[v[half]] : top;
      ranks.from_all(of_ranks[half], [&](i64 r) {
        return marked_by(r, half) ? (wide_t)distances_in(buffer(r))[base() + v[half]] : top;
      });
    }
    for (int half = 0; half < 2; half++) {
      wide_t least = before[half];
#pragma unroll
      for (int r = 0; r < MAX_RANKS; r++) {
        if (r >= size()) break;
        if (of_ranks[half][r] < least) least = of_ranks[half][r];
      }
      if (least < before[half]) own[v[half]] = (dist_t)least;
      fell[half] = (dist_t)(least < before[half] || marked_by(rank(), half) ? least : top);
    }
  }
  // Call visit(v, d), by whole warps, for all of the own slice: a lane reads the distances d of
  // adjacent vertices, from v on, by one load, while the next two are in flight.
  template <class Visit> __device__ void each_quad(Visit visit) const {
    const Quad<dist_t>* own = (const Quad<dist_t>*)(own_copy + base());
    i64 count = parameter(STRIDE) / QUAD, step = thread_count();
    Quad<dist_t> unreached = unreached_quad(), upcoming[2];
    for (int k = 0; k < 2; k++)
      upcoming[k] = thread_index() + k * step < count ? own[thread_index() + k * step] : unreached;
    for (i64 first = warp_index() * 32; first < count; first += step) {
      i64 at = first + lane_index();
      Quad<dist_t> d = upcoming[0];
      upcoming[0] = upcoming[1];
      upcoming[1] = at + 2 * step < count ? own[at + 2 * step] : unreached;
      visit(at * QUAD, d);
    }
  }
  static __device__ Quad<dist_t> unreached_quad() {
    Quad<dist_t> unreached;
    for (int k = 0; k < unreached.size; k++) unreached.of[k] = top_of<dist_t>::value();
    return unreached;
  }
  // Queue those of a lane's adjacent vertices that are `valid`.
  template <ArcRange range>
  __device__ void enqueue_adjacent(i64 v, const Quad<dist_t>& d, const bool (&valid)[QUAD]) {
    for (int k = 0; k < QUAD; k += 2)
      enqueue<range>(parity, {v + k, v + k + 1}, {d.of[k], d.of[k + 1]}, {valid[k], valid[k + 1]});
  }
  // Queue the near vertices.
  __device__ void scan_for_near() {
    each_quad([&](i64 v, const Quad<dist_t>& d) {
      bool near[QUAD], any = false;
      for (int k = 0; k < QUAD; k++) {
        if (d.of[k] >= bound && d.of[k] < lowest) lowest = d.of[k];
        near[k] = settled <= d.of[k] && d.of[k] < bound;
        any = any || near[k];
      }
      if (__any_sync(WARP, any)) enqueue_adjacent<LIGHT>(v, d, near);
    });
  }
  // Queue the remainder of the bucket: arcs out of its vertices, or into those that pull over long
  // rows.
  template <ArcRange range> __device__ void scan_for_remainder() {
    each_quad([&](i64 first, const Quad<dist_t>& d) {
      bool enqueues[QUAD], any = false, broadcasts = false;
      u32 marks = 0;
      for (int k = 0; k < QUAD; k++) {
        i64 v = first + k;
        bool near = !is_last_bucket && settled <= d.of[k] && d.of[k] < bound;
        bool is_new = bucket_begin <= d.of[k] && d.of[k] < (is_last_bucket ? bound : settled);
        bool pulls = range == PULLED && d.of[k] >= settled && v < parameter(NUM_OWNED);
        // The number of arcs is looked up only where they may be many.
        bool pulls_long =
            pulls && v < parameter(LONG_ROWS) && is_long(v, row_length(rows.indptr, v));
        if (d.of[k] >= bound && d.of[k] < lowest) lowest = d.of[k];
        // Where remainders come first, near vertices are marked, as if they had fallen, or queued
        // by the pull.
        marks |= (u32)(near && (range == REMAINDER || pulls_long)) << k;
        broadcasts = broadcasts || (range == PULLED &&
                                    (is_new || (is_last_bucket && d.of[k] < settled_before_pull)));
        tally[COUNT] += pulls && !pulls_long;
        enqueues[k] = range == REMAINDER ? is_new : pulls_long;
        any = any || enqueues[k];
      }
      mark_adjacent(first, marks);
      if (broadcasts) broadcast_quad(first, d);
      if (__any_sync(WARP, any)) enqueue_adjacent<range>(first, d, enqueues);
    });
  }
  // Mark own vertices, a warp together, each lane with those of `v` and the adjacent ones.
  __device__ void mark_adjacent(i64 v, u32 marks) {
    if (!__any_sync(WARP, marks != 0)) return;
    marks <<= v & 31;
    for (int d = 1; d < 32 / QUAD; d <<= 1) marks |= __shfl_xor_sync(WARP, marks, d);
    i64 word = (base() + v) >> 5;
    if (marks && (v & 31) == 0) mark(word, marks, load_stale(&own_marks[word]));
  }
  // Broadcast a lane's adjacent distances by one store: the owner's values of unsettled vertices
  // are upper bounds as well.
  __device__ void broadcast_quad(i64 v, const Quad<dist_t>& d) {
    tally[SENT] += sizeof(d) * (size() - 1);
    for (i64 r = 0; r < size(); r++)
      if (r != rank()) store_quad(&distances_in(buffer(r))[base() + v], d);
  }
};
