// A whole breadth-first search in one launch a rank, where the ranks' kernels reach each other's
// memory: the loop of algorithms/bfs/step.py. bfs_peers.py says what the parameters are.
//
// Few arcs are pushed as offers of parents, of which the owners take the smallest, and many as
// bits: who is found there looks for its parent itself, as in a pull. Where there are many arcs,
// hubs are on the frontier and stand first in the row: it looks at 8 targets or fewer (RMAT and
// uniform graphs), and no offer has to travel.

#include "frontiers.cuh"
#include "persistent_multi_gpu_kernels.cuh"
#include "persistent_multi_gpu_kernels.push.cuh"
#include "prelude.cuh"
#include "ranks.cuh"

// So many looks of a pull take as long as pushing an arc, with what comes of it (RMAT of scale 26
// on two H200).
constexpr double LOOKS_A_PUSH = 16;
// Offers for fewer than one word in so many are few.
constexpr i64 FEW_OFFERS = 8;

struct Search : Pushes {
  i64 count = 0, arcs = 0, arcs_before = 0, num_left = 0, arcs_left = 0, reached = 0, started = 0;
  bool queued = true, pulling = false, unsettled = false, listable = true, listed = false,
       apart = false;

  // Nothing is reached, in all slices of one's own copies: nobody writes there before all have met.
  // Bits behind a slice's last vertex are set by its owner. If there is one source, who clears its
  // word reaches it.
  __device__ void clear(const Sources& sources) {
    i64 first = sources.count == 1 ? state_of_source(sources.position(0)) : -1;
    for (i64 w = thread_index(); w < words() * num_ranks(); w += thread_count()) {
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
  // Whoever is not reached in the end has no level and no parent: that is written once, and mostly
  // for few. Their arcs are counted: the others are reached.
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
  __device__ void settle_source(i64 v) {
    levels[v] = 0, parents[v] = (vertex_t)(v * fact(MULTIPLIER) + fact(FIRST));
  }
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
  // They look alone. Who is not reached yet has no neighbours reached but in the level before: who
  // is found is marked in the copy that is not read, and needs not stand in the other too. The arcs
  // of those who find nothing are counted; a long row is too much.
  __device__ void look_through_list() {
    each_listed(queue().vertices, *list_counter(), [&](const i64(&v)[2], const bool (&there)[2]) {
      bool open[2];
      for (int half = 0; half < 2; half++) {
        i64 word = own_words() + (v[half] >> 5);
        open[half] =
            there[half] && !((now()[word] | load_relaxed(then() + word)) >> (v[half] & 31) & 1);
      }
      look_on(
          v, open, false, false,
          [&](i64 hit) {
            set_bit(then(), own_words() * 32 + hit), tell_others(hit, !side), tally[COUNT]++;
          },
          [&](i64 length) { tally[ARCS] += length <= LONG_ROW ? length : FEW_LISTED + 1; });
    });
    side = !side;
  }

  // ---- a level ---------------------------------------------------------------------------------------
  // As _pull_pays in algorithms/bfs/step.py, but that a look costs less; a frontier that no queue
  // is sure to hold is pulled, and what is left where that is little.
  __device__ bool pull_pays() const {
    if (count > fact(CAPACITY)) return true;
    if (pulling) return count * fact(BETA) > fact(NUM_POSITIONS) || may_list();
    return grows() &&
           LOOKS_A_PUSH * (double)arcs * (double)arcs > (double)num_left * (double)arcs_left;
  }
  __device__ bool grows() const { return arcs > fact(GROWTH) * arcs_before; }
  // The list takes the place of a queue, which is to be read.
  __device__ bool may_list() const {
    return listable && !queued && num_left * FEW_LEFT < fact(NUM_POSITIONS);
  }
  __device__ bool search_level() {
    if (unsettled) take_late();
    unsettled = false;
    // Counters of this level's queue and of the next level's runs: nobody counts there before all
    // have met.
    if (thread_index() == 0)
      *queue_counter(!turn) = *late_counter(!turn) = *runs_taken(level + 1) = 0;
    if (listed || (pulling && may_list())) return list_level();
    if (apart) {
      tell_slice();
      if (!meet_halfway(COUNT)) return false;
      apart = false;
    }
    return pulling ? look_level() : push_level();
  }
  __device__ bool list_level() {
    if (!listed) {
      list_left();
      if (!ranks.meet_here()) return false;
    }
    look_through_list();
    if (!meet()) return false;
    listed = listable = block->ranks.total[ARCS] <= FEW_LISTED, apart = true;
    return true;
  }
  __device__ bool push_level() {
    if (!queued) {
      queue_up();
      if (!meet_halfway(ARCS)) return false;
      arcs = block->ranks.total[ARCS];
    }
    arcs_before = arcs;
    bool few = arcs <= words() / FEW_OFFERS, full = false;
    // So many find room if no inbox gets more than twice its part.
    u32 room = arcs <= fact(INBOX) * num_ranks() / 2 ? room_for_offers() : 0;
    do {
      if (full) room = 0;
      push(room);
      if (room) tell_offers(room);
      if (!meet_halfway(COUNT)) return false;
      full = room && block->ranks.total[COUNT];
    } while (full);
    if (!room) return look_level();
    few ? take_few() : take_more();
    turn = !turn, queued = few, unsettled = true;
    if (!few) {
      if (!ranks.meet_here()) return false;
      settle_slice();
    }
    return meet();
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

  // Note a level, the time since the one before; the last row adds up all that are beyond the
  // trace. Not in host memory: the next meeting would wait for it.
  __device__ void trace(i64 frontier) {
    if (thread_index() != 0) return;
    bool beyond = level > fact(TRACE_ROWS);
    i64 ended = clock_ns(), *row = rows() + ((beyond ? fact(TRACE_ROWS) : level) - 1) * ROW;
    note(row, beyond,
         {pulling, frontier, block->ranks.own[LOOKED], ended - started, block->ranks.own[SENT]});
    started = ended;
  }
  // Tell the host, a block together.
  __device__ void tell(i64* report) const {
    i64 num_rows = level < fact(TRACE_ROWS) ? level : fact(TRACE_ROWS);
    for (i64 i = threadIdx.x; i < num_rows * ROW; i += blockDim.x)
      report[NUM_REPORTS + i] = load_relaxed(rows() + i);
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
    search_ranks(i64 lo, i64 hi, const u32* abort, const i64* windows, const u8* window,
                 const id_t* positions, const i64* indptr, const vertex_t* targets,
                 const i64* in_indptr, const vertex_t* in_targets, const vertex_t* firsts,
                 dist_t* levels, vertex_t* parents, i64* host) {
  __shared__ Block block;
  if (threadIdx.x < REPORT_AT) block.facts[threadIdx.x] = host[threadIdx.x];
  Search search = {{{{},
                     &block,
                     Ranks(&block.ranks, windows, window, abort),
                     indptr,
                     targets,
                     in_indptr,
                     in_targets,
                     firsts,
                     levels,
                     parents}}};
  Sources sources = {block.facts[NUM_STARTS], block.sources,
                     host + RECORDS_AT + block.facts[TRACE_ROWS] * ROW, block.facts[FOUND] != 0};
  if (sources.find(search.ranks, positions, block.facts[FIRST_USER], block.facts[NUM_USERS],
                   host + FOUND))
    search.run(sources, host + REPORT_AT);
}
