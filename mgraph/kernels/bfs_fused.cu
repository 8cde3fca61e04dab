// A whole breadth-first search in one launch: the loop of algorithms/bfs.py, and one for deep graphs with narrow
// frontiers. bfs_fused.py says what the parameters are; one rank holds the graph, so that a state index is a position.

// A search walks when so many levels in turn had a frontier of less than one vertex for so many threads, and until it
// has more.
constexpr i64 NARROW_LEVELS = 8, NARROW_SHARE = 4;
// Levels of a walk between two meetings; arcs that a walking thread takes alone.
constexpr i64 STRIDE = 16, LONG_ROW = 64;
// A block's own queue has a place a thread; one for so many threads has a long row.
constexpr int LONGS = 16;
// The first vertices of a walking block are dealt to so many warps: the loads and atomics of one alone queue up.
constexpr int SPREAD = 8;
// Vertices beside its own that a walking thread brings nearer: where ids follow the plane, the next ones.
constexpr i64 AHEAD = 8;
// So many looks of a pull take as long as an offer of a push.
constexpr double LOOKS_AN_OFFER = 4;

struct Search : Levels {
  i64 num_rows = 0, started = 0, narrow = 0, looked = 0;
  bool clean = true, in_bits = false, in_queue = true, pulling = false, uncounted = false;

  __device__ void run() {
    started = clock_ns();
    clear();
    if (!meet()) return;
    settle_sources();
    if (!meet()) return;
    arrive();
    for (i64 arcs_before = 0; count && level != order(DEPTH_LIMIT);) {
      i64 frontier = count;
      pulling = pull_pays(arcs_before);
      arcs_before = arcs;
      if (!(pulling ? pull_level() : push_level())) return;
      arrive();
      trace(pulling ? PULL : PUSH, frontier, looked, 1);
      narrow = !pulling && in_queue && is_narrow(count) && is_narrow(arcs / ALONE) ? narrow + 1 : 0;
      if (sizeof(vertex_t) == 4 && packed && narrow == NARROW_LEVELS && !walk()) return;
    }
    if (uncounted && !count_reached_arcs()) return;
    if (blockIdx.x == 0) tell();
  }

  // As _pull_pays in algorithms/bfs.py; a frontier that no queue holds is pulled.
  __device__ bool pull_pays(i64 arcs_before) {
    if (in_bits && count > order(CAPACITY)) return true;
    if (pulling) return count * order(BETA) > n;
    double left = (double)(order(NUM_ARCS) - reached_arcs) * (double)(n - reached);
    return arcs > order(GROWTH) * arcs_before && LOOKS_AN_OFFER * (double)arcs * (double)arcs > left;
  }

  __device__ bool push_level() {
    if (!in_queue) {
      queue_bits();
      if (!meet()) return false;
      turn_queues();
    }
    looked = arcs, in_queue = arcs <= n / QUEUE_SHARE, in_bits = !in_queue;
    if (in_queue) {
      push_to_queue();
      return meet();
    }
    push_to_parents();
    if (!meet()) return false;
    mark_found();
    return meet();
  }

  __device__ bool pull_level() {
    if (!in_bits && !mark_queue()) return false;
    in_bits = uncounted = true, in_queue = false;
    pull();
    if (!meet()) return false;
    looked = total(LOOKED);
    return true;
  }
  // From a queue to a bitmap.
  __device__ bool mark_queue() {
    if (!clean) {
      for (i64 w = thread_index(); w < words(); w += thread_count()) bits()[w] = 0;
      if (!meet()) return false;
    }
    for (i64 i = thread_index(); i < count; i += thread_count()) set_bit(bits(), pushed().vertices[i]);
    return meet();
  }

  // Pull counts no arcs, so that those reached are too few until the search ends.
  __device__ bool count_reached_arcs() {
    bool others = 2 * reached > n;
    count_arcs(others);
    if (!meet()) return false;
    reached_arcs = others ? order(NUM_ARCS) - total(ARCS) : total(ARCS);
    return true;
  }

  // Count what a level found.
  __device__ void arrive() {
    if (in_bits)
      turn_bits(), clean = false;
    else
      turn_queues();
    reached += count, reached_arcs += arcs, level++;
  }

  // Note a superstep, the time since the one before; the last row adds up all that are beyond the trace. Not in host
  // memory: the next meeting would wait for it.
  __device__ void trace(i64 method, i64 frontier, i64 looked, i64 num_levels) {
    if (thread_index() != 0) return;
    i64 now = clock_ns();
    bool beyond = num_rows == order(TRACE_ROWS);
    i64* row = rows() + (beyond ? num_rows - 1 : num_rows++) * ROW;
    note(row, beyond, {method, frontier, looked, now - started, num_levels});
    started = now;
  }
  // Tell the host, the first block together.
  __device__ void tell() {
    i64* report = host + NUM_ORDERS;
    if (threadIdx.x == 0) {
      report[NUM_ROWS] = block->sums[0] = num_rows;
      report[REACHED] = reached, report[REACHED_ARCS] = reached_arcs, report[DONE] = 1;
    }
    __syncthreads();
    for (i64 i = threadIdx.x; i < block->sums[0] * ROW; i += blockDim.x) report[NUM_REPORTS + i] = rows()[i];
  }

  __device__ bool is_narrow(i64 size) { return size <= thread_count() / NARROW_SHARE; }

  // ---- deep graphs -----------------------------------------------------------------------------------
  // Level and parent in one word, which only falls: (level, parent). Every block takes a part of the frontier and goes
  // on from it by itself, level after level up to `goal`, before all meet again. Who lowers a level hands the vertex
  // on, so that when all meet every level up to the goal is final, and so are parents: an offer of a level that was
  // lowered later loses. Entries are (level, vertex) too.
  __device__ static i64 entry(i64 of_level, i64 vertex) { return of_level << 32 | vertex; }

  __device__ bool walk() {
    pack();
    if (!meet()) return false;
    i64 *from = filled().offsets, *to = filled().first, limit = order(DEPTH_LIMIT), size = count, kept = level;
    while (size && is_narrow(size) && kept != limit) {
      i64 goal = limit < 0 || kept + STRIDE < limit ? kept + STRIDE : limit;
      stride(from, size, to, goal);
      if (!meet()) return false;
      i64 next = total(FOUND), num_spilled = total(COUNT);
      if (next > order(CAPACITY)) break;  // some are lost: what is beyond the levels that are final is found anew
      trace(WALK, size, total(LOOKED), num_spilled ? 0 : goal - kept);
      // While entries below the goal are left over, the next stride goes to the same goal.
      if (!num_spilled) kept = goal;
      size = next;
      i64* other = from;
      from = to, to = other;
    }
    unpack(kept);
    if (!meet()) return false;
    turn_queues();
    in_queue = true, in_bits = uncounted = false, narrow = 0;
    reached = total(COUNT), reached_arcs = total(ARCS), level = kept;
    return true;
  }

  __device__ void pack() {
    for (i64 v = thread_index(); v < n; v += thread_count())
      packed[v] = levels[v] == top_of<i32>::value() ? top_of<i64>::value() : entry(levels[v], (i64)parents[v]);
    for (i64 i = thread_index(); i < count; i += thread_count())
      filled().offsets[i] = entry(level, (i64)pushed().vertices[i]);
  }

  // What is above `kept` is not reached; what is at it is the frontier.
  __device__ void unpack(i64 kept) {
    for (i64 w = warp_index(); w < words(); w += warp_count()) {
      i64 v = w << 5 | lane_index(), state = v < n ? packed[v] : top_of<i64>::value();
      bool here = state >> 32 <= kept;
      if (v < n) levels[v] = here ? (i32)(state >> 32) : top_of<i32>::value();
      if (v < n) parents[v] = here ? (vertex_t)state : top_of<vertex_t>::value();
      u32 seen = __ballot_sync(WARP, here || v >= n);
      if (lane_index() == 0) visited()[w] = seen;
      if (here) {
        my_count++;
        my_arcs += load_readonly(indptr + v + 1) - load_readonly(indptr + v);
      }
      if (__any_sync(WARP, state >> 32 == kept)) enqueue(v, state >> 32 == kept);
    }
  }

  // A block's part of the frontier, and all that is found from it below the goal.
  __device__ void stride(const i64* from, i64 size, i64* to, i64 goal) {
    // Of the turn that runs, the one before and the next: who is slow still reads what the next turn does not touch.
    __shared__ u32 lengths[3], num_long[3];
    i64 places = blockDim.x;
    __shared__ i64 longs[BLOCK / LONGS];
    i64 share = (size + gridDim.x - 1) / gridDim.x,
        end = (blockIdx.x + 1) * share < size ? (blockIdx.x + 1) * share : size;
    int warps = blockDim.x >> 5, spread = warps < SPREAD ? warps : SPREAD;
    int place = threadIdx.x < 32 * spread ? lane_index() * spread + (threadIdx.x >> 5) : threadIdx.x;
    for (i64 begin = blockIdx.x * share; begin < end; begin += places) {
      i64 taken = end - begin < places ? end - begin : places;
      if (place < taken) put(block->room, place, from[begin + place]);
      if (threadIdx.x == 0) lengths[0] = (u32)taken, lengths[1] = num_long[0] = 0;
      __syncthreads();
      for (u32 turn = 0; lengths[turn % 3]; turn++) {
        // Lengths count on where the room is full: what was beyond it was spilled.
        const i64* own = block->room + (turn & 1) * 2 * places;
        Found next = {block->room + (~turn & 1) * 2 * places, &lengths[(turn + 1) % 3], to, goal};
        u32* longs_here = &num_long[turn % 3];
        if (threadIdx.x == 0) lengths[(turn + 2) % 3] = num_long[(turn + 1) % 3] = 0;
        if (place < lengths[turn % 3]) visit(own[place], own[places + place], next, longs, longs_here);
        __syncthreads();
        if (!*longs_here) continue;
        for (u32 k = 0; k < *longs_here && k < blockDim.x / LONGS; k++) {
          i64 u = (u32)longs[k];
          offer(longs[k], load_readonly(indptr + u) + threadIdx.x, load_readonly(indptr + u + 1), blockDim.x, next);
        }
        __syncthreads();
      }
      __syncthreads();
    }
  }

  // Where what is found goes: the block's next queue, or the grid's if it is at the goal or there is no room.
  struct Found {
    i64* local;
    u32* length;
    i64* to;
    i64 goal;
  };
  // An entry's place in a block's queue, and beside it the arcs of its vertex: (where they begin, how many), 255 for
  // more than that.
  __device__ void put(i64* local, i64 slot, i64 kept) {
    i64 begin = load_readonly(indptr + (u32)kept), length = load_readonly(indptr + (u32)kept + 1) - begin;
    local[slot] = kept, local[blockDim.x + slot] = arcs_entry(begin, length);
  }
  __device__ static i64 arcs_entry(i64 begin, i64 length) { return begin << 8 | (length < 255 ? length : 255); }
  __device__ void spill(i64 kept, const Found& next) {
    my_count += kept >> 32 < next.goal;
    i64 slot = reserve(counter(FOUND));
    if (slot < order(CAPACITY)) next.to[slot] = kept;
  }

  __device__ void visit(i64 own, i64 arcs_of_own, const Found& next, i64* longs, u32* num_long) {
    i64 v = (u32)own, begin = arcs_of_own >> 8, length = arcs_of_own & 255;
    if (own >> 32 >= next.goal) return spill(own, next);
    if (length <= LONG_ROW) {
      offer(own, begin, begin + length, 1, next);
      bring_nearer(v, begin, begin + length);
      return;
    }
    u32 slot = atomic_add(num_long, 1u);
    if (slot < blockDim.x / LONGS)
      longs[slot] = own;
    else
      spill(own, next);
  }

  // Every `step`-th arc of begin .. end offers the vertex as a parent; four at a time and without a branch, so that all
  // atomics are under way together, and with them what the next level begins with.
  __device__ void offer(i64 own, i64 begin, i64 end, i64 step, const Found& next) {
    i64 of_level = (own >> 32) + 1, offered = entry(of_level, (u32)own), now = load_relaxed(&packed[(u32)own]);
    for (i64 i = begin; i < end; i += 4 * step) {
      vertex_t near[4];
      i64 old[4], first[4], last[4];
      for (int k = 0; k < 4; k++) near[k] = load_readonly(targets + (i + k * step < end ? i + k * step : i));
      if (now >> 32 < own >> 32) return;  // lowered since: who did that goes on from it
      for (int k = 0; k < 4; k++) {
        old[k] = 0;
        if (i + k * step < end) old[k] = atomic_min(&packed[near[k]], offered), my_looked++;
      }
      for (int k = 0; k < 4; k++)
        first[k] = load_readonly(indptr + near[k]), last[k] = load_readonly(indptr + near[k] + 1);
      u32 which = 0;
      for (int k = 0; k < 4; k++) which |= (u32)(old[k] >> 32 > of_level) << k;
      if (!which) continue;
      u32 slot = blockDim.x;
      if (of_level < next.goal) slot = atomic_add(next.length, (u32)__popc(which));
      for (int k = 0; k < 4; k++) {
        if (!(which >> k & 1)) continue;
        i64 kept = entry(of_level, (i64)near[k]);
        if (slot < blockDim.x)
          next.local[slot] = kept, next.local[blockDim.x + slot++] = arcs_entry(first[k], last[k] - first[k]);
        else
          spill(kept, next);
      }
    }
  }

  __device__ void bring_nearer(i64 v, i64 begin, i64 end) {
    i64 after = v + AHEAD < n ? v + AHEAD : n - 1, before = v > AHEAD ? v - AHEAD : 0;
    prefetch(indptr + after), prefetch(packed + after), prefetch(indptr + before), prefetch(packed + before);
    if (begin == end) return;
    i64 span = AHEAD * (end - begin), last = order(NUM_ARCS) - 1;
    prefetch(targets + (end + span < last ? end + span : last));
    prefetch(targets + (begin > span ? begin - span : 0));
  }
};

// Find levels and parents from the sources in `host`.
extern "C" __global__ void __launch_bounds__(BLOCK)
    search_levels(i64 lo, i64 hi, const u32* abort, const i64* indptr, const vertex_t* targets, const i64* in_indptr,
                  const vertex_t* in_targets, const vertex_t* firsts, i32* levels, vertex_t* parents, u32* work,
                  i64* packed, i64* arrived, i64* host) {
  __shared__ Block block;
  if (threadIdx.x < 3) block.sums[threadIdx.x] = 0;
  if (threadIdx.x < NUM_ORDERS) block.orders[threadIdx.x] = host[threadIdx.x];
  __syncthreads();
  Search search;
  search.n = hi, search.abort = abort;
  search.indptr = indptr, search.targets = targets, search.in_indptr = in_indptr, search.in_targets = in_targets;
  search.firsts = firsts;
  search.levels = levels, search.parents = parents, search.work = work, search.packed = packed;
  search.arrived = arrived, search.host = host, search.block = &block;
  search.run();
}
