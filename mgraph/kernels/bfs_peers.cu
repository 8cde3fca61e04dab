// A whole breadth-first search in one launch a rank, where the ranks' kernels reach each other's memory: the loop of
// algorithms/bfs.py. bfs_peers.py says what the parameters are.
//
// Few arcs are pushed as offers of parents, side by side into the owners' windows; the owners take the smallest. Many
// are pushed as bits, each rank's into its own other copy of who is reached, from which the owners gather theirs; who
// is found looks for its parent itself, as in a pull. Where there are many arcs, hubs are on the frontier and stand
// first in the row: it looks at 8 targets or fewer (RMAT and uniform graphs), and no offer has to travel.

// So many looks of a pull take as long as pushing an arc, with what comes of it (RMAT of scale 26 on two H200).
constexpr double LOOKS_A_PUSH = 16;
// Offers for fewer than one word in so many are few: whoever they find is told to all ranks at once, bit by bit, where
// the owners of more tell their slices when all are found.
constexpr i64 FEW_OFFERS = 8;

struct Search : Slices {
  i64 count = 0, arcs = 0, arcs_before = 0, num_left = 0, arcs_left = 0, reached = 0, started = 0;
  bool queued = true, pulling = false, unsettled = false, listable = true, listed = false, apart = false;

  // Nothing is reached, in all slices of one's own copies: nobody writes there before all have met. Bits behind a
  // slice's last vertex are set by its owner. If there is one source, who clears its word reaches it.
  __device__ void clear(const Sources& sources) {
    i64 first = sources.count == 1 ? state_of_source(sources.position(0)) : -1;
    for (i64 w = thread_index(); w < words() * size(); w += thread_count()) {
      i64 own = w - own_words(), left = fact(NUM_OWNED) - own * 32;
      bool behind = own >= 0 && own < words() && left < 32;
      u32 word = behind ? left > 0 ? ~0u << left : ~0u : 0;
      now()[w] = then()[w] = first >> 5 == w ? word | 1u << (first & 31) : word;
    }
    if (thread_index() < NUM_COUNTERS) counters()[thread_index()] = 0;
  }
  // The state of a source's position; -1 where it has no arcs.
  __device__ i64 state_of_source(i64 position) const {
    return position < fact(NUM_POSITIONS) ? state_of(position, fact(STRIDE), fact(MULTIPLIER)) : -1;
  }
  __device__ void begin_with_source(i64 position) {
    i64 v = state_of_source(position) - rank() * fact(STRIDE);
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
            levels[v[half]] = top_of<dist_t>::value(), parents[v[half]] = top_of<vertex_t>::value();
            tally[ARCS] += arcs_of(v[half]);
          }
      });
    }
  }
  __device__ void settle_source(i64 v) { levels[v] = 0, parents[v] = (vertex_t)(v * fact(MULTIPLIER) + fact(FIRST)); }
  // Every rank marks the sources in its own copy, and those it owns begin its queue.
  __device__ void start(const Sources& sources) {
    for (i64 group = warp_index() << 5; group < sources.count; group += warp_count() << 5) {
      bool there = group + lane_index() < sources.count;
      i64 state = there ? state_of_source(sources.position(group + lane_index())) : -1,
          v = state - rank() * fact(STRIDE);
      if (state >= 0) set_bit(now(), state);
      bool own = state >= 0 && v >= 0 && v < fact(NUM_OWNED);
      if (own) settle_source(v);
      enqueue(turn, {own ? v : 0, 0}, {own, false});
    }
  }

  // ---- push ------------------------------------------------------------------------------------------
  // Who is not reached yet at the end of the queue's arcs: few are sent to their owners as offers, for which a block
  // has `room` with each; many, where there is none, are marked in one's own other copy. That may lag behind by what
  // was reached since, which the owners know. Two arcs a lane: more take registers from those who look (there, the
  // levels that look most of rmat27 on two H200: 570 and 224 us with four, 554 and 217 with two).
  __device__ void push(u32 room) {
    const u32* reached = room ? now() : then();
    i64 queued = *queue_counter(turn);
    BlockShare share(0, queued_arcs(queued));
    if (threadIdx.x < MOST_RANKS) block->num_offers[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0 && share.begin < share.end) tally[LOOKED] += share.end - share.begin;
    auto position = [&](vertex_t v) { return (vertex_t)(v * fact(MULTIPLIER) + fact(FIRST)); };
    auto push_arcs = [&](const vertex_t(&v)[2], const vertex_t(&u)[2], const bool (&there)[2]) {
      // Without branches between them all loads are under way together. An older word makes for an atomic too many;
      // the copy against which offers are checked does not change meanwhile.
      u32 word[2];
      bool open[2];
      for (int k = 0; k < 2; k++) word[k] = load_stale(reached + (v[k] >> 5));
      for (int k = 0; k < 2; k++) open[k] = there[k] && !(word[k] >> (v[k] & 31) & 1);
      for (int k = 0; k < 2; k++) {
        if (room)
          send(v[k], u[k], open[k], room);
        else if (open[k])
          atomic_or(then() + (v[k] >> 5), 1u << (v[k] & 31));
      }
    };
    each_arc<2>(queue(), queued_vertices(queued), targets, share, block->room, position, push_arcs);
  }
  // Blocks have places of their own with the owners, as many for all that have arcs, and say how many they took; those
  // beyond MOST_BLOCKS have none.
  __device__ i64 num_offering() const {
    i64 arcs = queued_arcs(*queue_counter(turn)), each = BlockShare(0, arcs).length, num = (arcs + each - 1) / each;
    return num < MOST_BLOCKS ? num : MOST_BLOCKS;
  }
  __device__ u32 room_for_offers() const {
    i64 num_blocks = num_offering();
    return (u32)(fact(INBOX) / (num_blocks ? num_blocks : 1));
  }
  __device__ void tell_offers(u32 room) {
    __syncthreads();
    i64 num_blocks = num_offering();
    if (threadIdx.x >= size()) return;
    i64* here = told(window(threadIdx.x), rank());
    u32 own = block->num_offers[threadIdx.x];
    if (blockIdx.x == 0) here[0] = num_blocks << 32 | room;
    if (blockIdx.x < num_blocks) here[1 + blockIdx.x] = own < room ? own : room;
  }
  // A warp's offers, one a lane if it is `there`: those to a rank go side by side, as they travel. Those that find no
  // room are counted.
  __device__ void send(vertex_t v, vertex_t u, bool there, u32 room) {
    vertex_t owner = there ? owner_of(v) : (vertex_t)size();
    u32 before = 0, num = 0;
    for (int r = 0; r < size(); r++) {
      u32 to_rank = __ballot_sync(WARP, owner == r);
      if (owner == r) before = __popc(to_rank & ((1u << lane_index()) - 1));
      if (lane_index() == r) num = __popc(to_rank);
    }
    u32 place = num ? atomic_add(&block->num_offers[lane_index()], num) : 0;
    u32 at = __shfl_sync(WARP, place, (int)owner & 31) + before;
    if (owner >= size()) return;
    if (owner != rank()) tally[SENT] += sizeof(Offer);
    if (at < room && blockIdx.x < MOST_BLOCKS)
      inbox(window(owner), rank())[blockIdx.x * (i64)room + at] = {v - owner * (vertex_t)fact(STRIDE), u};
    else
      tally[COUNT]++;
  }
  // Call take(offer, there), by whole warps, two a lane, for what every rank's blocks offer.
  template <class Take> __device__ void each_offer(Take take) {
    i64 most = blockIdx.x + 1;
    for (i64 of = blockIdx.x; of < most; of += gridDim.x) {
      __syncthreads();
      if (threadIdx.x < size()) {
        const i64* from = told(window(), threadIdx.x);
        block->told[threadIdx.x] = from[0];
        block->num_offers[threadIdx.x] = of < from[0] >> 32 ? (u32)from[1 + of] : 0;
      }
      __syncthreads();
      u32 total = 0;
      for (i64 r = 0; r < size(); r++) {
        total += block->num_offers[r];
        if (block->told[r] >> 32 > most) most = block->told[r] >> 32;
      }
      for (u32 group = (threadIdx.x & ~31) * 2; group < total; group += blockDim.x * 2) {
        Offer offer[2];
        bool there[2];
        for (int half = 0; half < 2; half++) {
          u32 i = group + half * 32 + lane_index();
          i64 from = 0;
          there[half] = i < total;
          while (there[half] && i >= block->num_offers[from]) i -= block->num_offers[from++];
          offer[half] = there[half] ? inbox(window(), from)[of * (u32)block->told[from] + i] : Offer{0, 0};
        }
        take(offer, there);
      }
    }
  }
  // Who was not offered a parent before is found, takes it, and is queued for the next level; offers that come later
  // wait until all have met. Who is reached is read, and then written: one copy does.
  __device__ void take_offers(bool few) {
    each_offer([&](const Offer(&offer)[2], const bool (&there)[2]) {
      i64 v[2] = {(i64)offer[0].to, (i64)offer[1].to};
      bool found[2];
      for (int half = 0; half < 2; half++) found[half] = there[half] && set_bit(now(), own_words() * 32 + v[half]);
      for (int half = 0; half < 2; half++) {
        if (found[half]) {
          levels[v[half]] = (dist_t)(level + 1), parents[v[half]] = offer[half].parent;
          if (few) tell_others(v[half], side);
        } else if (there[half]) {
          late()[reserve(late_counter(!turn))] = offer[half];
        }
      }
      enqueue(!turn, v, found);
    });
    turn = !turn, queued = unsettled = true;
  }
  // The smallest parent is taken of those that came late too.
  __device__ void take_late() {
    for (i64 i = thread_index(), count = *late_counter(turn); i < count; i += thread_count())
      atomic_min(parents + late()[i].to, late()[i].parent);
  }
  // Who is reached of one's own slice stands in the copies of all, whichever of one's own it stood in.
  __device__ void tell_slice() {
    for (i64 w = thread_index(); w < words(); w += thread_count()) {
      i64 at = own_words() + w;
      u32 word = now()[at] | then()[at];
      for (i64 r = 0; r < size(); r++) copy(window(r), side)[at] = word;
      tally[SENT] += 4 * (size() - 1);
    }
  }
  // One's own vertex is reached, in the copies of all others.
  __device__ void tell_others(i64 v, bool which) {
    tally[SENT] += 4 * (size() - 1);
    for (i64 r = 0; r < size(); r++)
      if (r != rank()) atomic_or_system(copy(window(r), which) + own_words() + (v >> 5), 1u << (v & 31));
  }

  // ---- the last --------------------------------------------------------------------------------------
  // Whoever is left is listed, and the others are not passed over again.
  __device__ void list_left() {
    constexpr int WIDE = 4;
    for (i64 first = warp_index() * 32 * WIDE; first < words(); first += warp_count() * 32 * WIDE) {
      u32 left[WIDE], count = 0;
      for (int k = 0; k < WIDE; k++) {
        i64 word = first + 32 * k + lane_index();
        left[k] = word < words() ? ~now()[own_words() + word] : 0;
      }
      for (int k = 0; k < WIDE; k++) count += __popc(left[k]);
      if (!__any_sync(WARP, count)) continue;
      WarpScan scan(count);
      i64 place = lane_index() == 0 ? atomic_add(list_counter(), (i64)scan.total) : 0;
      vertex_t* list = queue().vertices + __shfl_sync(WARP, place, 0) + scan.before;
      for (int k = 0; k < WIDE; k++)
        for (u32 word = left[k]; word; word &= word - 1)
          *list++ = (vertex_t)((first + 32 * k + lane_index()) * 32 + __ffs(word) - 1);
    }
  }
  // They look alone. Who is not reached yet has no neighbours reached but in the level before: who is found is marked
  // in the copy that is not read, and needs not stand in the other too. The arcs of those who find nothing are counted;
  // a long row is too much.
  __device__ void look_through_list() {
    each_listed(queue().vertices, *list_counter(), [&](const i64(&v)[2], const bool (&there)[2]) {
      bool open[2];
      for (int half = 0; half < 2; half++) {
        i64 word = own_words() + (v[half] >> 5);
        open[half] = there[half] && !((now()[word] | load_relaxed(then() + word)) >> (v[half] & 31) & 1);
      }
      look_on(
          v, open, false, false,
          [&](i64 hit) { set_bit(then(), own_words() * 32 + hit), tell_others(hit, !side), tally[COUNT]++; },
          [&](i64 length) { tally[ARCS] += length <= LONG_ROW ? length : FEW_LISTED + 1; });
    });
    side = !side;
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
  // The list takes the place of a queue, which is to be read.
  __device__ bool may_list() const { return listable && !queued && num_left * FEW_LEFT < fact(NUM_POSITIONS); }
  __device__ bool search_level() {
    if (unsettled) take_late();
    unsettled = false;
    if (!listed && pulling && may_list()) {
      list_left();
      if (!ranks.meet_here()) return false;
      listed = true;
    }
    if (listed) {
      look_through_list();
      if (!meet()) return false;
      listed = listable = block->ranks.total[ARCS] <= FEW_LISTED, apart = true;
      return true;
    }
    if (apart) {
      tell_slice();
      if (!meet()) return false;
      apart = false;
    }
    if (!pulling && !queued) {
      queue_up();
      if (!meet()) return false;
      arcs = block->ranks.total[ARCS];
    }
    if (thread_index() == 0) *queue_counter(!turn) = *late_counter(!turn) = *runs_taken(level + 1) = 0;
    if (!pulling) arcs_before = arcs;
    if (pulling) return look_level();
    bool few = arcs <= words() / FEW_OFFERS, full = false;
    u32 room = arcs <= most_offers() ? room_for_offers() : 0;
    do {
      if (full) room = 0;
      push(room);
      if (room) tell_offers(room);
      if (!meet_halfway()) return false;
      full = room && block->ranks.total[COUNT];
    } while (full);
    if (!room) return look_level();
    take_offers(few);
    if (!few) {
      if (!ranks.meet_here()) return false;
      tell_slice();
    }
    return meet();
  }
  // So many that inboxes hold them if none gets more than twice its part, and a queue whoever they find.
  __device__ i64 most_offers() const {
    i64 most = fact(INBOX) * size() / 2;
    return most < fact(CAPACITY) ? most : fact(CAPACITY);
  }
  __device__ bool look_level() {
    turn = !turn, queued = false;
    i64 share = pulling ? fact(NUM_POSITIONS) / (num_left + 1) : SPARSE;
    bool many = pulling ? share < SPARSE : arcs > fact(NUM_POSITIONS);
    Looks looks = pulling && share < SPARSER ? PICKED : BY_ROWS;
    look(share, many ? BY_WORDS : looks, !pulling);
    side = !side;
    return meet();
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
  // Tell the host, a block together.
  __device__ void tell(i64* report) const {
    i64 num_rows = level < fact(TRACE_ROWS) ? level : fact(TRACE_ROWS);
    for (i64 i = threadIdx.x; i < num_rows * ROW; i += blockDim.x) report[NUM_REPORTS + i] = load_relaxed(rows() + i);
    if (threadIdx.x > 0) return;
    report[NUM_ROWS] = num_rows, report[REACHED] = reached,
    report[REACHED_ARCS] = indptr[fact(NUM_OWNED)] - block->ranks.own[ARCS], report[DONE] = 1;
  }

  __device__ void run(const Sources& sources, i64* report) {
    num_left = fact(NUM_POSITIONS), arcs_left = fact(NUM_ARCS), started = clock_ns();
    clear(sources);
    if (sources.count == 1) {
      begin_with_source(sources.position(0));
    } else {
      if (!meet()) return;
      start(sources);
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
    if (unsettled) take_late();
    leave_unreached();
    if (ranks.leave(tally)) tell(report);
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    search_ranks(i64 lo, i64 hi, const u32* abort, const i64* windows, const u8* window, const id_t* positions,
                 const i64* indptr, const vertex_t* targets, const i64* in_indptr, const vertex_t* in_targets,
                 const vertex_t* firsts, dist_t* levels, vertex_t* parents, i64* host) {
  __shared__ Block block;
  if (threadIdx.x < NUM_FACTS) block.facts[threadIdx.x] = host[threadIdx.x];
  Search search = {{&block, Ranks(&block.ranks, windows, window, abort), indptr, targets, in_indptr, in_targets, firsts,
                    levels, parents}};
  Sources sources = {block.facts[NUM_STARTS], block.sources,
                     host + NUM_FACTS + NUM_REPORTS + block.facts[TRACE_ROWS] * ROW, block.facts[FOUND] != 0};
  if (sources.find(search.ranks, positions, block.facts[FIRST_USER], block.facts[NUM_USERS], host + FOUND))
    search.run(sources, host + NUM_FACTS);
}
