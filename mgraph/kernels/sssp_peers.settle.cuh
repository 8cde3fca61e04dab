// What owners do with their slices: they settle what ranks marked, and look at all of it when the bound is raised.

struct Slices : Pulls {
  // The owner takes the smallest of what any rank has for its vertices, and sorts what fell into near and far. Lanes
  // look for lines with marks, each in other ones; then each takes a word with marks of any of those, and two vertices
  // of any of these: what they wait for comes at the same time, however few marks there are in each.
  __device__ void settle() {
    for (i64 group = warp_index(); group < num_lines(); group += 32 * warp_count()) {
      each_bit(0, take_line(group + lane_index() * warp_count()), [&](const i64(&at)[2], const bool (&there)[2]) {
        for (int half = 0; half < 2; half++)
          if (__any_sync(WARP, there[half]))
            settle_words(word_of(group + (at[half] >> 5) * warp_count(), at[half] & 31), there[half]);
      });
    }
  }
  // Which words of a line of one's own have marks of any rank; those of the line are taken away.
  __device__ u32 take_line(i64 line) {
    bool here = line < num_lines();
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
    u32 any = 0, theirs[MOST_RANKS];
    ranks.from_all(theirs, [&](i64 r) { return there ? bits(window(r))[place] : 0; });
#pragma unroll
    for (int r = 0; r < MOST_RANKS; r++) {
      any |= block->marks[r][threadIdx.x] = theirs[r];
      if (theirs[r]) bits(window(r))[place] = 0;
    }
    if (there) tally[SENT] += 4 * (size() - 1);
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
  // What vertices have fallen to that any rank `marked`, in the word of the thread that `at` says, and the bit. All
  // loads are under way before anything is stored.
  __device__ void take_smallest(i64 first, const i64 (&at)[2], const i64 (&v)[2], const bool (&marked)[2],
                                dist_t (&fell)[2]) {
    dist_t *own = dist(window()) + base(), before[2], theirs[2][MOST_RANKS], top = top_of<dist_t>::value();
    auto marked_by = [&](i64 r, int half) {
      return marked[half] && block->marks[r][first + (at[half] >> 5)] >> (at[half] & 31) & 1;
    };
    for (int half = 0; half < 2; half++) {
      before[half] = marked[half] ? own[v[half]] : top;
      ranks.from_all(theirs[half], [&](i64 r) { return marked_by(r, half) ? dist(window(r))[base() + v[half]] : top; });
    }
    for (int half = 0; half < 2; half++) {
      dist_t least = before[half];
#pragma unroll
      for (int r = 0; r < MOST_RANKS; r++) {
        if (r >= size() || !marked_by(r, half)) continue;
        if (theirs[half][r] < least) least = theirs[half][r];
        if (r != rank()) tally[SENT] += sizeof(dist_t);
      }
      if (least < before[half]) own[v[half]] = least;
      fell[half] = least < before[half] || marked_by(rank(), half) ? least : top;
    }
  }
  // Who is near is queued. A lane looks at neighbours, by one load, while those of two turns more are under way.
  __device__ void scan_for_near() {
    constexpr int WIDE = Quad<dist_t>::size;
    const Quad<dist_t>* own = (const Quad<dist_t>*)(dist(window()) + base());
    i64 count = fact(STRIDE) / WIDE, step = thread_count();
    Quad<dist_t> none, coming[2];
    for (int k = 0; k < WIDE; k++) none.of[k] = top_of<dist_t>::value();
    for (int k = 0; k < 2; k++) coming[k] = thread_index() + k * step < count ? own[thread_index() + k * step] : none;
    for (i64 first = warp_index() * 32; first < count; first += step) {
      i64 at = first + lane_index();
      Quad<dist_t> d = coming[0];
      coming[0] = coming[1], coming[1] = at + 2 * step < count ? own[at + 2 * step] : none;
      bool near[WIDE], any = false;
      for (int k = 0; k < WIDE; k++) {
        if (d.of[k] >= bound && d.of[k] < lowest) lowest = d.of[k];
        near[k] = settled <= d.of[k] && d.of[k] < bound;
        any = any || near[k];
      }
      if (!__any_sync(WARP, any)) continue;
      for (int k = 0; k < WIDE; k += 2)
        enqueue<LIGHT>(turn, {at * WIDE + k, at * WIDE + k + 1}, {d.of[k], d.of[k + 1]}, {near[k], near[k + 1]});
    }
  }
  // What is left of the bucket is queued: out of its vertices, or into those that pull over long rows.
  template <Part part> __device__ void scan_for_rest() {
    constexpr int AHEAD = 4;  // turns of which the distances are under way
    const dist_t* own = dist(window()) + base() + lane_index();
    i64 first = warp_index() * 64, turn_length = warp_count() * 64;
    dist_t coming[2 * AHEAD] = {};
    for (int k = 0; k < 2 * AHEAD; k++) {
      i64 at = first + k / 2 * turn_length + k % 2 * 32;
      if (at < fact(STRIDE)) coming[k] = own[at];
    }
    for (i64 run = first; run < fact(STRIDE); run += turn_length) {
      i64 v[2] = {run + lane_index(), run + 32 + lane_index()}, after = run + AHEAD * turn_length;
      dist_t d[2] = {coming[0], coming[1]};
      for (int k = 2; k < 2 * AHEAD; k++) coming[k - 2] = coming[k];
      if (after < fact(STRIDE)) coming[2 * AHEAD - 2] = own[after], coming[2 * AHEAD - 1] = own[after + 32];
      bool takes[2];
      for (int half = 0; half < 2; half++) {
        bool near = !finishes && settled <= d[half] && d[half] < bound;
        bool is_new = floor <= d[half] && d[half] < (finishes ? bound : settled);
        bool pulls = part == PULLED && d[half] >= settled && v[half] < fact(NUM_OWNED);
        // How many arcs it has is looked up only where they may be many.
        bool pulls_long = pulls && v[half] < fact(LONG_ROWS) && is_long(v[half], arcs_of(v[half]));
        if (d[half] >= bound && d[half] < lowest) lowest = d[half];
        // Where there is something left to do first, who is near is marked, as if it had fallen, or queued by the pull.
        u32 marks = __ballot_sync(WARP, near && (part == REST || pulls_long));
        i64 word = (base() + run) / 32 + half;
        if (marks && lane_index() == 0) mark(word, marks, load_stale(&bits(window())[word]));
        if (part == PULLED && (is_new || (finishes && d[half] < untold))) tell_others(v[half], d[half]);
        tally[COUNT] += pulls && !pulls_long;
        takes[half] = part == REST ? is_new : pulls_long;
      }
      if (!__any_sync(WARP, takes[0] || takes[1])) continue;
      enqueue<part>(turn, v, d, takes);
    }
  }
};
