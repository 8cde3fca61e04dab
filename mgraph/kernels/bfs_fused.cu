// A whole breadth-first search in one launch: the loop of algorithms/bfs.py, and one for deep graphs with narrow
// frontiers. bfs_fused.py says what the parameters are; one rank holds the graph, so that a state index is a position.

// A search walks when so many levels in turn had a frontier of less than one vertex for so many threads, and until it
// has more.
constexpr i64 NARROW_LEVELS = 8, NARROW_SHARE = 4;
// Levels of a walk between two meetings; arcs up to which four lanes take a row.
constexpr i64 STRIDE = 128, LONG_ROW = 64;
// A block's own queue has a place a thread; one for so many threads has a long row.
constexpr int LONGS = 16;
// Vertices beside its own that a walking thread brings nearer: where ids follow the plane, the next ones.
constexpr i64 AHEAD = 8;
// Levels that are pulled because it costs something to leave bitmaps: a deep graph has thousands of them.
constexpr i64 LINGERING = 8;
// Levels that a line of 32 bytes holds.
constexpr i64 SETTLED_TOGETHER = 8;
// So many rows a thread, and so many arcs, one block looks at in 2 us where a level of all blocks takes 6 to 14 (H200).
constexpr int LISTED = 4;
constexpr i64 FEW_LISTED = 4096;
// Few are left when they are less than one in so many.
constexpr i64 FEW_LEFT = 8;

// What a walking block has at hand. Entries are (level, vertex): of the grid's queues, and of the block's own, in which
// stands beside an entry the row of its vertex: (where it begins, how long, LONG_ROW + 1 for longer).
struct Walker {
  const i64* indptr;
  const vertex_t* targets;
  i64* packed;
  i64 goal, capacity;
  i64 *to, *found;  // the grid's next queue, and how many it has
  i64* local;       // the block's next queue, its rows behind it
  u32* length;
  u32 looked, num_spilled;

  __device__ static i64 entry(i64 of_level, i64 vertex) { return of_level << 32 | vertex; }
  __device__ static i64 row_of(i64 begin, i64 end) {
    return begin << 8 | (end - begin < LONG_ROW ? end - begin : LONG_ROW + 1);
  }

  // To the grid's queue: what is at the goal, or what the block's own has no place for. A function that is called: it
  // is rarely.
  static __device__ __noinline__ void to_grid(i64* found, i64 capacity, i64* to, i64 kept) {
    i64 slot = reserve(found);
    if (slot < capacity) to[slot] = kept;
  }
  __device__ void spill(i64 kept) {
    num_spilled += kept >> 32 < goal;
    to_grid(found, capacity, to, kept);
  }

  // Arcs first, first + step and so on of a row offer the vertex as a parent. While an atomic is under way, so is what
  // the next level begins with. A lane takes an arc at a time: code for several side by side took half as long again.
  __device__ void offer(i64 own, const vertex_t* row, u32 first, u32 size, u32 step) {
    i64 offered = own + entry(1, 0);
    for (u32 i = first; i < size; i += step) {
      i64 now = load_relaxed(&packed[(u32)own]);
      vertex_t near = load_readonly(row + i);
      if (now >> 32 < own >> 32) return;  // lowered since: who did that goes on from it
      i64 old = atomic_min(&packed[near], offered);
      i64 begin = load_readonly(indptr + near), end = load_readonly(indptr + near + 1);
      looked++;
      if (old >> 32 > offered >> 32) take(entry(offered >> 32, (i64)near), row_of(begin, end));
    }
  }
  __device__ void take(i64 kept, i64 row) {
    u32 slot = kept >> 32 < goal ? atomic_add(length, 1u) : blockDim.x;
    if (slot < blockDim.x)
      local[slot] = kept, local[blockDim.x + slot] = row;
    else
      spill(kept);
  }

  // Bring nearer what is beside a vertex: of four lanes two before it and two behind.
  __device__ void prefetch_beside(i64 own, i64 row, u32 lane, i64 n, i64 num_arcs) const {
    i64 ahead = lane & 1 ? AHEAD : -AHEAD, length = row & 255;
    if (lane < 2) {
      i64 v = (u32)own + ahead;
      v = v < 0 ? 0 : v < n ? v : n - 1;
      prefetch(indptr + v), prefetch(packed + v);
    } else {
      i64 arc = (row >> 8) + ahead * length;
      prefetch(targets + (arc < 0 ? 0 : arc < num_arcs ? arc : num_arcs - 1));
    }
  }
};

struct Search : Levels {
  i64 num_rows = 0, started = 0, narrow = 0, looked = 0, lingering = 0;

  __device__ void run() {
    clear_bits();
    __syncthreads();
    i64 arcs_before = 0;
    bool one = order(NUM_SOURCES) == 1, pushed_first = one && begin_with_source();
    if (!meet()) return;
    if (!one) {
      settle_sources();
      if (!meet()) return;
    }
    if (pushed_first) arcs_before = looked = arcs;
    if (pushed_first || !one) arrive();
    if (pushed_first) trace(PUSH, 1, looked, 1);
    while (count && level != order(DEPTH_LIMIT)) {
      i64 frontier = count;
      pulling = pull_pays(arcs_before);
      if (!(pulling ? pull_level() : push_level())) return;
      arcs_before = looked;
      arrive();
      trace(pulling ? PULL : PUSH, frontier, looked, 1);
      narrow = !pulling && in_queue && is_narrow(count) && is_narrow(arcs / ALONE) ? narrow + 1 : 0;
      if (sizeof(vertex_t) == 4 && packed && narrow == NARROW_LEVELS && !walk()) return;
      if (listing && end_alone()) return;
    }
    if (!counted && !queue_up()) return;
    leave_unreached();
    if (tells()) tell();
  }

  // What each form of the next level takes beyond a phase.
  __device__ i64 queueing_cost() { return arcs * cost(QUEUEING); }
  // Vertices that are found share the lines in which they are settled once there are more than one in so many.
  __device__ i64 offering_cost() {
    i64 apart = arcs < n / SETTLED_TOGETHER ? arcs : n / SETTLED_TOGETHER;
    return cost(PHASE) + n * cost(PASSING) + apart * cost(SETTLING) + arcs * cost(OFFERING);
  }
  __device__ i64 pushing_cost() {
    i64 queueing = queueing_cost(), offering = offering_cost(), leaving = cost(PHASE) + passing_bits_cost();
    return (queueing < offering ? queueing : offering) + (in_queue || lingering >= LINGERING ? 0 : leaving);
  }
  __device__ i64 pulling_cost() { return passing_bits_cost() + (n - reached) * cost(OPENING); }
  __device__ i64 passing_bits_cost() { return n / 8 * cost(PASSING); }
  // Arcs that a pull looks at behind the first ones. Of those that no level has looked at, one in others / arcs comes
  // from the frontier: so many a vertex looks at before it hits. Fewer where hubs are on the frontier, with which rows
  // begin: of RMAT graphs as many times fewer as is the root of how many times the mean degree theirs is (31 become 4.3
  // on rmat24, 13 become 2.6, and 4 become 1.5).
  __device__ float looks_further() {
    float others = (float)(order(NUM_ARCS) - reached_arcs), own = (float)(arcs ? arcs : 1);
    float degrees = own / (float)count * ((float)n / (float)order(NUM_ARCS));
    float looks = (others / own - 1) * (float)(n - reached) / sqrtf(degrees > 1 ? degrees : 1);
    return looks < 0 ? 0 : looks < others ? looks : others;
  }
  // A frontier that no queue holds is pulled; and looks hit as often as that only where all are near, where frontiers
  // grow as they do there. On a grid they never do. Divisions take time too: they are for levels that may be pulled.
  __device__ bool pull_pays(i64 arcs_before) {
    if (in_bits && count > order(CAPACITY)) return true;
    if (!pulling && arcs <= order(GROWTH) * arcs_before) return false;
    i64 spare = pushing_cost() - pulling_cost();
    return spare > 0 && looks_further() * (float)cost(LOOKING) < (float)spare;
  }

  __device__ bool push_level() {
    if (!in_queue && !queue_up()) return false;
    looked = arcs, in_queue = queueing_cost() <= offering_cost() && arcs <= order(CAPACITY), in_bits = !in_queue;
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
    in_bits = true, in_queue = false, lingering++;
    listing = (n - reached) * FEW_LEFT < n;
    pull();
    if (!meet()) return false;
    looked = total(LOOKED);
    return true;
  }

  // Note a superstep, the time since the one before; the last row adds up all that are beyond the trace. Not in host
  // memory: the next meeting would wait for it.
  __device__ void trace(i64 method, i64 frontier, i64 looked, i64 num_levels) {
    if (!tells() || threadIdx.x != blockDim.x - 1) return;
    i64 now = clock_ns();
    bool beyond = num_rows == order(TRACE_ROWS);
    i64* row = rows() + (beyond ? num_rows - 1 : num_rows++) * ROW;
    note(row, beyond, {method, frontier, looked, now - started, num_levels});
    started = now;
  }
  // Who traces and tells: the last thread of the last block, which has least to do where a level is small.
  __device__ bool tells() { return blockIdx.x == gridDim.x - 1; }
  // Tell the host, the last block together.
  __device__ void tell() {
    i64* report = host + NUM_ASKED;
    if (threadIdx.x == blockDim.x - 1) {
      report[NUM_ROWS] = block->sums[0] = num_rows;
      report[REACHED] = reached, report[REACHED_ARCS] = reached_arcs, report[DONE] = 1;
    }
    __syncthreads();
    for (i64 i = threadIdx.x; i < block->sums[0] * ROW; i += blockDim.x) report[NUM_REPORTS + i] = rows()[i];
  }

  // ---- the end ---------------------------------------------------------------------------------------
  // Those who found nothing, if they were listed and are few, look on in one block, which need not meet with the
  // others: they are done. Levels say who was visited. One that another thread gives at this moment is above that of
  // the frontier, as that of who is not reached is: whichever is read says the same.
  __device__ bool end_alone() {
    i64 listed = total(QUEUED), rows_listed = queued_vertices(listed), arcs_listed = queued_arcs(listed);
    listing = false;
    if (rows_listed > LISTED * blockDim.x || rows_listed > order(CAPACITY) || arcs_listed > FEW_LISTED) return false;
    if (!tells()) return true;
    // A thread keeps its rows, and of each the first target.
    Queue left = filled();
    vertex_t v[LISTED], first[LISTED];
    i64 begin[LISTED], end[LISTED];
    bool open[LISTED];
    for (int k = 0; k < LISTED; k++) {
      i64 i = threadIdx.x + k * (i64)blockDim.x;
      open[k] = i < rows_listed;
      v[k] = open[k] ? left.vertices[i] : 0, begin[k] = open[k] ? left.offsets[i] : 0;
      if (open[k]) levels[v[k]] = top_of<i32>::value();
      end[k] = open[k] && i + 1 < rows_listed ? left.offsets[i + 1] : arcs_listed;
      open[k] = open[k] && begin[k] < end[k];
      if (open[k]) end[k] += left.first[i], begin[k] += left.first[i];
      first[k] = open[k] ? load_readonly(in_targets + begin[k]) : 0;
    }
    __syncthreads();
    for (i64 before = reached, arcs_before = reached_arcs; count && level != order(DEPTH_LIMIT);) {
      i64 frontier = count;
      i32 near[LISTED];
      for (int k = 0; k < LISTED; k++) near[k] = open[k] ? load_relaxed(&levels[first[k]]) : 0;
      for (int k = 0; k < LISTED; k++) {
        if (!open[k]) continue;
        vertex_t parent = first[k];
        for (i64 i = begin[k] + 1; near[k] > level && i < end[k]; i++) {
          parent = load_readonly(in_targets + i);
          near[k] = load_relaxed(&levels[parent]);
        }
        if (near[k] > level) continue;
        open[k] = false;
        parents[v[k]] = parent, store_relaxed(&levels[v[k]], (i32)(level + 1));
        my_count++, my_arcs += arcs_from(v[k]);
      }
      add_up(&block->sums[COUNT], my_count), add_up(&block->sums[ARCS], my_arcs);
      my_count = my_arcs = 0;
      __syncthreads();
      count = before + block->sums[COUNT] - reached;
      reached += count, reached_arcs = arcs_before + block->sums[ARCS], level++;
      trace(PULL, frontier, arcs_listed, 1);
      __syncthreads();
    }
    tell();
    return true;
  }

  __device__ bool is_narrow(i64 size) { return size <= thread_count() / NARROW_SHARE; }

  // ---- deep graphs -----------------------------------------------------------------------------------
  // Level and parent in one word, which only falls: (level, parent). Every block takes a part of the frontier and goes
  // on from it by itself, level after level up to `goal`, before all meet again. Who lowers a level hands the vertex
  // on, so that when all meet every level up to the goal is final, and so are parents: an offer of a level that was
  // lowered later loses. Entries are (level, vertex) too.
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
    in_queue = true, in_bits = false, narrow = 0;
    reached = total(COUNT), reached_arcs = total(ARCS), level = kept;
    return true;
  }

  __device__ void pack() {
    for (i64 v = thread_index(); v < n; v += thread_count())
      packed[v] = test_bit(visited(), v) ? Walker::entry(levels[v], (i64)parents[v]) : top_of<i64>::value();
    for (i64 i = thread_index(); i < count; i += thread_count())
      filled().offsets[i] = Walker::entry(level, (i64)pushed().vertices[i]);
  }

  // What is above `kept` is not reached; what is at it is the frontier.
  __device__ void unpack(i64 kept) {
    for (i64 w = warp_index(); w < words(); w += warp_count()) {
      i64 v = w << 5 | lane_index(), state = v < n ? packed[v] : top_of<i64>::value();
      bool here = state >> 32 <= kept;
      if (v < n) levels[v] = here ? (i32)(state >> 32) : top_of<i32>::value();
      if (v < n) parents[v] = here ? (vertex_t)state : top_of<vertex_t>::value();
      u32 seen = __ballot_sync(WARP, here || v >= n);
      if (lane_index() == 0) visited()[w] = other_visited()[w] = seen;
      if (here) {
        my_count++;
        my_arcs += load_readonly(indptr + v + 1) - load_readonly(indptr + v);
      }
      enqueue<1>(indptr, {(vertex_t)v}, {state >> 32 == kept});
    }
  }

  // A block's part of the frontier, and all that is found from it below the goal.
  __device__ void stride(const i64* from, i64 size, i64* to, i64 goal) {
    // Of the turn that runs, the one before and the next: who is slow still reads what the next turn does not touch.
    __shared__ u32 lengths[3], num_long[3];
    __shared__ i64 longs[BLOCK / LONGS];
    // Four lanes take a vertex, an arc each at a time: its warps share the first of the queue, one after another. As
    // many warps prefetch what is beside those.
    u32 places = blockDim.x, warps = blockDim.x < 64 ? 1 : blockDim.x / 64, warp = threadIdx.x / 32, step = 8 * warps;
    u32 lane = threadIdx.x % 4, own_place = threadIdx.x % 32 / 4 * warps + warp % warps;
    Walker walker = {indptr, targets, packed, goal, order(CAPACITY), to, counter(FOUND)};
    u32 share = ((u32)size + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share;
    u32 after = first + share < size ? first + share : (u32)size;
    for (u32 begin = first; begin < after; begin += places) {
      u32 taken = after - begin < places ? after - begin : places;
      if (threadIdx.x < taken) begin_with(walker, threadIdx.x, from[begin + threadIdx.x]);
      if (threadIdx.x == 0) lengths[0] = taken, lengths[1] = num_long[0] = 0;
      __syncthreads();
      for (u32 turn = 0, now = 0; lengths[now]; turn++) {
        u32 next = now == 2 ? 0 : now + 1, last = next == 2 ? 0 : next + 1;
        const i64 *own = block->room + (turn & 1) * 2 * places, *rows_of_own = own + places;
        walker.local = block->room + (~turn & 1) * 2 * places, walker.length = &lengths[next];
        if (threadIdx.x == 0) lengths[last] = num_long[next] = 0;
        // Lengths count on where the room is full: what was beyond it was spilled.
        u32 size = lengths[now] < places ? lengths[now] : places;
        for (u32 place = own_place; place < size; place += step) {
          if (warp < warps)
            visit(walker, own[place], rows_of_own[place], lane, longs, &num_long[now]);
          else if (warp < 2 * warps)
            walker.prefetch_beside(own[place], rows_of_own[place], lane, n, order(NUM_ARCS));
        }
        __syncthreads();
        u32 num = num_long[now];
        now = next;
        if (!num) continue;
        for (u32 k = 0; k < num && k < blockDim.x / LONGS; k++) {
          i64 u = (u32)longs[k], row = load_readonly(indptr + u);
          u32 length = (u32)(load_readonly(indptr + u + 1) - row);
          walker.offer(longs[k], targets + row, threadIdx.x, length, blockDim.x);
        }
        __syncthreads();
      }
      __syncthreads();
    }
    my_looked += walker.looked, my_count += walker.num_spilled;
  }
  // Take over an entry of the grid's queue; one at the goal stays there.
  __device__ void begin_with(Walker& walker, u32 place, i64 own) {
    bool there = own >> 32 < walker.goal;
    if (!there) walker.spill(own);
    block->room[place] = own;
    i64 v = (u32)own, begin = load_readonly(indptr + v);
    block->room[blockDim.x + place] = Walker::row_of(begin, there ? load_readonly(indptr + v + 1) : begin);
  }
  __device__ void visit(Walker& walker, i64 own, i64 row, u32 lane, i64* longs, u32* num_long) {
    u32 length = (u32)row & 255;
    if (length <= LONG_ROW) return walker.offer(own, targets + (row >> 8), lane, length, 4);
    if (lane) return;
    u32 slot = atomic_add(num_long, 1u);
    if (slot < blockDim.x / LONGS)
      longs[slot] = own;
    else
      walker.spill(own);
  }
};

// Find levels and parents from the sources in `host`.
extern "C" __global__ void __launch_bounds__(BLOCK)
    search_levels(i64 lo, i64 hi, const u32* abort, const i64* indptr, const vertex_t* targets, const i64* in_indptr,
                  const vertex_t* in_targets, const vertex_t* firsts, i32* levels, vertex_t* parents, u32* work,
                  i64* packed, i64* arrived, i64* host) {
  __shared__ Block block;
  if (threadIdx.x < 3) block.sums[threadIdx.x] = 0;
  // From host memory, and on the way while states are cleared.
  i64 asked = threadIdx.x < NUM_ASKED ? host[threadIdx.x] : 0;
  Search search;
  search.started = clock_ns();
  search.n = hi, search.abort = abort;
  search.indptr = indptr, search.targets = targets, search.in_indptr = in_indptr, search.in_targets = in_targets;
  search.firsts = firsts;
  search.levels = levels, search.parents = parents, search.work = work, search.packed = packed;
  search.arrived = arrived, search.host = host, search.block = &block;
  search.clear_parents();
  if (threadIdx.x < NUM_ASKED) block.orders[threadIdx.x] = asked;
  __syncthreads();
  search.run();
}
