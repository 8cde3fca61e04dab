// What every superstep of bfs_fused.cu is made of: phases, between which all blocks meet.
//
// A frontier is a queue, or what is visited now and was not before: there are two bitmaps of that.
// Between two meetings an array is only read, or changed by atomics and relaxed stores of one
// value, or each word has one writer.

#include "frontiers.cuh"
#include "persistent_kernels.py"
#include "prelude.cuh"

constexpr int BLOCK = 640;  // 96 registers a thread; with more threads many would be spilled
// So many arcs a thread of the source's row, at most, are pushed while states are cleared.
constexpr i64 SHORT_ROW = 4;
// So many offers a vertex are often.
constexpr i64 OFTEN = 2;

// What a block keeps in shared memory.
struct Block {
  i64 room[4 * BLOCK];       // rows that are pushed, words that are pulled, queues of a walk
  i64 sums[3];               // for meet()
  i64 totals[NUM_COUNTERS];  // of the phase before
  i64 orders[REPORT_AT];
};

__device__ inline void add_up(i64* sum, i64 mine) {
  if (!__any_sync(WARP, mine != 0)) return;
  mine = warp_sum(mine);
  if (lane_index() == 0) atomic_add(sum, mine);
}
// All blocks meet: what threads counted is added up in the phase's cell of `cells`, and the next
// phase has its counters at 0. A function that is called: it stands in a dozen places, and most
// time would go into fetching its instructions.
__device__ __noinline__ bool meet_blocks(Block* block, i64* cells, u32 phase, i64* arrived,
                                         const u32* abort, i64 count, i64 arcs, i64 looked) {
  add_up(&block->sums[COUNT], count), add_up(&block->sums[ARCS], arcs),
      add_up(&block->sums[LOOKED], looked);
  __syncthreads();
  i64 *own = cells + phase % NUM_PHASES * NUM_COUNTERS,
      *next = cells + (phase + 1) % NUM_PHASES * NUM_COUNTERS;
  if (threadIdx.x < 3 && block->sums[threadIdx.x]) {
    atomic_add(own + threadIdx.x, block->sums[threadIdx.x]);
    block->sums[threadIdx.x] = 0;
  }
  // Nobody counts there: the totals of two phases ago were read before the meeting that began this
  // one.
  if (thread_index() < NUM_COUNTERS) store_relaxed(next + thread_index(), (i64)0);
  return grid_barrier(arrived, abort, [&]() {
    for (int k = 0; k < NUM_COUNTERS; k++) block->totals[k] = load_relaxed(own + k);
  });
}

struct Levels : Work<Levels> {
  i64 n;
  const u32* abort;
  const i64* indptr;
  const vertex_t* targets;
  const i64* in_indptr;
  const vertex_t* in_targets;
  const vertex_t* firsts;
  dist_t* levels;
  vertex_t* parents;
  u32* work;
  i64* packed;
  i64* arrived;
  i64* host;  // what is asked, told and traced, and the sources, in host memory
  Block* block;

  u32 phase = 0;
  bool side = false, other_queue = false, listing = false, has_list = false;
  bool in_bits = false, in_queue = true, pulling = false, counted = true;
  i64 level = -1, count = 0, arcs = 0, reached = 0, reached_arcs = 0, listed = 0;
  i64 my_count = 0, my_arcs = 0, my_looked = 0;  // counted by this thread since the last meeting
  i64 num_rows = 0, started = 0;                 // of the trace

  // Where things stand in `work` is worked out anew wherever it is wanted: registers are scarcer.
  __device__ i64 order(Parameter which) const { return block->orders[which]; }
  __device__ i64 cost(Cost which) { return block->orders[NUM_PARAMETERS + which]; }
  __device__ i64 words() const { return (n + 63) >> 6 << 1; }
  __device__ i64 num_records() const { return order(TRACE_ROWS); }
  __device__ i64 capacity() const { return order(CAPACITY); }
  __device__ u32* bitmap(bool which) const { return bitmaps() + (which ? words() : 0); }
  __device__ u32* visited() { return bitmap(side); }
  __device__ u32* other_visited() {
    return bitmap(!side);
  }  // before the level at hand, or after it
  __device__ Queue queue(bool which) {
    // The same as queue_vertices(), from the capacity at hand: read twice it takes more registers.
    i64 capacity = order(CAPACITY), *all = queue_offsets(),
        *offsets = all + (which ? 2 * capacity : 0);
    vertex_t* vertices = (vertex_t*)(all + 4 * capacity);
    return {offsets, offsets + capacity, vertices + (which ? capacity : 0)};
  }
  __device__ Queue pushed() { return queue(other_queue); }
  __device__ Queue filled() { return queue(!other_queue); }

  // ---- phases ----------------------------------------------------------------------------------------
  __device__ i64* counter(Counter which) {
    return (i64*)work + phase % NUM_PHASES * NUM_COUNTERS + which;
  }
  __device__ i64 total(Counter which) { return block->totals[which]; }
  // All blocks meet: what threads counted becomes the phase's totals.
  __device__ bool meet() {
    bool met =
        meet_blocks(block, (i64*)work, phase++, arrived, abort, my_count, my_arcs, my_looked);
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
    i64 end = end_word() << 5 < n ? end_word() << 5 : n,
        v = (first_word() << 5) + WIDE * threadIdx.x;
    for (; v + WIDE <= end; v += WIDE * blockDim.x) store_quad(parents + v, none);
    for (; v < end; v++) parents[v] = top_of<vertex_t>::value();
  }
  // Nothing is visited but bits behind the last vertex.
  __device__ void clear_bits() {
    for (i64 w = first_word() + threadIdx.x; w < end_word(); w += blockDim.x)
      visited()[w] = other_visited()[w] = w < n >> 5 ? 0 : w > n >> 5 ? ~0u : ~0u << (n & 31);
    for (i64 i = thread_index(); i < NUM_PHASES * NUM_COUNTERS; i += thread_count())
      store_relaxed((i64*)work + i, (i64)0);
  }

  // A warp's vertices, EACH a lane, go to the next queue with their rows if they are `there`.
  template <int EACH> __device__ void enqueue(const i64* rows_from, const vertex_t (&v)[EACH],
                                              const bool (&there)[EACH]) {
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

  // The frontier is the one source. If its row is short, that is pushed at once: every block gives
  // levels and parents to those of the row whose states it has cleared, and the first queues them.
  // Return whether it did.
  __device__ bool begin_with_source() {
    i64 source = order(SOURCE), begin = load_readonly(indptr + source);
    level = 0, count = reached = 1,
    arcs = reached_arcs = load_readonly(indptr + source + 1) - begin;
    bool short_row =
        arcs <= SHORT_ROW * blockDim.x && arcs <= order(CAPACITY) && order(DEPTH_LIMIT) != 0;
    if (is_own(source) && threadIdx.x == 0) {
      set_bit(visited(), source), set_bit(other_visited(), source);
      levels[source] = 0, parents[source] = (vertex_t)source;
      if (!short_row)
        *pushed().vertices = (vertex_t)source, *pushed().offsets = 0, *pushed().first = begin;
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
      vertex_t v =
          there ? (vertex_t)host[RECORDS_AT + order(TRACE_ROWS) * ROW + group + lane_index()] : 0;
      if (there) set_bit(other_visited(), v), levels[v] = 0, parents[v] = v;
      enqueue<1>(indptr, {v}, {there});
    }
  }

  // Count what a level found. A pull has counted the arcs of those left. Where rows are alike,
  // offers have counted none: those found are taken to have as many as all who are left have in the
  // mean, by which the next form is chosen.
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

  // How many words a warp takes at once, of so many times: so few that all have work, and enough
  // for all lanes.
  __device__ i64 run_of_words(i64 least, i64 most, i64 times = 2) {
    i64 each = (words() + times * warp_count() - 1) / (times * warp_count());
    return each < least ? least : each > most ? most : each;
  }

  // From bitmaps to a queue.
  __device__ void queue_bits() {
    i64 run = run_of_words(2, 32);
    for (i64 word = warp_index() * run; word < words(); word += warp_count() * run) {
      i64 w = word + lane_index();
      queue_word(indptr, word,
                 lane_index() < run && w < words() ? visited()[w] & ~other_visited()[w] : 0);
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

  // Who was not reached has no level: who is in neither bitmap, of which that of listed levels
  // lacks some.
  __device__ void leave_unreached() {
    for (i64 word = warp_index() << 5; word < words(); word += warp_count() << 5) {
      i64 w = word + lane_index();
      u32 left = w < words() ? ~(visited()[w] | other_visited()[w]) : 0;
      each_bit(word, left, [&](const i64(&v)[2], const bool (&there)[2]) {
        for (int half = 0; half < 2; half++)
          if (there[half]) levels[v[half]] = top_of<dist_t>::value();
      });
    }
  }

  // ---- what is told ----------------------------------------------------------------------------------
  // Note a superstep, the time since the one before; the last row adds up all that are beyond the
  // trace. Not in host memory: the next meeting would wait for it.
  __device__ void trace(i64 method, i64 frontier, i64 looked, i64 num_levels) {
    if (!tells() || threadIdx.x != blockDim.x - 1) return;
    i64 now = clock_ns();
    bool beyond = num_rows == order(TRACE_ROWS);
    i64* row = trace_records() + (beyond ? num_rows - 1 : num_rows++) * ROW;
    note(row, beyond, {method, frontier, looked, now - started, num_levels});
    started = now;
  }
  // Who traces and tells: the last thread of the last block, which has least to do where a level is
  // small.
  __device__ bool tells() { return blockIdx.x == gridDim.x - 1; }
  // Tell the host, the last block together.
  __device__ void tell() {
    i64* report = host + REPORT_AT;
    if (threadIdx.x == blockDim.x - 1) {
      report[NUM_ROWS] = block->sums[0] = num_rows;
      report[REACHED] = reached, report[REACHED_ARCS] = reached_arcs, report[DONE] = 1;
    }
    __syncthreads();
    for (i64 i = threadIdx.x; i < block->sums[0] * ROW; i += blockDim.x)
      report[NUM_REPORTS + i] = trace_records()[i];
  }
};
