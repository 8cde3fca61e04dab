// A whole breadth-first search in one launch a rank, where the ranks' kernels reach each other's memory: the loop of
// algorithms/bfs.py. bfs_peers.py says what the parameters are.
//
// Few arcs are pushed as offers of parents, side by side into the owners' windows; the owners take the smallest. Many
// are pushed as bits, each rank's into its own other copy of who is reached, from which the owners gather theirs; who
// is found looks for its parent itself, as in a pull. Where there are many arcs, hubs are on the frontier and stand
// first in the row: it looks at 8 targets or fewer (RMAT and uniform graphs), and no offer has to travel.

// So many looks of a pull take as long as pushing an arc, with what comes of it (RMAT of scale 26 on two H200).
constexpr double LOOKS_A_PUSH = 16;
// Offers for fewer than one word in so many are few: whoever they find is told to all ranks at once, bit by bit.
constexpr i64 FEW_OFFERS = 8;

struct Search : Slices {
  i64 count = 0, arcs = 0, arcs_before = 0, num_left = 0, arcs_left = 0, reached = 0, started = 0;
  bool queued = true, pulling = false, unsettled = false, listable = true, listed = false;

  // Nothing is reached, in all slices of one's own copies: nobody writes there before all have met. Bits behind a
  // slice's last vertex are set by its owner. If there is one source, who clears its word reaches it.
  __device__ void clear() {
    i64 source = fact(NUM_STARTS) == 1 ? fact(SOURCE) : -1;
    for (i64 w = thread_index(); w < words() * size(); w += thread_count()) {
      i64 own = w - own_words(), left = fact(NUM_OWNED) - own * 32;
      bool behind = own >= 0 && own < words() && left < 32;
      u32 word = behind ? left > 0 ? ~0u << left : ~0u : 0;
      now()[w] = then()[w] = source >> 5 == w ? word | 1u << (source & 31) : word;
    }
    if (thread_index() < NUM_COUNTERS) counters(window())[thread_index()] = 0;
  }
  __device__ void begin_with_source() {
    i64 v = fact(SOURCE) - rank() * fact(STRIDE);
    if (thread_index() > 0 || v < 0 || v >= fact(NUM_OWNED)) return;
    i64 begin = load_readonly(indptr + v), length = load_readonly(indptr + v + 1) - begin;
    settle_source(v);
    tally[COUNT] = 1, tally[ARCS] = length, *queue_counter(turn) = (1ll << ARC_BITS) + length;
    queue().vertices[0] = (vertex_t)v, queue().offsets[0] = 0, queue().first[0] = begin;
  }
  // Whoever is not reached in the end has no level and no parent: that is written once, and mostly for few. Their arcs
  // are counted: the others are reached.
  __device__ void leave_unreached() {
    for (i64 word = warp_index() << 5; word < words(); word += warp_count() << 5) {
      i64 at = own_words() + word + lane_index();
      u32 left = word + lane_index() < words() ? ~(now()[at] | then()[at]) : 0;
      each_bit(word, left, [&](const i64(&v)[2], const bool (&there)[2]) {
        for (int half = 0; half < 2; half++)
          if (there[half]) {
            levels[v[half]] = top_of<i32>::value(), parents[v[half]] = top_of<vertex_t>::value();
            tally[ARCS] += arcs_of(v[half]);
          }
      });
    }
  }
  __device__ void settle_source(i64 v) { levels[v] = 0, parents[v] = (vertex_t)(v * fact(MULTIPLIER) + fact(FIRST)); }
  // Every rank marks the sources in its own copy, and those it owns begin its queue.
  __device__ void start(const i64* states) {
    for (i64 group = warp_index() << 5; group < fact(NUM_STARTS); group += warp_count() << 5) {
      bool there = group + lane_index() < fact(NUM_STARTS);
      i64 state = there ? states[group + lane_index()] : 0, v = state - rank() * fact(STRIDE);
      if (there) set_bit(now(), state);
      bool own = there && v >= 0 && v < fact(NUM_OWNED);
      if (own) settle_source(v);
      enqueue(turn, {own ? v : 0, 0}, {own, false});
    }
  }

  // ---- push ------------------------------------------------------------------------------------------
  // Call offer(v, u, there) for targets v of the queue's arcs and positions u of their sources; blocks take equal
  // parts.
  template <class Visit> __device__ void push(Visit offer) {
    i64 queued = *queue_counter(turn);
    BlockShare share(0, queued_arcs(queued));
    if (threadIdx.x == 0 && share.begin < share.end) tally[LOOKED] += share.end - share.begin;
    auto position = [&](vertex_t v) { return (vertex_t)(v * fact(MULTIPLIER) + fact(FIRST)); };
    each_arc<4>(queue(), queued_vertices(queued), targets, share, block->room, position, offer);
  }
  // Few arcs: each goes to the owner of its target, side by side. Those that find no room there are counted.
  __device__ void send_offers() {
    const u32* reached = now();
    push([&](const vertex_t(&v)[4], const vertex_t(&u)[4], const bool (&there)[4]) {
      u32 word[4];
      vertex_t owner[4];
      for (int k = 0; k < 4; k++) word[k] = reached[v[k] >> 5];
      for (int k = 0; k < 4; k++) {
        bool open = there[k] && !(word[k] >> (v[k] & 31) & 1);
        owner[k] = open ? owner_of(v[k]) : (vertex_t)size();
      }
      for (vertex_t r = 0; r < (vertex_t)size(); r++) {
        u32 own = 0;
        for (int k = 0; k < 4; k++) own += owner[k] == r;
        WarpScan scan(own);
        if (scan.total == 0) continue;
        i64 base = lane_index() == 0 ? atomic_add(offered(window(), turn, r), (i64)scan.total) : 0;
        base = __shfl_sync(WARP, base, 0);
        if (base + scan.total > fact(INBOX)) {
          tally[COUNT] += own;
          continue;
        }
        Offer* to = inbox(window(r), rank()) + base + scan.before;
        for (int k = 0; k < 4; k++)
          if (owner[k] == r) *to++ = {v[k] - r * (vertex_t)fact(STRIDE), u[k]};
        if (r != (vertex_t)rank()) tally[SENT] += own * sizeof(Offer);
      }
    });
  }
  // Who was not offered a parent before is found, and queued for the next level. All ranks are told at once if offers
  // are `few`.
  __device__ void take_offers(bool few) {
    if (threadIdx.x < size()) block->came[threadIdx.x] = load_relaxed(offered(window(threadIdx.x), turn, rank()));
    __syncthreads();
    for (i64 r = 0; r < size(); r++) {
      const Offer* from = inbox(window(), r);
      for (i64 i = warp_index() * 64; i < block->came[r]; i += warp_count() * 64) {
        Offer offer[2];
        i64 v[2];
        bool there[2];
        for (int half = 0; half < 2; half++) {
          i64 own = i + half * 32 + lane_index();
          there[half] = own < block->came[r];
          offer[half] = there[half] ? from[own] : Offer{0, 0}, v[half] = offer[half].to;
        }
        for (int half = 0; half < 2; half++)
          if (there[half])
            there[half] = atomic_min(offers(window()) + v[half], offer[half].parent) == top_of<vertex_t>::value();
        for (int half = 0; half < 2; half++)
          if (there[half]) levels[v[half]] = (i32)(level + 1), mark(v[half], side, few);
        enqueue(!turn, v, there);
      }
    }
  }
  // One's own vertex is reached, in a copy here or everywhere.
  __device__ void mark(i64 v, bool which, bool everywhere) {
    if (everywhere) tally[SENT] += 4 * (size() - 1);
    for (i64 r = everywhere ? 0 : rank(); r < (everywhere ? size() : rank() + 1); r++)
      atomic_or_system(copy(window(r), which) + own_words() + (v >> 5), 1u << (v & 31));
  }
  // Tell the others who was marked here alone.
  __device__ void tell_marked() {
    for (i64 w = thread_index(); w < words(); w += thread_count()) {
      i64 at = own_words() + w;
      u32 word = now()[at];
      if (word == then()[at]) continue;
      for (i64 r = 0; r < size(); r++)
        if (r != rank()) copy(window(r), side)[at] = word;
      tally[SENT] += 4 * (size() - 1);
    }
  }
  // Who was queued when it was offered parents takes the smallest, and the place of the offers is free again.
  __device__ void settle_offered() {
    i64 count = queued_vertices(*queue_counter(turn));
    for (i64 i = thread_index(); i < count; i += thread_count()) {
      vertex_t v = queue().vertices[i];
      parents[v] = offers(window())[v], offers(window())[v] = top_of<vertex_t>::value();
    }
  }
  // Many arcs: who is reached by them, as bits of one's own other copy. It may lag behind by what was reached since,
  // which the owners know.
  __device__ void push_bits() {
    u32* own = then();
    push([&](const vertex_t(&v)[4], const vertex_t(&)[4], const bool (&there)[4]) {
      // Without branches between them all loads are under way together; an older word makes for an atomic too many.
      u32 word[4];
      for (int k = 0; k < 4; k++) word[k] = load_stale(own + (v[k] >> 5));
      for (int k = 0; k < 4; k++)
        if (there[k] && !(word[k] >> (v[k] & 31) & 1)) atomic_or(own + (v[k] >> 5), 1u << (v[k] & 31));
    });
  }

  // ---- the last --------------------------------------------------------------------------------------
  // Those who were listed look on alone. Who is not reached yet has no neighbours reached but in the level before: who
  // is found is marked in the copy that is not read, and needs not stand in the other too.
  __device__ void look_through_list() {
    i64 count = queued_vertices(*list_counter());
    each_listed(queue().vertices, count, [&](const i64(&v)[2], const bool (&there)[2]) {
      bool open[2];
      for (int half = 0; half < 2; half++) {
        i64 word = own_words() + (v[half] >> 5);
        open[half] = there[half] && !((now()[word] | load_relaxed(then() + word)) >> (v[half] & 31) & 1);
      }
      look_on(v, open, false, false, [&](i64 hit) { mark(hit, !side, true), tally[COUNT]++; });
    });
  }

  // ---- a level ---------------------------------------------------------------------------------------
  // As _pull_pays in algorithms/bfs.py, but that a look costs less; a frontier that no queue is sure to hold is pulled,
  // and what is left where that is little.
  __device__ bool pull_pays() const {
    if (count > fact(CAPACITY)) return true;
    if (pulling) return count * fact(BETA) > fact(NUM_POSITIONS) || may_list();
    return grows() && LOOKS_A_PUSH * (double)arcs * (double)arcs > (double)num_left * (double)arcs_left;
  }
  __device__ bool grows() const { return arcs > fact(GROWTH) * arcs_before; }
  __device__ bool may_list() const { return listable && !unsettled && num_left * FEW_LEFT < fact(NUM_POSITIONS); }
  __device__ bool search_level() {
    if (listed) {
      look_through_list();
      side = !side;
      return meet();
    }
    if (!pulling && !queued) {
      queue_up();
      if (!meet()) return false;
      arcs = block->ranks.total[ARCS];
    }
    clear_next();
    listing = pulling && may_list();
    if (unsettled) settle_offered();
    unsettled = false;
    if (!pulling) arcs_before = arcs;
    return !pulling && arcs <= most_offers() ? offer_level() : look_level();
  }
  // So many that inboxes hold them if none gets more than twice its part, and a queue whoever they find.
  __device__ i64 most_offers() const {
    i64 most = fact(INBOX) * size() / 2;
    return most < fact(CAPACITY) ? most : fact(CAPACITY);
  }
  // Who is reached is read, and then written: one copy does.
  __device__ bool offer_level() {
    bool few = arcs <= words() / FEW_OFFERS;
    send_offers();
    i64 looked = tally[LOOKED], sent = tally[SENT];
    if (!meet()) return false;
    tally[LOOKED] = looked, tally[SENT] = sent;
    if (block->ranks.total[COUNT]) return look_level();
    take_offers(few);
    turn = !turn, queued = unsettled = true;
    if (few) return meet();
    if (!meet_halfway()) return false;
    tell_marked();
    return meet();
  }
  __device__ bool look_level() {
    if (!pulling) {
      push_bits();
      if (!meet_halfway()) return false;
    }
    turn = !turn, queued = false;
    i64 share = pulling ? fact(NUM_POSITIONS) / (num_left + 1) : SPARSE;
    bool many = pulling ? share < SPARSE : arcs > fact(NUM_POSITIONS);
    look(share, many ? BY_WORDS : pulling && share < SPARSER && !listing ? PICKED : BY_ROWS, !pulling);
    side = !side;
    if (!meet()) return false;
    if (listing) listed = listable = block->ranks.total[ARCS] <= FEW_LISTED;
    listing = false;
    return true;
  }

  // Count what a level found.
  __device__ void arrive() {
    count = block->ranks.total[COUNT], arcs = pulling ? 0 : block->ranks.total[ARCS];
    num_left -= count, arcs_left -= arcs, level++;
    reached += block->ranks.own[COUNT];
  }

  // Note a level, the time since the one before; the last row adds up all that are beyond the trace. Not in host
  // memory: the next meeting would wait for it.
  __device__ void trace(i64 frontier) {
    if (thread_index() != 0) return;
    bool beyond = level > fact(TRACE_ROWS);
    i64 ended = clock_ns(), *row = rows() + ((beyond ? fact(TRACE_ROWS) : level) - 1) * ROW;
    note(row, beyond, {pulling, frontier, block->ranks.own[LOOKED], ended - started, block->ranks.own[SENT]});
    started = ended;
  }
  // Tell the host, the first block together.
  __device__ void tell(i64* report) const {
    i64 num_rows = level < fact(TRACE_ROWS) ? level : fact(TRACE_ROWS);
    __syncthreads();
    for (i64 i = threadIdx.x; i < num_rows * ROW; i += blockDim.x) report[NUM_REPORTS + i] = rows()[i];
    if (threadIdx.x > 0) return;
    report[NUM_ROWS] = num_rows, report[REACHED] = reached,
    report[REACHED_ARCS] = indptr[fact(NUM_OWNED)] - block->ranks.own[ARCS], report[DONE] = 1;
  }

  __device__ void run(i64* report) {
    num_left = fact(NUM_POSITIONS), arcs_left = fact(NUM_ARCS), started = clock_ns();
    ranks.wake_links();
    clear();
    if (fact(NUM_STARTS) == 1) {
      begin_with_source();
    } else {
      if (!meet()) return;
      start(report + NUM_REPORTS + fact(TRACE_ROWS) * ROW);
    }
    if (!meet()) return;
    arrive();
    while (count && level != fact(DEPTH_LIMIT)) {
      i64 frontier = count;
      pulling = listed || pull_pays();
      if (!search_level()) return;
      arrive();
      trace(frontier);
    }
    if (unsettled) settle_offered();
    leave_unreached();
    if (!meet()) return;
    ranks.leave();
    if (blockIdx.x == 0) tell(report);
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    search_ranks(i64 lo, i64 hi, const u32* abort, const i64* windows, const u8* window, const i64* indptr,
                 const vertex_t* targets, const i64* in_indptr, const vertex_t* in_targets, const vertex_t* firsts,
                 i32* levels, vertex_t* parents, i64* host) {
  __shared__ Block block;
  if (threadIdx.x < NUM_FACTS) block.facts[threadIdx.x] = host[threadIdx.x];
  Search search = {{&block, Ranks(&block.ranks, windows, window, abort), indptr, targets, in_indptr, in_targets, firsts,
                    levels, parents}};
  search.run(host + NUM_FACTS);
}
