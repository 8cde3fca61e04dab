constexpr int HOPS = 128;
// Edges that a warp of list_edges takes after one search for their rows, and loads of each lane at a time. Where rows
// have few edges a tile takes long: tiles are smaller where there are few, so that no warp is long behind the others.
constexpr int LEAST_TILE = 256, MOST_TILE = 2048, TILES_A_WARP = 8, BATCH = 4;

// The lightest arc that a thread has seen, the first of equal ones.
struct Lightest {
  i64 weight, arc;
  __device__ inline Lightest() : weight(TOP), arc(TOP) {}
  __device__ inline void offer(i64 w, i64 i) {
    if (w < weight || (w == weight && i < arc)) weight = w, arc = i;
  }
};

extern "C" __global__ void lightest_arcs(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                         const weight_t* weights, i64 base, i64 longest, vertex_t* above, i64* arcs) {
  // A warp takes four rows, eight lanes each.
  for (i64 first = lo + warp_index() * 4; first < hi; first += warp_count() * 4) {
    i64 v = first + (lane_index() >> 3);
    i64 begin = v < hi ? indptr[v] : 0, end = v < hi ? indptr[v + 1] : 0;
    bool mine = v < hi && end - begin < longest;
    Lightest best;
    for (i64 i = begin + (lane_index() & 7); mine && i < end; i += 8) best.offer(order_of(weights[i]), i);
    for (int d = 4; d; d >>= 1) {
      i64 weight = __shfl_xor_sync(0xFFFFFFFFu, best.weight, d), arc = __shfl_xor_sync(0xFFFFFFFFu, best.arc, d);
      best.offer(weight, arc);
    }
    if (mine && (lane_index() & 7) == 0) {
      arcs[v] = best.arc;
      above[v] = best.arc == TOP ? (vertex_t)(base + v) : targets[best.arc];
    }
  }
}

extern "C" __global__ void lightest_arcs_of_hubs(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                                 const weight_t* weights, i64 longest, vertex_t* above, i64* arcs) {
  __shared__ i64 least, first;
  for (i64 v = lo + blockIdx.x; v < hi; v += gridDim.x) {
    i64 begin = indptr[v], end = indptr[v + 1];
    if (end - begin < longest) continue;
    if (threadIdx.x == 0) least = TOP, first = TOP;
    Lightest best;
#pragma unroll 8
    for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) best.offer(order_of(weights[i]), i);
    __syncthreads();
    if (best.arc != TOP) atomic_min(&least, best.weight);
    __syncthreads();
    if (best.arc != TOP && best.weight == least) atomic_min(&first, best.arc);
    __syncthreads();
    if (threadIdx.x == 0) {
      arcs[v] = first;
      above[v] = targets[first];
    }
    __syncthreads();  // all are done with what the next row starts anew
  }
}

extern "C" __global__ void find_uppers(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets, i64 base, i64 stride,
                                       i64 multiplier, i64* uppers, i64* lengths) {
  for (i64 row = lo + thread_index(); row < hi; row += thread_count()) {
    vertex_t own = position_of((vertex_t)(base + row), stride, multiplier);
    i64 first = indptr[row], last = indptr[row + 1];
    while (first < last) {
      i64 middle = (first + last) >> 1;
      if (position_of(targets[middle], stride, multiplier) > own)
        last = middle;
      else
        first = middle + 1;
    }
    uppers[row] = first;
    lengths[row] = indptr[row + 1] - first;
  }
}

extern "C" __global__ void find_arcs(i64 lo, i64 hi, const i64* chosen, const i64* offsets, i64 num_rows,
                                     const i64* uppers, i64* rows, i64* arcs) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 row = row_of_arc(offsets, num_rows, chosen[i]);
    rows[i] = row;
    arcs[i] = uppers[row] + chosen[i] - offsets[row];
  }
}

// Weight and edge in one word; the weight's sign stays its own.
__device__ inline i64 pack(i64 weight, i64 edge) { return (i64)((u64)weight << 32) | edge; }

extern "C" __global__ void sample_edges(i64 lo, i64 hi, i64 step, i64 packed, const i64* offsets, i64 num_rows,
                                        const i64* uppers, const vertex_t* targets, const weight_t* weights,
                                        const vertex_t* labels, i64 base, i64* keys) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 e = i * step, row = row_of_arc(offsets, num_rows, e), arc = uppers[row] + e - offsets[row];
    i64 key = order_of(weights[arc]);
    if (packed) key = pack(key, e);
    keys[i] = labels[base + row] == labels[targets[arc]] ? TOP : key;
  }
}

extern "C" __global__ void list_edges(i64 lo, i64 hi, const i64* offsets, i64 num_rows, const i64* uppers,
                                      const vertex_t* targets, const weight_t* weights, const vertex_t* labels,
                                      i64 base, const i64* bounds, i64* counters, vertex_t* ends, i64* keys,
                                      i64* edges) {
  i64 least = bounds[0], most = bounds[1];
  Appender list(bounds[2], &counters[0], ends, keys, edges);
  auto key_of = [&](i64 arc, i64 e) { return edges ? order_of(weights[arc]) : pack(order_of(weights[arc]), e); };
  auto is_asked = [&](i64 key) { return key >= least && key <= most; };
  i64 tile = (hi - lo) / (TILES_A_WARP * warp_count()) / LEAST_TILE * LEAST_TILE;
  tile = tile < LEAST_TILE ? LEAST_TILE : tile > MOST_TILE ? MOST_TILE : tile;
  for (i64 begin = lo + warp_index() * tile; begin < hi; begin += warp_count() * tile) {
    i64 end = begin + tile < hi ? begin + tile : hi;
    i64 found = row_of_arc(offsets, num_rows, lane_index() & 1 ? end - 1 : begin);
    i64 first_row = __shfl_sync(0xFFFFFFFFu, found, 0), last_row = __shfl_sync(0xFFFFFFFFu, found, 1);
    // Where most rows have no edge, each lane searches for its own.
    for (i64 at = begin; last_row - first_row >= tile && at < end; at += 32) {
      i64 e = at + lane_index(), key = 0;
      vertex_t u = 0, v = 0;
      if (e < end) {
        i64 row = first_row + row_of_arc(offsets + first_row, last_row - first_row + 1, e);
        i64 arc = uppers[row] + e - offsets[row];
        key = key_of(arc, e);
        if (is_asked(key)) u = labels[base + row], v = labels[targets[arc]];
      }
      list.push(u != v, u, v, key, e);
    }
    // Elsewhere the rows are taken 32 at a time: a lane knows where one of them starts, and asks the others.
    for (; last_row - first_row < tile && first_row <= last_row; first_row += 32) {
      bool is_row = first_row + lane_index() <= last_row;
      i64 row = is_row ? first_row + lane_index() : last_row;
      i64 offset = offsets[row], shift = uppers[row] - offset;
      vertex_t own = labels[base + row];
      int start = !is_row ? MOST_TILE : offset <= begin ? 0 : (int)(offset - begin);
      // Few rows take few questions; one takes none.
      int others = (int)(last_row - first_row < 31 ? last_row - first_row : 31);
      int widest = others ? 1 << (31 - __clz(others)) : 0;
      int stop = (int)((first_row + 32 <= last_row ? offsets[first_row + 32] : end) - begin);
      for (int at = __shfl_sync(0xFFFFFFFFu, start, 0); at < stop; at += 32 * BATCH) {
        vertex_t u[BATCH], v[BATCH];
        i64 key[BATCH];
        // First all that must be loaded, so that no load waits for another's list.
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
          int e = at + 32 * k + lane_index(), lane = 0;
          for (int d = widest; d; d >>= 1) lane += __shfl_sync(0xFFFFFFFFu, start, lane + d) <= e ? d : 0;
          i64 arc = begin + e + __shfl_sync(0xFFFFFFFFu, shift, lane);
          u[k] = v[k] = __shfl_sync(0xFFFFFFFFu, own, lane);
          key[k] = e < stop ? key_of(arc, begin + e) : 0;
          if (e < stop && is_asked(key[k])) v[k] = labels[targets[arc]];
        }
#pragma unroll
        for (int k = 0; k < BATCH; k++) list.push(u[k] != v[k], u[k], v[k], key[k], begin + at + 32 * k + lane_index());
      }
    }
  }
  list.flush();
}

extern "C" __global__ void find_lightest(i64 lo, i64 hi, const vertex_t* ends, const i64* keys, i64* best) {
  offer_edges(lo, hi, ends, keys, nullptr, nullptr, best);
}

extern "C" __global__ void find_first(i64 lo, i64 hi, const vertex_t* ends, const i64* keys, const i64* edges,
                                      const i64* best, i64* first) {
  offer_edges(lo, hi, ends, keys, edges, best, first);
}

extern "C" __global__ void hook(i64 lo, i64 hi, const vertex_t* ends, const i64* names, const i64* best,
                                vertex_t* above) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t u = ends[2 * i], v = ends[2 * i + 1];
    i64 name = names[i];
    if (name == best[u]) above[u] = v;
    if (name == best[v]) above[v] = u;
  }
}

extern "C" __global__ void remove_cycles(i64 lo, i64 hi, vertex_t* above) {
  for (i64 tree = lo + thread_index(); tree < hi; tree += thread_count()) {
    vertex_t other = load_relaxed(&above[tree]);
    if (tree < (i64)other && (i64)load_relaxed(&above[other]) == tree) store_relaxed(&above[tree], (vertex_t)tree);
  }
}

extern "C" __global__ void take_edges(i64 lo, i64 hi, const vertex_t* above, const i64* best, const vertex_t* numbers,
                                      i64 base, i64 mask, i64* forest) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    if ((i64)above[i] != base + i)
      forest[i - ((i64)numbers[i] - (i64)numbers[0])] = best[i] == TOP ? TOP : best[i] & mask;
}

extern "C" __global__ void join(i64 lo, i64 hi, vertex_t* above, vertex_t* is_root, i64* counters) {
  for (i64 tree = lo + thread_index(); tree < hi; tree += thread_count()) {
    vertex_t root = load_relaxed(&above[tree]), next = load_relaxed(&above[root]);
    for (int hop = 0; hop < HOPS && next != root; hop++) root = next, next = load_relaxed(&above[root]);
    if (next != root) atomic_add(&counters[0], (i64)1);
    store_relaxed(&above[tree], root);
    is_root[tree] = (i64)root == tree;
  }
}

extern "C" __global__ void renumber(i64 lo, i64 hi, i64 num_trees, const vertex_t* above, const vertex_t* numbers,
                                    i64* counters, vertex_t* labels) {
  for (i64 tree = lo + thread_index(); tree < hi; tree += thread_count()) {
    labels[tree] = numbers[above[tree]];
    if (tree == num_trees - 1) counters[2] = numbers[num_trees];
  }
}

extern "C" __global__ void contract(i64 lo, i64 hi, const vertex_t* ends, const i64* keys, const i64* edges,
                                    const vertex_t* labels, i64* counters, vertex_t* new_ends, i64* new_keys,
                                    i64* new_edges) {
  Appender list(TOP, &counters[1], new_ends, new_keys, new_edges);
  for (i64 begin = lo + warp_index() * 32; begin < hi; begin += warp_count() * 32) {
    i64 i = begin + lane_index();
    vertex_t u = 0, v = 0;
    if (i < hi) u = labels[ends[2 * i]], v = labels[ends[2 * i + 1]];
    list.push(u != v, u, v, u != v ? keys[i] : 0, u != v && edges ? edges[i] : 0);
  }
  list.flush();
}
