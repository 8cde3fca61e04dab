// What every level of bfs_peers.cu is made of: where things stand in the windows, and how vertices
// look for parents.
//
// Who is reached is a bitmap of all states, of which every rank has two copies in its window; the
// owner of a slice writes it into the copies of all. A level reads one, and writes the other or,
// when nobody reads any more, the same. A vertex not reached has no neighbour reached before the
// frontier: for pull, reached is as good as on the frontier. Between two meetings an array is
// either read or changed by atomics, or each word has one writer; plain loads see what was written
// before the last meeting.

#include "frontiers.cuh"
#include "prelude.cuh"
#include "ranks.cuh"

// What travels of an arc: whom it leads to, as the owner counts, and the position from which.
struct alignas(2 * sizeof(vertex_t)) Candidate {
  vertex_t to, parent;
};
#include "persistent_multi_gpu_kernels.py"

// What the ranks add up at a meeting; of the last two each keeps its own.
enum Sum { COUNT, ARCS, LOOKED, SENT };
// 80 registers a thread (rmat27 on two H200: 1.34 ms with 640 threads, 1.30 with 768, 1.33 with
// 896, 1.34 with 1024).
constexpr int BLOCK = 768;
// Vertices that a warp looks for in a run of words, so that all its lanes have some (there, the
// level that looks most and the one behind it: 537 and 179 us with 256, 502 and 183 with 512, 487
// and 192 with 1024).
constexpr i64 RUN = 512;
// How those who look for a parent do: by words, all looking at the first of their rows; those alone
// who look; or each in its own row. Where only one vertex in so many looks, lanes that look by
// words are few; where one in still more, a look at the row itself is as near as one at its first.
enum Looks { BY_WORDS, PICKED, BY_ROWS };
constexpr i64 SPARSE = 4, SPARSER = 64;
// Where fewer than one in so many is left they are listed, unless those that find nothing have more
// arcs than this, or a row of more.
constexpr i64 FEW_LEFT = 64, FEW_LISTED = 1 << 18, LONG_ROW = 1 << 10;
// Counters of the queue, in turn, of the list, of runs of words, in turn, and of late offers, in
// turn; and for each rank how many of its blocks offer something, above how many places each has
// for that, and how many offers are there from each block.
constexpr i64 TOLD_WORDS = 1 + MAX_BLOCKS;

// The position of a state. There are so few ranks that comparing is faster than dividing; the
// positions of a slice lie by `gap` further behind its states times the multiplier than those of
// the slice before.
struct Positions {
  vertex_t stride, multiplier, gap;
  __device__ vertex_t operator()(vertex_t state) const {
    vertex_t position = state * multiplier;
    for (vertex_t r = MOST_RANKS / 2; r; r /= 2)
      if (r < RANKS && state >= r * stride) state -= r * stride, position -= r * gap;
    return position;
  }
};
// What a block keeps in shared memory.
struct Block {
  i64 room[(1 + sizeof(vertex_t) / 4) * BLOCK];  // rows that are pushed, words that are pulled
  u32 num_offers[MOST_RANKS];
  i64 told[MOST_RANKS];
  i64 sources[FEW_SOURCES];
  i64 facts[REPORT_AT];
  RanksHere ranks;
};

struct Slices : Window<Slices> {
  Block* block;
  Ranks ranks;
  const i64* indptr;
  const vertex_t* targets;
  const i64* in_indptr;
  const vertex_t* in_targets;
  const vertex_t* firsts;
  dist_t* levels;
  vertex_t* parents;

  i64 tally[NUM_SUMS] = {};  // counted by this thread since the last meeting
  i64 level = -1;
  bool side = false, turn = false;

  // Where things stand is worked out anew wherever it is wanted: registers are scarcer.
  __device__ i64 fact(Parameter which) const { return block->facts[which]; }
  __device__ i64 rank() const { return block->ranks.rank; }
  __device__ i64 num_ranks() const { return RANKS; }
  __device__ i64 words() const { return fact(STRIDE) >> 5; }  // of a slice
  __device__ i64 own_words() const { return rank() * words(); }
  // What follows stands in a window: one's own, or that of rank r.
  __device__ u8* window() const { return ranks.window; }
  __device__ u8* window(i64 r) const { return ranks.window_of(r); }
  // A copy of who is reached: the one that is read, and the one that is written.
  __device__ u32* copy(u8* in, bool which) const {
    return reached(in) + which * words() * num_ranks();
  }
  __device__ u32* now() const { return copy(window(), side); }
  __device__ u32* then() const { return copy(window(), !side); }
  // What rank `from` offers to rank r; and what came late of that, of which there is no more than
  // all push.
  __device__ Candidate* inbox(u8* in, i64 from) const { return inboxes(in) + from * fact(INBOX); }
  __device__ Candidate* late() const { return deferred_candidates(window()); }
  // What rank `from` tells of its offers. Behind that what is one's own alone: counters, the rows
  // of the trace, the queue. The next level's takes its place when all have met who read it, and
  // the list where none is to be read.
  __device__ i64* told(u8* in, i64 from) const {
    return (i64*)(inbox(in, num_ranks()) + inbox() * num_ranks() / 2) + from * TOLD_WORDS;
  }
  __device__ i64* counters() const { return told(window(), MOST_RANKS); }
  __device__ i64 inbox() const { return fact(INBOX); }
  __device__ i64 capacity() const { return fact(CAPACITY); }
  __device__ i64 num_records() const { return fact(TRACE_ROWS); }
  __device__ i64* queue_counter(bool which) const { return counters() + QUEUE_COUNTERS + which; }
  __device__ i64* list_counter() const { return counters() + LIST_COUNTER; }
  __device__ i64* runs_taken(i64 of_level) const {
    return counters() + RUN_COUNTERS + (of_level & 1);
  }
  __device__ i64* late_counter(bool which) const { return counters() + DEFERRED_COUNTERS + which; }
  __device__ i64* rows() const { return counters() + NUM_COUNTERS; }
  __device__ Queue queue() const {
    // queue_offsets(), queue_first() and queue_vertices(), in one chain: each by itself takes more
    // registers.
    i64 *offsets = rows() + num_records() * ROW, *first = offsets + capacity();
    return {offsets, first, (vertex_t*)(first + capacity())};
  }

  // ---- phases ----------------------------------------------------------------------------------------
  __device__ bool meet() {
    bool met = meet_called(ranks, tally[COUNT], tally[ARCS], tally[LOOKED], tally[SENT]);
    ranks.meetings++;
    for (int k = 0; k < NUM_SUMS; k++) tally[k] = 0;
    return met;
  }
  // A function that is called: it stands in many places, and loops between them have more registers
  // without it (rmat28 on two H200, the level that looks most: 595 and 531 us).
  static __device__ __noinline__ bool meet_called(Ranks ranks, i64 count, i64 arcs, i64 looked,
                                                  i64 sent) {
    i64 mine[NUM_SUMS] = {count, arcs, looked, sent};
    return ranks.meet(mine);
  }
  // All meet in the middle of a level: of what was counted one sum is `told` before its end.
  __device__ bool meet_halfway(Sum told) {
    i64 kept[NUM_SUMS];
    for (int k = 0; k < NUM_SUMS; k++) kept[k] = k == told ? 0 : tally[k], tally[k] -= kept[k];
    bool met = meet();
    for (int k = 0; k < NUM_SUMS; k++) tally[k] = kept[k];
    return met;
  }

  __device__ vertex_t owner_of(vertex_t state) const {
    vertex_t owner = 0, stride = (vertex_t)fact(STRIDE);
    for (vertex_t r = MOST_RANKS / 2; r; r /= 2)
      owner += r < RANKS && state >= (owner + r) * stride ? r : 0;
    return owner;
  }
  __device__ Positions positions() const {
    vertex_t stride = (vertex_t)fact(STRIDE), multiplier = (vertex_t)fact(MULTIPLIER);
    return {stride, multiplier, multiplier == 1 ? 0 : stride * multiplier - 1};
  }
  __device__ i64 arcs_of(i64 v) const {
    return load_readonly(indptr + v + 1) - load_readonly(indptr + v);
  }
  // A warp's vertices, two a lane, are counted and go to a queue with their arcs if they are
  // `there`.
  __device__ void enqueue(bool which, const i64 (&v)[2], const bool (&there)[2]) {
    vertex_t own[2];
    i64 begin[2], length[2];
    for (int half = 0; half < 2; half++) {
      own[half] = (vertex_t)v[half];
      begin[half] = there[half] ? load_readonly(indptr + v[half]) : 0;
      length[half] = there[half] ? load_readonly(indptr + v[half] + 1) - begin[half] : 0;
      tally[COUNT] += there[half], tally[ARCS] += length[half];
    }
    ::enqueue<2>(queue(), fact(CAPACITY), queue_counter(which), own, there, begin, length);
  }

  // How many words of a slice a warp takes at once, of which one in `share` bits is looked for:
  // enough for all lanes, and as many for all warps.
  __device__ i64 run_of_words(i64 share) const {
    i64 most = share * RUN < 32 * 32 ? share * RUN / 32 : 32;
    i64 turns = (words() + most * warp_count() - 1) / (most * warp_count());
    i64 each = (words() + turns * warp_count() - 1) / (turns * warp_count());
    return each < 2 ? 2 : each;
  }

  // The frontier, from the two copies to a queue; it has been counted, and its arcs are now. The
  // other copy may lack who was reached before.
  __device__ void queue_up() {
    i64 run = run_of_words(4);
    for (i64 word = warp_index() * run; word < words(); word += warp_count() * run) {
      i64 at = own_words() + word + lane_index();
      u32 found = lane_index() < run && word + lane_index() < words() ? now()[at] & ~then()[at] : 0;
      each_bit(word, found, [&](const i64(&v)[2], const bool (&there)[2]) {
        bool last[2];
        for (int half = 0; half < 2; half++)
          last[half] = there[half] && levels[v[half]] == (dist_t)level;
        enqueue(turn, v, last);
      });
    }
    tally[COUNT] = 0;
  }

  // ---- who is told -----------------------------------------------------------------------------------
  // Who is reached of one's own slice stands in the copies of all, whichever of one's own it stood
  // in.
  __device__ void tell_slice() {
    for (i64 w = thread_index(); w < words(); w += thread_count()) {
      i64 at = own_words() + w;
      tell_word(at, now()[at] | then()[at]);
    }
  }
  __device__ void tell_word(i64 at, u32 word) {
    for (i64 r = 0; r < num_ranks(); r++) copy(window(r), side)[at] = word;
    tally[SENT] += 4 * (num_ranks() - 1);
  }
  // One's own vertex is reached, in the copies of all others.
  __device__ void tell_others(i64 v, bool which) {
    tally[SENT] += 4 * (num_ranks() - 1);
    for (i64 r = 0; r < num_ranks(); r++)
      if (r != rank())
        atomic_or_system(copy(window(r), which) + own_words() + (v >> 5), 1u << (v & 31));
  }

  // ---- looking for parents ---------------------------------------------------------------------------
  // Vertices of one's own slice that are not reached look in their rows for the first that is: the
  // smallest. Of those that were `pushed` alone, which stand in any rank's other copy, and whose
  // arcs are counted; or all, and nobody asks for their arcs before the frontier is queued. One in
  // `share` looks. Who finds one is reached now too, in the other copy of every rank.
  __device__ void look(i64 share, Looks looks, bool pushed) {
    // Where few are on the frontier hubs may look for long; behind it all have been reached.
    i64 run = run_of_words(share), hubs = pushed ? fact(NUM_HUBS) >> 5 : 0;
    for (i64 word = blockIdx.x; word < hubs; word += gridDim.x) look_by_block(word);
    if (hubs) __syncthreads();  // all are done with the hits of the last word
    auto is_here = [&](i64 word) { return lane_index() < run && word + lane_index() < words(); };
    auto word_of = [&](i64 word) {
      return is_here(word) ? now()[own_words() + word + lane_index()] : ~0u;
    };
    Runs runs(hubs, words(), run, runs_taken(level));
    i64 next = runs.begin();
    u32 coming = word_of(next);
    for (i64 word = next; word < words(); word = next) {
      bool here = is_here(word);
      i64 at = own_words() + word + lane_index();
      u32 seen = coming, any = here ? then()[at] : 0, every = any;
      next = runs.behind(word), coming = word_of(next);
      if (pushed) {
        if (here) tally[SENT] += 4 * (num_ranks() - 1);
        u32 theirs[RANKS];
        ranks.from_all(theirs, [&](i64 r) { return here ? copy(window(r), !side)[at] : 0; });
#pragma unroll
        for (int r = 0; r < RANKS; r++) any |= theirs[r], every &= theirs[r];
      }
      u32 all = seen | find_parents(word, run, pushed ? any & ~seen : ~seen, looks, pushed);
      if (here && all != every) {
        for (i64 r = 0; r < num_ranks(); r++) copy(window(r), !side)[at] = all;
        tally[SENT] += 4 * (num_ranks() - 1);
      }
      __syncwarp();  // lanes look at the next words together
    }
  }
  // The rows of hubs stand side by side in degree order, and may be millions long: a block takes a
  // word of those that were pushed, a warp a row.
  __device__ void look_by_block(i64 word) {
    u32* hits = (u32*)block->room;
    i64 at = own_words() + word;
    u32 seen = now()[at], any = 0, every = ~0u;
    if (threadIdx.x == 0) tally[SENT] += 4 * (num_ranks() - 1);
    for (i64 r = 0; r < num_ranks(); r++) {
      u32 theirs = copy(window(r), !side)[at];
      any |= theirs, every &= theirs;
    }
    __syncthreads();  // all are done with the hits of the word before
    if (threadIdx.x == 0) *hits = 0;
    __syncthreads();
    for (int bit = threadIdx.x >> 5; bit < 32; bit += blockDim.x >> 5) {
      if (!((any & ~seen) >> bit & 1)) continue;
      i64 v = word << 5 | bit, place = look_through_row(v);
      if (lane_index() > 0) continue;
      tally[LOOKED] += place + 1 - load_readonly(in_indptr + v), tally[COUNT]++;
      settle(v, positions()(load_readonly(in_targets + place)), true);
      atomic_or(hits, 1u << bit);
    }
    __syncthreads();
    u32 all = seen | *hits;
    if (threadIdx.x >= num_ranks() || all == every) return;
    copy(window(threadIdx.x), !side)[at] = all;
    if (threadIdx.x != rank()) tally[SENT] += 4;
  }
  // Where in the rows the first neighbour stands that is reached; there is one. For a warp
  // together.
  __device__ i64 look_through_row(i64 v) {
    constexpr int WIDE = 4;
    const u32* reached = now();
    i64 begin = load_readonly(in_indptr + v), end = load_readonly(in_indptr + v + 1);
    for (; begin < end; begin += 32 * WIDE) {
      vertex_t u[WIDE];
      bool here[WIDE];
      for (int k = 0; k < WIDE; k++) {
        i64 at = begin + k * 32 + lane_index();
        here[k] = at < end, u[k] = here[k] ? load_readonly(in_targets + at) : 0;
      }
      for (int k = 0; k < WIDE; k++) here[k] = here[k] && test_bit(reached, u[k]);
      for (int k = 0; k < WIDE; k++) {
        u32 agreeing = __ballot_sync(WARP, here[k]);
        if (agreeing) return begin + k * 32 + __ffs(agreeing) - 1;
      }
    }
    return end - 1;
  }
  // A warp's words follow `word`; lane k has in `open` who of the k-th looks, and returns who finds
  // a parent. All look at the first of their row, of which there is a copy side by side and which
  // most find reached, where hubs come first; then those that found nothing look on, all lanes at
  // work again, unless rows as far back as theirs have no more.
  __device__ u32 find_parents(i64 word, i64 run, u32 open, Looks looks, bool counts_arcs) {
    u32* hits = (u32*)block->room + (threadIdx.x & ~31u);
    auto hit = [&](i64 v) { atomic_or(&hits[(v >> 5) - word], 1u << (v & 31)); };
    hits[lane_index()] = looks == BY_WORDS ? look_by_words(word, run, open, counts_arcs) : 0;
    __syncwarp();
    if (looks == PICKED)
      each_bit(word, open,
               [&](const i64(&v)[2], const bool (&there)[2]) { look_first(v, there, hit); });
    __syncwarp();
    open &= ~hits[lane_index()];
    if (looks != BY_ROWS && (word + lane_index()) * 32 >= fact(NUM_LONGER)) open = 0;
    if (__any_sync(WARP, open))
      each_bit(word, open, [&](const i64(&v)[2], const bool (&there)[2]) {
        look_on(v, there, looks != BY_ROWS, counts_arcs, hit, [](i64) {});
      });
    __syncwarp();
    u32 found = hits[lane_index()];
    tally[COUNT] += __popc(found);
    __syncwarp();
    return found;
  }
  __device__ u32 look_by_words(i64 word, i64 run, u32 open, bool counts_arcs) {
    tally[LOOKED] += __popc(open);
    i64 v = word * 32;
    u32 found = look_at_firsts(now(), firsts + v, parents + v, levels + v, open, (int)run,
                               (dist_t)(level + 1), positions());
    if (counts_arcs) tally[ARCS] += count_arcs(indptr + v, found, (int)run);
    return found;
  }
  // Each lane looks for two vertices; call hit(v) for those that find a parent.
  template <class Hit>
  __device__ void look_first(const i64 (&v)[2], const bool (&open)[2], Hit hit) {
    const u32* reached = now();
    vertex_t first[2];
    u32 near[2];
    for (int half = 0; half < 2; half++)
      first[half] = open[half] ? load_readonly(firsts + v[half]) : 0;
    for (int half = 0; half < 2; half++) near[half] = reached[first[half] >> 5];
    for (int half = 0; half < 2; half++) {
      tally[LOOKED] += open[half];
      if (!open[half] || !(near[half] >> (first[half] & 31) & 1)) continue;
      settle(v[half], positions()(first[half]), false);
      hit(v[half]);
    }
  }
  // From the first or the second of the rows on; call hit(v) for those that find a parent, or
  // miss(length).
  template <class Hit, class Miss> __device__ void look_on(const i64 (&v)[2], const bool (&open)[2],
                                                           bool second, bool counts_arcs, Hit hit,
                                                           Miss miss) {
    i64 begin[2], length[2], place[2];
    vertex_t parent[2] = {};
    for (int half = 0; half < 2; half++) {
      begin[half] = open[half] ? load_readonly(in_indptr + v[half]) + second : 0;
      length[half] = open[half] ? load_readonly(in_indptr + v[half] + 1) - begin[half] : 0;
      if (length[half] < 0) begin[half] = length[half] = 0;
    }
    RowSearch{now(), in_targets, fact(LAST_ARC)}.find(begin, length, place, parent);
    for (int half = 0; half < 2; half++) {
      tally[LOOKED] += place[half] < length[half] ? place[half] + 1 : length[half];
      if (place[half] == length[half]) {
        if (open[half]) miss(length[half]);
        continue;
      }
      settle(v[half], positions()(parent[half]), counts_arcs);
      hit(v[half]);
    }
  }
  // The parent is a position.
  __device__ void settle(i64 v, vertex_t parent, bool counts_arcs) {
    parents[v] = parent, levels[v] = (dist_t)(level + 1);
    if (counts_arcs) tally[ARCS] += arcs_of(v);
  }
};
