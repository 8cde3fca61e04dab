// What every level of bfs_peers.cu is made of: phases, between which all ranks meet.
//
// Who is reached is a bitmap of all states, of which every rank has a copy in its window; the owner of a slice writes
// it into all copies. A level reads one copy and writes the other, so that both stay whole. A vertex not reached has no
// neighbour reached before the frontier: for pull, reached is as good as on the frontier.
// Push offers parents to the owners, into their windows; the owners settle the vertices that were offered any. Where
// there are many, they travel side by side into the owner's inbox: so many at random places would take longer.
// Between two meetings an array is either read or changed by atomics, or each word has one writer; plain loads see what
// was written before the last meeting.

enum Fact {
  STRIDE,
  MULTIPLIER,
  FIRST,
  NUM_OWNED,
  NUM_POSITIONS,
  NUM_ARCS,
  LAST_ARC,
  CAPACITY,
  BETA,
  GROWTH,
  DEPTH_LIMIT,
  NUM_STARTS,
  TRACE_ROWS,
  NUM_FACTS
};
enum Report { DONE, NUM_ROWS, REACHED, REACHED_ARCS, NUM_REPORTS };
// What the ranks add up at a meeting; of the last two each keeps its own.
enum Sum { COUNT, ARCS, LOOKED, SENT };
constexpr i64 HEAD_BYTES = 1024;
constexpr int BLOCK = 768;  // 80 registers a thread; with 1024 threads many would be spilled
// Pushing more than one arc for so many vertices, it is cheaper to look for offers among all than to mark each.
constexpr i64 MARK_SHARE = 16;
// Words of an inbox in which a rank's blocks say how many offers each has put there; the first, how many blocks.
constexpr i64 TOLD = 1024;

// What a block keeps in shared memory.
struct Block {
  i64 room[3 * BLOCK];     // rows that are pushed, words that are pulled
  u32 posted[MOST_RANKS];  // offers put into the inbox of each rank
  i64 facts[NUM_FACTS];
  RanksHere ranks;
};

struct Slices {
  Block* block;
  Ranks ranks;
  const i64* indptr;
  const vertex_t* targets;
  const i64* in_indptr;
  const vertex_t* in_targets;
  i32* levels;
  vertex_t* parents;
  u32* work;

  i64 tally[NUM_SUMS] = {};  // counted by this thread since the last meeting
  i64 level = -1;
  bool side = false, turn = false;

  // Where things stand is worked out anew wherever it is wanted: registers are scarcer.
  __device__ i64 fact(Fact which) const { return block->facts[which]; }
  __device__ i64 rank() const { return block->ranks.rank; }
  __device__ i64 size() const { return block->ranks.size; }
  __device__ i64 words() const { return fact(STRIDE) >> 5; }  // of a slice
  __device__ i64 own_words() const { return rank() * words(); }
  // The copy of rank r of who is reached: the one that is read, and the one that is written.
  __device__ u32* reached_at(i64 r, bool which) const {
    return ranks.at<u32>(r, HEAD_BYTES) + which * words() * size();
  }
  __device__ const u32* now() const { return reached_at(rank(), side); }
  __device__ u32* then() const { return reached_at(rank(), !side); }
  // One's own vertices, which all ranks write to: who has offers, and the smallest.
  __device__ u32* marks(i64 r) const { return reached_at(r, false) + 2 * words() * size(); }
  __device__ vertex_t* offers(i64 r) const { return (vertex_t*)(marks(r) + words()); }
  // From every rank a run of offers, cut in equal parts for its blocks; and how long they are.
  __device__ u32* told(i64 r) const { return (u32*)(offers(r) + fact(STRIDE)); }
  __device__ u64* inbox(i64 r) const { return (u64*)(told(r) + TOLD * MOST_RANKS); }
  __device__ i64 inbox_run() const { return fact(STRIDE) / size(); }
  __device__ bool posts() const { return sizeof(vertex_t) == 4 && size() > 1; }
  __device__ i64 posting_blocks() const { return gridDim.x < TOLD ? gridDim.x : TOLD - 1; }
  __device__ i64* queue_counter(bool which) const { return (i64*)work + which; }
  __device__ i64* rows() const { return (i64*)work + 2; }  // of the trace
  __device__ Queue queue() const {
    i64 *offsets = rows() + fact(TRACE_ROWS) * ROW, *first = offsets + fact(CAPACITY);
    return {offsets, first, (vertex_t*)(first + fact(CAPACITY))};
  }

  // ---- phases ----------------------------------------------------------------------------------------
  __device__ bool meet() { return ranks.meet(tally); }

  // A warp's vertices, those `there`, are counted and go to the queue with the offsets of their arcs.
  __device__ void enqueue(i64 v, bool there) {
    i64 begin = there ? load_readonly(indptr + v) : 0, length = there ? load_readonly(indptr + v + 1) - begin : 0;
    ::enqueue(queue(), fact(CAPACITY), queue_counter(turn), (vertex_t)v, there, begin, length);
    if (there) tally[COUNT]++, tally[ARCS] += length;
  }

  // How many words of a slice a warp takes at once: so few that all have work, and enough for all lanes.
  __device__ i64 run_of_words(i64 most) const {
    i64 each = words() / (4 * warp_count());
    return each < 2 ? 2 : each > most ? most : each;
  }
  // Call take(word, run, seen) for the words of one's own slice, a warp together, one a lane; what it returns is
  // reached now too, and goes into the other copy of every rank.
  template <class Take> __device__ void each_word(i64 most, Take take) {
    i64 run = run_of_words(most);
    auto word_of = [&](i64 word) {
      return lane_index() < run && word + lane_index() < words() ? now()[own_words() + word + lane_index()] : ~0u;
    };
    u32 coming = word_of(warp_index() * run);
    for (i64 word = warp_index() * run; word < words(); word += warp_count() * run) {
      u32 seen = coming;
      coming = word_of(word + warp_count() * run);
      u32 all = seen | take(word, run, seen);
      if (lane_index() >= run || word + lane_index() >= words()) continue;
      i64 at = own_words() + word + lane_index();
      if (then()[at] == all) continue;
      for (i64 r = 0; r < size(); r++) reached_at(r, !side)[at] = all;
      tally[SENT] += 4 * (size() - 1);
    }
  }

  // The frontier, from the two copies to a queue; it has been counted.
  __device__ void queue_up() {
    i64 run = run_of_words(32);
    for (i64 word = warp_index() * run; word < words(); word += warp_count() * run) {
      i64 at = own_words() + word + lane_index();
      u32 found = lane_index() < run && word + lane_index() < words() ? now()[at] & ~then()[at] : 0;
      each_bit(word, found, [&](const i64(&v)[2], const bool (&there)[2]) {
        enqueue(v[0], there[0]);
        enqueue(v[1], there[1]);
      });
    }
    tally[COUNT] = tally[ARCS] = 0;
  }

  // ---- push ------------------------------------------------------------------------------------------
  // Every arc of one of `rounds` equal parts of the queue offers its source to the owner of its target; blocks take
  // equal parts of those arcs.
  template <int EACH, class Offer> __device__ void push(i64 round, i64 rounds, Offer offer) {
    i64 queued = *queue_counter(turn), num_arcs = queued_arcs(queued), from_arc = num_arcs / rounds * round;
    BlockShare share(from_arc, round + 1 == rounds ? num_arcs : from_arc + num_arcs / rounds);
    if (threadIdx.x == 0 && share.begin < share.end) tally[LOOKED] += share.end - share.begin;
    auto position = [&](vertex_t v) { return (vertex_t)(v * fact(MULTIPLIER) + fact(FIRST)); };
    each_arc<EACH>(queue(), queued_vertices(queued), targets, share, block->room, position, offer);
  }
  // Few arcs: each offer goes to its place, and a mark to be found by.
  __device__ void push_marking() {
    push<1>(0, 1, [&](const vertex_t(&v)[1], const vertex_t(&u)[1], const bool (&there)[1]) {
      if (!there[0] || test_bit(now(), v[0])) return;
      i64 r = v[0] / (vertex_t)fact(STRIDE), local = v[0] - r * fact(STRIDE);
      if (r == rank() && load_relaxed(offers(r) + local) <= u[0]) return;
      if (r != rank()) tally[SENT] += sizeof(vertex_t) + 4;
      atomic_min_system(offers(r) + local, u[0]);
      atomic_or_system(marks(r) + (local >> 5), 1u << (local & 31));
    });
  }
  // Many arcs: offers to others are posted.
  __device__ void push_offers(i64 round, i64 rounds) {
    const u32* seen = now();
    vertex_t stride = (vertex_t)fact(STRIDE);
    push<4>(round, rounds, [&](const vertex_t(&v)[4], const vertex_t(&u)[4], const bool (&there)[4]) {
      // Without branches between them all loads are under way together.
      u32 word[4];
      for (int k = 0; k < 4; k++) word[k] = seen[v[k] >> 5];
      for (int k = 0; k < 4; k++) {
        bool open = there[k] && !(word[k] >> (v[k] & 31) & 1);
        i64 r = v[k] / stride, local = v[k] - r * stride;
        if (open && r == rank() && load_relaxed(offers(r) + local) <= u[k]) open = false;
        bool away = open && r != rank();
        if (away) tally[SENT] += 2 * sizeof(vertex_t);
        if (posts() && post(away, r, local, u[k])) open = false;
        if (open) atomic_min_system(offers(r) + local, u[k]);
      }
    });
  }
  // A warp together puts the offers that go `away` into the next places of this block's part of each inbox; false for
  // those for which there is none.
  __device__ bool post(bool away, i64 r, i64 local, vertex_t position) {
    if (!__any_sync(WARP, away)) return false;
    u32 own = 0, together = 0;
    for (int to = 0; to < size(); to++) {
      u32 those = __ballot_sync(WARP, away && r == to);
      if (lane_index() == to) own = (u32)__popc(those);
      if (r == to) together = those;
    }
    u32 base = own ? atomic_add(&block->posted[lane_index()], own) : 0;
    i64 part = blockIdx.x < posting_blocks() ? inbox_run() / posting_blocks() : 0;
    i64 slot = __shfl_sync(WARP, base, (int)r) + __popc(together & ((1u << lane_index()) - 1));
    if (!away || slot >= part) return false;
    inbox(r)[rank() * inbox_run() + blockIdx.x * part + slot] = (u64)local << 32 | (u64)position;
    return true;
  }
  __device__ void push_posting(i64 round, i64 rounds) {
    if (threadIdx.x < MOST_RANKS) block->posted[threadIdx.x] = 0;
    __syncthreads();
    push_offers(round, rounds);
    __syncthreads();
    u32 part = (u32)(inbox_run() / posting_blocks());
    if (!posts() || blockIdx.x >= posting_blocks() || threadIdx.x >= size()) return;
    u32 *theirs = told(threadIdx.x) + TOLD * rank(), posted = block->posted[threadIdx.x];
    theirs[1 + blockIdx.x] = posted < part ? posted : part;
    if (blockIdx.x == 0) theirs[0] = (u32)posting_blocks();
  }
  // What is in the inbox becomes offers like the others.
  __device__ void empty_inbox() {
    vertex_t* mine = offers(rank());
    for (i64 r = 0; r < size(); r++) {
      if (r == rank()) continue;
      const u32* posted = told(rank()) + TOLD * r;
      const u64* from = inbox(rank()) + r * inbox_run();
      i64 part = inbox_run() / posted[0];
      for (i64 b = blockIdx.x; b < posted[0]; b += gridDim.x)
        for (i64 i = threadIdx.x; i < posted[1 + b]; i += blockDim.x) {
          u64 offer = from[b * part + i];
          atomic_min(mine + (offer >> 32), (vertex_t)offer);
        }
    }
  }

  // A vertex that was offered parents takes the smallest, and the place of the offers is free again.
  __device__ void settle(i64 v, vertex_t parent) {
    levels[v] = (i32)(level + 1), parents[v] = parent;
    offers(rank())[v] = top_of<vertex_t>::value();
  }
  __device__ void settle_marked() {
    each_word(32, [&](i64 word, i64 run, u32) {
      u32* mark = marks(rank()) + word + lane_index();
      u32 found = lane_index() < run && word + lane_index() < words() ? *mark : 0;
      if (found) *mark = 0;
      each_bit(word, found, [&](const i64(&v)[2], const bool (&there)[2]) {
        for (int half = 0; half < 2; half++) {
          if (there[half]) settle(v[half], offers(rank())[v[half]]);
          enqueue(v[half], there[half]);
        }
      });
      return found;
    });
  }
  __device__ void settle_all() {
    each_word(8, [&](i64 word, i64 run, u32 seen) {
      u32 found = 0;
      for (int together = 0; together < run; together += 2) {
        vertex_t parent[2];
        for (int k = 0; k < 2; k++) {
          i64 v = (word + together + k) << 5 | lane_index();
          parent[k] = v < fact(NUM_OWNED) ? offers(rank())[v] : top_of<vertex_t>::value();
        }
        for (int k = 0; k < 2; k++) {
          i64 v = (word + together + k) << 5 | lane_index();
          u32 open = ~__shfl_sync(WARP, seen, together + k);
          bool here = open >> lane_index() & 1 && parent[k] != top_of<vertex_t>::value();
          if (here) {
            settle(v, parent[k]);
            tally[COUNT]++, tally[ARCS] += load_readonly(indptr + v + 1) - load_readonly(indptr + v);
          }
          u32 hits = __ballot_sync(WARP, here);
          if (lane_index() == together + k) found = hits;
        }
      }
      return found;
    });
  }
};
