// What every level of bfs_peers.cu is made of: phases, between which all ranks meet.
//
// Who is reached is a bitmap of all states, of which every rank has a copy in its window; the owner of a slice writes
// it into all copies. A level reads one copy and writes the other, so that both stay whole. A vertex not reached has no
// neighbour reached before the frontier: for pull, reached is as good as on the frontier.
// Few arcs are pushed as offers of parents, into the owners' windows; the owners settle the vertices that were offered
// any. Many are pushed as bits, each rank's into its own copy of who is reached, from which the owners gather theirs;
// a vertex that is found looks for its parent itself, as in a pull. Where there are many arcs, hubs are on the frontier
// and stand first in the row: it looks at 8 targets or fewer (RMAT and uniform graphs), and no offer has to travel.
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
constexpr int BLOCK = 768;  // 80 registers a thread; with 1024 threads many would be spilled
// Pushing more than one arc for so many vertices, bits are pushed: then a row is short up to its first parent.
constexpr i64 MARK_SHARE = 16;
// Pushing more than one for so many while the frontier grows, who is found is not queued.
constexpr i64 QUEUE_SHARE = 256;
// So many looks of a pull take as long as pushing an arc, with what comes of it (RMAT of scale 26 on two H200).
constexpr double LOOKS_A_PUSH = 16;
// Vertices that a warp looks for in a run of words, so that all its lanes have some.
constexpr i64 RUN = 256;
// Where only one vertex in so many looks for a parent, lanes that look at the first of rows side by side are few.
constexpr i64 SPARSE = 4;

// What a block keeps in shared memory.
struct Block {
  i64 room[3 * BLOCK];  // rows that are pushed, words that are pulled
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
  const vertex_t* firsts;
  i32* levels;
  vertex_t* parents;

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
  // Behind them what is one's own alone: two counters, the rows of the trace, a queue.
  __device__ i64* queue_counter(bool which) const { return (i64*)(offers(rank()) + fact(STRIDE)) + which; }
  __device__ i64* rows() const { return queue_counter(false) + 2; }
  __device__ Queue queue() const {
    i64 *offsets = rows() + fact(TRACE_ROWS) * ROW, *first = offsets + fact(CAPACITY);
    return {offsets, first, (vertex_t*)(first + fact(CAPACITY))};
  }

  // ---- phases ----------------------------------------------------------------------------------------
  __device__ bool meet() { return ranks.meet(tally); }

  __device__ i64 arcs_of(i64 v) const { return load_readonly(indptr + v + 1) - load_readonly(indptr + v); }
  // A warp's vertices, two a lane, are counted and go to the queue with their arcs if they are `there`.
  __device__ void enqueue(const i64 (&v)[2], const bool (&there)[2]) {
    vertex_t own[2];
    i64 begin[2], length[2];
    for (int half = 0; half < 2; half++) {
      own[half] = (vertex_t)v[half];
      begin[half] = there[half] ? load_readonly(indptr + v[half]) : 0;
      length[half] = there[half] ? load_readonly(indptr + v[half] + 1) - begin[half] : 0;
      tally[COUNT] += there[half], tally[ARCS] += length[half];
    }
    ::enqueue<2>(queue(), fact(CAPACITY), queue_counter(turn), own, there, begin, length);
  }

  // How many words of a slice a warp takes at once, of which one in `share` bits is looked for: so few that all have
  // work, and enough for all lanes.
  __device__ i64 run_of_words(i64 share) const {
    i64 most = share * RUN / 32 < 32 ? share * RUN / 32 : 32,
        each = words() / (share > 1 ? warp_count() : 4 * warp_count());
    return each < 2 ? 2 : each > most ? most : each;
  }
  // Call take(word, seen, pushed) for the words of one's own slice, a warp together, one a lane; what it returns is
  // reached now too, and goes into the other copy of every rank. In those copies stands what was pushed, if `gathers`.
  template <bool gathers, class Take> __device__ void each_word(i64 share, Take take) {
    i64 run = run_of_words(share);
    auto is_here = [&](i64 word) { return lane_index() < run && word + lane_index() < words(); };
    auto word_of = [&](i64 word) { return is_here(word) ? now()[own_words() + word + lane_index()] : ~0u; };
    u32 coming = word_of(warp_index() * run);
    for (i64 word = warp_index() * run; word < words(); word += warp_count() * run) {
      bool here = is_here(word);
      i64 at = own_words() + word + lane_index();
      u32 seen = coming, any = here ? then()[at] : 0, every = any;
      coming = word_of(word + warp_count() * run);
      if (gathers && here) tally[SENT] += 4 * (size() - 1);
      for (i64 r = 0; gathers && r < size(); r++) {
        u32 theirs = here && r != rank() ? reached_at(r, !side)[at] : every;
        any |= theirs, every &= theirs;
      }
      u32 all = seen | take(word, seen, any & ~seen);
      if (!here || all == every) continue;
      for (i64 r = 0; r < size(); r++) reached_at(r, !side)[at] = all;
      tally[SENT] += 4 * (size() - 1);
    }
  }

  // The frontier, from the two copies to a queue; it has been counted, and its arcs are now.
  __device__ void queue_up() {
    i64 run = run_of_words(4);
    for (i64 word = warp_index() * run; word < words(); word += warp_count() * run) {
      i64 at = own_words() + word + lane_index();
      u32 found = lane_index() < run && word + lane_index() < words() ? now()[at] & ~then()[at] : 0;
      each_bit(word, found, [&](const i64(&v)[2], const bool (&there)[2]) { enqueue(v, there); });
    }
    tally[COUNT] = 0;
  }

  // ---- push ------------------------------------------------------------------------------------------
  // Call offer(v, u, there) for targets v of the queue's arcs and positions u of their sources; blocks take equal
  // parts.
  template <int EACH, class Offer> __device__ void push(Offer offer) {
    i64 queued = *queue_counter(turn);
    BlockShare share(0, queued_arcs(queued));
    if (threadIdx.x == 0 && share.begin < share.end) tally[LOOKED] += share.end - share.begin;
    auto position = [&](vertex_t v) { return (vertex_t)(v * fact(MULTIPLIER) + fact(FIRST)); };
    each_arc<EACH>(queue(), queued_vertices(queued), targets, share, block->room, position, offer);
  }
  // Few arcs: each offer goes to its place, and a mark to be found by.
  __device__ void push_offers() {
    push<1>([&](const vertex_t(&v)[1], const vertex_t(&u)[1], const bool (&there)[1]) {
      if (!there[0] || test_bit(now(), v[0])) return;
      i64 r = v[0] / (vertex_t)fact(STRIDE), local = v[0] - r * fact(STRIDE);
      if (r == rank() && load_relaxed(offers(r) + local) <= u[0]) return;
      if (r != rank()) tally[SENT] += sizeof(vertex_t) + 4;
      atomic_min_system(offers(r) + local, u[0]);
      atomic_or_system(marks(r) + (local >> 5), 1u << (local & 31));
    });
  }
  // Many arcs: who is reached by them, as bits of one's own copy that is written. It may lag behind by the frontier,
  // which the owners know to be reached.
  __device__ void push_bits() {
    u32* own = then();
    push<4>([&](const vertex_t(&v)[4], const vertex_t(&)[4], const bool (&there)[4]) {
      // Without branches between them all loads are under way together; an older word makes for an atomic too many.
      u32 word[4];
      for (int k = 0; k < 4; k++) word[k] = load_stale(own + (v[k] >> 5));
      for (int k = 0; k < 4; k++)
        if (there[k] && !(word[k] >> (v[k] & 31) & 1)) atomic_or(own + (v[k] >> 5), 1u << (v[k] & 31));
    });
  }

  // A vertex that was offered parents takes the smallest, and the place of the offers is free again.
  __device__ void settle_offered(bool queues) {
    each_word<false>(4, [&](i64 word, u32, u32) {
      u32* mark = marks(rank()) + word + lane_index();
      u32 found = lane_index() < run_of_words(4) && word + lane_index() < words() ? *mark : 0;
      if (found) *mark = 0;
      each_bit(word, found, [&](const i64(&v)[2], const bool (&there)[2]) {
        for (int half = 0; half < 2; half++) {
          if (there[half]) {
            levels[v[half]] = (i32)(level + 1), parents[v[half]] = offers(rank())[v[half]];
            offers(rank())[v[half]] = top_of<vertex_t>::value();
          }
          if (there[half] && !queues) tally[COUNT]++, tally[ARCS] += arcs_of(v[half]);
        }
        if (queues) enqueue(v, there);
      });
      return found;
    });
  }
  // A vertex that was found looks in its row for the first that was reached before: the smallest. `many` find it at
  // once.
  __device__ void settle_found(bool many) {
    each_word<true>(4, [&](i64 word, u32, u32 pushed) {
      find_parents<true>(word, pushed, many);
      return pushed;
    });
  }

  // ---- pull ------------------------------------------------------------------------------------------
  // Every vertex not reached looks in its row for one that is, in so many words that one in `share` is not reached.
  // Arcs of those found are not counted: nobody asks for them before the frontier is queued.
  __device__ void pull(i64 share) {
    each_word<false>(share, [&](i64 word, u32 seen, u32) { return find_parents<false>(word, ~seen, share < SPARSE); });
  }

  // A warp's words follow `word`; lane k has in `open` who of the k-th looks for a parent, and returns who finds one.
  // Where many look, all look at the first of their row, of which there is a copy side by side and which most find
  // reached, where hubs come first; then those that found nothing look on, all lanes at work again.
  template <bool counts_arcs> __device__ u32 find_parents(i64 word, u32 open, bool many) {
    u32 found = many ? look_first<counts_arcs>(word, open) : 0;
    open &= ~found;
    if (!__any_sync(WARP, open)) return found;
    u32* hits = (u32*)block->room + (threadIdx.x & ~31u);
    hits[lane_index()] = found;
    __syncwarp();
    each_bit(word, open, [&](const i64(&v)[2], const bool (&there)[2]) {
      look_on<counts_arcs>(v, there, many, [&](i64 hit) { atomic_or(&hits[(hit >> 5) - word], 1u << (hit & 31)); });
    });
    __syncwarp();
    found = hits[lane_index()];
    __syncwarp();
    return found;
  }
  template <bool counts_arcs> __device__ u32 look_first(i64 word, u32 open) {
    constexpr int WIDE = 4;
    const u32* reached = now();
    u32 found = 0;
    for (u32 left = __ballot_sync(WARP, open != 0); left;) {
      i64 v[WIDE];
      bool looks[WIDE];
      vertex_t first[WIDE];
      u32 near[WIDE], of[WIDE];
      // The next words in which anybody looks.
      for (int j = 0; j < WIDE; left &= left - 1, j++) {
        of[j] = left ? __ffs(left) - 1 : 0;
        v[j] = (word + of[j]) << 5 | lane_index();
        looks[j] = __shfl_sync(WARP, open, of[j]) >> lane_index() & left != 0;
        first[j] = looks[j] ? load_readonly(firsts + v[j]) : 0;
      }
      for (int j = 0; j < WIDE; j++) near[j] = reached[first[j] >> 5];
      for (int j = 0; j < WIDE; j++) {
        bool here = looks[j] && near[j] >> (first[j] & 31) & 1;
        u32 hits = __ballot_sync(WARP, here);
        if (here) settle<counts_arcs>(v[j], first[j]);
        if (lane_index() == of[j]) found |= hits;
        tally[LOOKED] += looks[j];
      }
    }
    return found;
  }
  // From the first or the second of the rows on, each lane for two vertices; call hit(v) for those that find a parent.
  template <bool counts_arcs, class Hit>
  __device__ void look_on(const i64 (&v)[2], const bool (&open)[2], bool second, Hit hit) {
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
      if (place[half] == length[half]) continue;
      settle<counts_arcs>(v[half], parent[half]);
      hit(v[half]);
    }
  }
  template <bool counts_arcs> __device__ void settle(i64 v, vertex_t parent) {
    parents[v] = position_of(parent, fact(STRIDE), fact(MULTIPLIER)), levels[v] = (i32)(level + 1);
    tally[COUNT]++;
    if (counts_arcs) tally[ARCS] += arcs_of(v);
  }
};
