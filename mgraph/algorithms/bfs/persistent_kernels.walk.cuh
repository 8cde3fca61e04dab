// How bfs_fused.cu walks through deep graphs with narrow frontiers.

#include "frontiers.cuh"
#include "persistent_kernels.cuh"
#include "persistent_kernels.steps.cuh"
#include "prelude.cuh"

// A search walks when so many levels in turn had a frontier of less than one vertex for so many
// threads, and until it has more.
constexpr i64 MIN_NARROW_LEVELS = 8, NARROW_SHARE = 4;
// Levels of a walk between two meetings; arcs up to which four lanes take a row.
constexpr i64 CHUNK_LEVELS = 128, MAX_TILE_ROW = 64;
// A block's own queue has a place a thread; one for so many threads has a long row.
constexpr int THREADS_PER_LONG_ROW = 16;
// Vertices beside its own that a walking thread brings nearer: where ids follow the plane, the next
// ones.
constexpr i64 PREFETCH_DISTANCE = 8;

// What a walking block has at hand. Entries are (level, vertex): of the grid's queues, and of the
// block's own, in which stands beside an entry the row of its vertex: (where it begins, how long,
// LONG_ROW + 1 for longer).
struct ChunkExpander {
  const i64* indptr;
  const vertex_t* targets;
  i64* packed;
  i64 goal, capacity;
  i64 *to, *found;  // the grid's next queue, and how many it has
  i64* local;       // the block's next queue, its rows behind it
  u32* length;
  u32 scanned, num_spilled;

  __device__ static i64 entry(i64 of_level, i64 vertex) { return of_level << 32 | vertex; }
  __device__ static i64 row_of(i64 begin, i64 end) {
    return begin << 8 | (end - begin < MAX_TILE_ROW ? end - begin : MAX_TILE_ROW + 1);
  }

  // To the grid's queue: what is at the goal, or what the block's own has no place for. A function
  // that is called: it is rarely.
  static __device__ __noinline__ void append_to_grid(i64* found, i64 capacity, i64* to, i64 kept) {
    i64 slot = reserve(found);
    if (slot < capacity) to[slot] = kept;
  }
  __device__ void spill(i64 kept) {
    num_spilled += kept >> 32 < goal;
    append_to_grid(found, capacity, to, kept);
  }

  // Arcs first, first + step and so on of a row offer the vertex as a parent. While an atomic is
  // under way, so is what the next level begins with. A lane takes an arc at a time: code for
  // several side by side took half as long again.
  __device__ void propose(i64 own, const vertex_t* row, u32 first, u32 size, u32 step) {
    i64 candidate = own + entry(1, 0);
    for (u32 i = first; i < size; i += step) {
      i64 now = load_relaxed(&packed[(u32)own]);
      vertex_t near = load_readonly(row + i);
      if (now >> 32 < own >> 32) return;  // lowered since: who did that goes on from it
      i64 old = atomic_min(&packed[near], candidate);
      i64 begin = load_readonly(indptr + near), end = load_readonly(indptr + near + 1);
      scanned++;
      if (old >> 32 > candidate >> 32)
        queue_entry(entry(candidate >> 32, (i64)near), row_of(begin, end));
    }
  }
  __device__ void queue_entry(i64 kept, i64 row) {
    u32 slot = kept >> 32 < goal ? atomic_add(length, 1u) : blockDim.x;
    if (slot < blockDim.x) {
      local[slot] = kept;
      local[blockDim.x + slot] = row;
    } else
      spill(kept);
  }

  // Bring nearer what is beside a vertex: of four lanes two before it and two behind.
  __device__ void prefetch_beside(i64 own, i64 row, u32 lane, i64 n, i64 num_arcs) const {
    i64 ahead = lane & 1 ? PREFETCH_DISTANCE : -PREFETCH_DISTANCE, length = row & 255;
    if (lane < 2) {
      i64 v = (u32)own + ahead;
      v = v < 0 ? 0 : v < n ? v : n - 1;
      prefetch(indptr + v);
      prefetch(packed + v);
    } else {
      i64 arc = (row >> 8) + ahead * length;
      prefetch(targets + (arc < 0 ? 0 : arc < num_arcs ? arc : num_arcs - 1));
    }
  }
};

struct ChunkedBfs : BfsSteps {
  i64 narrow_levels = 0;  // levels in turn whose frontiers were narrow

  __device__ bool is_narrow(i64 size) { return size <= thread_count() / NARROW_SHARE; }

  // Level and parent in one word, which only falls: (level, parent). Every block takes a part of
  // the frontier and goes on from it by itself, level after level up to `goal`, before all meet
  // again. Who lowers a level hands the vertex on, so that when all meet every level up to the goal
  // is final, and so are parents: an offer of a level that was lowered later loses. Entries are
  // (level, vertex) too.
  __device__ bool expand_in_chunks() {
    pack();
    if (!sync_phase()) return false;
    i64 *from = filled().offsets, *to = filled().first, limit = parameter(DEPTH_LIMIT),
        size = count, kept = level;
    while (size && is_narrow(size) && kept != limit) {
      i64 goal = limit < 0 || kept + CHUNK_LEVELS < limit ? kept + CHUNK_LEVELS : limit;
      expand_chunk(from, size, to, goal);
      if (!sync_phase()) return false;
      i64 next = total(FOUND), num_spilled = total(COUNT);
      if (next > parameter(CAPACITY))
        break;  // some are lost: what is beyond the levels that are final is found anew
      trace(WALK, size, total(SCANNED), num_spilled ? 0 : goal - kept);
      // While entries below the goal are left over, the next stride goes to the same goal.
      if (!num_spilled) kept = goal;
      size = next;
      i64* other = from;
      from = to;
      to = other;
    }
    unpack(kept);
    if (!sync_phase()) return false;
    swap_queues();
    in_queue = true;
    in_bits = false;
    narrow_levels = 0;
    reached = total(COUNT);
    reached_arcs = total(ARCS);
    level = kept;
    return true;
  }

  __device__ void pack() {
    for (i64 v = thread_index(); v < n; v += thread_count())
      packed[v] = test_bit(visited(), v) ? ChunkExpander::entry(levels[v], (i64)parents[v])
                                         : top_of<i64>::value();
    for (i64 i = thread_index(); i < count; i += thread_count())
      filled().offsets[i] = ChunkExpander::entry(level, (i64)pushed().vertices[i]);
  }

  // What is above `kept` is not reached; what is at it is the frontier.
  __device__ void unpack(i64 kept) {
    for (i64 w = warp_index(); w < words(); w += warp_count()) {
      i64 v = w << 5 | lane_index(), state = v < n ? packed[v] : top_of<i64>::value();
      bool here = state >> 32 <= kept;
      if (v < n) levels[v] = here ? (dist_t)(state >> 32) : top_of<dist_t>::value();
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
  __device__ void expand_chunk(const i64* from, i64 size, i64* to, i64 goal) {
    // Of the turn that runs, the one before and the next: who is slow still reads what the next
    // turn does not touch.
    __shared__ u32 lengths[3], num_long[3];
    __shared__ i64 long_rows[BLOCK / THREADS_PER_LONG_ROW];
    // Four lanes take a vertex, an arc each at a time: its warps share the first of the queue, one
    // after another. As many warps prefetch what is beside those.
    u32 places = blockDim.x, warps = blockDim.x < 64 ? 1 : blockDim.x / 64, warp = threadIdx.x / 32,
        step = 8 * warps;
    u32 lane = threadIdx.x % 4, own_place = threadIdx.x % 32 / 4 * warps + warp % warps;
    ChunkExpander expander = {indptr, targets,       packed, goal, parameter(CAPACITY),
                              to,     counter(FOUND)};
    u32 share = ((u32)size + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share;
    u32 after = first + share < size ? first + share : (u32)size;
    for (u32 begin = first; begin < after; begin += places) {
      u32 taken = after - begin < places ? after - begin : places;
      if (threadIdx.x < taken) load_entry(expander, threadIdx.x, from[begin + threadIdx.x]);
      if (threadIdx.x == 0) {
        lengths[0] = taken;
        lengths[1] = num_long[0] = 0;
      }
      __syncthreads();
      for (u32 iteration = 0, now = 0; lengths[now]; iteration++) {
        u32 next = now == 2 ? 0 : now + 1, last = next == 2 ? 0 : next + 1;
        const i64 *own = block->scratch + (iteration & 1) * 2 * places, *rows_of_own = own + places;
        expander.local = block->scratch + (~iteration & 1) * 2 * places;
        expander.length = &lengths[next];
        if (threadIdx.x == 0) lengths[last] = num_long[next] = 0;
        // Lengths count on where the room is full: what was beyond it was spilled.
        u32 size = lengths[now] < places ? lengths[now] : places;
        for (u32 place = own_place; place < size; place += step) {
          if (warp < warps)
            expand_entry(expander, own[place], rows_of_own[place], lane, long_rows, &num_long[now]);
          else if (warp < 2 * warps)
            expander.prefetch_beside(own[place], rows_of_own[place], lane, n, parameter(NUM_ARCS));
        }
        __syncthreads();
        u32 num = num_long[now];
        now = next;
        if (!num) continue;
        for (u32 k = 0; k < num && k < blockDim.x / THREADS_PER_LONG_ROW; k++) {
          i64 u = (u32)long_rows[k], row = load_readonly(indptr + u);
          u32 length = (u32)(load_readonly(indptr + u + 1) - row);
          expander.propose(long_rows[k], targets + row, threadIdx.x, length, blockDim.x);
        }
        __syncthreads();
      }
      __syncthreads();
    }
    my_scanned += expander.scanned;
    my_count += expander.num_spilled;
  }
  // Take over an entry of the grid's queue; one at the goal stays there.
  __device__ void load_entry(ChunkExpander& expander, u32 place, i64 own) {
    bool there = own >> 32 < expander.goal;
    if (!there) expander.spill(own);
    block->scratch[place] = own;
    i64 v = (u32)own, begin = load_readonly(indptr + v);
    block->scratch[blockDim.x + place] =
        ChunkExpander::row_of(begin, there ? load_readonly(indptr + v + 1) : begin);
  }
  __device__ void expand_entry(ChunkExpander& expander, i64 own, i64 row, u32 lane, i64* long_rows,
                               u32* num_long) {
    u32 length = (u32)row & 255;
    if (length <= MAX_TILE_ROW) return expander.propose(own, targets + (row >> 8), lane, length, 4);
    if (lane) return;
    u32 slot = atomic_add(num_long, 1u);
    if (slot < blockDim.x / THREADS_PER_LONG_ROW)
      long_rows[slot] = own;
    else
      expander.spill(own);
  }
};
