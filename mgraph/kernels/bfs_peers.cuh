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
constexpr i64 ROW = 5;  // words of a level: pulled, frontier, arcs, nanoseconds, bytes sent
// What the ranks add up at a meeting; of the last two each keeps its own.
enum Sum { COUNT, ARCS, LOOKED, SENT };
constexpr i64 HEAD_BYTES = 1024;
constexpr int ARC_BITS = 36;  // of the queue's counter: vertices above, their arcs below
constexpr u32 WARP = 0xFFFFFFFFu;
constexpr int BLOCK = 768;  // 80 registers a thread; with 1024 threads many would be spilled
// Pushing more than one arc for so many vertices, it is cheaper to look for offers among all than to mark each.
constexpr i64 MARK_SHARE = 16;
// Targets that a thread looks at alone before its warp helps.
constexpr int ALONE = 32;
// Words of an inbox in which a rank's blocks say how many offers each has put there; the first, how many blocks.
constexpr i64 TOLD = 1024;

// Which bit is the n-th that is set.
__device__ inline int nth_bit(u32 word, int n) {
  int at = 0;
  for (int half = 16; half; half >>= 1) {
    int below = __popc(word & ((1u << half) - 1));
    if (n >= below) n -= below, word >>= half, at += half;
  }
  return at;
}

// The sum over this lane and those below.
template <class T> __device__ inline T scan_warp(T v) {
  for (int d = 1; d < 32; d <<= 1) {
    T other = __shfl_up_sync(WARP, v, d);
    if (lane_index() >= d) v += other;
  }
  return v;
}

// The last of `count` rising offsets that is not above `arc`: a block looks at as many places at once as it has
// threads.
__device__ inline i64 row_of_arc_by_block(const i64* offsets, i64 count, i64 arc) {
  i64 first = 0;
  while (count > 1) {
    i64 step = (count + blockDim.x - 1) / blockDim.x, i = threadIdx.x * step;
    i64 last = (__syncthreads_count(i < count && offsets[first + i] <= arc) - 1) * step;
    first += last;
    count = count - last < step ? count - last : step;
  }
  return first;
}

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
  struct Queue {
    i64 *offsets, *first;  // entry k has arcs first[k] + offsets[k] and on in `targets`
    vertex_t* vertices;
  };
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
    u32 together = __ballot_sync(WARP, there);
    if (!together) return;
    i64 begin = there ? load_readonly(indptr + v) : 0, length = there ? load_readonly(indptr + v + 1) - begin : 0;
    i64 upto = scan_warp(length), base = 0;
    if (lane_index() == 31) base = atomic_add(queue_counter(turn), ((i64)__popc(together) << ARC_BITS) + upto);
    base = __shfl_sync(WARP, base, 31);
    if (!there) return;
    tally[COUNT]++, tally[ARCS] += length;
    i64 slot = (base >> ARC_BITS) + __popc(together & ((1u << lane_index()) - 1));
    i64 offset = (base & ((1ll << ARC_BITS) - 1)) + upto - length;
    if (slot >= fact(CAPACITY)) return;  // such a frontier is pulled
    Queue next = queue();
    next.vertices[slot] = (vertex_t)v, next.offsets[slot] = offset, next.first[slot] = begin - offset;
  }

  // How many words of a slice a warp takes at once: so few that all have work, and enough for all lanes.
  __device__ i64 run_of_words(i64 most) const {
    i64 each = words() / (4 * warp_count());
    return each < 2 ? 2 : each > most ? most : each;
  }
  // Call take(v, there), a warp together, for every bit that is set in the words of its lanes, which follow `word`;
  // v and there are of two vertices a lane, so that what they wait for comes at the same time.
  template <class Take> __device__ void each_bit(i64 word, u32 own, Take take) {
    u32 upto = scan_warp((u32)__popc(own)), sum = __shfl_sync(WARP, upto, 31);
    for (u32 k = 0; k < sum; k += 64) {
      i64 v[2];
      bool there[2];
      for (int half = 0; half < 2; half++) {
        u32 place = k + half * 32 + lane_index();
        int owner = 0;
        for (int step = 16; step; step >>= 1)
          if (__shfl_sync(WARP, upto, owner + step - 1) <= place) owner += step;
        u32 theirs = __shfl_sync(WARP, own, owner), before = __shfl_sync(WARP, upto, owner) - __popc(theirs);
        v[half] = (word + owner) << 5 | nth_bit(theirs, (int)(place - before)), there[half] = place < sum;
      }
      take(v, there);
    }
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
  // Every arc of one of `rounds` equal parts of the queue offers its source to the owner of its target. Blocks take
  // equal parts of those arcs; offer(v, u, there) is called by whole warps, for EACH arcs a lane, so that what they
  // wait for comes at the same time.
  template <int EACH, class Offer> __device__ void push(i64 round, i64 rounds, Offer offer) {
    i64 queued_here = *queue_counter(turn), num_queued = queued_here >> ARC_BITS;
    i64 num_arcs = queued_here & ((1ll << ARC_BITS) - 1);
    i64 from_arc = num_arcs / rounds * round, to_arc = round + 1 == rounds ? num_arcs : from_arc + num_arcs / rounds;
    i64 share = (to_arc - from_arc + gridDim.x - 1) / gridDim.x;
    if (share < blockDim.x) share = blockDim.x;
    i64 begin = from_arc + blockIdx.x * share, end = begin + share < to_arc ? begin + share : to_arc;
    if (begin >= end) return;
    if (threadIdx.x == 0) tally[LOOKED] += end - begin;
    Queue from = queue();
    i64 *row_offsets = block->room, *row_first = row_offsets + BLOCK;
    vertex_t* row_vertex = (vertex_t*)(row_first + BLOCK);
    for (i64 row = row_of_arc_by_block(from.offsets, num_queued, begin); begin < end; row += blockDim.x) {
      i64 i = row + threadIdx.x, num_rows = num_queued - row < blockDim.x ? num_queued - row : blockDim.x;
      __syncthreads();  // all are done with the rows before
      if (threadIdx.x < num_rows)
        row_offsets[threadIdx.x] = from.offsets[i], row_first[threadIdx.x] = from.first[i],
        row_vertex[threadIdx.x] = (vertex_t)(from.vertices[i] * fact(MULTIPLIER) + fact(FIRST));
      __syncthreads();
      i64 after = row + num_rows < num_queued ? from.offsets[row + num_rows] : num_arcs;
      if (after > end) after = end;
      for (i64 together = begin + (threadIdx.x & ~31); together < after; together += EACH * blockDim.x) {
        vertex_t v[EACH], u[EACH];
        bool there[EACH];
        for (int k = 0; k < EACH; k++) {
          i64 arc = together + k * blockDim.x + lane_index();
          there[k] = arc < after;
          i64 r = there[k] ? row_of_arc(row_offsets, num_rows, arc) : 0;
          u[k] = row_vertex[r], v[k] = there[k] ? load_readonly(targets + row_first[r] + arc) : 0;
        }
        offer(v, u, there);
      }
      begin = after;
    }
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
