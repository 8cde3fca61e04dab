// What owners do with their slices: they settle what ranks marked, and look at all of it when the
// bound is raised.

#include "frontiers.cuh"
#include "persistent_multi_gpu_kernels.cuh"
#include "persistent_multi_gpu_kernels.pull.cuh"
#include "prelude.cuh"
#include "ranks.cuh"

struct Slices : Pulls {
  static constexpr int WIDE = Quad<dist_t>::size;

  // The owner takes the smallest of what any rank has for its vertices, and sorts what fell into
  // near and far. Lanes look for lines with marks, each in other ones; then each takes a word with
  // marks of any of those, and two vertices of any of these: what they wait for comes at the same
  // time, however few marks there are in each.
  __device__ void settle() {
    for (i64 group = warp_index(); group < num_lines(); group += 32 * warp_count()) {
      each_bit(0, take_line(group + lane_index() * warp_count()),
               [&](const i64(&at)[2], const bool (&there)[2]) {
                 for (int half = 0; half < 2; half++)
                   if (__any_sync(WARP, there[half]))
                     settle_words(word_of(group + (at[half] >> 5) * warp_count(), at[half] & 31),
                                  there[half]);
               });
    }
  }
  // Which words of a line of one's own have marks of any rank, or may have in a wide round; the
  // line's are taken away.
  __device__ u32 take_line(i64 line) {
    bool here = line < num_lines();
    if (is_wide) return here ? WARP : 0;
    i64 place = rank() * num_lines() + line;
    u32 any = 0, theirs[MOST_RANKS];
    ranks.from_all(theirs, [&](i64 r) { return here ? lines(window(r))[place] : 0; });
#pragma unroll
    for (int r = 0; r < MOST_RANKS; r++) {
      any |= theirs[r];
      if (theirs[r]) lines(window(r))[place] = 0;
    }
    if (here) tally[SENT] += 4 * (size() - 1);
    return any;
  }
  // A word of one's own slice for each lane, if it is `there`.
  __device__ void settle_words(i64 word, bool there) {
    i64 first = threadIdx.x & ~31, place = base() / 32 + word;
    there = there && word < words();
    u32 any = 0, theirs[MOST_RANKS];
    ranks.from_all(theirs, [&](i64 r) { return there ? bits(window(r))[place] : 0; });
#pragma unroll
    for (int r = 0; r < MOST_RANKS; r++) {
      if (r >= size()) break;
      any |= block->marks[r][threadIdx.x] = theirs[r];
      if (theirs[r]) bits(window(r))[place] = 0;
      if (there && r != rank()) tally[SENT] += 4 + sizeof(dist_t) * __popc(theirs[r]);
    }
    __syncwarp();
    each_bit(0, any, [&](const i64(&at)[2], const bool (&marked)[2]) {
      i64 v[2];
      dist_t fell[2];
      bool near[2];
      for (int half = 0; half < 2; half++)
        v[half] = __shfl_sync(WARP, word, (int)(at[half] >> 5)) << 5 | (at[half] & 31);
      take_smallest(first, at, v, marked, fell);
      for (int half = 0; half < 2; half++) {
        near[half] = fell[half] < bound;
        if (near[half] && finishes) tell_others(v[half], fell[half]);
        if (!near[half] && fell[half] < lowest) lowest = fell[half];
      }
      enqueue<LIGHT>(turn, v, fell, near);
    });
    __syncwarp();
  }
  // What vertices have fallen to that any rank `marked`, in the word of the thread that `at` says,
  // and the bit. All loads are under way before anything is stored.
  __device__ void take_smallest(i64 first, const i64 (&at)[2], const i64 (&v)[2],
                                const bool (&marked)[2], dist_t (&fell)[2]) {
    dist_t* own = own_copy + base();
    wide_t before[2], theirs[2][MOST_RANKS], top = top_of<dist_t>::value();
    auto marked_by = [&](i64 r, int half) {
      return marked[half] && block->marks[r][first + (at[half] >> 5)] >> (at[half] & 31) & 1;
    };
    for (int half = 0; half < 2; half++) {
      before[half] = marked[half] ? own[v[half]] : top;
      ranks.from_all(theirs[half], [&](i64 r) {
        return marked_by(r, half) ? (wide_t)dist(window(r))[base() + v[half]] : top;
      });
    }
    for (int half = 0; half < 2; half++) {
      wide_t least = before[half];
#pragma unroll
      for (int r = 0; r < MOST_RANKS; r++) {
        if (r >= size()) break;
        if (theirs[half][r] < least) least = theirs[half][r];
      }
      if (least < before[half]) own[v[half]] = (dist_t)least;
      fell[half] = (dist_t)(least < before[half] || marked_by(rank(), half) ? least : top);
    }
  }
  // Call visit(v, d), by whole warps, for all of one's own slice: the distances d of neighbours,
  // from v on, a lane reads by one load, while those of two turns more are under way.
  template <class Visit> __device__ void each_quad(Visit visit) const {
    const Quad<dist_t>* own = (const Quad<dist_t>*)(own_copy + base());
    i64 count = fact(STRIDE) / WIDE, step = thread_count();
    Quad<dist_t> none = none_reached(), coming[2];
    for (int k = 0; k < 2; k++)
      coming[k] = thread_index() + k * step < count ? own[thread_index() + k * step] : none;
    for (i64 first = warp_index() * 32; first < count; first += step) {
      i64 at = first + lane_index();
      Quad<dist_t> d = coming[0];
      coming[0] = coming[1];
      coming[1] = at + 2 * step < count ? own[at + 2 * step] : none;
      visit(at * WIDE, d);
    }
  }
  static __device__ Quad<dist_t> none_reached() {
    Quad<dist_t> none;
    for (int k = 0; k < none.size; k++) none.of[k] = top_of<dist_t>::value();
    return none;
  }
  // Those of a lane's neighbours that are `there` are queued.
  template <Part part>
  __device__ void enqueue_neighbours(i64 v, const Quad<dist_t>& d, const bool (&there)[WIDE]) {
    for (int k = 0; k < WIDE; k += 2)
      enqueue<part>(turn, {v + k, v + k + 1}, {d.of[k], d.of[k + 1]}, {there[k], there[k + 1]});
  }
  // Who is near is queued.
  __device__ void scan_for_near() {
    each_quad([&](i64 v, const Quad<dist_t>& d) {
      bool near[WIDE], any = false;
      for (int k = 0; k < WIDE; k++) {
        if (d.of[k] >= bound && d.of[k] < lowest) lowest = d.of[k];
        near[k] = settled <= d.of[k] && d.of[k] < bound;
        any = any || near[k];
      }
      if (__any_sync(WARP, any)) enqueue_neighbours<LIGHT>(v, d, near);
    });
  }
  // What is left of the bucket is queued: out of its vertices, or into those that pull over long
  // rows.
  template <Part part> __device__ void scan_for_rest() {
    each_quad([&](i64 first, const Quad<dist_t>& d) {
      bool takes[WIDE], any = false, tells = false;
      u32 marks = 0;
      for (int k = 0; k < WIDE; k++) {
        i64 v = first + k;
        bool near = !finishes && settled <= d.of[k] && d.of[k] < bound;
        bool is_new = floor <= d.of[k] && d.of[k] < (finishes ? bound : settled);
        bool pulls = part == PULLED && d.of[k] >= settled && v < fact(NUM_OWNED);
        // How many arcs it has is looked up only where they may be many.
        bool pulls_long = pulls && v < fact(LONG_ROWS) && is_long(v, arcs_of(v));
        if (d.of[k] >= bound && d.of[k] < lowest) lowest = d.of[k];
        // Where there is something left to do first, who is near is marked, as if it had fallen, or
        // queued by the pull.
        marks |= (u32)(near && (part == REST || pulls_long)) << k;
        tells = tells || (part == PULLED && (is_new || (finishes && d.of[k] < untold)));
        tally[COUNT] += pulls && !pulls_long;
        takes[k] = part == REST ? is_new : pulls_long;
        any = any || takes[k];
      }
      mark_neighbours(first, marks);
      if (tells) tell_neighbours(first, d);
      if (__any_sync(WARP, any)) enqueue_neighbours<part>(first, d, takes);
    });
  }
  // Marks of one's own vertices, a warp together, each lane with those of `v` and its neighbours.
  __device__ void mark_neighbours(i64 v, u32 marks) {
    if (!__any_sync(WARP, marks != 0)) return;
    marks <<= v & 31;
    for (int d = 1; d < 32 / WIDE; d <<= 1) marks |= __shfl_xor_sync(WARP, marks, d);
    i64 word = (base() + v) >> 5;
    if (marks && (v & 31) == 0) mark(word, marks, load_stale(&own_bits[word]));
  }
  // All of a lane's neighbours, by one store: what the owner has of those that are not settled
  // bounds them as well.
  __device__ void tell_neighbours(i64 v, const Quad<dist_t>& d) {
    tally[SENT] += sizeof(d) * (size() - 1);
    for (i64 r = 0; r < size(); r++)
      if (r != rank()) store_quad(&dist(window(r))[base() + v], d);
  }
};
