extern "C" __global__ void check_arcs(i64 lo, i64 hi, i64 first, const i64* indptr, const vertex_t* targets,
                                      const weight_t* weights, const vertex_t* parent, const dist_t* dist,
                                      const dist_t* bound, u8* is_explained, u8* is_shorter) {
  for (i64 row = lo + warp_index(); row < hi; row += warp_count()) {
    i64 u = first + row;
    if (dist[u] > bound[0]) continue;
    for (i64 i = indptr[row] + lane_index(); i < indptr[row + 1]; i += 32) {
      vertex_t v = targets[i];
      dist_t w = weights ? (dist_t)weights[i] : (dist_t)1;
      dist_t longer = dist[u] + w;
      // Several threads may mark one target at a time: all of them write the same 1.
      if (longer == dist[v] && parent[v] == (vertex_t)u) store_relaxed(&is_explained[v], (u8)1);
      if (longer < dist[v] && longer <= bound[0]) store_relaxed(&is_shorter[v], (u8)1);
    }
  }
}
