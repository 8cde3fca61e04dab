// How rows_kernels.cu searches rows, or their lightest arcs, for the first arc that explains a
// distance.

#include "frontiers.cuh"
#include "lightest_arcs.cuh"
#include "prelude.cuh"

// A row of BLOCK_ROW arcs or more is searched by a thread block, one of up to LANE_ROW by one
// thread, and one between by a warp: the hubs of an RMAT graph have hundreds of thousands, and most
// of its vertices a few.
constexpr i64 BLOCK_ROW = 1024, LANE_ROW = 64;
// Longer rows are divided among warps where only their light arcs are scanned.
constexpr i64 HUB_ROW = 16384;
// Arcs of a thread in flight.
constexpr int DEPTH = 4;

// DEPTH adjacent array elements, loaded at once if they have at most 16 bytes.
template <class T> struct alignas(sizeof(T) * DEPTH < 16 ? sizeof(T) * DEPTH : 16) Adjacent {
  T of[DEPTH];
};

// Arcs: their sources and weights; a missing arc has the top weight.
struct Arcs {
  const vertex_t* targets;
  const weight_t* weights;
  i64 count;
  bool is_aligned;
  __device__ inline Arcs(const vertex_t* all_targets, const weight_t* all_weights, i64 all)
      : targets(all_targets),
        weights(all_weights),
        count(all),
        is_aligned((u64)all_targets % alignof(Adjacent<vertex_t>) == 0 &&
                   (u64)all_weights % alignof(Adjacent<weight_t>) == 0) {}
  // Load arcs first, first + step, ...
  __device__ inline void load_strided(i64 first, i64 step, i64 end, vertex_t (&u)[DEPTH],
                                      dist_t (&w)[DEPTH]) const {
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      i64 i = first + k * step;
      u[k] = i < end ? targets[i] : 0;
      w[k] = i >= end ? top_of<dist_t>::value() : weights ? (dist_t)weights[i] : (dist_t)1;
    }
  }
  // Load the arcs from `at` on, a multiple of DEPTH, that lie in begin .. end: the number of cache
  // lines that a multiprocessor looks up limits threads that read a row each.
  __device__ inline void load_adjacent(i64 at, i64 begin, i64 end, vertex_t (&u)[DEPTH],
                                       dist_t (&w)[DEPTH]) const {
    if (!is_aligned || at + DEPTH > count) {
      load_strided(at, 1, end, u, w);
    } else {
      Adjacent<vertex_t> starts = *(const Adjacent<vertex_t>*)(targets + at);
      Adjacent<weight_t> lengths;
      if (weights) lengths = *(const Adjacent<weight_t>*)(weights + at);
#pragma unroll
      for (int k = 0; k < DEPTH; k++) {
        u[k] = starts.of[k];
        w[k] = at + k >= end ? top_of<dist_t>::value()
               : weights     ? (dist_t)lengths.of[k]
                             : (dist_t)1;
      }
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
      if (at + k < begin) w[k] = top_of<dist_t>::value();
  }
};

// Rows that a block processes one after the other. Not in the template: g++ would not keep it apart
// by block there.
struct BlockRows {
  i64 rows[1024], first_hit;
  u32 count;
};
__device__ inline BlockRows& block_rows() {
  __shared__ BlockRows of_block;
  return of_block;
}
// Call visit(v), by a whole block, for every v of lo .. hi that is_wanted(v); a thread tests EACH
// at once. With `spreads` adjacent vertices go to different blocks; else their tests read adjacent
// memory.
template <int EACH, class Wanted, class Visit>
__device__ inline void each_row_by_block(i64 lo, i64 hi, bool spreads, Wanted is_wanted,
                                         Visit visit) {
  BlockRows& s = block_rows();
  i64 first = lo + (spreads ? (i64)threadIdx.x * gridDim.x + blockIdx.x : thread_index());
  for (i64 chunk = 0; chunk < hi - lo; chunk += EACH * thread_count()) {
    bool wanted[EACH], any = false;
    for (int k = 0; k < EACH; k++) {
      i64 v = first + chunk + k * thread_count();
      wanted[k] = v < hi && is_wanted(v);
    }
    for (int k = 0; k < EACH; k++) any = any || wanted[k];
    if (!__syncthreads_or(any)) continue;
    for (int k = 0; k < EACH; k++) {
      if (threadIdx.x == 0) s.count = 0;
      __syncthreads();
      if (wanted[k]) s.rows[atomic_add(&s.count, 1u)] = first + chunk + k * thread_count();
      __syncthreads();
      for (u32 row = 0; row < s.count; row++) visit(s.rows[row]);
      __syncthreads();  // all rows of the list are done
    }
  }
}

// A row: its distance, its parent so far, and the range of its arcs.
struct Row {
  dist_t own;
  vertex_t parent;
  i64 begin, end;
  __device__ inline i64 length() const { return end - begin; }
};
struct Rows {
  const i64* indptr;
  const dist_t* own;
  const vertex_t* parents;
  __device__ inline Row operator()(i64 v) const {
    return {own[v], load_relaxed(&parents[v]), indptr[v], indptr[v + 1]};
  }
};
// Call settle(v, row, i), by a whole block, for every v that is open, where i is the first arc that
// explains its distance, or the row's end. explains(own, u, w) returns which of DEPTH arcs do. A
// thread tests EACH at once, with `spreads` as in each_row_by_block.
template <int EACH, class Open, class Explains, class Settle>
__device__ inline void settle_by_block(i64 lo, i64 hi, bool spreads, const Rows& rows,
                                       const Arcs& arcs, Open open, Explains explains,
                                       Settle settle) {
  BlockRows& s = block_rows();
  each_row_by_block<EACH>(lo, hi, spreads, open, [&](i64 v) {
    Row row = rows(v);
    __syncthreads();  // all threads have read the hit of the row before
    if (threadIdx.x == 0) s.first_hit = row.end;
    __syncthreads();
    for (i64 first = row.begin; first < row.end; first += DEPTH * blockDim.x) {
      i64 i = first + threadIdx.x;
      vertex_t u[DEPTH];
      dist_t w[DEPTH];
      arcs.load_strided(i, blockDim.x, row.end, u, w);
      u32 hits = explains(row.own, u, w);
      if (hits) atomic_min(&s.first_hit, i + (__ffs(hits) - 1) * (i64)blockDim.x);
      if (__syncthreads_or(hits)) break;
    }
    if (threadIdx.x == 0) settle(v, row, s.first_hit);
  });
}
template <class Open, class Explains, class Settle>
__device__ inline void settle_rows(i64 lo, i64 hi, i64 long_rows, const Rows& rows,
                                   const Arcs& arcs, Open open, Explains explains, Settle settle) {
  i64 num_long = long_rows < hi ? long_rows : hi, step = warp_count() * 32;
  auto is_long = [&](i64 v) {
    Row row = rows(v);
    return row.length() >= BLOCK_ROW && open(row);
  };
  // In degree order the longest rows are adjacent: each block gets one of them.
  settle_by_block<1>(lo, num_long, true, rows, arcs, is_long, explains, settle);
  // The next step's rows are in flight.
  Row upcoming = {}, row;
  if (lo + thread_index() < hi) upcoming = rows(lo + thread_index());
  for (i64 first = lo + warp_index() * 32; first < hi; first += step) {
    i64 v = first + lane_index();
    row = upcoming;
    if (v + step < hi) upcoming = rows(v + step);
    bool is_open = v < hi && open(row);
    i64 length = is_open ? row.length() : 0;
    for (u32 warp_rows =
             __ballot_sync(WARP, length > LANE_ROW && (length < BLOCK_ROW || v >= num_long));
         warp_rows; warp_rows &= warp_rows - 1) {
      int lane = __ffs(warp_rows) - 1;
      i64 row_end = __shfl_sync(WARP, row.end, lane), hit = row_end;
      dist_t of_row = __shfl_sync(WARP, row.own, lane);
      for (i64 i = __shfl_sync(WARP, row.begin, lane); hit == row_end && i < row_end;
           i += 32 * DEPTH) {
        vertex_t u[DEPTH];
        dist_t w[DEPTH];
        arcs.load_strided(i + lane_index(), 32, row_end, u, w);
        u32 hits = explains(of_row, u, w);
        for (int k = DEPTH - 1; k >= 0; k--) {
          u32 agreeing = __ballot_sync(WARP, hits >> k & 1);
          if (agreeing) hit = i + 32 * k + __ffs(agreeing) - 1;
        }
      }
      if (lane_index() == lane) settle(v, row, hit);
    }
    if (!is_open || length > LANE_ROW) continue;
    u32 hits = 0;
    i64 at = row.begin & ~(i64)(DEPTH - 1);
    for (; !hits && at < row.end; at += DEPTH) {
      vertex_t u[DEPTH];
      dist_t w[DEPTH];
      arcs.load_adjacent(at, row.begin, row.end, u, w);
      hits = explains(row.own, u, w);
    }
    settle(v, row, hits ? at - DEPTH + __ffs(hits) - 1 : row.end);
  }
}

// Count the longer rows, where rows are in order of falling length; called by a whole warp.
__device__ inline i64 count_longer_rows(i64 length, i64 lo, i64 hi, const i64* indptr) {
  while (lo < hi) {
    i64 step = (hi - lo + 31) / 32, at = lo + (lane_index() + 1) * step - 1;
    lo += __popc(__ballot_sync(WARP, at < hi && indptr[at + 1] - indptr[at] > length)) * step;
    if (lo + step - 1 < hi) hi = lo + step - 1;
  }
  return lo;
}

// Light arcs: the first vertex by position that explains a row's distance. A row is left out where
// all of its lightest arcs are light: by position, up to the first hit, it is scanned as fast.
struct LightArcs {
  const i64* indptr;
  LightestArcs lightest;
  const dist_t* dist;
  vertex_t* parents;
  dist_t dense_begin;
  i64 base, stride, multiplier;
  Arcs arcs;

  __device__ inline double edge(dist_t own) const {
    return class_edge((dist_t)(own - dense_begin), lightest.scale);
  }
  // Search DEPTH arcs from `at` on, `step` apart, none behind `end`; `last` becomes the last one's
  // weight.
  __device__ inline vertex_t first_of(i64 at, i64 step, i64 end, dist_t own, dist_t* last) const {
    vertex_t u[DEPTH], parent = top_of<vertex_t>::value();
    dist_t w[DEPTH], near[DEPTH];
    arcs.load_strided(at, step, end, u, w);
#pragma unroll
    for (int k = 0; k < DEPTH; k++) near[k] = (dist_t)(own - dense_begin) < w[k] ? own : dist[u[k]];
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
      if (near[k] < own && (dist_t)(near[k] + w[k]) == own) {
        vertex_t position = position_of(u[k], stride, multiplier);
        if (position < parent) parent = position;
      }
    *last = w[DEPTH - 1];
    return parent;
  }
  // Search the `part`-th of `parts` of a hub's row, by a whole warp.
  __device__ inline vertex_t first_of_part(i64 v, dist_t own, i64 part, i64 parts) const {
    vertex_t parent = top_of<vertex_t>::value();
    dist_t last;
    Slots row = lightest.of_row(indptr[v], indptr[v + 1]);
    if (lightest.are_all_below(row, edge(own))) return parent;
    row.end = light_end_by_warp(lightest.weights, row.begin, row.end, lightest.scale, edge(own));
    for (i64 at = row.begin + part * 32 * DEPTH; at < row.end; at += parts * 32 * DEPTH) {
      vertex_t found = first_of(at + lane_index(), 32, row.end, own, &last);
      if (found < parent) parent = found;
    }
    return warp_min(parent);
  }
  // Search a row for each sub-warp tile, if it `is_open`; all lanes of a tile return the parent.
  // Heavy arcs come behind light ones: a tile continues as long as its last arc is light.
  template <int TILE>
  __device__ inline vertex_t first_by_tile(bool is_open, i64 begin, i64 end, dist_t own) const {
    vertex_t parent = top_of<vertex_t>::value();
    int lane = lane_index() % TILE;
    Slots row = lightest.of_row(begin, end);
    double light_edge = is_open ? edge(own) : 0;
    bool scans = is_open && !lightest.are_all_below(row, light_edge);
    for (i64 at = row.begin; __any_sync(WARP, scans); at += TILE * DEPTH) {
      dist_t last = 0;
      vertex_t found = scans ? first_of(at + lane, TILE, row.end, own, &last) : parent;
      if (found < parent) parent = found;
      last = __shfl_sync(WARP, last, TILE - 1, TILE);
      scans = scans && at + TILE * DEPTH < row.end && (double)last * lightest.scale < light_edge;
    }
    for (int d = TILE / 2; d; d >>= 1) {
      vertex_t other = __shfl_xor_sync(WARP, parent, d);
      if (other < parent) parent = other;
    }
    return parent;
  }
  // Search all open rows of from .. to that are too long for one thread. With `spreads` each warp
  // gets one of adjacent rows; else their bounds are read from adjacent memory.
  template <int TILE> __device__ inline void search_rows(i64 from, i64 to, bool spreads) const {
    i64 step = spreads ? warp_count() : 1;
    for (i64 chunk = from; chunk < to; chunk += 32 * warp_count()) {
      i64 v = chunk + warp_index() * (spreads ? 1 : 32) + lane_index() * step, begin = 0, end = 0;
      dist_t own = 0;
      if (v < to) {
        begin = indptr[v];
        end = indptr[v + 1];
      }
      bool is_open = end - begin > LANE_ROW;
      if (is_open) {
        own = dist[base + v];
        is_open = own > dense_begin && own != top_of<dist_t>::value();
      }
      for (u32 rows = __ballot_sync(WARP, is_open); rows;) {
        int which = lane_index() / TILE, lane = which < __popc(rows) ? nth_bit(rows, which) : -1,
            source_lane = lane & 31;
        i64 row = __shfl_sync(WARP, v, source_lane), first = __shfl_sync(WARP, begin, source_lane);
        i64 last = __shfl_sync(WARP, end, source_lane);
        vertex_t parent =
            first_by_tile<TILE>(lane >= 0, first, last, __shfl_sync(WARP, own, source_lane));
        if (lane >= 0 && lane_index() % TILE == 0 && parent < parents[row]) parents[row] = parent;
        for (int k = 0; k < 32 / TILE; k++) rows &= rows - 1;
      }
    }
  }
};
