// A row of this many arcs or more is searched by a whole block of threads: the hubs of an RMAT graph have
// hundreds of thousands, and one warp would take longer over them than all others over the rest.
constexpr i64 LONG_ROW = 1024;

// Call settle(v, i) for every v that is open, where i is the first arc of its row that explains it, or the row's end.
template <class Open, class Explains, class Settle>
__device__ inline void settle_first_arcs(i64 lo, i64 hi, const i64* indptr, Open open, Explains explains,
                                         Settle settle) {
  __shared__ i64 first_hit;
  i64 warps = blockDim.x >> 5;
  for (i64 group = lo + blockIdx.x * warps; group < hi; group += gridDim.x * warps) {
    // A warp takes a row, 32 arcs at a time; the lowest lane that agrees has the first arc.
    i64 v = group + (threadIdx.x >> 5);
    if (v < hi && indptr[v + 1] - indptr[v] < LONG_ROW && open(v)) {
      i64 end = indptr[v + 1], hit = end;
      for (i64 first = indptr[v]; first < end && hit == end; first += 32) {
        i64 i = first + lane_index();
        u32 agreeing = __ballot_sync(0xFFFFFFFFu, i < end && explains(v, i));
        if (agreeing) hit = first + __ffs(agreeing) - 1;
      }
      if (lane_index() == 0) settle(v, hit);
    }
    // Then the block takes the long ones among these rows together, one after another.
    for (i64 row = group; row < group + warps && row < hi; row++) {
      if (indptr[row + 1] - indptr[row] < LONG_ROW || !open(row)) continue;
      i64 end = indptr[row + 1];
      __syncthreads();  // all have read the hit of the row before, and whether this one is open
      if (threadIdx.x == 0) first_hit = end;
      __syncthreads();
      for (i64 first = indptr[row]; first < end; first += blockDim.x) {
        i64 i = first + threadIdx.x;
        bool hit = i < end && explains(row, i);
        if (hit) atomic_min(&first_hit, i);
        if (__syncthreads_or(hit)) break;
      }
      if (threadIdx.x == 0) settle(row, first_hit);
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
  auto explains = [&](i64 v, i64 i) {
    dist_t own = dist[base + v], near = dist[targets[i]];
    return near < own && (dist_t)(near + weight_of(weights, i)) == own;
  };
  auto settle = [&](i64 v, i64 i) {
    if (i < indptr[v + 1])
      store_relaxed(&parents[v], position_of(targets[i], stride, multiplier));
    else
      atomic_add(&counters[0], (i64)1);
  };
  settle_first_arcs(lo, hi, indptr, open, explains, settle);
}

extern "C" __global__ void find_equal(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                      const weight_t* weights, const dist_t* dist, const u8* hops, i64 base, i64 stride,
                                      i64 multiplier, vertex_t* parents, u8* new_hops, i64* counters) {
  auto open = [&](i64 v) {
    return load_relaxed(&parents[v]) == top_of<vertex_t>::value() && dist[base + v] != top_of<dist_t>::value();
  };
  auto explains = [&](i64 v, i64 i) {
    dist_t own = dist[base + v];
    vertex_t u = targets[i];
    return hops[u] && dist[u] == own && (dist_t)(own + weight_of(weights, i)) == own;
  };
  auto settle = [&](i64 v, i64 i) {
    if (i == indptr[v + 1]) return;
    store_relaxed(&parents[v], position_of(targets[i], stride, multiplier));
    new_hops[v] = 1;
    atomic_add(&counters[0], (i64)1);
  };
  settle_first_arcs(lo, hi, indptr, open, explains, settle);
}
