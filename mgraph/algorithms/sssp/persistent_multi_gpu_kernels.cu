// Shortest paths in one launch per rank, near before far, where the ranks' kernels access each
// other's memory: the loop of algorithms/sssp/delta_stepping.py, or of near_far.py where no arc
// counts as heavy. persistent_multi_gpu_kernels.py documents the parameters.

#include "frontiers.cuh"
#include "persistent_multi_gpu_kernels.cuh"
#include "persistent_multi_gpu_kernels.settle.cuh"
#include "prelude.cuh"
#include "ranks.cuh"

// A bucket with more than one arc in this many, from which a pull does not pay yet, is widened
// (rmat28 and rmat30 on four H200, medians without predecessors: 8.6 and 27.8 ms; with 12 they were
// 9.3 and 31.4).
constexpr i64 WIDENED_SHARE = 64;
// A round that begins with rows of more than one arc in this many marks vertices in most words.
constexpr i64 DENSE_ROUND_SHARE = 64;
// Added to a count of vertices, of fewer than 2^30 on all ranks: what barriers sum has 47 bits.
constexpr i64 HAS_OPEN_TARGET = 1ll << 40;

struct MultiGpuSssp : OwnedSlice {
  dist_t* out;
  dist_t delta;
  i64 num_records = 0, started = 0, count = 0, bucket_arcs = 0, max_bucket_arcs = 0;
  bool has_pulled = false, are_targets_settled = false;
  i64 bucket_row_arcs = 0,
      settled_row_arcs = 0;  // arcs of this bucket's rows, repeats included; of settled buckets
  i64 queued_row_arcs = 0;   // arcs of the rows that a round begins with

  __device__ void run(const Sources& sources, i64* report) {
    started = clock_ns();
    clear();
    if (!ranks.barrier(tally)) return;
    place_sources(sources);
    if (!end_phase()) return;
    while (has_work()) {
      Method method;
      if (!advance_bucket(&method, sources)) return;
      record_round(SCAN, count);
      if (are_targets_settled) break;
      for (; count || method != PUSH; method = PUSH) {
        i64 frontier = count;
        if (!run_round(method)) return;
        record_round(method, frontier);
      }
    }
    copy_out();
    if (!ranks.barrier(tally)) return;
    if (ranks.leave(tally)) report_to_host(report);
  }

  // Clear the own peer buffer: no other rank writes there before the first barrier.
  __device__ void clear() {
    Quad<dist_t> unreached = unreached_quad();
    for (i64 at = thread_index(); at < parameter(STRIDE) * size() / unreached.size;
         at += thread_count())
      store_quad(&own_copy[at * unreached.size], unreached);
    if (thread_index() < 3)
      *lowest_waiting(buffer(), (int)thread_index()) = top_of<dist_t>::value();
    for (i64 w = thread_index(); w < (parameter(DISTANCES) - HEAD_BYTES) / 4; w += thread_count())
      own_marks[w] = 0;
    if (thread_index() < NUM_COUNTERS) counters()[thread_index()] = 0;
  }
  // Set the own sources to 0; they wait beyond the bound.
  __device__ void place_sources(const Sources& sources) {
    for (i64 i = thread_index(); i < sources.count; i += thread_count()) {
      i64 position = sources.position(i);
      if (position >= parameter(NUM_POSITIONS)) continue;
      i64 state = state_of(position, parameter(STRIDE), parameter(MULTIPLIER));
      if (state >= base() && state < base() + parameter(STRIDE)) {
        own_copy[state] = 0;
        lowest = 0;
      }
    }
  }

  // ---- a round ---------------------------------------------------------------------------------
  __device__ bool run_round(Method method) {
    if (thread_index() == 0) {
      if (method != PULL) *queue_counter(!parity) = 0;
      *part_counter(!parity) = 0;
    }
    is_dense = method != PULL && queued_row_arcs * DENSE_ROUND_SHARE > parameter(NUM_ARCS);
    bool leaves_heavy = method == PUSH && parameter(HAS_HEAVY);
    method == PULL ? pull() : relax(leaves_heavy ? bound : top_of<dist_t>::value());
    i64 scanned = tally[SCANNED], sent = tally[SENT];
    tally[SCANNED] = tally[SENT] = 0;
    if (!end_phase()) return false;
    count = block->ranks.total[COUNT];
    *(method == PULL ? &bucket_row_arcs : &bucket_arcs) += block->ranks.total[ARCS];
    queued_row_arcs = method == PULL ? block->ranks.total[ARCS] : 0;
    tally[SCANNED] = scanned;
    tally[SENT] = sent;
    parity = !parity;
    settle();
    if (!end_phase()) return false;
    count += block->ranks.total[COUNT];
    bucket_row_arcs += block->ranks.total[ARCS];
    queued_row_arcs += block->ranks.total[ARCS];
    is_dense = false;
    return true;
  }

  // ---- a bucket --------------------------------------------------------------------------------
  // Near is empty on all ranks: all below the bound is settled. Raise the bound by delta, above the
  // smallest waiting distance if the bucket left no arcs that could lead below it, or to infinity,
  // and scan the own slice for work.
  //
  // Once vertices have pulled, later buckets pull too: unsettled vertices then scan light arcs
  // alone, which is cheap. A bucket before that, where hubs lie on both sides of the bound, is
  // widened until its vertices have two thirds of the arcs that are not settled: to push the hubs'
  // heavy arcs would take longer than everything else, and with few hubs in the bucket pulls scan
  // many times as many arcs. A bucket that cannot be widened is pulled from if it has half of them.
  __device__ bool advance_bucket(Method* method, const Sources& sources) {
    dist_t low = (dist_t)load_relaxed(lowest_waiting(buffer(), bucket)),
           top = top_of<dist_t>::value();
    bool has_remainder = parameter(HAS_HEAVY) && bucket_row_arcs;
    i64 unsettled_arcs = parameter(NUM_ARCS) - settled_row_arcs - bucket_row_arcs;
    bool may_widen = has_remainder && low < top && parameter(CAN_PULL) &&
                     bucket_row_arcs * WIDENED_SHARE > parameter(NUM_ARCS);
    bool pull_pays = parameter(CAN_PULL) &&
                     (has_pulled || (may_widen ? 2 : 1) * unsettled_arcs < bucket_row_arcs);
    bool is_widened = may_widen && !pull_pays;
    *method = !has_remainder || is_widened ? PUSH : pull_pays ? PULL : HEAVY;
    is_last_bucket =
        *method == PULL && has_pulled && is_finish(unsettled_arcs, parameter(NUM_ARCS));
    if (*method == PULL && !has_pulled) {
      settled_before_pull = settled;
      has_pulled = true;
    }
    if (is_tail(bucket_arcs, max_bucket_arcs, parameter(NUM_ARCS)) && delta < top / 4)
      delta += delta;
    if (bucket_arcs > max_bucket_arcs) max_bucket_arcs = bucket_arcs;
    if (!is_widened) {
      bucket_begin = settled;
      settled = bound;
      settled_row_arcs += bucket_row_arcs;
    }
    // With no remainder all below the lowest waiting distance is final. (persistent_kernels.cuh
    // says what this relies on.)
    if (!has_remainder) settled = low;
    bound = is_last_bucket ? top : raised(has_remainder && !is_widened ? bound : low, delta);
    queued_row_arcs = bucket_row_arcs;
    bucket_arcs = bucket_row_arcs = 0;
    lowest = top;
    bucket++;
    // A pull queues near vertices itself, after the long rows, which are read first.
    queue_begin = 0;
    if (thread_index() == 0) {
      *lowest_waiting(buffer(), bucket + 1) = top;
      *queue_counter(!parity) = 0;
    }
    if (threadIdx.x == 0) block->lowest = top;
    __syncthreads();
    count_open_targets(sources.listed + sources.count);
    *method == PUSH    ? scan_for_near()
    : *method == HEAVY ? scan_for_remainder<REMAINDER>()
                       : scan_for_remainder<PULLED>();
    if (!end_phase()) return false;
    count = block->ranks.total[COUNT] & (HAS_OPEN_TARGET - 1);
    are_targets_settled = parameter(TARGET) >= 0 && block->ranks.total[COUNT] < HAS_OPEN_TARGET;
    bucket_row_arcs = block->ranks.total[ARCS];
    if (*method == PUSH) queued_row_arcs = bucket_row_arcs;
    return true;
  }
  // As the bound is raised each rank with a target of its own that is not settled says so, in the
  // high bits of a count. A scan changes no own distance.
  __device__ void count_open_targets(const i64* listed) {
    if (blockIdx.x > 0 || parameter(TARGET) < 0) return;
    bool is_none_open =
        are_settled(&block->parameters[TARGET], listed, parameter(NUM_TARGETS), [&](i64 target) {
          i64 own = target - base();
          return own < 0 || own >= parameter(STRIDE) || load_relaxed(&own_copy[target]) < settled;
        });
    if (threadIdx.x == 0 && !is_none_open) tally[COUNT] += HAS_OPEN_TARGET;
  }
  // Whether any vertex waits, or could be reached yet.
  __device__ bool has_work() const {
    dist_t top = top_of<dist_t>::value();
    return bound < top && (load_relaxed(lowest_waiting(buffer(), bucket)) < top ||
                           (parameter(HAS_HEAVY) && bucket_row_arcs));
  }

  // Record a round, with the time since the last one; the last record adds up all that are beyond
  // the trace.
  __device__ void record_round(i64 method, i64 frontier) {
    bool beyond = num_records == parameter(TRACE_RECORDS);
    if (!beyond) num_records++;
    if (thread_index() != 0) return;
    i64 ended = clock_ns();
    note(trace_records() + (num_records - 1) * TRACE_WORDS, beyond,
         {method, frontier, block->ranks.own[SCANNED], ended - started, block->ranks.own[SENT]});
    started = ended;
  }
  // Copy the own slice to the result, and count the distances beyond the dtype's range. If targets
  // ended the search, distances that are not settled are none.
  __device__ void copy_out() {
    dist_t beyond = *(const dist_t*)&block->parameters[BEYOND], top = top_of<dist_t>::value(),
           end = are_targets_settled ? settled : top;
    each_quad([&](i64 first, Quad<dist_t> d) {
      for (int k = 0; k < d.size; k++) {
        if (d.of[k] >= end) d.of[k] = top;
        tally[COUNT] += d.of[k] >= beyond && d.of[k] < top;
      }
      if (first + d.size <= parameter(NUM_OWNED))
        store_quad(out + first, d);
      else
        for (int k = 0; k < d.size; k++)
          if (first + k < parameter(NUM_OWNED)) out[first + k] = d.of[k];
    });
  }
  // Write trace records and report to host memory, by one block.
  __device__ void report_to_host(i64* report) const {
    for (i64 i = threadIdx.x; i < num_records * TRACE_WORDS; i += blockDim.x)
      report[NUM_REPORTS + i] = load_relaxed(trace_records() + i);
    if (threadIdx.x > 0) return;
    report[NUM_RECORDS] = num_records;
    report[NUM_BEYOND] = block->ranks.total[COUNT];
    report[HAS_ALL_DISTANCES] = is_last_bucket && !are_targets_settled;
    report[DONE] = 1;
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    find_distances_on_ranks(i64 lo, i64 hi, const u32* abort, const i64* peer_buffers,
                            const u8* buffer, const id_t* positions, const i64* indptr,
                            const vertex_t* targets, const weight_t* weights,
                            const vertex_t* lightest_targets, const weight_t* lightest_weights,
                            dist_t* dist, u32* work, i64* control) {
  __shared__ MultiGpuBlock block;
  if (threadIdx.x < NUM_PARAMETERS) block.parameters[threadIdx.x] = control[threadIdx.x];
  if (threadIdx.x == 0) block.lowest = top_of<dist_t>::value();
  Ranks ranks(&block.ranks, peer_buffers, buffer, abort);
  const dist_t *cutoff = (const dist_t*)&block.parameters[CUTOFF],
               *delta = (const dist_t*)&block.parameters[DELTA];
  double scale = __longlong_as_double(block.parameters[SCALE]);
  MultiGpuSssp search = {{{{{},
                            &block,
                            ranks,
                            {indptr, targets, weights, {lightest_targets, lightest_weights, scale}},
                            work,
                            *cutoff}}},
                         dist,
                         *delta};
  Sources sources = {
      block.parameters[NUM_SOURCES], block.sources,
      control + NUM_PARAMETERS + NUM_REPORTS + block.parameters[TRACE_RECORDS] * TRACE_WORDS,
      block.parameters[FOUND] != 0};
  if (sources.find(search.ranks, positions, block.parameters[FIRST_USER],
                   block.parameters[NUM_USERS], control + FOUND))
    search.run(sources, control + NUM_PARAMETERS);
}
