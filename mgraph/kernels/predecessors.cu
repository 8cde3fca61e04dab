// A row of this many arcs or more is searched by a whole block of threads, one of up to SHORT_ROW by one thread, and
// one between by a warp: the hubs of an RMAT graph have hundreds of thousands, and most of its vertices a few.
constexpr i64 LONG_ROW = 1024, SHORT_ROW = 64;
// Arcs that a thread looks at together.
constexpr int DEPTH = 4;

// Call settle(v, i) for every v that is open, where i is the first arc of its row that explains its distance, or the
// row's end. explains(own, i, step, end) says which of the DEPTH arcs from i on, so far apart, do.
template <class Open, class Explains, class Settle>
__device__ inline void settle_long_rows(i64 lo, i64 hi, const i64* indptr, const dist_t* own, Open open,
                                        Explains explains, Settle settle) {
  __shared__ i64 rows[1024], first_hit;
  __shared__ u32 count;
  for (i64 base = lo; base < hi; base += thread_count()) {
    // In degree order the longest rows are neighbours: each block gets one of them.
    i64 v = base + (i64)threadIdx.x * gridDim.x + blockIdx.x;
    bool is_long = v < hi && indptr[v + 1] - indptr[v] >= LONG_ROW && open(v);
    if (!__syncthreads_or(is_long)) continue;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    if (is_long) rows[atomic_add(&count, 1u)] = v;
    __syncthreads();
    for (u32 k = 0; k < count; k++) {
      i64 row = rows[k], end = indptr[row + 1];
      __syncthreads();  // all have read the hit of the row before
      if (threadIdx.x == 0) first_hit = end;
      __syncthreads();
      for (i64 first = indptr[row]; first < end; first += DEPTH * blockDim.x) {
        i64 i = first + threadIdx.x;
        u32 hits = explains(own[row], i, blockDim.x, end);
        if (hits) atomic_min(&first_hit, i + (__ffs(hits) - 1) * (i64)blockDim.x);
        if (__syncthreads_or(hits)) break;
      }
      if (threadIdx.x == 0) settle(row, first_hit);
    }
    __syncthreads();  // before the rows of the next turn are listed
  }
}
template <class Open, class Explains, class Settle>
__device__ inline void settle_rows(i64 lo, i64 hi, const i64* indptr, const dist_t* own, Open open, Explains explains,
                                   Settle settle) {
  constexpr u32 all = 0xFFFFFFFFu;
  settle_long_rows(lo, hi, indptr, own, open, explains, settle);
  for (i64 first = lo + warp_index() * 32; first < hi; first += warp_count() * 32) {
    i64 v = first + lane_index(), begin = 0, end = 0;
    bool is_open = v < hi && open(v);
    dist_t target = is_open ? own[v] : (dist_t)0;
    if (is_open) begin = indptr[v], end = indptr[v + 1];
    i64 length = end - begin;
    for (u32 medium = __ballot_sync(all, length > SHORT_ROW && length < LONG_ROW); medium; medium &= medium - 1) {
      int lane = __ffs(medium) - 1;
      i64 row_end = __shfl_sync(all, end, lane), hit = row_end;
      dist_t of_row = __shfl_sync(all, target, lane);
      for (i64 i = __shfl_sync(all, begin, lane); hit == row_end && i < row_end; i += 32 * DEPTH) {
        u32 hits = explains(of_row, i + lane_index(), 32, row_end);
        for (int k = DEPTH - 1; k >= 0; k--) {
          u32 agreeing = __ballot_sync(all, hits >> k & 1);
          if (agreeing) hit = i + 32 * k + __ffs(agreeing) - 1;
        }
      }
      if (lane_index() == 0) settle(first + lane, hit);
    }
    if (!is_open || length > SHORT_ROW) continue;
    u32 hits = 0;
    for (; !hits && begin < end; begin += DEPTH) hits = explains(target, begin, 1, end);
    settle(v, hits ? begin - DEPTH + __ffs(hits) - 1 : end);
  }
}

// The arcs first, first + step, ...: where they start and what they weigh, which is too much where there is none.
__device__ inline void each_arc(i64 first, i64 step, i64 end, const vertex_t* targets, const weight_t* weights,
                                vertex_t (&u)[DEPTH], dist_t (&w)[DEPTH]) {
#pragma unroll
  for (int k = 0; k < DEPTH; k++) {
    i64 i = first + k * step;
    u[k] = i < end ? targets[i] : 0;
    w[k] = i >= end ? top_of<dist_t>::value() : weights ? (dist_t)weights[i] : (dist_t)1;
  }
}

extern "C" __global__ void find_nearer_by_weight(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                                 const weight_t* weights, double scale, const dist_t* dist,
                                                 vertex_t* parents) {
  constexpr u32 all = 0xFFFFFFFFu;
  vertex_t none = top_of<vertex_t>::value();
  for (i64 base = lo; base < hi; base += 32 * warp_count()) {
    // In degree order the longest rows are neighbours: each warp gets one of them.
    i64 v = base + lane_index() * warp_count() + warp_index();
    dist_t own = v < hi ? dist[v] : (dist_t)0;
    i64 begin = v < hi ? indptr[v] : 0, end = v < hi ? indptr[v + 1] : 0;
    bool is_open = end - begin > SHORT_ROW && own != top_of<dist_t>::value() && parents[v] == none;
    for (u32 rows = __ballot_sync(all, is_open); rows; rows &= rows - 1) {
      int lane = __ffs(rows) - 1;
      dist_t of_row = __shfl_sync(all, own, lane);
      i64 first = __shfl_sync(all, begin, lane), last = __shfl_sync(all, end, lane);
      last = light_end_by_warp(weights, first, last, scale, class_edge(of_row, scale));
      vertex_t parent = none;
      for (; first < last; first += 32 * DEPTH) {
        vertex_t u[DEPTH];
        dist_t w[DEPTH], near[DEPTH];
        each_arc(first + lane_index(), 32, last, targets, weights, u, w);
#pragma unroll
        for (int k = 0; k < DEPTH; k++) near[k] = of_row < w[k] ? of_row : dist[u[k]];
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
          if (near[k] < of_row && (dist_t)(near[k] + w[k]) == of_row && u[k] < parent) parent = u[k];
      }
      for (int d = 16; d; d >>= 1) {
        vertex_t other = __shfl_xor_sync(all, parent, d);
        if (other < parent) parent = other;
      }
      if (lane_index() == 0) parents[base + lane * warp_count() + warp_index()] = parent;
    }
  }
}

extern "C" __global__ void find_nearer(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                       const weight_t* weights, const dist_t* dist, i64 base, i64 stride,
                                       i64 multiplier, vertex_t* parents, i64* counters) {
  auto open = [&](i64 v) {
    return load_relaxed(&parents[v]) == top_of<vertex_t>::value() && dist[base + v] != top_of<dist_t>::value();
  };
  auto explains = [&](dist_t own, i64 first, i64 step, i64 end) {
    vertex_t u[DEPTH];
    dist_t w[DEPTH], near[DEPTH];
    u32 hits = 0;
    each_arc(first, step, end, targets, weights, u, w);
    // What is longer than the whole way is no part of it; its start is not looked up.
#pragma unroll
    for (int k = 0; k < DEPTH; k++) near[k] = own < w[k] ? own : dist[u[k]];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) hits |= (u32)(near[k] < own && (dist_t)(near[k] + w[k]) == own) << k;
    return hits;
  };
  auto settle = [&](i64 v, i64 i) {
    if (i < indptr[v + 1])
      store_relaxed(&parents[v], position_of(targets[i], stride, multiplier));
    else
      atomic_add(&counters[0], (i64)1);
  };
  settle_rows(lo, hi, indptr, dist + base, open, explains, settle);
}

extern "C" __global__ void find_equal(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                      const weight_t* weights, const dist_t* dist, const u8* hops, i64 base, i64 stride,
                                      i64 multiplier, vertex_t* parents, u8* new_hops, i64* counters) {
  auto open = [&](i64 v) {
    return load_relaxed(&parents[v]) == top_of<vertex_t>::value() && dist[base + v] != top_of<dist_t>::value();
  };
  auto explains = [&](dist_t own, i64 first, i64 step, i64 end) {
    vertex_t u[DEPTH];
    dist_t w[DEPTH];
    u32 hits = 0;
    each_arc(first, step, end, targets, weights, u, w);
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
      hits |= (u32)(w[k] <= own && (dist_t)(own + w[k]) == own && hops[u[k]] && dist[u[k]] == own) << k;
    return hits;
  };
  auto settle = [&](i64 v, i64 i) {
    if (i == indptr[v + 1]) return;
    store_relaxed(&parents[v], position_of(targets[i], stride, multiplier));
    new_hops[v] = 1;
    atomic_add(&counters[0], (i64)1);
  };
  settle_rows(lo, hi, indptr, dist + base, open, explains, settle);
}
