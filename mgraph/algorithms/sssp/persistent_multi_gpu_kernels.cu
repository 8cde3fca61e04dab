// Shortest paths in one launch a rank, near before far, where the ranks' kernels reach each other's
// memory: the loop of algorithms/sssp/delta_stepping.py, or of sssp.py where no arc counts as
// heavy. sssp_peers.py says what the parameters are.

#include "frontiers.cuh"
#include "persistent_multi_gpu_kernels.cuh"
#include "persistent_multi_gpu_kernels.settle.cuh"
#include "prelude.cuh"
#include "ranks.cuh"

// A bucket with more than one arc in so many stands at the foot of the peak (rmat28 on four
// H200: 18.5 ms; 19.1 with 1024, 19.6 where none is widened).
constexpr i64 FOOT_SHARE = 64;
// A round that begins with rows of more than one arc in so many marks vertices in most words.
constexpr i64 WIDE_SHARE = 64;

struct Search : Slices {
  dist_t* out;
  dist_t delta;
  i64 num_rows = 0, started = 0, count = 0, done = 0, most = 0;
  bool pulled = false;
  i64 near_lengths = 0,
      settled_lengths = 0;  // of rows that this bucket took, some twice; that those before took
  i64 queued_lengths = 0;   // of rows that a round begins with

  // Nothing is reached, in one's own window: nobody writes there before all have met.
  __device__ void clear() {
    Quad<dist_t> none = none_reached();
    for (i64 at = thread_index(); at < fact(STRIDE) * size() / none.size; at += thread_count())
      store_quad(&own_copy[at * none.size], none);
    if (thread_index() < 3) *waiting(window(), (int)thread_index()) = top_of<dist_t>::value();
    for (i64 w = thread_index(); w < (fact(COPY) - HEAD_BYTES) / 4; w += thread_count())
      own_bits[w] = 0;
    if (thread_index() < NUM_COUNTERS) ((i64*)work)[thread_index()] = 0;
  }
  // The sources wait, at 0.
  __device__ void start(const Sources& sources) {
    for (i64 i = thread_index(); i < sources.count; i += thread_count()) {
      i64 position = sources.position(i);
      if (position >= fact(NUM_POSITIONS)) continue;
      i64 state = state_of(position, fact(STRIDE), fact(MULTIPLIER));
      if (state >= base() && state < base() + fact(STRIDE)) {
        own_copy[state] = 0;
        lowest = 0;
      }
    }
  }

  // ---- a round ----------------------------------------------------------------------------------
  __device__ bool round(Method method) {
    if (thread_index() == 0) {
      if (method != PULL) *queue_counter(!turn) = 0;
      *part_counter(!turn) = 0;
    }
    is_wide = method != PULL && queued_lengths * WIDE_SHARE > fact(NUM_ARCS);
    method == PULL ? pull() : relax();
    i64 looked = tally[LOOKED], sent = tally[SENT];
    tally[LOOKED] = tally[SENT] = 0;
    if (!meet()) return false;
    count = block->ranks.total[COUNT];
    *(method == PULL ? &near_lengths : &done) += block->ranks.total[ARCS];
    queued_lengths = method == PULL ? block->ranks.total[ARCS] : 0;
    tally[LOOKED] = looked;
    tally[SENT] = sent;
    turn = !turn;
    settle();
    if (!meet()) return false;
    count += block->ranks.total[COUNT];
    near_lengths += block->ranks.total[ARCS];
    queued_lengths += block->ranks.total[ARCS];
    is_wide = false;
    return true;
  }

  // ---- a bucket ---------------------------------------------------------------------------------
  // Near is empty on all ranks: all below the bound is settled. Raise it by delta, above what waits
  // if the bucket has left nothing that could be nearer, or beyond all, and look at one's own
  // slice: what there is to do for whom. What waits is not nearer than the smallest that was seen
  // to. Once vertices have pulled, they go on to: that those look at light arcs alone makes it
  // cheap. A bucket at the foot of the peak, whose border lies among hubs, is widened until that
  // pays: to push their heavy arcs would take longer than all else.
  __device__ bool take_up(Method* method) {
    dist_t low = (dist_t)load_relaxed(waiting(window(), bucket)), top = top_of<dist_t>::value();
    bool rests = fact(HEAVIES) && near_lengths;
    i64 others = fact(NUM_ARCS) - settled_lengths - near_lengths;
    bool pays = fact(PULLS) && (pulled || others < near_lengths);
    bool widens =
        rests && low < top && fact(PULLS) && !pays && near_lengths * FOOT_SHARE > fact(NUM_ARCS);
    *method = !rests || widens ? PUSH : pays ? PULL : HEAVY;
    finishes = *method == PULL && pulled && is_finish(others, fact(NUM_ARCS));
    if (*method == PULL && !pulled) {
      untold = settled;
      pulled = true;
    }
    if (is_tail(done, most) && delta < top / 4) delta += delta;
    if (done > most) most = done;
    if (!widens) {
      floor = settled;
      settled = bound;
      settled_lengths += near_lengths;
    }
    bound = finishes ? top : raised(rests && !widens ? bound : low, delta);
    queued_lengths = near_lengths;
    done = near_lengths = 0;
    lowest = top;
    bucket++;
    // A pull queues those who are near itself, and what stands in the queue before them is taken
    // first.
    queue_begin = 0;
    if (thread_index() == 0) {
      *waiting(window(), bucket + 1) = top;
      *queue_counter(!turn) = 0;
    }
    if (threadIdx.x == 0) block->lowest = top;
    __syncthreads();
    *method == PUSH    ? scan_for_near()
    : *method == HEAVY ? scan_for_rest<REST>()
                       : scan_for_rest<PULLED>();
    if (!meet()) return false;
    count = block->ranks.total[COUNT];
    near_lengths = block->ranks.total[ARCS];
    if (*method == PUSH) queued_lengths = near_lengths;
    return true;
  }
  // Whether anything waits, or could come to.
  __device__ bool is_left() const {
    dist_t top = top_of<dist_t>::value();
    return bound < top &&
           (load_relaxed(waiting(window(), bucket)) < top || (fact(HEAVIES) && near_lengths));
  }

  // Note a round, the time since the one before; the last row adds up all that are beyond the
  // trace.
  __device__ void trace(i64 method, i64 frontier) {
    bool beyond = num_rows == fact(TRACE_ROWS);
    if (!beyond) num_rows++;
    if (thread_index() != 0) return;
    i64 ended = clock_ns();
    note(rows() + (num_rows - 1) * ROW, beyond,
         {method, frontier, block->ranks.own[LOOKED], ended - started, block->ranks.own[SENT]});
    started = ended;
  }
  // Give out one's own slice, and count who is beyond.
  __device__ void give_out() {
    dist_t beyond = *(const dist_t*)&block->facts[BEYOND], top = top_of<dist_t>::value();
    each_quad([&](i64 first, const Quad<dist_t>& d) {
      for (int k = 0; k < d.size; k++) tally[COUNT] += d.of[k] >= beyond && d.of[k] < top;
      if (first + d.size <= fact(NUM_OWNED))
        store_quad(out + first, d);
      else
        for (int k = 0; k < d.size; k++)
          if (first + k < fact(NUM_OWNED)) out[first + k] = d.of[k];
    });
  }
  // Tell the host, a block together.
  __device__ void tell(i64* report) const {
    for (i64 i = threadIdx.x; i < num_rows * ROW; i += blockDim.x)
      report[NUM_REPORTS + i] = load_relaxed(rows() + i);
    if (threadIdx.x > 0) return;
    report[NUM_ROWS] = num_rows;
    report[NUM_BEYOND] = block->ranks.total[COUNT];
    report[EVERYWHERE] = finishes;
    report[DONE] = 1;
  }

  __device__ void run(const Sources& sources, i64* report) {
    started = clock_ns();
    clear();
    if (!ranks.meet(tally)) return;
    start(sources);
    if (!meet()) return;
    while (is_left()) {
      Method method;
      if (!take_up(&method)) return;
      trace(SCAN, count);
      for (; count || method != PUSH; method = PUSH) {
        i64 frontier = count;
        if (!round(method)) return;
        trace(method, frontier);
      }
    }
    give_out();
    if (!ranks.meet(tally)) return;
    if (ranks.leave(tally)) tell(report);
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    find_distances_on_ranks(i64 lo, i64 hi, const u32* abort, const i64* windows, const u8* window,
                            const id_t* positions, const i64* indptr, const vertex_t* targets,
                            const weight_t* weights, double scale, dist_t* dist, u32* work,
                            i64* host) {
  __shared__ Block block;
  if (threadIdx.x < NUM_FACTS) block.facts[threadIdx.x] = host[threadIdx.x];
  if (threadIdx.x == 0) block.lowest = top_of<dist_t>::value();
  Ranks ranks(&block.ranks, windows, window, abort);
  const dist_t *cutoff = (const dist_t*)&block.facts[CUTOFF],
               *delta = (const dist_t*)&block.facts[DELTA];
  Search search = {
      {{{&block, ranks, indptr, targets, weights, work, scale, *cutoff}}}, dist, *delta};
  Sources sources = {block.facts[NUM_STARTS], block.sources,
                     host + NUM_FACTS + NUM_REPORTS + block.facts[TRACE_ROWS] * ROW,
                     block.facts[FOUND] != 0};
  if (sources.find(search.ranks, positions, block.facts[FIRST_USER], block.facts[NUM_USERS],
                   host + FOUND))
    search.run(sources, host + NUM_FACTS);
}
