// A whole breadth-first search in one launch a rank, where the ranks' kernels reach each other's memory: the loop of
// algorithms/bfs.py. bfs_peers.py says what the parameters are.

struct Search : Slices {
  i64 count = 0, arcs = 0, arcs_before = 0, num_left = 0, arcs_left = 0, reached = 0, started = 0;
  bool queued = true, pulling = false;

  // Nothing is reached, in all slices of one's own copies: nobody writes there before all have met. Bits behind a
  // slice's last vertex are set by its owner.
  __device__ void clear() {
    for (i64 w = thread_index(); w < words() * size(); w += thread_count()) {
      i64 own = w - own_words(), left = fact(NUM_OWNED) - own * 32;
      bool behind = own >= 0 && own < words() && left < 32;
      now_and_then()[w] = now_and_then()[w + words() * size()] = behind ? left > 0 ? ~0u << left : ~0u : 0;
    }
    if (thread_index() < 2) *queue_counter(thread_index()) = 0;
  }
  // Whoever is not reached in the end has no level and no parent: that is written once, and mostly for few. Their arcs
  // are counted: the others are reached.
  __device__ void leave_unreached() {
    for (i64 word = warp_index() << 5; word < words(); word += warp_count() << 5) {
      u32 left = word + lane_index() < words() ? ~now()[own_words() + word + lane_index()] : 0;
      each_bit(word, left, [&](const i64(&v)[2], const bool (&there)[2]) {
        for (int half = 0; half < 2; half++)
          if (there[half]) {
            levels[v[half]] = top_of<i32>::value(), parents[v[half]] = top_of<vertex_t>::value();
            tally[ARCS] += arcs_of(v[half]);
          }
      });
    }
  }
  __device__ u32* now_and_then() const { return reached_at(rank(), false); }
  // Every rank marks the sources in its own copy, and those it owns begin its queue.
  __device__ void start(const i64* states) {
    for (i64 group = warp_index() << 5; group < fact(NUM_STARTS); group += warp_count() << 5) {
      bool there = group + lane_index() < fact(NUM_STARTS);
      i64 state = there ? states[group + lane_index()] : 0, v = state - rank() * fact(STRIDE);
      if (there) set_bit(now_and_then(), state);
      bool own = there && v >= 0 && v < fact(NUM_OWNED);
      if (own) levels[v] = 0, parents[v] = (vertex_t)(v * fact(MULTIPLIER) + fact(FIRST));
      enqueue({own ? v : 0, 0}, {own, false});
    }
  }

  // ---- a level ---------------------------------------------------------------------------------------
  // As _pull_pays in algorithms/bfs.py, but that a look costs less; a frontier that no queue is sure to hold is pulled.
  __device__ bool pull_pays() const {
    if (count > fact(CAPACITY)) return true;
    if (pulling) return count * fact(BETA) > fact(NUM_POSITIONS);
    return grows() && LOOKS_A_PUSH * (double)arcs * (double)arcs > (double)num_left * (double)arcs_left;
  }
  __device__ bool grows() const { return arcs > fact(GROWTH) * arcs_before; }
  __device__ bool push_level() {
    if (!queued) {
      queue_up();
      if (!meet()) return false;
      arcs = block->ranks.total[ARCS];
    }
    bool offers_few = arcs <= fact(NUM_POSITIONS) / MARK_SHARE;
    // A frontier that grows like this is pulled next.
    queued = offers_few && !(grows() && arcs > fact(NUM_POSITIONS) / QUEUE_SHARE);
    arcs_before = arcs;
    if (thread_index() == 0) *queue_counter(!turn) = 0;
    offers_few ? push_offers() : push_bits();
    // What was looked at and sent is told with what comes of it.
    i64 looked = tally[LOOKED], sent = tally[SENT];
    tally[LOOKED] = tally[SENT] = 0;
    if (!meet()) return false;
    tally[LOOKED] = looked, tally[SENT] = sent, turn = !turn;
    offers_few ? settle_offered(queued) : settle_found(arcs > fact(NUM_POSITIONS));
    return meet();
  }
  __device__ bool pull_level() {
    if (thread_index() == 0) *queue_counter(!turn) = 0;
    turn = !turn, queued = false;
    pull(fact(NUM_POSITIONS) / (num_left + 1));
    return meet();
  }

  // Count what a level found.
  __device__ void arrive() {
    count = block->ranks.total[COUNT], arcs = block->ranks.total[ARCS];
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
    clear();
    if (!meet()) return;
    start(report + NUM_REPORTS + fact(TRACE_ROWS) * ROW);
    if (!meet()) return;
    arrive();
    while (count && level != fact(DEPTH_LIMIT)) {
      i64 frontier = count;
      pulling = pull_pays();
      if (!(pulling ? pull_level() : push_level())) return;
      side = !side;
      arrive();
      trace(frontier);
    }
    leave_unreached();
    if (!meet()) return;
    ranks.leave();
    if (blockIdx.x == 0) tell(report);
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    search_ranks(i64 lo, i64 hi, const u32* abort, const i64* windows, const i64* indptr, const vertex_t* targets,
                 const i64* in_indptr, const vertex_t* in_targets, const vertex_t* firsts, i32* levels,
                 vertex_t* parents, i64* host) {
  __shared__ Block block;
  if (threadIdx.x < NUM_FACTS) block.facts[threadIdx.x] = host[threadIdx.x];
  Search search = {
      {&block, Ranks(&block.ranks, windows, abort), indptr, targets, in_indptr, in_targets, firsts, levels, parents}};
  search.run(host + NUM_FACTS);
}
