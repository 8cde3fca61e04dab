// What every superstep of bfs_fused.cu is made of: phases, between which all blocks meet.
//
// A frontier is a queue, or what is visited now and was not before: there are two bitmaps of that. Between two meetings
// an array is only read, or changed by atomics and relaxed stores of one value, or each word has one writer.

// What the host asks for, and what it is told; bfs_fused.py has the same names.
enum Order { DEPTH_LIMIT, NUM_ARCS, NUM_SOURCES, SOURCE, CAPACITY, TRACE_ROWS, GROWTH, ALIKE, PARTS, NUM_ORDERS };
// What decides between the forms of a level, in femtoseconds, behind the orders: a phase of its own, an arc offered to
// a queue, or to parents, one vertex found there, one of all passed over, one that a pull has look at its first, and an
// arc that it looks at further on.
enum Cost { PHASE, QUEUEING, OFFERING, SETTLING, PASSING, OPENING, LOOKING, NUM_COSTS };
constexpr i64 NUM_ASKED = NUM_ORDERS + NUM_COSTS;
enum Report { DONE, NUM_ROWS, REACHED, REACHED_ARCS, NUM_REPORTS };
enum Method { PUSH, PULL, WALK };
// Counters of a phase; COUNT, ARCS and LOOKED are summed by meet().
enum Counter { COUNT, ARCS, LOOKED, FOUND, QUEUED, CELL };
constexpr i64 NUM_CELLS = 3;
constexpr int BLOCK = 640;  // 96 registers a thread; with more threads many would be spilled
// So many arcs a thread of the source's row, at most, are pushed while states are cleared.
constexpr i64 SHORT_ROW = 4;
// So many offers a vertex are often.
constexpr i64 OFTEN = 2;

// What a block keeps in shared memory.
struct Block {
  i64 room[4 * BLOCK];  // rows that are pushed, words that are pulled, queues of a walk
  i64 sums[3];          // for meet()
  i64 totals[CELL];     // of the phase before
  i64 orders[NUM_ASKED];
};

__device__ inline void add_up(i64* sum, i64 mine) {
  if (!__any_sync(WARP, mine != 0)) return;
  mine = warp_sum(mine);
  if (lane_index() == 0) atomic_add(sum, mine);
}
// All blocks meet: what threads counted is added up in the phase's cell of `cells`, and the next phase has its counters
// at 0. A function that is called: it stands in a dozen places, and most time would go into fetching its instructions.
__device__ __noinline__ bool meet_blocks(Block* block, i64* cells, u32 phase, i64* arrived, const u32* abort, i64 count,
                                         i64 arcs, i64 looked) {
  add_up(&block->sums[COUNT], count), add_up(&block->sums[ARCS], arcs), add_up(&block->sums[LOOKED], looked);
  __syncthreads();
  i64 *own = cells + phase % NUM_CELLS * CELL, *next = cells + (phase + 1) % NUM_CELLS * CELL;
  if (threadIdx.x < 3 && block->sums[threadIdx.x]) {
    atomic_add(own + threadIdx.x, block->sums[threadIdx.x]);
    block->sums[threadIdx.x] = 0;
  }
  // Nobody counts there: the totals of two phases ago were read before the meeting that began this one.
  if (thread_index() < CELL) store_relaxed(next + thread_index(), (i64)0);
  return grid_barrier(arrived, abort, [&]() {
    for (int k = 0; k < CELL; k++) block->totals[k] = load_relaxed(own + k);
  });
}

struct Levels {
  i64 n;
  const u32* abort;
  const i64* indptr;
  const vertex_t* targets;
  const i64* in_indptr;
  const vertex_t* in_targets;
  const vertex_t* firsts;
  i32* levels;
  vertex_t* parents;
  u32* work;
  i64* packed;
  i64* arrived;
  i64* host;  // what is asked, told and traced, and the sources, in host memory
  Block* block;

  u32 phase = 0;
  bool side = false, other_queue = false, listing = false;
  bool in_bits = false, in_queue = true, pulling = false, counted = true;
  i64 level = -1, count = 0, arcs = 0, reached = 0, reached_arcs = 0;
  i64 my_count = 0, my_arcs = 0, my_looked = 0;  // counted by this thread since the last meeting

  // Where things stand in `work` is worked out anew wherever it is wanted: registers are scarcer.
  __device__ i64 order(Order which) { return block->orders[which]; }
  __device__ i64 cost(Cost which) { return block->orders[NUM_ORDERS + which]; }
  __device__ i64 words() { return (n + 63) >> 6 << 1; }
  __device__ i64* rows() { return (i64*)work + NUM_CELLS * CELL; }  // of the trace
  __device__ u32* bitmap(bool which) { return (u32*)(rows() + order(TRACE_ROWS) * ROW) + (which ? words() : 0); }
  __device__ u32* visited() { return bitmap(side); }
  __device__ u32* other_visited() { return bitmap(!side); }  // before the level at hand, or after it
  __device__ Queue queue(bool which) {
    i64 capacity = order(CAPACITY), *all = (i64*)(bitmap(true) + words()), *offsets = all + (which ? 2 * capacity : 0);
    vertex_t* vertices = (vertex_t*)(all + 4 * capacity);
    return {offsets, offsets + capacity, vertices + (which ? capacity : 0)};
  }
  __device__ Queue pushed() { return queue(other_queue); }
  __device__ Queue filled() { return queue(!other_queue); }

  // ---- phases ----------------------------------------------------------------------------------------
  __device__ i64* counter(Counter which) { return (i64*)work + phase % NUM_CELLS * CELL + which; }
  __device__ i64 total(Counter which) { return block->totals[which]; }
  // All blocks meet: what threads counted becomes the phase's totals.
  __device__ bool meet() {
    bool met = meet_blocks(block, (i64*)work, phase++, arrived, abort, my_count, my_arcs, my_looked);
    my_count = my_arcs = my_looked = 0;
    return met;
  }

  // A block has a part of the states to clear, and of the words of bitmaps.
  __device__ i64 first_word() { return blockIdx.x * ((u32)words() / gridDim.x + 1ll); }
  __device__ i64 end_word() {
    i64 end = first_word() + (u32)words() / gridDim.x + 1;
    return end < words() ? end : words();
  }
  __device__ bool is_own(i64 v) { return v >> 5 >= first_word() && v >> 5 < end_word(); }
  // Nobody is offered to. Levels are written where a vertex is reached, and at the end.
  __device__ void clear_parents() {
    constexpr int WIDE = Quad<vertex_t>::size;
    Quad<vertex_t> none;
    for (int k = 0; k < WIDE; k++) none.of[k] = top_of<vertex_t>::value();
    i64 end = end_word() << 5 < n ? end_word() << 5 : n, v = (first_word() << 5) + WIDE * threadIdx.x;
    for (; v + WIDE <= end; v += WIDE * blockDim.x) store_quad(parents + v, none);
    for (; v < end; v++) parents[v] = top_of<vertex_t>::value();
  }
  // Nothing is visited but bits behind the last vertex.
  __device__ void clear_bits() {
    for (i64 w = first_word() + threadIdx.x; w < end_word(); w += blockDim.x)
      visited()[w] = other_visited()[w] = w < n >> 5 ? 0 : w > n >> 5 ? ~0u : ~0u << (n & 31);
    for (i64 i = thread_index(); i < NUM_CELLS * CELL; i += thread_count()) store_relaxed((i64*)work + i, (i64)0);
  }

  // A warp's vertices, EACH a lane, go to the next queue with their rows if they are `there`.
  template <int EACH>
  __device__ void enqueue(const i64* rows_from, const vertex_t (&v)[EACH], const bool (&there)[EACH]) {
    i64 begin[EACH], length[EACH];
    for (int k = 0; k < EACH; k++) {
      begin[k] = there[k] ? load_readonly(rows_from + v[k]) : 0;
      length[k] = there[k] ? load_readonly(rows_from + v[k] + 1) - begin[k] : 0;
    }
    ::enqueue(filled(), order(CAPACITY), counter(QUEUED), v, there, begin, length);
  }
  // What was queued becomes the frontier.
  __device__ void turn_queues() {
    other_queue = !other_queue;
    i64 queued = total(QUEUED);
    count = queued_vertices(queued), arcs = queued_arcs(queued);
  }

  // The frontier is the one source. If its row is short, that is pushed at once: every block gives levels and parents
  // to those of the row whose states it has cleared, and the first queues them. Return whether it did.
  __device__ bool begin_with_source() {
    i64 source = order(SOURCE), begin = load_readonly(indptr + source);
    level = 0, count = reached = 1, arcs = reached_arcs = load_readonly(indptr + source + 1) - begin;
    bool short_row = arcs <= SHORT_ROW * blockDim.x && arcs <= order(CAPACITY) && order(DEPTH_LIMIT) != 0;
    if (is_own(source) && threadIdx.x == 0) {
      set_bit(visited(), source), set_bit(other_visited(), source);
      levels[source] = 0, parents[source] = (vertex_t)source;
      if (!short_row) *pushed().vertices = (vertex_t)source, *pushed().offsets = 0, *pushed().first = begin;
    }
    for (i64 group = threadIdx.x & ~31u; short_row && group < arcs; group += blockDim.x) {
      bool there = group + lane_index() < arcs;
      vertex_t v = there ? load_readonly(targets + begin + group + lane_index()) : 0;
      if (there && is_own((i64)v)) {
        set_bit(other_visited(), v);
        levels[v] = 1, parents[v] = (vertex_t)source;
      }
      if (blockIdx.x == 0) enqueue<1>(indptr, {v}, {there});
    }
    return short_row;
  }
  __device__ void settle_sources() {
    i64 sources = order(NUM_SOURCES);
    for (i64 group = warp_index() << 5; group < sources; group += warp_count() << 5) {
      bool there = group + lane_index() < sources;
      vertex_t v = there ? (vertex_t)host[NUM_ASKED + NUM_REPORTS + order(TRACE_ROWS) * ROW + group + lane_index()] : 0;
      if (there) set_bit(other_visited(), v), levels[v] = 0, parents[v] = v;
      enqueue<1>(indptr, {v}, {there});
    }
  }

  // Count what a level found. A pull has counted the arcs of those left. Where rows are alike, offers have counted
  // none: those found are taken to have as many as all who are left have in the mean, by which the next form is chosen.
  __device__ void arrive() {
    side = !side, counted = in_queue || pulling || !order(ALIKE);
    i64 left = order(NUM_ARCS) - reached_arcs;
    if (in_queue) {
      turn_queues();
    } else {
      count = total(COUNT), arcs = pulling ? left - total(ARCS) : total(ARCS);
      if (!counted && count) arcs = (i64)((float)left * ((float)count / (float)(n - reached)));
    }
    reached += count, reached_arcs += arcs, level++;
  }

  // How many words a warp takes at once, of so many times: so few that all have work, and enough for all lanes.
  __device__ i64 run_of_words(i64 least, i64 most, i64 times = 2) {
    i64 each = (words() + times * warp_count() - 1) / (times * warp_count());
    return each < least ? least : each > most ? most : each;
  }

  // From bitmaps to a queue.
  __device__ void queue_bits() {
    i64 run = run_of_words(2, 32);
    for (i64 word = warp_index() * run; word < words(); word += warp_count() * run) {
      i64 w = word + lane_index();
      queue_word(indptr, word, lane_index() < run && w < words() ? visited()[w] & ~other_visited()[w] : 0);
    }
  }
  __device__ void queue_word(const i64* rows_from, i64 word, u32 own) {
    each_bit(word, own, [&](const i64(&v)[2], const bool (&there)[2]) {
      enqueue<2>(rows_from, {(vertex_t)v[0], (vertex_t)v[1]}, there);
    });
  }

  // From bitmaps to a queue: its arcs are counted.
  __device__ bool queue_up() {
    i64 about = arcs;
    queue_bits();
    if (!meet()) return false;
    turn_queues();
    if (!counted) reached_arcs += arcs - about;
    return counted = true;
  }

  // Who was not reached has no level.
  __device__ void leave_unreached() {
    for (i64 w = warp_index(); w < words(); w += warp_count()) {
      u32 seen = visited()[w];
      if (~seen >> lane_index() & 1) levels[w << 5 | lane_index()] = top_of<i32>::value();
    }
  }

  // ---- push ------------------------------------------------------------------------------------------
  // Every arc of the queue offers its source as a parent; blocks take equal parts of the arcs.
  template <int EACH, class Offer> __device__ void push(Offer offer) {
    BlockShare share(0, arcs);
    each_arc<EACH>(pushed(), count, targets, share, block->room, [](vertex_t v) { return v; }, offer);
  }

  // Few arcs: who finds a vertex gives it its level and queues it. Visited afterwards is who was before the last level,
  // those found there, and those found now.
  __device__ void push_to_queue() {
    const u32* before = visited();
    u32* after = other_visited();
    for (i64 i = thread_index(); i < count; i += thread_count()) set_bit(after, pushed().vertices[i]);
    push<2>([&](const vertex_t(&v)[2], const vertex_t(&u)[2], const bool (&there)[2]) {
      i64 begin[2], length[2];
      u32 seen[2];
      vertex_t parent[2];
      bool found[2];
      for (int k = 0; k < 2; k++) {
        seen[k] = there[k] ? before[v[k] >> 5] : ~0u;
        parent[k] = there[k] ? load_relaxed(&parents[v[k]]) : 0;
        begin[k] = there[k] ? load_readonly(indptr + v[k]) : 0;
        length[k] = there[k] ? load_readonly(indptr + v[k] + 1) - begin[k] : 0;
      }
      for (int k = 0; k < 2; k++) {
        found[k] = !(seen[k] >> (v[k] & 31) & 1) && parent[k] > u[k];
        if (found[k]) found[k] = atomic_min(&parents[v[k]], u[k]) == top_of<vertex_t>::value();
      }
      for (int k = 0; k < 2; k++)
        if (found[k]) levels[v[k]] = (i32)(level + 1), set_bit(after, v[k]);
      ::enqueue(filled(), order(CAPACITY), counter(QUEUED), v, found, begin, length);
    });
  }

  // Many arcs: parents alone; mark_found() looks for who has one. Parents that do not fit the cache are offered to one
  // part after another: an atomic beyond the cache takes three times as long as another look at an arc and one within.
  __device__ void push_to_parents() {
    i64 parts = arcs > n / 2 ? order(PARTS) : 1;
    // Where offers to a vertex are many most are in vain, and a look beforehand spares them.
    bool look = arcs > OFTEN * (n - reached);
    for (i64 part = 0; part < parts; part++) push_to_part(n * part / parts, n * (part + 1) / parts, look);
  }
  __device__ void push_to_part(i64 first, i64 last, bool look) {
    const u32* seen = visited();
    push<4>([&](const vertex_t(&v)[4], const vertex_t(&u)[4], const bool (&there)[4]) {
      // Without branches between them all loads are under way together.
      u32 word[4];
      vertex_t parent[4];
      bool open[4];
      for (int k = 0; k < 4; k++) open[k] = there[k] && v[k] >= first && v[k] < last;
      for (int k = 0; k < 4; k++) word[k] = seen[open[k] ? v[k] >> 5 : 0];
      for (int k = 0; k < 4; k++) open[k] = open[k] && !(word[k] >> (v[k] & 31) & 1);
      for (int k = 0; k < 4; k++)
        parent[k] = look && open[k] ? load_relaxed(&parents[v[k]]) : top_of<vertex_t>::value();
      for (int k = 0; k < 4; k++)
        if (open[k] && parent[k] > u[k]) atomic_min(&parents[v[k]], u[k]);
    });
  }
  // Only loads that are under way together fill the bus of the memory: parents of many words, then the rows of those
  // found in some. Where rows are alike nobody looks at them: that would take as long again.
  __device__ void mark_found() {
    constexpr int WIDE = 8, EACH = 4;
    for (i64 word = warp_index() * WIDE; word < words(); word += warp_count() * WIDE) {
      bool mine = lane_index() < WIDE && word + lane_index() < words();
      u32 seen = mine ? visited()[word + lane_index()] : ~0u, found = 0;
      vertex_t parent[WIDE];
      for (int k = 0; k < WIDE; k++) {
        i64 v = (word + k) << 5 | lane_index();
        parent[k] = v < n ? parents[v] : top_of<vertex_t>::value();
      }
      for (int k = 0; k < WIDE; k++) {
        bool open = !(__shfl_sync(WARP, seen, k) >> lane_index() & 1);
        bool here = open && parent[k] != top_of<vertex_t>::value();
        u32 hits = __ballot_sync(WARP, here);
        if (here) levels[(word + k) << 5 | lane_index()] = (i32)(level + 1);
        if (lane_index() == k) found = hits;
      }
      my_count += __popc(found);
      for (int first = 0; first < WIDE && !order(ALIKE); first += EACH) {
        i64 begin[EACH], end[EACH];
        for (int k = 0; k < EACH; k++) {
          bool here = __shfl_sync(WARP, found, first + k) >> lane_index() & 1;
          i64 v = (word + first + k) << 5 | lane_index();
          begin[k] = here ? load_readonly(indptr + v) : 0, end[k] = here ? load_readonly(indptr + v + 1) : 0;
        }
        for (int k = 0; k < EACH; k++) my_arcs += end[k] - begin[k];
      }
      if (mine) other_visited()[word + lane_index()] = seen | found;
    }
  }
  __device__ i64 arcs_from(i64 v) { return load_readonly(indptr + v + 1) - load_readonly(indptr + v); }

  // ---- pull ------------------------------------------------------------------------------------------
  // Every vertex not visited looks in its row for one that is: none of those is nearer than the frontier, or it would
  // have found the vertex, so that the first there is the smallest of the frontier. A warp takes a run of words: first
  // all their vertices look at the first of their row, of which there is a copy side by side and which most find there,
  // where hubs come first; then those that found nothing look on, all lanes at work again.
  __device__ void pull() {
    // Where few are left most words have none.
    i64 run = listing ? run_of_words(8, 32, 1) : run_of_words(8, 16);
    for (i64 word = warp_index() * run; word < words(); word += warp_count() * run) {
      bool mine = lane_index() < run && word + lane_index() < words();
      u32 seen = mine ? visited()[word + lane_index()] : ~0u;
      u32 found = look_first(word, run, seen);
      found |= look_on(word, ~(seen | found));
      if (listing) queue_word(in_indptr, word, ~(seen | found));
      if (mine) other_visited()[word + lane_index()] = seen | found;
    }
  }
  // Lane k has in `seen` who is visited of the k-th word, and returns who of that finds a parent.
  __device__ u32 look_first(i64 word, i64 run, u32 seen) {
    constexpr int WIDE = 8;
    const u32* before = visited();
    u32 found = 0;
    for (int k = 0; k < run; k += WIDE) {
      if (!__any_sync(WARP, lane_index() >= k && lane_index() < k + WIDE && ~seen)) continue;
      bool open[WIDE];
      vertex_t first[WIDE];
      u32 near[WIDE];
      for (int j = 0; j < WIDE; j++) {
        open[j] = !(__shfl_sync(WARP, seen, k + j) >> lane_index() & 1);
        first[j] = open[j] ? load_readonly(firsts + ((word + k + j) << 5 | lane_index())) : 0;
      }
      for (int j = 0; j < WIDE; j++) near[j] = before[first[j] >> 5];
      for (int j = 0; j < WIDE; j++) {
        bool here = open[j] && near[j] >> (first[j] & 31) & 1;
        u32 hits = __ballot_sync(WARP, here);
        if (here) settle((word + k + j) << 5 | lane_index(), first[j]);
        if (lane_index() == k + j) found = hits;
        my_looked += open[j];
      }
    }
    return found;
  }
  __device__ u32 look_on(i64 word, u32 open) {
    if (!__any_sync(WARP, open)) return 0;
    u32* hits = (u32*)block->room + (threadIdx.x & ~31u);
    hits[lane_index()] = 0;
    __syncwarp();
    each_bit(word, open, [&](const i64(&v)[2], const bool (&there)[2]) {
      find_parents(v, there, [&](i64 found) { atomic_or(&hits[(found >> 5) - word], 1u << (found & 31)); });
    });
    __syncwarp();
    u32 found = hits[lane_index()];
    __syncwarp();
    return found;
  }
  // Behind the first of the rows; arcs are counted of those that find nothing. A warp together, each lane for two
  // vertices of its own; call hit(v) for those that find a parent.
  template <class Hit> __device__ void find_parents(const i64 (&v)[2], const bool (&open)[2], Hit hit) {
    i64 begin[2], length[2], place[2], arcs_of[2] = {};
    vertex_t parent[2] = {};
    for (int half = 0; half < 2; half++) {
      begin[half] = open[half] ? load_readonly(in_indptr + v[half]) + 1 : 0;
      length[half] = open[half] ? load_readonly(in_indptr + v[half] + 1) - begin[half] : 0;
      if (open[half]) arcs_of[half] = indptr == in_indptr ? length[half] + 1 : arcs_from(v[half]);
      if (length[half] <= 0) begin[half] = length[half] = 0;
    }
    RowSearch{visited(), in_targets, order(NUM_ARCS)}.find(begin, length, place, parent);
    for (int half = 0; half < 2; half++) {
      my_looked += place[half] < length[half] ? place[half] + 1 : length[half];
      if (place[half] == length[half]) {
        my_arcs += arcs_of[half];
        continue;
      }
      settle(v[half], parent[half]);
      hit(v[half]);
    }
  }
  __device__ void settle(i64 v, vertex_t parent) {
    parents[v] = parent, levels[v] = (i32)(level + 1);
    my_count++;
  }
};
