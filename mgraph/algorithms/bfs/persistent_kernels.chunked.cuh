// Chunked expansion of persistent_kernels.cu: on deep graphs with narrow frontiers each block
// expands its part of the frontier over many levels between two grid barriers.

#include "frontiers.cuh"
#include "persistent_kernels.cuh"
#include "prelude.cuh"

// Expansion begins after this many consecutive levels with at most one frontier vertex per
// NARROW_SHARE threads, and ends when a frontier has more.
constexpr i64 MIN_NARROW_LEVELS = 8, NARROW_SHARE = 4;
// Levels between two grid barriers; arcs up to which a sub-warp tile of four lanes expands a row.
constexpr i64 CHUNK_LEVELS = 128, MAX_TILE_ROW = 64;
// A block's queue has one slot a thread, and its list of long rows one slot for this many threads.
constexpr int THREADS_PER_LONG_ROW = 16;
// Distance, in vertices, of the neighborhood that is prefetched: where ids follow the plane, the
// vertices needed next.
constexpr i64 PREFETCH_DISTANCE = 8;

// What a block expands with. Entries are (level, vertex), in the grid's queues and in the block's
// own; that one has for each entry also its row, (begin, length), with MAX_TILE_ROW + 1 for longer
// ones.
struct ChunkExpander {
  const i64* indptr;
  const vertex_t* targets;
  i64* packed;
  i64 goal, capacity;
  i64 *to, *found;  // the grid's next queue and its length
  i64* local;       // the block's next queue, followed by its rows
  u32* length;
  u32 scanned, num_spilled;

  __device__ static i64 entry(i64 of_level, i64 vertex) { return of_level << 32 | vertex; }
  __device__ static i64 row_of(i64 begin, i64 end) {
    return begin << 8 | (end - begin < MAX_TILE_ROW ? end - begin : MAX_TILE_ROW + 1);
  }

  // Append to the grid's queue an entry at the goal, or one over the block's capacity. Not inlined:
  // it is rare.
  static __device__ __noinline__ void append_to_grid(i64* found, i64 capacity, i64* to, i64 kept) {
    i64 slot = reserve(found);
    if (slot < capacity) to[slot] = kept;
  }
  __device__ void spill(i64 kept) {
    num_spilled += kept >> 32 < goal;
    append_to_grid(found, capacity, to, kept);
  }

  // Relax arcs first, first + step, ... of a row. While an atomic is in flight, so are the loads
  // that the next level begins with. One arc per lane at a time: code for several took half as long
  // again.
  __device__ void propose(i64 own, const vertex_t* row, u32 first, u32 size, u32 step) {
    i64 candidate = own + entry(1, 0);
    for (u32 i = first; i < size; i += step) {
      i64 now = load_relaxed(&packed[(u32)own]);
      vertex_t near = load_readonly(row + i);
      if (now >> 32 < own >> 32) return;  // lowered since: its new entry is expanded instead
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

  // Prefetch around a vertex: of a tile's four lanes two for vertices before and after, two for
  // rows.
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

// A frontier, or a 32nd of its arcs, that leaves most threads of a grid without work.
__device__ inline bool is_narrow(i64 size) { return size <= thread_count() / NARROW_SHARE; }

// Many levels at a time of a search with a narrow frontier; it leaves the search as a push does,
// with its frontier queued.
struct ChunkedExpansion {
  BfsState& search;

  // Level and parent of a vertex are one word, (level, parent), which only decreases. Each block
  // expands its part of the frontier independently, level by level up to `goal`, then all blocks
  // reach a grid barrier. The thread that lowers a level queues the vertex again, so that at the
  // barrier all levels up to the goal are final. So are parents: a candidate from a level that was
  // lowered later loses against the lowered one.
  __device__ bool expand_in_chunks() {
    pack();
    if (!search.sync_phase()) return false;
    i64 *from = search.filled().offsets, *to = search.filled().first,
        limit = search.parameter(DEPTH_LIMIT), size = search.count, kept = search.level;
    while (size && is_narrow(size) && kept != limit && !are_targets_within(kept)) {
      i64 goal = limit < 0 || kept + CHUNK_LEVELS < limit ? kept + CHUNK_LEVELS : limit;
      expand_chunk(from, size, to, goal);
      if (!search.sync_phase()) return false;
      i64 next = search.total(FOUND), num_spilled = search.total(COUNT);
      if (next > search.parameter(CAPACITY))
        break;  // entries were dropped: levels above the final ones are searched again
      search.trace(CHUNKED, size, search.total(SCANNED), num_spilled ? 0 : goal - kept);
      // Entries below the goal that overflowed a block are expanded with the same goal again.
      if (!num_spilled) kept = goal;
      size = next;
      i64* other = from;
      from = to;
      to = other;
    }
    unpack(kept);
    if (!search.sync_phase()) return false;
    search.swap_queues();
    search.in_queue = true;
    search.in_bits = false;
    search.reached = search.total(COUNT);
    search.reached_arcs = search.total(ARCS);
    search.level = kept;
    return true;
  }

  __device__ void pack() {
    for (i64 v = thread_index(); v < search.n; v += thread_count())
      search.packed[v] = test_bit(search.visited(), v)
                             ? ChunkExpander::entry(search.levels[v], (i64)search.parents[v])
                             : top_of<i64>::value();
    for (i64 i = thread_index(); i < search.count; i += thread_count())
      search.filled().offsets[i] =
          ChunkExpander::entry(search.level, (i64)search.pushed().vertices[i]);
  }

  // Whether all targets have a level of at most `kept`. Race: blocks may be in the next chunk
  // already, which lowers no level to `kept` or below, so that all threads find the same.
  __device__ bool are_targets_within(i64 kept) {
    return search.are_targets_settled(
        [&](i64 target) { return load_relaxed(&search.packed[target]) >> 32 <= kept; });
  }

  // Levels above `kept` are dropped; vertices at `kept` become the frontier.
  __device__ void unpack(i64 kept) {
    for (i64 w = warp_index(); w < search.words(); w += warp_count()) {
      i64 v = w << 5 | lane_index(), state = v < search.n ? search.packed[v] : top_of<i64>::value();
      bool here = state >> 32 <= kept;
      if (v < search.n) search.levels[v] = here ? (dist_t)(state >> 32) : top_of<dist_t>::value();
      if (v < search.n) search.parents[v] = here ? (vertex_t)state : top_of<vertex_t>::value();
      u32 seen = __ballot_sync(WARP, here || v >= search.n);
      if (lane_index() == 0) search.visited()[w] = search.other_visited()[w] = seen;
      if (here) {
        search.my_count++;
        search.my_arcs += row_length(search.indptr, v);
      }
      search.enqueue<1>(search.indptr, {(vertex_t)v}, {state >> 32 == kept});
    }
  }

  // Expand a block's part of the frontier until all entries below the goal are done.
  __device__ void expand_chunk(const i64* from, i64 size, i64* to, i64 goal) {
    // Triple-buffered, for the iterations before, now and next: a slow thread still reads what the
    // next iteration does not write.
    __shared__ u32 lengths[3], num_long[3];
    __shared__ i64 long_rows[BLOCK / THREADS_PER_LONG_ROW];
    // Tiles of four lanes expand one vertex each, one arc per lane at a time. Entries are spread
    // over the tiles of all these warps in turn; as many further warps prefetch around the same
    // entries.
    u32 places = blockDim.x, warps = blockDim.x < 64 ? 1 : blockDim.x / 64, warp = threadIdx.x / 32,
        step = 8 * warps;
    u32 lane = threadIdx.x % 4, own_place = threadIdx.x % 32 / 4 * warps + warp % warps;
    ChunkExpander expander = {
        search.indptr,        search.targets, search.packed, goal, search.parameter(CAPACITY), to,
        search.counter(FOUND)};
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
        const i64 *own = search.block->scratch + (iteration & 1) * 2 * places,
                  *rows_of_own = own + places;
        expander.local = search.block->scratch + (~iteration & 1) * 2 * places;
        expander.length = &lengths[next];
        if (threadIdx.x == 0) lengths[last] = num_long[next] = 0;
        // The counter also counts entries over capacity, which were spilled.
        u32 size = lengths[now] < places ? lengths[now] : places;
        for (u32 place = own_place; place < size; place += step) {
          if (warp < warps)
            expand_entry(expander, own[place], rows_of_own[place], lane, long_rows, &num_long[now]);
          else if (warp < 2 * warps)
            expander.prefetch_beside(own[place], rows_of_own[place], lane, search.n,
                                     search.parameter(NUM_ARCS));
        }
        __syncthreads();
        u32 num = num_long[now];
        now = next;
        if (!num) continue;
        for (u32 k = 0; k < num && k < blockDim.x / THREADS_PER_LONG_ROW; k++) {
          i64 u = (u32)long_rows[k], row = load_readonly(search.indptr + u);
          u32 length = (u32)(load_readonly(search.indptr + u + 1) - row);
          expander.propose(long_rows[k], search.targets + row, threadIdx.x, length, blockDim.x);
        }
        __syncthreads();
      }
      __syncthreads();
    }
    search.my_scanned += expander.scanned;
    search.my_count += expander.num_spilled;
  }
  // Load an entry of the grid's queue; one at the goal goes back there.
  __device__ void load_entry(ChunkExpander& expander, u32 place, i64 own) {
    bool valid = own >> 32 < expander.goal;
    if (!valid) expander.spill(own);
    search.block->scratch[place] = own;
    i64 v = (u32)own, begin = load_readonly(search.indptr + v);
    search.block->scratch[blockDim.x + place] =
        ChunkExpander::row_of(begin, valid ? load_readonly(search.indptr + v + 1) : begin);
  }
  __device__ void expand_entry(ChunkExpander& expander, i64 own, i64 row, u32 lane, i64* long_rows,
                               u32* num_long) {
    u32 length = (u32)row & 255;
    if (length <= MAX_TILE_ROW)
      return expander.propose(own, search.targets + (row >> 8), lane, length, 4);
    if (lane) return;
    u32 slot = atomic_add(num_long, 1u);
    if (slot < blockDim.x / THREADS_PER_LONG_ROW)
      long_rows[slot] = own;
    else
      expander.spill(own);
  }
};
