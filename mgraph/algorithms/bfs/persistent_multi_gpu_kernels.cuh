// State of the search of persistent_multi_gpu_kernels.cu: the layout of the peer buffers, and how
// vertices find parents.
//
// The reached states are a bitmap over all ranks. Every rank has two copies of it in its peer
// buffer; the owner of a slice writes it into the copies of all ranks. Pulls, scans of the list and
// pushes of marks read one copy and write the other. A push of candidates writes into the copy that
// it has read, after a barrier behind which no rank reads it for this level. An unreached vertex
// has no neighbor reached before the frontier: for a pull, reached is equivalent to on the
// frontier.
//
// State of a search. current_copy() and next_copy() swap when `side` does.
// clang-format off: a table
// array or flag     holds                                written by                valid
// current_copy()    reached states of all ranks          owners, the level before, after a barrier
//                                                        or this level behind the
//                                                        barrier of candidates
// next_copy()       the same, and those of this level    owners, this level;       after the level
//                   (may lack older ones)                in a push this rank
// inbox(in, from)   candidates of one rank               that rank, in a push      until the next
//                                                                                  barrier
// deferred()        candidates after a vertex's first    accept()                  has_deferred
// counts_from()     candidates by rank and block         publish_counts()          as the inbox
// queue()           the frontier, or the list            enqueue(), list_unreached queued, listed
// parents           first candidate, then the smallest   accept, apply_deferred    after the next
//                                                                                  level began
// levels            level of a found vertex; of the      settle and pushes;        found vertices;
//                   rest the unreached value             write_unreached           at the end
// copies_differ     levels that scanned a list marked only next_copy(): the slice is sent again
// listable, listed  unreached vertices may be listed / queue() is that list
// parity            which of two counters this level uses
// clang-format on
//
// Races: between two barriers an array is either read or changed by atomics, or each word has one
// writer; plain loads return what was written before the last barrier.

#include "frontiers.cuh"
#include "parent_scans.cuh"
#include "prelude.cuh"
#include "ranks.cuh"

// What is sent of an arc: its target, as a local index of the owner, and the position of its
// source.
struct alignas(2 * sizeof(vertex_t)) Candidate {
  vertex_t to, parent;
};
#include "persistent_multi_gpu_kernels.py"

// Sums over the ranks at a barrier; of SCANNED and SENT each rank uses its own.
enum Sum { COUNT, ARCS, SCANNED, SENT };
// 80 registers a thread (rmat27 on two H200: 1.34 ms with 640 threads, 1.30 with 768, 1.33 with
// 896, 1.34 with 1024).
constexpr int BLOCK = 768;
// Vertices that a warp processes in a run of words, so that all its lanes have work (rmat27 on two
// H200, the level that scans most and the next one: 537 and 179 us with 256, 502 and 183 with 512,
// 487 and 192 with 1024).
constexpr i64 RUN_VERTICES = 512;
// How vertices scan: word by word, all at the first neighbor; only the open ones, packed, at the
// first neighbor; or packed, in their rows. With fewer than one open vertex in SPARSE_SHARE, lanes
// are idle word by word; with fewer than one in SPARSER_SHARE, the row is as near as the copy of
// first neighbors.
enum ScanMode { BY_WORDS, PICKED, BY_ROWS };
constexpr i64 SPARSE_SHARE = 4, SPARSER_SHARE = 64;
// Unreached vertices are listed when less than 1 / LISTED_SHARE_RANKS of all are left, unless those
// that find nothing have more arcs in all than MAX_LISTED_ARCS, or one has more than
// MAX_LISTED_ROW.
constexpr i64 LISTED_SHARE_RANKS = 64, MAX_LISTED_ARCS = 1 << 18, MAX_LISTED_ROW = 1 << 10;
// Counts of one rank's candidates: blocks that send, above the capacity of each; then a count for
// each block.
constexpr i64 COUNT_WORDS = 1 + MAX_BLOCKS;

// The position of a state. With so few ranks comparisons are faster than a division; from one slice
// to the next, position minus state * multiplier decreases by `gap`.
struct Positions {
  vertex_t stride, multiplier, gap;
  __device__ vertex_t operator()(vertex_t state) const {
    vertex_t position = state * multiplier;
    for (vertex_t r = MAX_RANKS / 2; r; r /= 2)
      if (r < RANKS && state >= r * stride) {
        state -= r * stride;
        position -= r * gap;
      }
    return position;
  }
};
// Shared memory of a block.
struct MultiGpuShared {
  i64 scratch[(1 + sizeof(vertex_t) / 4) * BLOCK];  // rows of a push, words of a pull
  u32 num_candidates[MAX_RANKS];
  i64 counts_from[MAX_RANKS];
  i64 sources[MAX_SHARED_SOURCES];
  i64 parameters[REPORT_AT];
  RankScratch ranks;
};

struct MultiGpuState : PeerBuffer<MultiGpuState> {
  MultiGpuShared* block;
  Ranks ranks;
  const i64* indptr;
  const vertex_t* targets;
  const i64* in_indptr;
  const vertex_t* in_targets;
  const vertex_t* first_neighbors;
  dist_t* levels;
  vertex_t* parents;

  i64 tally[NUM_SUMS] = {};  // of this thread since the last barrier
  i64 level = -1;
  bool side = false, parity = false;

  // Addresses are computed wherever they are used: registers are scarcer than arithmetic.
  __device__ i64 parameter(Parameter which) const { return block->parameters[which]; }
  __device__ i64 rank() const { return block->ranks.rank; }
  __device__ i64 num_ranks() const { return RANKS; }
  __device__ i64 words() const { return parameter(STRIDE) >> 5; }  // of a slice
  __device__ i64 own_words() const { return rank() * words(); }
  // Addresses in a peer buffer: this rank's, or that of rank r.
  __device__ u8* buffer() const { return ranks.buffer; }
  __device__ u8* buffer(i64 r) const { return ranks.buffer_of(r); }
  // A copy of the reached bitmap: the one that is read, and the one that is written.
  __device__ u32* copy(u8* in, bool which) const {
    return reached(in) + which * words() * num_ranks();
  }
  __device__ u32* current_copy() const { return copy(buffer(), side); }
  __device__ u32* next_copy() const { return copy(buffer(), !side); }
  // Candidates that rank `from` sends to the owner of buffer `in`; and deferred candidates, no more
  // than half of what all inboxes hold, since all ranks push no more.
  __device__ Candidate* inbox(u8* in, i64 from) const {
    return inboxes(in) + from * parameter(INBOX);
  }
  __device__ Candidate* deferred() const { return deferred_candidates(buffer()); }
  // Counts of the candidates that rank `from` sends. After these are parts of this rank alone:
  // counters, trace, queue. The next level's queue replaces this one after a barrier, and the list
  // does where no queue is to be read.
  __device__ i64* counts_from(u8* in, i64 from) const {
    return (i64*)(inbox(in, num_ranks()) + inbox() * num_ranks() / 2) + from * COUNT_WORDS;
  }
  __device__ i64* counters() const { return counts_from(buffer(), MAX_RANKS); }
  __device__ i64 inbox() const { return parameter(INBOX); }
  __device__ i64 capacity() const { return parameter(CAPACITY); }
  __device__ i64 record_capacity() const { return parameter(TRACE_RECORDS); }
  __device__ i64* queue_counter(bool which) const { return counters() + QUEUE_COUNTERS + which; }
  __device__ i64* list_counter() const { return counters() + LIST_COUNTER; }
  __device__ i64* runs_taken(i64 of_level) const {
    return counters() + RUN_COUNTERS + (of_level & 1);
  }
  __device__ i64* deferred_counter(bool which) const {
    return counters() + DEFERRED_COUNTERS + which;
  }
  __device__ i64* records() const { return counters() + NUM_COUNTERS; }
  __device__ Queue queue() const {
    // queue_offsets(), queue_first() and queue_vertices(), in one chain: each by itself takes more
    // registers.
    i64 *offsets = records() + record_capacity() * TRACE_WORDS, *first = offsets + capacity();
    return {offsets, first, (vertex_t*)(first + capacity())};
  }

  // ---- phases ----------------------------------------------------------------------------------
  __device__ bool sync_ranks() {
    bool synced = sync_call(ranks, tally[COUNT], tally[ARCS], tally[SCANNED], tally[SENT]);
    ranks.barriers++;
    for (int k = 0; k < NUM_SUMS; k++) tally[k] = 0;
    return synced;
  }
  // Not inlined: with a dozen call sites the loops between would have fewer registers (rmat28 on
  // two H200, the level that scans most: 595 us inlined, 531 us called).
  static __device__ __noinline__ bool sync_call(Ranks ranks, i64 count, i64 arcs, i64 scanned,
                                                i64 sent) {
    i64 mine[NUM_SUMS] = {count, arcs, scanned, sent};
    return ranks.barrier(mine);
  }
  // A barrier within a level: of this level's counts only one sum is published, the others are kept
  // for its end.
  __device__ bool sync_within_level(Sum published) {
    i64 kept[NUM_SUMS];
    for (int k = 0; k < NUM_SUMS; k++) {
      kept[k] = k == published ? 0 : tally[k];
      tally[k] -= kept[k];
    }
    bool synced = sync_ranks();
    for (int k = 0; k < NUM_SUMS; k++) tally[k] = kept[k];
    return synced;
  }

  __device__ vertex_t owner_of(vertex_t state) const {
    vertex_t owner = 0, stride = (vertex_t)parameter(STRIDE);
    for (vertex_t r = MAX_RANKS / 2; r; r /= 2)
      owner += r < RANKS && state >= (owner + r) * stride ? r : 0;
    return owner;
  }
  __device__ Positions positions() const {
    vertex_t stride = (vertex_t)parameter(STRIDE), multiplier = (vertex_t)parameter(MULTIPLIER);
    return {stride, multiplier, multiplier == 1 ? 0 : stride * multiplier - 1};
  }
  // Count a warp's vertices, two per lane, where `valid` is set, and append them to a queue with
  // their arcs.
  __device__ void enqueue(bool which, const i64 (&v)[2], const bool (&valid)[2]) {
    vertex_t own[2];
    i64 begin[2], length[2];
    for (int half = 0; half < 2; half++) {
      own[half] = (vertex_t)v[half];
      begin[half] = valid[half] ? load_readonly(indptr + v[half]) : 0;
      length[half] = valid[half] ? load_readonly(indptr + v[half] + 1) - begin[half] : 0;
      tally[COUNT] += valid[half];
      tally[ARCS] += length[half];
    }
    ::enqueue<2>(queue(), parameter(CAPACITY), queue_counter(which), own, valid, begin, length);
  }

  // Words of a slice that a warp processes at once, with one vertex in `share` open: enough that
  // all lanes have work, and equally many for all warps.
  __device__ i64 run_of_words(i64 share) const {
    i64 most = share * RUN_VERTICES < 32 * 32 ? share * RUN_VERTICES / 32 : 32;
    i64 rounds = (words() + most * warp_count() - 1) / (most * warp_count());
    i64 each = (words() + rounds * warp_count() - 1) / (rounds * warp_count());
    return each < 2 ? 2 : each;
  }

  // Build the frontier queue from the two copies; its vertices were counted before, its arcs are
  // counted now. The levels decide, since the other copy may lack vertices reached before.
  __device__ void queue_up() {
    each_bit_of_words(
        *this, run_of_words(4), [&](i64 w) { return current_copy()[w] & ~next_copy()[w]; },
        [&](const i64(&v)[2], const bool (&valid)[2]) {
          bool last[2];
          for (int half = 0; half < 2; half++)
            last[half] = valid[half] && levels[v[half]] == (dist_t)level;
          enqueue(parity, v, last);
        });
    tally[COUNT] = 0;
  }

  // ---- broadcasts ------------------------------------------------------------------------------
  // Write this rank's slice, the union of its two copies, into the copies of all ranks.
  __device__ void broadcast_slice() {
    for (i64 w = thread_index(); w < words(); w += thread_count()) {
      i64 at = own_words() + w;
      broadcast_word(at, current_copy()[at] | next_copy()[at]);
    }
  }
  __device__ void broadcast_word(i64 at, u32 word) {
    for (i64 r = 0; r < num_ranks(); r++) copy(buffer(r), side)[at] = word;
    tally[SENT] += 4 * (num_ranks() - 1);
  }
  // Mark an owned vertex as reached in the copies of all other ranks.
  __device__ void broadcast_vertex(i64 v, bool which) {
    tally[SENT] += 4 * (num_ranks() - 1);
    for (i64 r = 0; r < num_ranks(); r++)
      if (r != rank())
        atomic_or_system(copy(buffer(r), which) + own_words() + (v >> 5), 1u << (v & 31));
  }

  // ---- scans for parents -----------------------------------------------------------------------
  // Unreached owned vertices scan their rows for the first reached neighbor, which is the smallest.
  // After a push only marked vertices scan (the marks are in any rank's next_copy()), and arcs are
  // counted; in a pull all scan, and arcs are counted when the frontier is queued. One in `share`
  // scans. Found vertices are set in the next_copy() of every rank.
  __device__ void pull_slice(i64 share, ScanMode mode, bool pushed) {
    // With a small frontier hubs may scan long rows; after it all hubs are reached.
    i64 run = run_of_words(share), hubs = pushed ? parameter(NUM_HUBS) >> 5 : 0;
    for (i64 word = blockIdx.x; word < hubs; word += gridDim.x) pull_hub_word(word);
    if (hubs) __syncthreads();  // all have read the hits of the last word
    auto is_here = [&](i64 word) { return lane_index() < run && word + lane_index() < words(); };
    auto word_of = [&](i64 word) {
      return is_here(word) ? current_copy()[own_words() + word + lane_index()] : ~0u;
    };
    Runs runs(hubs, words(), run, runs_taken(level));
    i64 next = runs.begin();
    u32 next_seen = word_of(next);
    for (i64 word = next; word < words(); word = next) {
      bool here = is_here(word);
      i64 at = own_words() + word + lane_index();
      u32 seen = next_seen, any_rank_mask = here ? next_copy()[at] : 0,
          all_ranks_mask = any_rank_mask;
      next = runs.behind(word);
      next_seen = word_of(next);
      if (pushed) {
        if (here) tally[SENT] += 4 * (num_ranks() - 1);
        u32 theirs[RANKS];
        ranks.from_all(theirs, [&](i64 r) { return here ? copy(buffer(r), !side)[at] : 0; });
#pragma unroll
        for (int r = 0; r < RANKS; r++) {
          any_rank_mask |= theirs[r];
          all_ranks_mask &= theirs[r];
        }
      }
      u32 all =
          seen | find_parents(word, run, pushed ? any_rank_mask & ~seen : ~seen, mode, pushed);
      if (here && all != all_ranks_mask) {
        for (i64 r = 0; r < num_ranks(); r++) copy(buffer(r), !side)[at] = all;
        tally[SENT] += 4 * (num_ranks() - 1);
      }
      __syncwarp();  // the next words are loaded by the whole warp
    }
  }
  // Hub rows are contiguous in degree order and may have millions of arcs: a block processes a word
  // of marked hubs, a warp a row.
  __device__ void pull_hub_word(i64 word) {
    u32* hits = (u32*)block->scratch;
    i64 at = own_words() + word;
    u32 seen = current_copy()[at], any_rank_mask = 0, all_ranks_mask = ~0u;
    if (threadIdx.x == 0) tally[SENT] += 4 * (num_ranks() - 1);
    for (i64 r = 0; r < num_ranks(); r++) {
      u32 theirs = copy(buffer(r), !side)[at];
      any_rank_mask |= theirs;
      all_ranks_mask &= theirs;
    }
    __syncthreads();  // all have read the hits of the word before
    if (threadIdx.x == 0) *hits = 0;
    __syncthreads();
    for (int bit = threadIdx.x >> 5; bit < 32; bit += blockDim.x >> 5) {
      if (!((any_rank_mask & ~seen) >> bit & 1)) continue;
      i64 v = word << 5 | bit, place = first_reached_in_row(v);
      if (lane_index() > 0) continue;
      tally[SCANNED] += place + 1 - load_readonly(in_indptr + v);
      tally[COUNT]++;
      settle(v, positions()(load_readonly(in_targets + place)), true);
      atomic_or(hits, 1u << bit);
    }
    __syncthreads();
    u32 all = seen | *hits;
    if (threadIdx.x >= num_ranks() || all == all_ranks_mask) return;
    copy(buffer(threadIdx.x), !side)[at] = all;
    if (threadIdx.x != rank()) tally[SENT] += 4;
  }
  // The index of the first reached neighbor of a row, which exists; by a whole warp.
  __device__ i64 first_reached_in_row(i64 v) {
    constexpr int WIDE = 4;
    const u32* reached = current_copy();
    i64 begin = load_readonly(in_indptr + v), end = load_readonly(in_indptr + v + 1);
    for (; begin < end; begin += 32 * WIDE) {
      vertex_t u[WIDE];
      bool here[WIDE];
      for (int k = 0; k < WIDE; k++) {
        i64 at = begin + k * 32 + lane_index();
        here[k] = at < end;
        u[k] = here[k] ? load_readonly(in_targets + at) : 0;
      }
      for (int k = 0; k < WIDE; k++) here[k] = here[k] && test_bit(reached, u[k]);
      for (int k = 0; k < WIDE; k++) {
        u32 agreeing = __ballot_sync(WARP, here[k]);
        if (agreeing) return begin + k * 32 + __ffs(agreeing) - 1;
      }
    }
    return end - 1;
  }
  // For the words from `word` on: lane k has in `open` the vertices of the k-th word that scan;
  // return those that find a parent. First all test their first neighbor, of which there is a
  // contiguous copy; with hubs first in rows most are reached. Then the remaining vertices are
  // redistributed over the lanes and scan on, unless rows from there on have one arc.
  __device__ u32 find_parents(i64 word, i64 run, u32 open, ScanMode mode, bool counts_arcs) {
    WarpHits hits(block->scratch, word);
    hits.own() = mode == BY_WORDS ? scan_firsts_by_word(word, run, open, counts_arcs) : 0;
    __syncwarp();
    if (mode == PICKED)
      each_bit(word, open,
               [&](const i64(&v)[2], const bool (&valid)[2]) { scan_first(v, valid, hits); });
    __syncwarp();
    open &= ~hits.own();
    if (mode != BY_ROWS && (word + lane_index()) * 32 >= parameter(DEGREE_ONE_FROM)) open = 0;
    if (__any_sync(WARP, open))
      each_bit(word, open, [&](const i64(&v)[2], const bool (&valid)[2]) {
        scan_rest(v, valid, mode != BY_ROWS, counts_arcs, hits, [](i64) {});
      });
    u32 found = hits.all_of_own();
    tally[COUNT] += __popc(found);
    __syncwarp();  // all lanes have read their word before the next hits
    return found;
  }
  __device__ u32 scan_firsts_by_word(i64 word, i64 run, u32 open, bool counts_arcs) {
    u32 found = scan_first_by_word(*this, word, run, open);
    if (counts_arcs) tally[ARCS] += count_arcs(indptr + word * 32, found, (int)run);
    return found;
  }
  // Two vertices per lane test their first neighbor; call hit(v) for those that find a parent.
  template <class Hit>
  __device__ void scan_first(const i64 (&v)[2], const bool (&open)[2], Hit hit) {
    const u32* reached = current_copy();
    vertex_t first[2];
    u32 near[2];
    for (int half = 0; half < 2; half++)
      first[half] = open[half] ? load_readonly(first_neighbors + v[half]) : 0;
    for (int half = 0; half < 2; half++) near[half] = reached[first[half] >> 5];
    for (int half = 0; half < 2; half++) {
      tally[SCANNED] += open[half];
      if (!open[half] || !(near[half] >> (first[half] & 31) & 1)) continue;
      settle(v[half], positions()(first[half]), false);
      hit(v[half]);
    }
  }
  // Scan rows from their first or second arc on; call hit(v) for those that find a parent, or
  // miss(length).
  template <class Hit, class Miss> __device__ void scan_rest(const i64 (&v)[2],
                                                             const bool (&open)[2], bool second,
                                                             bool counts_arcs, Hit hit, Miss miss) {
    i64 begin[2], length[2];
    for (int half = 0; half < 2; half++) {
      begin[half] = open[half] ? load_readonly(in_indptr + v[half]) + second : 0;
      length[half] = open[half] ? load_readonly(in_indptr + v[half] + 1) - begin[half] : 0;
      if (length[half] < 0) begin[half] = length[half] = 0;
    }
    auto found = [this, &v, counts_arcs, hit](int half, vertex_t parent) {
      settle(v[half], positions()(parent), counts_arcs);
      hit(v[half]);
    };
    auto missed = [&open, &length, miss](int half) {
      if (open[half]) miss(length[half]);
    };
    scan_rows(*this, begin, length, found, missed);
  }
  __device__ RowSearch row_search() const {
    return {current_copy(), in_targets, parameter(LAST_ARC)};
  }
  __device__ void count_scanned(i64 num) { tally[SCANNED] += num; }
  // The parent is a position.
  __device__ void settle(i64 v, vertex_t parent, bool counts_arcs) {
    parents[v] = parent;
    levels[v] = (dist_t)(level + 1);
    if (counts_arcs) tally[ARCS] += row_length(indptr, v);
  }
};
