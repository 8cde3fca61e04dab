// Shortest paths in one launch a rank, near before far, where the ranks' kernels reach each other's memory: the loop of
// algorithms/sssp.py. sssp_peers.py says what the parameters are.
//
// Every rank has in its window a copy of all distances, and a bitmap of those that it lowered in this round, its own
// and others'. The owner's copy is the truth, the others are upper bounds, good to see what could not win. A round has
// two phases: each rank relaxes the arcs out of near, in its own copy; then the owners gather the bits of their slices,
// read the distances that are marked, keep the smallest, and queue what fell. So nothing is sent to where there is no
// room for it, and a distance travels once a round, however often it fell.
// Far is whatever has a distance from the bound on: a pass over one's own slice finds what the next bound reaches.
// Between two meetings an array is either read or changed by atomics, or each word has one writer.

enum Fact { STRIDE, NUM_OWNED, NUM_STARTS, TRACE_ROWS, NUM_FACTS };
enum Report { DONE, NUM_ROWS, NUM_REPORTS };
enum Method { PUSH, SCAN };
// What the ranks add up at a meeting; of the last two each keeps its own.
enum Sum { COUNT, ARCS, LOOKED, SENT };
enum Bound { CUTOFF, DELTA };
constexpr int BLOCK = 768;
// Buckets with less than this share of the arcs of the largest one are widened: to look at some of few arcs twice costs
// less than the rounds of a bucket.
constexpr i64 TAIL_SHARE = 16;
// Words of bits that a warp takes at once.
constexpr i64 RUN = 16;

// What a block keeps in shared memory.
struct Block {
  i64 room[3 * BLOCK];           // rows that are relaxed
  u32 marks[MOST_RANKS][BLOCK];  // words of bits, one a thread, of each rank
  dist_t lowest;
  i64 facts[NUM_FACTS];
  RanksHere ranks;
};

struct Search {
  Block* block;
  Ranks ranks;
  const i64* indptr;
  const vertex_t* targets;
  const weight_t* weights;
  dist_t* out;
  u32* work;
  dist_t cutoff, delta;

  i64 tally[NUM_SUMS] = {};  // counted by this thread since the last meeting
  dist_t bound = 0, lowest = top_of<dist_t>::value();
  i64 num_rows = 0, started = 0, count = 0, done = 0, most = 0;
  int bucket = 0;
  bool turn = false;

  __device__ i64 fact(Fact which) const { return block->facts[which]; }
  __device__ i64 rank() const { return block->ranks.rank; }
  __device__ i64 size() const { return block->ranks.size; }
  __device__ i64 words() const { return fact(STRIDE) >> 5; }  // of a slice
  __device__ i64 base() const { return rank() * fact(STRIDE); }
  __device__ u32* bits(i64 r) const { return ranks.at<u32>(r, HEAD_BYTES); }
  __device__ dist_t* dist(i64 r) const { return (dist_t*)(bits(r) + words() * size()); }
  // The smallest distance that waits; buckets have them in turn: one is read, one is written, one is cleared.
  __device__ dist_t* waiting(i64 r, int of_bucket) const { return dist(r) + fact(STRIDE) * size() + of_bucket % 3; }
  __device__ i64* queue_counter(bool which) const { return (i64*)work + which; }
  __device__ i64* rows() const { return (i64*)work + 2; }  // of the trace
  __device__ Queue queue() const {
    i64 *offsets = rows() + fact(TRACE_ROWS) * ROW, *first = offsets + fact(STRIDE);
    return {offsets, first, (vertex_t*)(first + fact(STRIDE))};
  }

  // All ranks meet; by then each knows the smallest distance that any thread saw to wait.
  __device__ bool meet() {
    for (int d = 16; d; d >>= 1) {
      dist_t other = __shfl_xor_sync(WARP, lowest, d);
      if (other < lowest) lowest = other;
    }
    if (lane_index() == 0 && lowest < load_relaxed(&block->lowest)) atomic_min(&block->lowest, lowest);
    __syncthreads();
    // Who has told one rank has told all, or is about to.
    if (threadIdx.x == 0 && block->lowest < load_relaxed(waiting(rank(), bucket)))
      for (i64 r = 0; r < size(); r++) atomic_min_system(waiting(r, bucket), block->lowest);
    return ranks.meet(tally);
  }
  // A warp's vertices, two a lane, are counted and go to the queue with their arcs if they are `there`.
  __device__ void enqueue(const i64 (&v)[2], const bool (&there)[2]) {
    vertex_t own[2];
    i64 begin[2], length[2];
    for (int half = 0; half < 2; half++) {
      own[half] = (vertex_t)v[half];
      begin[half] = there[half] ? load_readonly(indptr + v[half]) : 0;
      length[half] = there[half] ? load_readonly(indptr + v[half] + 1) - begin[half] : 0;
      tally[COUNT] += there[half];
    }
    ::enqueue<2>(queue(), fact(STRIDE), queue_counter(turn), own, there, begin, length);
  }

  // Nothing is reached, in one's own window: nobody writes there before all have met.
  __device__ void clear() {
    dist_t* own = dist(rank());
    for (i64 v = thread_index(); v < fact(STRIDE) * size() + 3; v += thread_count()) own[v] = top_of<dist_t>::value();
    for (i64 w = thread_index(); w < words() * size(); w += thread_count()) bits(rank())[w] = 0;
    if (thread_index() < 2) *queue_counter(thread_index()) = 0;
  }
  // The sources wait, at 0.
  __device__ void start(const i64* states) {
    for (i64 i = thread_index(); i < fact(NUM_STARTS); i += thread_count()) {
      if (states[i] < base() || states[i] >= base() + fact(STRIDE)) continue;
      dist(rank())[states[i]] = lowest = (dist_t)0;
    }
  }

  // ---- a round ---------------------------------------------------------------------------------------
  // Relax every arc out of near in one's own copy. A source that falls meanwhile is queued again.
  __device__ void relax() {
    dist_t* own = dist(rank());
    u32* lowered = bits(rank());
    i64 queued = *queue_counter(turn), first = base();
    BlockShare share(0, queued_arcs(queued));
    if (threadIdx.x == 0 && share.begin < share.end) tally[LOOKED] = tally[ARCS] = share.end - share.begin;
    auto from = [&](vertex_t v) { return load_relaxed(&own[first + v]); };
    each_slot<4>(queue(), queued_vertices(queued), share, block->room, from,
                 [&](const i64(&slot)[4], const dist_t(&source)[4], const bool (&there)[4]) {
                   vertex_t v[4];
                   dist_t through[4], seen[4];
                   // Without branches between them all loads are under way together.
                   for (int k = 0; k < 4; k++) {
                     v[k] = there[k] ? load_readonly(targets + slot[k]) : 0;
                     through[k] = there[k] ? source[k] + (dist_t)load_readonly(weights + slot[k]) : cutoff;
                   }
                   // An older distance is a larger one: it makes for an atomic too many.
                   for (int k = 0; k < 4; k++) seen[k] = load_stale(&own[v[k]]);
                   for (int k = 0; k < 4; k++) {
                     if (!there[k] || through[k] > cutoff || through[k] >= seen[k]) continue;
                     if (through[k] >= atomic_min(&own[v[k]], through[k])) continue;
                     u32 mark = 1u << (v[k] & 31);
                     if (!(load_stale(&lowered[v[k] >> 5]) & mark)) atomic_or(&lowered[v[k] >> 5], mark);
                   }
                 });
  }
  // The owner takes the smallest of what any rank has for its vertices, and sorts what fell into near and far.
  __device__ void settle() {
    i64 first = threadIdx.x & ~31;
    for (i64 word = warp_index() * RUN; word < words(); word += warp_count() * RUN) {
      bool here = lane_index() < RUN && word + lane_index() < words();
      i64 at = base() / 32 + word + lane_index();
      u32 any = 0;
      for (i64 r = 0; r < size(); r++) any |= block->marks[r][threadIdx.x] = here ? bits(r)[at] : 0;
      if (here) tally[SENT] += 4 * (size() - 1);
      for (i64 r = 0; any && r < size(); r++)
        if (block->marks[r][threadIdx.x]) bits(r)[at] = 0;
      __syncwarp();
      each_bit(word, any, [&](const i64(&v)[2], const bool (&there)[2]) {
        bool near[2];
        for (int half = 0; half < 2; half++) {
          dist_t fell = there[half] ? take_smallest(first + (v[half] >> 5) - word, v[half]) : top_of<dist_t>::value();
          near[half] = fell < bound;
          if (!near[half] && fell < lowest) lowest = fell;
        }
        enqueue(v, near);
      });
      __syncwarp();
    }
  }
  // What a vertex has fallen to, where any rank marked it in its word, which is that of thread `owner`.
  __device__ dist_t take_smallest(i64 owner, i64 v) {
    dist_t *own = &dist(rank())[base() + v], before = *own, least = before;
    auto is_marked = [&](i64 r) { return block->marks[r][owner] >> (v & 31) & 1; };
    for (i64 r = 0; r < size(); r++) {
      if (r == rank() || !is_marked(r)) continue;
      dist_t theirs = dist(r)[base() + v];
      least = theirs < least ? theirs : least;
      tally[SENT] += sizeof(dist_t);
    }
    if (least < before) *own = least;
    return least < before || is_marked(rank()) ? least : top_of<dist_t>::value();
  }
  __device__ bool push_round() {
    if (thread_index() == 0) *queue_counter(!turn) = 0;
    relax();
    i64 looked = tally[LOOKED];
    tally[LOOKED] = 0;
    if (!meet()) return false;
    done += block->ranks.total[ARCS];
    tally[LOOKED] = looked, turn = !turn;
    settle();
    return meet();
  }

  // ---- a bucket --------------------------------------------------------------------------------------
  // Near is empty on all ranks: all below the bound is settled. Raise it by delta above what waits, and queue what it
  // reaches; what waits is not nearer than the smallest that was seen to.
  __device__ bool scan_slice(dist_t low) {
    dist_t settled = bound, top = top_of<dist_t>::value();
    if (done * TAIL_SHARE < most && delta < top / 4) delta += delta;
    if (done > most) most = done;
    done = 0, bound = raised(low, delta), lowest = top, bucket++;
    if (thread_index() == 0) *waiting(rank(), bucket + 1) = top;
    if (threadIdx.x == 0) block->lowest = top;
    __syncthreads();
    for (i64 run = warp_index() * 64; run < fact(STRIDE); run += warp_count() * 64) {
      i64 v[2] = {run + lane_index(), run + 32 + lane_index()};
      bool near[2];
      for (int half = 0; half < 2; half++) {
        dist_t d = dist(rank())[base() + v[half]];
        near[half] = settled <= d && d < bound;
        if (d >= bound && d < lowest) lowest = d;
      }
      enqueue(v, near);
    }
    return meet();
  }

  // Note a round, the time since the one before; the last row adds up all that are beyond the trace.
  __device__ void trace(i64 method, i64 frontier) {
    bool beyond = num_rows == fact(TRACE_ROWS);
    if (!beyond) num_rows++;
    if (thread_index() != 0) return;
    i64 ended = clock_ns();
    note(rows() + (num_rows - 1) * ROW, beyond,
         {method, frontier, block->ranks.own[LOOKED], ended - started, block->ranks.own[SENT]});
    started = ended;
  }
  // Give out one's own slice; the first block tells the host.
  __device__ void tell(i64* report) const {
    for (i64 v = thread_index(); v < fact(NUM_OWNED); v += thread_count()) out[v] = dist(rank())[base() + v];
    if (blockIdx.x > 0) return;
    __syncthreads();
    for (i64 i = threadIdx.x; i < num_rows * ROW; i += blockDim.x) report[NUM_REPORTS + i] = rows()[i];
    if (threadIdx.x == 0) report[NUM_ROWS] = num_rows, report[DONE] = 1;
  }

  __device__ void run(i64* report) {
    started = clock_ns();
    clear();
    if (!ranks.meet(tally)) return;
    start(report + NUM_REPORTS + fact(TRACE_ROWS) * ROW);
    if (!meet()) return;
    for (dist_t low; (low = load_relaxed(waiting(rank(), bucket))) < top_of<dist_t>::value();) {
      if (!scan_slice(low)) return;
      count = block->ranks.total[COUNT];
      trace(SCAN, count);
      while (count) {
        i64 frontier = count;
        if (!push_round()) return;
        count = block->ranks.total[COUNT];
        trace(PUSH, frontier);
      }
    }
    ranks.leave();
    tell(report);
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    find_distances_on_ranks(i64 lo, i64 hi, const u32* abort, const i64* windows, const i64* indptr,
                            const vertex_t* targets, const weight_t* weights, const dist_t* bounds, dist_t* dist,
                            u32* work, i64* host) {
  __shared__ Block block;
  if (threadIdx.x < NUM_FACTS) block.facts[threadIdx.x] = host[threadIdx.x];
  if (threadIdx.x == 0) block.lowest = top_of<dist_t>::value();
  Search search = {
      &block, Ranks(&block.ranks, windows, abort), indptr, targets, weights, dist, work, bounds[CUTOFF], bounds[DELTA]};
  search.run(host + NUM_FACTS);
}
