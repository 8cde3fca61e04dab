// A row of this many arcs or more is searched by a whole block of threads, one of up to MEDIUM_ROW by eight lanes, and
// one between by a warp: the hubs of an RMAT graph have hundreds of thousands, and most of its vertices a few.
constexpr i64 LONG_ROW = 1024, MEDIUM_ROW = 64;

// Call settle(v, i) for every v that is open, where i is the first arc of its row that explains its distance, or the
// row's end.
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
      for (i64 first = indptr[row]; first < end; first += blockDim.x) {
        i64 i = first + threadIdx.x;
        bool hit = i < end && explains(own[row], i);
        if (hit) atomic_min(&first_hit, i);
        if (__syncthreads_or(hit)) break;
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
    bool is_medium = is_open && end - begin > MEDIUM_ROW && end - begin < LONG_ROW;
    for (u32 medium = __ballot_sync(all, is_medium); medium; medium &= medium - 1) {
      int lane = __ffs(medium) - 1;
      i64 row_end = __shfl_sync(all, end, lane), hit = row_end;
      dist_t of_row = __shfl_sync(all, target, lane);
      for (i64 i = __shfl_sync(all, begin, lane) + lane_index(); hit == row_end; i += 32) {
        u32 agreeing = __ballot_sync(all, i < row_end && explains(of_row, i));
        if (agreeing)
          hit = i - lane_index() + __ffs(agreeing) - 1;
        else if (__any_sync(all, i + 32 - lane_index() >= row_end))
          break;
      }
      if (lane_index() == 0) settle(first + lane, hit);
    }
    // Four short rows at a time, the lowest of eight lanes that agrees has the first arc.
    bool is_short = is_open && end - begin <= MEDIUM_ROW;
    for (int lane = lane_index() >> 3; __any_sync(all, lane < 32); lane += 4) {
      bool mine = __shfl_sync(all, (int)is_short, lane);
      i64 row_end = __shfl_sync(all, end, lane), hit = row_end;
      dist_t of_row = __shfl_sync(all, target, lane);
      i64 start = __shfl_sync(all, begin, lane);
      bool searching = mine && start < row_end;
      while (__any_sync(all, searching)) {
        i64 i = start + (lane_index() & 7);
        bool agrees = searching && i < row_end && explains(of_row, i);
        u32 agreeing = __ballot_sync(all, agrees) >> (lane_index() & 24) & 0xFFu;
        if (searching && agreeing) hit = start + __ffs(agreeing) - 1;
        start += 8;
        searching = searching && hit == row_end && start < row_end;
      }
      if (mine && (lane_index() & 7) == 0) settle(first + lane, hit);
    }
  }
}

__device__ inline dist_t weight_of(const weight_t* weights, i64 i) { return weights ? (dist_t)weights[i] : (dist_t)1; }

extern "C" __global__ void find_nearer(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                       const weight_t* weights, const dist_t* dist, i64 base, i64 stride,
                                       i64 multiplier, vertex_t* parents, i64* counters) {
  auto open = [&](i64 v) {
    return load_relaxed(&parents[v]) == top_of<vertex_t>::value() && dist[base + v] != top_of<dist_t>::value();
  };
  auto explains = [&](dist_t own, i64 i) {
    // What is longer than the whole way is no part of it; its start is not looked up.
    dist_t w = weight_of(weights, i);
    if (own < w) return false;
    dist_t near = dist[targets[i]];
    return near < own && (dist_t)(near + w) == own;
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
  auto explains = [&](dist_t own, i64 i) {
    if ((dist_t)(own + weight_of(weights, i)) != own) return false;
    vertex_t u = targets[i];
    return hops[u] && dist[u] == own;
  };
  auto settle = [&](i64 v, i64 i) {
    if (i == indptr[v + 1]) return;
    store_relaxed(&parents[v], position_of(targets[i], stride, multiplier));
    new_hops[v] = 1;
    atomic_add(&counters[0], (i64)1);
  };
  settle_rows(lo, hi, indptr, dist + base, open, explains, settle);
}
