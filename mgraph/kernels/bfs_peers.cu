// A whole breadth-first search in one launch a rank, where the ranks' kernels reach each other's memory: the loop of
// algorithms/bfs.py. bfs_peers.py says what the parameters are.

struct Search : Slices {
  i64 count = 0, arcs = 0, num_left = 0, arcs_left = 0, reached = 0, reached_arcs = 0, started = 0;
  bool queued = true, pulling = false;

  // Nothing is reached, in all slices of one's own copies: nobody writes there before all have met. Bits behind a
  // slice's last vertex are set by its owner.
  __device__ void clear() {
    for (i64 v = thread_index(); v < fact(NUM_OWNED); v += thread_count())
      levels[v] = top_of<i32>::value(), parents[v] = top_of<vertex_t>::value();
    for (i64 w = thread_index(); w < words() * size(); w += thread_count()) {
      i64 own = w - own_words(), left = fact(NUM_OWNED) - (own << 5);
      bool behind = own >= 0 && own < words() && left < 32;
      now_and_then()[w] = now_and_then()[w + words() * size()] = behind ? left > 0 ? ~0u << left : ~0u : 0;
    }
    if (thread_index() < 2) *queue_counter(thread_index()) = 0;
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
      enqueue(own ? v : 0, own);
    }
  }

  // ---- pull ------------------------------------------------------------------------------------------
  // Every vertex not reached looks in its row for one that is; the first there is the smallest.
  __device__ void pull() {
    u32* hits = (u32*)block->room + (threadIdx.x & ~31u);
    each_word(8, [&](i64 word, i64, u32 seen) {
      hits[lane_index()] = 0;
      __syncwarp();
      each_bit(word, ~seen, [&](const i64(&v)[2], const bool (&open)[2]) {
        find_parents(v, open, [&](i64 found) { atomic_or(&hits[(found >> 5) - word], 1u << (found & 31)); });
      });
      __syncwarp();
      u32 found = hits[lane_index()];
      __syncwarp();
      return found;
    });
  }
  // A warp together, each lane for two vertices of its own; call hit(v) for those that find a parent.
  template <class Hit> __device__ void find_parents(const i64 (&v)[2], const bool (&open)[2], Hit hit) {
    i64 begin[2], length[2], place[2];
    vertex_t parent[2] = {};
    for (int half = 0; half < 2; half++) {
      begin[half] = open[half] ? load_readonly(in_indptr + v[half]) : 0;
      length[half] = open[half] ? load_readonly(in_indptr + v[half] + 1) - begin[half] : 0;
    }
    RowSearch{now(), in_targets, fact(LAST_ARC)}.find(begin, length, place, parent);
    for (int half = 0; half < 2; half++) {
      tally[LOOKED] += place[half] < length[half] ? place[half] + 1 : length[half];
      if (place[half] == length[half]) continue;
      parents[v[half]] = position_of(parent[half], fact(STRIDE), fact(MULTIPLIER));
      levels[v[half]] = (i32)(level + 1);
      tally[COUNT]++;
      tally[ARCS] +=
          indptr == in_indptr ? length[half] : load_readonly(indptr + v[half] + 1) - load_readonly(indptr + v[half]);
      hit(v[half]);
    }
  }
  // ---- a level ---------------------------------------------------------------------------------------
  // As _pull_pays in algorithms/bfs.py; a frontier that no queue is sure to hold is pulled.
  __device__ bool pull_pays(i64 arcs_before) const {
    if (count > fact(CAPACITY)) return true;
    if (pulling) return count * fact(BETA) > fact(NUM_POSITIONS);
    return arcs > fact(GROWTH) * arcs_before && (double)arcs * (double)arcs > (double)num_left * (double)arcs_left;
  }
  __device__ bool push_level() {
    if (!queued) {
      queue_up();
      if (!meet()) return false;
    }
    bool mark = arcs <= fact(NUM_POSITIONS) / MARK_SHARE;
    if (thread_index() == 0) *queue_counter(!turn) = 0;
    // What was looked at and sent is told with what comes of it.
    i64 looked = 0, sent = 0;
    auto meet_untold = [&]() {
      looked += tally[LOOKED], sent += tally[SENT];
      tally[LOOKED] = tally[SENT] = 0;
      return meet();
    };
    // An inbox takes an offer for each of the owner's vertices: in so many rounds even uneven ones find room.
    i64 rounds = mark || !posts() ? 1 : 1 + arcs / (fact(NUM_POSITIONS) * 3 / 4 + 1);
    for (i64 round = 0; round < rounds; round++) {
      mark ? push_marking() : push_posting(round, rounds);
      if (!meet_untold()) return false;
      if (mark || !posts()) continue;
      empty_inbox();
      if (!meet_untold()) return false;
    }
    tally[LOOKED] = looked, tally[SENT] = sent;
    turn = !turn, queued = mark;
    mark ? settle_marked() : settle_all();
    return meet();
  }
  __device__ bool pull_level() {
    if (thread_index() == 0) *queue_counter(!turn) = 0;
    turn = !turn, queued = false;
    pull();
    return meet();
  }

  // Count what a level found.
  __device__ void arrive() {
    count = block->ranks.total[COUNT], arcs = block->ranks.total[ARCS];
    num_left -= count, arcs_left -= arcs, level++;
    reached += block->ranks.own[COUNT], reached_arcs += block->ranks.own[ARCS];
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
    report[NUM_ROWS] = num_rows, report[REACHED] = reached, report[REACHED_ARCS] = reached_arcs, report[DONE] = 1;
  }

  __device__ void run(i64* report) {
    num_left = fact(NUM_POSITIONS), arcs_left = fact(NUM_ARCS), started = clock_ns();
    clear();
    if (!meet()) return;
    start(report + NUM_REPORTS + fact(TRACE_ROWS) * ROW);
    if (!meet()) return;
    arrive();
    for (i64 arcs_before = 0; count && level != fact(DEPTH_LIMIT);) {
      i64 frontier = count;
      pulling = pull_pays(arcs_before);
      arcs_before = arcs;
      if (!(pulling ? pull_level() : push_level())) return;
      side = !side;
      arrive();
      trace(frontier);
    }
    ranks.leave();
    if (blockIdx.x == 0) tell(report);
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    search_ranks(i64 lo, i64 hi, const u32* abort, const i64* windows, const i64* indptr, const vertex_t* targets,
                 const i64* in_indptr, const vertex_t* in_targets, i32* levels, vertex_t* parents, u32* work,
                 i64* host) {
  __shared__ Block block;
  if (threadIdx.x < NUM_FACTS) block.facts[threadIdx.x] = host[threadIdx.x];
  Search search = {
      {&block, Ranks(&block.ranks, windows, abort), indptr, targets, in_indptr, in_targets, levels, parents, work}};
  search.run(host + NUM_FACTS);
}
