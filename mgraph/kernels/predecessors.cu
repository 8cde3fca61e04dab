// A warp takes a row, 32 arcs at a time; the lowest lane that agrees has the first arc.
extern "C" __global__ void find_nearer(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                       const weight_t* weights, const dist_t* dist, i64 base, i64 stride,
                                       i64 multiplier, vertex_t* parents, i64* counters) {
  for (i64 v = lo + warp_index(); v < hi; v += warp_count()) {
    dist_t own = dist[base + v];
    if (parents[v] != top_of<vertex_t>::value() || own == top_of<dist_t>::value()) continue;
    bool explained = false;
    for (i64 first = indptr[v]; first < indptr[v + 1] && !explained; first += 32) {
      i64 i = first + lane_index();
      vertex_t u = 0;
      bool explains = false;
      if (i < indptr[v + 1]) {
        u = targets[i];
        dist_t near = dist[u], weight = weights ? (dist_t)weights[i] : (dist_t)1;
        explains = near < own && (dist_t)(near + weight) == own;
      }
      u32 agreeing = __ballot_sync(0xFFFFFFFFu, explains);
      explained = agreeing != 0;
      if (explained && lane_index() == __ffs(agreeing) - 1) parents[v] = position_of(u, stride, multiplier);
    }
    if (!explained && lane_index() == 0) atomic_add(&counters[0], (i64)1);
  }
}

extern "C" __global__ void find_equal(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                      const weight_t* weights, const dist_t* dist, const u8* hops, i64 base, i64 stride,
                                      i64 multiplier, vertex_t* parents, u8* new_hops, i64* counters) {
  for (i64 v = lo + warp_index(); v < hi; v += warp_count()) {
    dist_t own = dist[base + v];
    if (parents[v] != top_of<vertex_t>::value() || own == top_of<dist_t>::value()) continue;
    bool explained = false;
    for (i64 first = indptr[v]; first < indptr[v + 1] && !explained; first += 32) {
      i64 i = first + lane_index();
      vertex_t u = 0;
      bool explains = false;
      if (i < indptr[v + 1]) {
        u = targets[i];
        dist_t weight = weights ? (dist_t)weights[i] : (dist_t)1;
        explains = hops[u] && dist[u] == own && (dist_t)(own + weight) == own;
      }
      u32 agreeing = __ballot_sync(0xFFFFFFFFu, explains);
      explained = agreeing != 0;
      if (!explained || lane_index() != __ffs(agreeing) - 1) continue;
      parents[v] = position_of(u, stride, multiplier);
      new_hops[v] = 1;
      atomic_add(&counters[0], (i64)1);
    }
  }
}
