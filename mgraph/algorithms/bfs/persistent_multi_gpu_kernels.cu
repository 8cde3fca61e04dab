// A whole breadth-first search in one launch a rank, where the ranks' kernels access each other's
// memory: run() is the loop of algorithms/bfs/step.py. persistent_multi_gpu_kernels.py describes
// the parameters.
//
//   persistent_multi_gpu_kernels.cuh       peer buffers, state (a table of it), broadcasts, scans
//   persistent_multi_gpu_kernels.push.cuh  candidates, from the senders' queues to the owners
//   parent_scans.cuh                       scans of rows for a parent, as on one GPU
//
// A frontier of few arcs is pushed as candidate parents, of which the owner keeps the smallest. Of
// many arcs only target bits are exchanged, and a marked vertex scans its own row for a parent, as
// in a pull: with many arcs hubs are on the frontier and rows begin with hubs, so that at most 8
// targets are scanned (RMAT and uniform graphs), and no candidate has to travel.

#include "frontiers.cuh"
#include "persistent_multi_gpu_kernels.cuh"
#include "persistent_multi_gpu_kernels.push.cuh"
#include "prelude.cuh"
#include "ranks.cuh"

// A pull scans this many arcs in the time of pushing one, with all that follows from it (RMAT of
// scale 26 on two H200).
constexpr double SCANS_PER_PUSHED_ARC = 16;
// A push of fewer arcs than 1 / SMALL_PUSH_SHARE of a slice's words is small.
constexpr i64 SMALL_PUSH_SHARE = 8;

struct MultiGpuBfs : MultiGpuPush {
  i64 count = 0, arcs = 0, arcs_before = 0, num_left = 0, arcs_left = 0, reached = 0, started = 0;
  bool queued = true, pulling = false, has_deferred = false, listable = true, listed = false,
       copies_differ = false;

  __device__ void run(const Sources& sources, i64* report) {
    num_left = parameter(NUM_POSITIONS);
    // A search for several targets needs all reached vertices in one bitmap.
    listable = !parameter(NUM_TARGETS);
    arcs_left = parameter(NUM_ARCS);
    started = clock_ns();
    clear(sources);
    if (sources.count == 1) {
      start_from_source(sources.position(0));
    } else {
      if (!sync_ranks()) return;
      start_from_sources(sources);
    }
    if (!sync_ranks()) return;
    finish_level();
    const i64* listed_targets = sources.listed + sources.count;
    while (count && level != parameter(DEPTH_LIMIT) && !are_targets_reached(listed_targets)) {
      i64 frontier = count;
      pulling = listed || pull_pays();
      if (!search_level()) return;
      finish_level();
      trace(frontier);
    }
    if (has_deferred) apply_deferred();
    write_unreached();
    if (ranks.leave(tally)) report_to_host(report);
  }

  // ---- the beginning and the end ---------------------------------------------------------------
  // Clear all slices of this rank's copies: no other rank writes there before the first barrier.
  // The owner sets the bits after a slice's last vertex. A single source is marked by the thread
  // that clears its word.
  __device__ void clear(const Sources& sources) {
    i64 first = sources.count == 1 ? state_of_source(sources.position(0)) : -1;
    for (i64 w = thread_index(); w < words() * num_ranks(); w += thread_count()) {
      i64 own = w - own_words(), left = parameter(NUM_OWNED) - own * 32;
      bool behind = own >= 0 && own < words() && left < 32;
      u32 word = behind ? left > 0 ? ~0u << left : ~0u : 0;
      current_copy()[w] = next_copy()[w] = first >> 5 == w ? word | 1u << (first & 31) : word;
    }
    if (thread_index() < NUM_COUNTERS) counters()[thread_index()] = 0;
  }
  // The state of a source's position; -1 where it has no arcs.
  __device__ i64 state_of_source(i64 position) const {
    return position < parameter(NUM_POSITIONS)
               ? state_of(position, parameter(STRIDE), parameter(MULTIPLIER))
               : -1;
  }
  __device__ void start_from_source(i64 position) {
    i64 v = state_of_source(position) - rank() * parameter(STRIDE);
    if (thread_index() > 0 || v < 0 || v >= parameter(NUM_OWNED)) return;
    i64 begin = load_readonly(indptr + v), length = load_readonly(indptr + v + 1) - begin;
    settle_source(v);
    tally[COUNT] = 1;
    tally[ARCS] = length;
    *queue_counter(parity) = (1ll << ARC_BITS) + length;
    queue().vertices[0] = (vertex_t)v;
    queue().offsets[0] = 0;
    queue().first[0] = begin;
  }
  // Vertices unreached at the end, mostly few, receive neither level nor parent. Their arcs are
  // counted: all others are reached.
  __device__ void write_unreached() {
    each_bit_of_words(
        *this, 32, [&](i64 w) { return ~(current_copy()[w] | next_copy()[w]); },
        [&](const i64(&v)[2], const bool (&valid)[2]) {
          for (int half = 0; half < 2; half++) {
            if (!valid[half]) continue;
            levels[v[half]] = top_of<dist_t>::value();
            parents[v[half]] = top_of<vertex_t>::value();
            tally[ARCS] += row_length(indptr, v[half]);
          }
        });
  }
  __device__ void settle_source(i64 v) {
    levels[v] = 0;
    parents[v] = (vertex_t)(v * parameter(MULTIPLIER) + parameter(FIRST));
  }
  // Each rank marks the sources in its own copy and queues those that it owns.
  __device__ void start_from_sources(const Sources& sources) {
    for (i64 group = warp_index() << 5; group < sources.count; group += warp_count() << 5) {
      bool valid = group + lane_index() < sources.count;
      i64 state = valid ? state_of_source(sources.position(group + lane_index())) : -1,
          v = state - rank() * parameter(STRIDE);
      if (state >= 0) set_bit(current_copy(), state);
      bool own = state >= 0 && v >= 0 && v < parameter(NUM_OWNED);
      if (own) settle_source(v);
      enqueue(parity, {own ? v : 0, 0}, {own, false});
    }
  }

  // ---- the last --------------------------------------------------------------------------------
  // List the unreached vertices, so that later levels do not pass over the others.
  __device__ void list_unreached() {
    constexpr int WIDE = 4;
    for (i64 first = warp_index() * 32 * WIDE; first < words(); first += warp_count() * 32 * WIDE) {
      u32 left[WIDE], count = 0;
      for (int k = 0; k < WIDE; k++) {
        i64 word = first + 32 * k + lane_index();
        left[k] = word < words() ? ~current_copy()[own_words() + word] : 0;
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
  // Scan the listed vertices that are still unreached. An unreached vertex has reached neighbors in
  // the level before only: it is enough to mark a found one in the copy that this level does not
  // read. Arcs of vertices without a parent are counted, with a row that is too long for the list
  // as more than it may have.
  __device__ void scan_list() {
    each_listed(queue().vertices, *list_counter(), [&](const i64(&v)[2], const bool (&valid)[2]) {
      bool open[2];
      for (int half = 0; half < 2; half++) {
        i64 word = own_words() + (v[half] >> 5);
        open[half] =
            valid[half] &&
            !((current_copy()[word] | load_relaxed(next_copy() + word)) >> (v[half] & 31) & 1);
      }
      scan_rest(
          v, open, false, false,
          [&](i64 hit) {
            set_bit(next_copy(), own_words() * 32 + hit), broadcast_vertex(hit, !side),
                tally[COUNT]++;
          },
          [&](i64 length) {
            tally[ARCS] += length <= MAX_LISTED_ROW ? length : MAX_LISTED_ARCS + 1;
          });
    });
    side = !side;
  }

  // ---- a level ---------------------------------------------------------------------------------
  // Whether all targets are reached: each way to do a level marks what it reaches in the copies of
  // all ranks that are current behind its barrier; with lists, which a search for several targets
  // does without, these lack older ones. Race: before the next barrier owners may write their
  // slices into these copies again, with the same bit for the target: the search has ended if it
  // is set, else the owner lacks it too.
  __device__ bool are_targets_reached(const i64* listed) {
    return are_settled(&block->parameters[TARGET], listed, parameter(NUM_TARGETS), [&](i64 target) {
      return load_relaxed(current_copy() + (target >> 5)) >> (target & 31) & 1;
    });
  }
  // As pull_pays in algorithms/bfs/step.py, with cheaper scans. A frontier that may exceed the
  // queue is pulled, and so are the last vertices when they may be listed.
  __device__ bool pull_pays() const {
    if (count > parameter(CAPACITY)) return true;
    if (pulling) return count * parameter(BETA) > parameter(NUM_POSITIONS) || may_list();
    return grows() && SCANS_PER_PUSHED_ARC * (double)arcs * (double)arcs >
                          (double)num_left * (double)arcs_left;
  }
  __device__ bool grows() const { return arcs > parameter(GROWTH) * arcs_before; }
  // The list occupies the queue's memory: only where no queue is to be read.
  __device__ bool may_list() const {
    return listable && !queued && num_left * LISTED_SHARE_RANKS < parameter(NUM_POSITIONS);
  }
  __device__ bool search_level() {
    if (has_deferred) apply_deferred();
    has_deferred = false;
    // Clear the counters of this level's queue and of the next level's runs: no block counts there
    // before the next barrier.
    if (thread_index() == 0)
      *queue_counter(!parity) = *deferred_counter(!parity) = *runs_taken(level + 1) = 0;
    if (listed || (pulling && may_list())) return list_level();
    if (copies_differ) {
      broadcast_slice();
      if (!sync_within_level(COUNT)) return false;
      copies_differ = false;
    }
    return pulling ? pull_level() : push_level();
  }
  __device__ bool list_level() {
    if (!listed) {
      list_unreached();
      if (!ranks.sync_blocks()) return false;
    }
    scan_list();
    if (!sync_ranks()) return false;
    listed = listable = block->ranks.total[ARCS] <= MAX_LISTED_ARCS;
    copies_differ = true;
    return true;
  }
  __device__ bool push_level() {
    if (!queued) {
      queue_up();
      if (!sync_within_level(ARCS)) return false;
      arcs = block->ranks.total[ARCS];
    }
    arcs_before = arcs;
    bool small = arcs <= words() / SMALL_PUSH_SHARE, full = false;
    // All candidates fit if no inbox receives more than twice its mean.
    u32 block_capacity = arcs <= parameter(INBOX) * num_ranks() / 2 ? candidate_capacity() : 0;
    do {
      if (full) block_capacity = 0;
      push(block_capacity);
      if (block_capacity) publish_counts(block_capacity);
      if (!sync_within_level(COUNT)) return false;
      full = block_capacity && block->ranks.total[COUNT];
    } while (full);
    if (!block_capacity) return pull_level();
    small ? apply_small_push() : apply_large_push();
    parity = !parity;
    queued = small;
    has_deferred = true;
    if (!small) {
      if (!ranks.sync_blocks()) return false;
      settle_slice();
    }
    return sync_ranks();
  }
  __device__ bool pull_level() {
    parity = !parity;
    queued = false;
    i64 share = pulling ? parameter(NUM_POSITIONS) / (num_left + 1) : SPARSE_SHARE;
    bool many = pulling ? share < SPARSE_SHARE : arcs > parameter(NUM_POSITIONS);
    ScanMode mode = pulling && share < SPARSER_SHARE ? PICKED : BY_ROWS;
    pull_slice(share, many ? BY_WORDS : mode, !pulling);
    side = !side;
    return sync_ranks();
  }

  // Sum up a level.
  __device__ void finish_level() {
    count = block->ranks.total[COUNT];
    arcs = pulling ? 0 : block->ranks.total[ARCS];
    num_left -= count;
    arcs_left -= arcs;
    level++;
    reached += block->ranks.own[COUNT];
  }

  // Record a level, the time since the one before; the last record accumulates those over capacity.
  // Not in host memory: the next barrier would wait for that write.
  __device__ void trace(i64 frontier) {
    if (thread_index() != 0) return;
    bool beyond = level > parameter(TRACE_RECORDS);
    i64 ended = clock_ns(),
        *record = records() + ((beyond ? parameter(TRACE_RECORDS) : level) - 1) * TRACE_WORDS;
    note(record, beyond,
         {pulling, frontier, block->ranks.own[SCANNED], ended - started, block->ranks.own[SENT]});
    started = ended;
  }
  // Write report and trace to host memory, by all threads of a block.
  __device__ void report_to_host(i64* report) const {
    i64 num_records = level < parameter(TRACE_RECORDS) ? level : parameter(TRACE_RECORDS);
    for (i64 i = threadIdx.x; i < num_records * TRACE_WORDS; i += blockDim.x)
      report[NUM_REPORTS + i] = load_relaxed(records() + i);
    if (threadIdx.x > 0) return;
    report[NUM_RECORDS] = num_records;
    report[REACHED] = reached;
    report[REACHED_ARCS] = indptr[parameter(NUM_OWNED)] - block->ranks.own[ARCS];
    report[DONE] = 1;
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    search_ranks(i64 lo, i64 hi, const u32* abort, const i64* peer_buffers, const u8* buffer,
                 const id_t* positions, const i64* indptr, const vertex_t* targets,
                 const i64* in_indptr, const vertex_t* in_targets, const vertex_t* first_neighbors,
                 dist_t* levels, vertex_t* parents, i64* control) {
  __shared__ MultiGpuShared block;
  if (threadIdx.x < REPORT_AT) block.parameters[threadIdx.x] = control[threadIdx.x];
  MultiGpuBfs search = {{{{},
                          &block,
                          Ranks(&block.ranks, peer_buffers, buffer, abort),
                          indptr,
                          targets,
                          in_indptr,
                          in_targets,
                          first_neighbors,
                          levels,
                          parents}}};
  Sources sources = {block.parameters[NUM_SOURCES], block.sources,
                     control + RECORDS_AT + block.parameters[TRACE_RECORDS] * TRACE_WORDS,
                     block.parameters[FOUND] != 0};
  if (sources.find(search.ranks, positions, block.parameters[FIRST_USER],
                   block.parameters[NUM_USERS], control + FOUND))
    search.run(sources, control + REPORT_AT);
}
