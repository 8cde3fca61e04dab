// State and phases of the search of persistent_kernels.cu. Grid barriers separate phases.
//
// State of a search (n vertices). V = visited(), O = other_visited(); they swap in finish_level().
// clang-format off: a table
// array or flag   holds                                  written by                valid
// visited         vertices with a level <= level         the level before          always
// other_visited   V and vertices of level + 1            push, pull, mark_found    after the level
// pushed() queue  the frontier and its row offsets       enqueue() before swap     in_queue
// filled() queue  vertices found by a push, or listed    enqueue()                 until swap
// parents         smallest candidate of a found vertex   atomic minimum, or pull   found vertices
// levels          level of a found vertex; of the rest   the thread that finds it; found vertices;
//                 the unreached value                    write_unreached           at the end
// counters        COUNT .. TAKEN of a phase              threads, at the barrier   that phase
// block->totals   the counters of the phase before       sync_blocks()             one phase
// packed          (level, parent) of a vertex            chunked expansion         within it
//   .offsets, .first  of filled(): its frontier, the next  chunked expansion       within it
// in_queue, in_bits   after finish_level: the frontier is a queue / is V and not O
// counted             reached_arcs is exact (else estimated, and counted when the queue is built)
// listing, has_list   this pull lists what stays unreached / filled() holds that list
// clang-format on
// Between two barriers an array is only read, or changed by atomics and relaxed stores of one
// value, or each word has one writer.

#include "frontiers.cuh"
#include "persistent_kernels.py"
#include "prelude.cuh"

constexpr int BLOCK = 640;  // 96 registers a thread; more threads would spill many
// A source's row of at most this many arcs a thread is pushed while states are cleared.
constexpr i64 SHORT_ROW_ARCS_PER_THREAD = 4;
// From this many arcs per unreached vertex on, a push reads a vertex's parent before the atomic.
constexpr i64 PREFILTER_RATIO = 2;

// Shared memory of a block.
struct BfsShared {
  i64 scratch[4 * BLOCK];    // rows of a push, words of a pull, queues of a chunked expansion
  i64 sums[3];               // what threads add up before a barrier
  i64 totals[NUM_COUNTERS];  // of the phase before
  i64 parameters[REPORT_AT];
};

__device__ inline void add_to_block_sum(i64* sum, i64 mine) {
  if (!__any_sync(WARP, mine != 0)) return;
  mine = warp_sum(mine);
  if (lane_index() == 0) atomic_add(sum, mine);
}
// Grid barrier that adds up the threads' counts in the phase's counters and clears those of the
// next phase. Not inlined: a dozen call sites would spend most of their time in instruction
// fetches.
__device__ __noinline__ bool sync_blocks(BfsShared* block, i64* cells, u32 phase, i64* arrived,
                                         const u32* abort, i64 count, i64 arcs, i64 scanned) {
  add_to_block_sum(&block->sums[COUNT], count);
  add_to_block_sum(&block->sums[ARCS], arcs);
  add_to_block_sum(&block->sums[SCANNED], scanned);
  __syncthreads();
  i64 *own = cells + phase % NUM_PHASES * NUM_COUNTERS,
      *next = cells + (phase + 1) % NUM_PHASES * NUM_COUNTERS;
  if (threadIdx.x < 3 && block->sums[threadIdx.x]) {
    atomic_add(own + threadIdx.x, block->sums[threadIdx.x]);
    block->sums[threadIdx.x] = 0;
  }
  // No block counts in the next phase yet: its counters' totals of two phases ago were read before
  // the barrier that began this phase.
  if (thread_index() < NUM_COUNTERS) store_relaxed(next + thread_index(), (i64)0);
  return grid_barrier(arrived, abort, [&]() {
    for (int k = 0; k < NUM_COUNTERS; k++) block->totals[k] = load_relaxed(own + k);
  });
}

struct BfsState : Work<BfsState> {
  i64 n;
  const u32* abort;
  const i64* indptr;
  const vertex_t* targets;
  const i64* in_indptr;
  const vertex_t* in_targets;
  const vertex_t* first_neighbors;
  dist_t* levels;
  vertex_t* parents;
  u32* work;
  i64* packed;
  i64* arrived;
  i64* control;  // the control block, in host memory
  BfsShared* block;

  u32 phase = 0;
  bool side = false, other_queue = false, listing = false, has_list = false;
  bool in_bits = false, in_queue = true, pulling = false, counted = true;
  i64 level = -1, count = 0, arcs = 0, reached = 0, reached_arcs = 0, listed = 0;
  i64 my_count = 0, my_arcs = 0, my_scanned = 0;  // of this thread since the last barrier
  i64 num_records = 0, started = 0;               // of the trace

  // Addresses in `work` are computed wherever they are used: registers are scarcer than arithmetic.
  __device__ i64 parameter(Parameter which) const { return block->parameters[which]; }
  __device__ i64 cost(Cost which) { return block->parameters[NUM_PARAMETERS + which]; }
  __device__ i64 words() const { return (n + 63) >> 6 << 1; }
  __device__ i64 own_words() const { return 0; }
  __device__ i64 record_capacity() const { return parameter(TRACE_RECORDS); }
  __device__ i64 capacity() const { return parameter(CAPACITY); }
  __device__ u32* bitmap(bool which) const { return bitmaps() + (which ? words() : 0); }
  __device__ u32* visited() { return bitmap(side); }
  // Before a level its visited set of one level ago; after it, the next visited set.
  __device__ u32* other_visited() { return bitmap(!side); }
  __device__ Queue queue(bool which) {
    // = queue_vertices(), from the capacity at hand: reading that twice needs more registers.
    i64 capacity = parameter(CAPACITY), *all = queue_offsets(),
        *offsets = all + (which ? 2 * capacity : 0);
    vertex_t* vertices = (vertex_t*)(all + 4 * capacity);
    return {offsets, offsets + capacity, vertices + (which ? capacity : 0)};
  }
  __device__ Queue pushed() { return queue(other_queue); }
  __device__ Queue filled() { return queue(!other_queue); }

  // ---- phases ----------------------------------------------------------------------------------
  __device__ i64* counter(Counter which) {
    return (i64*)work + phase % NUM_PHASES * NUM_COUNTERS + which;
  }
  __device__ i64 total(Counter which) { return block->totals[which]; }
  // Grid barrier; afterwards total() has what all threads counted in the phase.
  __device__ bool sync_phase() {
    bool synced =
        sync_blocks(block, (i64*)work, phase++, arrived, abort, my_count, my_arcs, my_scanned);
    my_count = my_arcs = my_scanned = 0;
    return synced;
  }

  // Each block clears a contiguous range of states and of bitmap words.
  __device__ i64 first_word() { return blockIdx.x * ((u32)words() / gridDim.x + 1ll); }
  __device__ i64 end_word() {
    i64 end = first_word() + (u32)words() / gridDim.x + 1;
    return end < words() ? end : words();
  }
  __device__ bool is_own(i64 v) { return v >> 5 >= first_word() && v >> 5 < end_word(); }
  // No vertex has a candidate. Levels are written when a vertex is found, or at the end.
  __device__ void clear_parents() {
    constexpr int WIDE = Quad<vertex_t>::size;
    Quad<vertex_t> none;
    for (int k = 0; k < WIDE; k++) none.of[k] = top_of<vertex_t>::value();
    i64 end = end_word() << 5 < n ? end_word() << 5 : n,
        v = (first_word() << 5) + WIDE * threadIdx.x;
    for (; v + WIDE <= end; v += WIDE * blockDim.x) store_quad(parents + v, none);
    for (; v < end; v++) parents[v] = top_of<vertex_t>::value();
  }
  // No vertex is visited; the bits after the last vertex are set.
  __device__ void clear_bits() {
    for (i64 w = first_word() + threadIdx.x; w < end_word(); w += blockDim.x)
      visited()[w] = other_visited()[w] = w < n >> 5 ? 0 : w > n >> 5 ? ~0u : ~0u << (n & 31);
    for (i64 i = thread_index(); i < NUM_PHASES * NUM_COUNTERS; i += thread_count())
      store_relaxed((i64*)work + i, (i64)0);
  }

  // Append a warp's vertices, EACH per lane, where `valid` is set, with their rows.
  template <int EACH> __device__ void enqueue(const i64* rows_from, const vertex_t (&v)[EACH],
                                              const bool (&valid)[EACH]) {
    i64 begin[EACH], length[EACH];
    for (int k = 0; k < EACH; k++) {
      begin[k] = valid[k] ? load_readonly(rows_from + v[k]) : 0;
      length[k] = valid[k] ? load_readonly(rows_from + v[k] + 1) - begin[k] : 0;
    }
    ::enqueue(filled(), parameter(CAPACITY), counter(QUEUED), v, valid, begin, length);
  }
  // The queue that was filled becomes the frontier.
  __device__ void swap_queues() {
    other_queue = !other_queue;
    i64 queued = total(QUEUED);
    count = queued_vertices(queued);
    arcs = queued_arcs(queued);
  }

  // Begin with the one source as frontier; return whether its row, being short, was pushed at once.
  // Then every block writes levels and parents of the targets in the range that it clears, and the
  // first block queues them all. A source without arcs has a position beyond all states: there is
  // no frontier.
  __device__ bool start_from_source() {
    i64 source = parameter(SOURCE);
    if (source >= n) return false;
    i64 begin = load_readonly(indptr + source);
    level = 0;
    count = reached = 1;
    arcs = reached_arcs = load_readonly(indptr + source + 1) - begin;
    bool short_row = arcs <= SHORT_ROW_ARCS_PER_THREAD * blockDim.x &&
                     arcs <= parameter(CAPACITY) && parameter(DEPTH_LIMIT) != 0;
    if (is_own(source) && threadIdx.x == 0) {
      set_bit(visited(), source);
      set_bit(other_visited(), source);
      levels[source] = 0;
      parents[source] = (vertex_t)source;
      if (!short_row) {
        *pushed().vertices = (vertex_t)source;
        *pushed().offsets = 0;
        *pushed().first = begin;
      }
    }
    for (i64 group = threadIdx.x & ~31u; short_row && group < arcs; group += blockDim.x) {
      bool valid = group + lane_index() < arcs;
      vertex_t v = valid ? load_readonly(targets + begin + group + lane_index()) : 0;
      if (valid && is_own((i64)v)) {
        set_bit(other_visited(), v);
        levels[v] = 1;
        parents[v] = (vertex_t)source;
      }
      if (blockIdx.x == 0) enqueue<1>(indptr, {v}, {valid});
    }
    return short_row;
  }
  __device__ void start_from_sources() {
    i64 sources = parameter(NUM_SOURCES);
    for (i64 group = warp_index() << 5; group < sources; group += warp_count() << 5) {
      bool valid = group + lane_index() < sources;
      vertex_t v = valid ? (vertex_t)control[RECORDS_AT + parameter(TRACE_RECORDS) * TRACE_WORDS +
                                             group + lane_index()]
                         : 0;
      if (valid) {
        set_bit(other_visited(), v);
        levels[v] = 0;
        parents[v] = v;
      }
      enqueue<1>(indptr, {v}, {valid});
    }
  }

  // Sum up a level. A pull has counted the arcs of unreached vertices instead of found ones. Where
  // degrees are uniform candidates count no arcs: found vertices are then assumed to have the mean
  // degree of unreached ones, enough to choose how to do the next level.
  __device__ void finish_level() {
    side = !side;
    counted = in_queue || pulling || !parameter(UNIFORM_DEGREE);
    i64 left = parameter(NUM_ARCS) - reached_arcs;
    if (in_queue) {
      swap_queues();
    } else {
      count = total(COUNT);
      arcs = pulling ? left - total(ARCS) : total(ARCS);
      if (!counted && count) arcs = (i64)((float)left * ((float)count / (float)(n - reached)));
    }
    reached += count;
    reached_arcs += arcs;
    level++;
  }

  // Whether all targets have a level, after a level: no thread writes visited() in the next one.
  template <class IsSettled> __device__ bool are_targets_settled(IsSettled is_settled) {
    const i64* listed =
        control + RECORDS_AT + parameter(TRACE_RECORDS) * TRACE_WORDS + parameter(NUM_SOURCES);
    return are_settled(&block->parameters[TARGET], listed, parameter(NUM_TARGETS), is_settled);
  }
  __device__ bool are_targets_visited() {
    return are_targets_settled([&](i64 target) { return test_bit(visited(), target); });
  }
  // The same of the only target, in one block, which marks levels alone. Race: threads may be in
  // the next level already, and store that one: all threads find the same.
  __device__ bool is_target_in_level() {
    i64 target = parameter(TARGET);
    return target >= 0 && load_relaxed(&levels[target]) <= level;
  }

  // Words that a warp processes at once, in `times` rounds: few enough that all warps have work,
  // enough that all lanes do.
  __device__ i64 run_of_words(i64 least, i64 most, i64 times = 2) {
    i64 each = (words() + times * warp_count() - 1) / (times * warp_count());
    return each < least ? least : each > most ? most : each;
  }

  // Build the frontier queue from the bitmaps.
  __device__ void queue_bits() {
    each_bit_of_words(
        *this, run_of_words(2, 32), [&](i64 w) { return visited()[w] & ~other_visited()[w]; },
        [&](const i64(&v)[2], const bool (&valid)[2]) { enqueue_both(indptr, v, valid); });
  }
  __device__ void queue_word(const i64* rows_from, i64 word, u32 own) {
    each_bit(word, own,
             [&](const i64(&v)[2], const bool (&valid)[2]) { enqueue_both(rows_from, v, valid); });
  }
  __device__ void enqueue_both(const i64* rows_from, const i64 (&v)[2], const bool (&valid)[2]) {
    enqueue<2>(rows_from, {(vertex_t)v[0], (vertex_t)v[1]}, valid);
  }

  // Build the frontier queue from the bitmaps; its arcs are exact afterwards.
  __device__ bool queue_up() {
    i64 estimate = arcs;
    queue_bits();
    if (!sync_phase()) return false;
    swap_queues();
    if (!counted) reached_arcs += arcs - estimate;
    return counted = true;
  }

  // Vertices in neither bitmap have no level. Both are read, since the bitmap of a level that
  // scanned a list lacks vertices of the levels before.
  __device__ void write_unreached() {
    each_bit_of_words(
        *this, 32, [&](i64 w) { return ~(visited()[w] | other_visited()[w]); },
        [&](const i64(&v)[2], const bool (&valid)[2]) {
          for (int half = 0; half < 2; half++)
            if (valid[half]) levels[v[half]] = top_of<dist_t>::value();
        });
  }

  // ---- trace and report ------------------------------------------------------------------------
  // Record a superstep and the time since the one before; the last record accumulates those over
  // capacity. Not in host memory: the next barrier would wait for that write.
  __device__ void trace(i64 method, i64 frontier, i64 scanned, i64 num_levels) {
    if (!is_reporter() || threadIdx.x != blockDim.x - 1) return;
    i64 now = clock_ns();
    bool beyond = num_records == parameter(TRACE_RECORDS);
    i64* record = trace_records() + (beyond ? num_records - 1 : num_records++) * TRACE_WORDS;
    note(record, beyond, {method, frontier, scanned, now - started, num_levels});
    started = now;
  }
  // The last thread of the last block, which has the least work in small levels, writes trace and
  // report.
  __device__ bool is_reporter() { return blockIdx.x == gridDim.x - 1; }
  // Write report and trace to host memory, by all threads of the last block.
  __device__ void report_to_host() {
    i64* report = control + REPORT_AT;
    if (threadIdx.x == blockDim.x - 1) {
      report[NUM_RECORDS] = block->sums[0] = num_records;
      report[REACHED] = reached;
      report[REACHED_ARCS] = reached_arcs;
      report[DONE] = 1;
    }
    __syncthreads();
    for (i64 i = threadIdx.x; i < block->sums[0] * TRACE_WORDS; i += blockDim.x)
      report[NUM_REPORTS + i] = trace_records()[i];
  }
};
