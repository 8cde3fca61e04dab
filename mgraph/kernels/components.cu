// What a thread looks at together: passes over all vertices wait for memory most of the time.
constexpr int DEPTH = 4;

// The root of v's tree; entries on the way skip to their grandparents. components.py argues why any thread may
// do so at any time.
__device__ inline vertex_t find(vertex_t* parents, vertex_t v) {
  vertex_t parent = load_stale(&parents[v]);
  if (parent == v) return parent;
  vertex_t above = load_stale(&parents[parent]);
  while (above != parent) {
    store_relaxed(&parents[v], above);
    v = parent;
    parent = above;
    above = load_stale(&parents[parent]);
  }
  return parent;
}

// Hang v right under its root, which is returned; a thread writes v's entry alone, at each hop.
__device__ inline vertex_t fold(vertex_t* parents, i64 v) {
  vertex_t parent = load_stale(&parents[v]), above = load_stale(&parents[parent]);
  while (above != parent) {
    store_relaxed(&parents[v], above);
    parent = above;
    above = load_stale(&parents[parent]);
  }
  return parent;
}

// Join the trees of u and v: the larger root hangs under the smaller.
__device__ inline void link(vertex_t* parents, vertex_t u, vertex_t v) {
  vertex_t high = find(parents, u), low = find(parents, v);
  while (high != low) {
    if (high < low) {
      vertex_t higher = low;
      low = high;
      high = higher;
    }
    vertex_t old = atomic_min(&parents[high], low);
    if (old == high) break;
    // Another thread was here first: what it hung `high` under is joined with `low` too.
    high = find(parents, old);
  }
}

extern "C" __global__ void hook_first(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets, i64 base,
                                      i64 num_owned, i64 stride, i64 multiplier, vertex_t* parents) {
  for (i64 base_v = lo + thread_index(); base_v < hi; base_v += DEPTH * thread_count()) {
    i64 begin[DEPTH], end[DEPTH];
    vertex_t first[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      i64 v = base_v + k * thread_count(), row = v < hi ? state_of(v, stride, multiplier) - base : -1;
      bool is_own = 0 <= row && row < num_owned;
      begin[k] = is_own ? indptr[row] : 0, end[k] = is_own ? indptr[row + 1] : 0;
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) first[k] = begin[k] < end[k] ? targets[begin[k]] : 0;
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      vertex_t v = (vertex_t)(base_v + k * thread_count());
      if (base_v + k * thread_count() >= hi) continue;
      vertex_t parent = begin[k] < end[k] ? position_of(first[k], stride, multiplier) : v;
      parents[v] = parent < v ? parent : v;
    }
  }
}

extern "C" __global__ void link_sample(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets, i64 base, i64 stride,
                                       i64 multiplier, vertex_t* parents) {
  for (i64 row = lo + thread_index(); row < hi; row += thread_count()) {
    if ((u32)(row >> 5) * 0x9E3779B1u >= 1u << 30) continue;
    i64 begin = indptr[row], end = indptr[row + 1];
    vertex_t v = position_of((vertex_t)(base + row), stride, multiplier);
    for (i64 arc = begin; arc < begin + 2 && arc < end; arc++) {
      vertex_t target = position_of(targets[arc], stride, multiplier);
      if (target > v || arc > begin) link(parents, v, target);
    }
  }
}

extern "C" __global__ void compress(i64 lo, i64 hi, i64 first, i64 step, vertex_t* parents) {
  for (i64 i = lo + thread_index(); i < hi; i += DEPTH * thread_count()) {
    i64 v[DEPTH];
    vertex_t parent[DEPTH], above[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      i64 item = i + k * thread_count();
      v[k] = first + (item < hi ? item : i) * step, parent[k] = load_stale(&parents[v[k]]);
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) above[k] = load_stale(&parents[parent[k]]);
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
      if (above[k] != parent[k]) fold(parents, v[k]);
  }
}

extern "C" __global__ void vote_giant(i64 lo, i64 hi, i64 first, i64 step, i64 num_owned, vertex_t* parents,
                                      vertex_t* giant) {
  for (i64 item = lo + warp_index(); item < hi; item += warp_count()) {
    vertex_t root = top_of<vertex_t>::value();
    if (num_owned) root = find(parents, (vertex_t)(first + num_owned * lane_index() / 32 * step));
    int votes = 0;
    for (int lane = 0; lane < 32; lane++) votes += __shfl_sync(0xFFFFFFFFu, root, lane) == root;
    for (int d = 16; d; d >>= 1) {
      vertex_t other = __shfl_xor_sync(0xFFFFFFFFu, root, d);
      int others = __shfl_xor_sync(0xFFFFFFFFu, votes, d);
      if (others > votes || (others == votes && other < root)) root = other, votes = others;
    }
    if (lane_index() == 0) giant[item] = root;
  }
}

// The root of the first of some vertices, top if that is top: nobody.
__device__ inline vertex_t root_of(vertex_t* parents, const vertex_t* vertices) {
  return vertices[0] == top_of<vertex_t>::value() ? vertices[0] : find(parents, vertices[0]);
}

extern "C" __global__ void list_outside(i64 lo, i64 hi, const i64* indptr, i64 first, i64 step, const vertex_t* giant,
                                        vertex_t* parents, vertex_t* outside, i64* lengths, i64* counters) {
  vertex_t root = root_of(parents, giant);
  i64 arcs = 0;
  for (i64 row = lo + thread_index(); row < hi; row += thread_count()) {
    if (fold(parents, first + row * step) == root) continue;
    i64 length = indptr[row + 1] - indptr[row];
    if (length <= 0) continue;
    i64 slot = reserve(&counters[0]);
    outside[slot] = (vertex_t)row;
    lengths[slot] = length;
    arcs += length;
  }
  warp_add(&counters[1], arcs);
}

extern "C" __global__ void link_arcs(i64 lo, i64 hi, const vertex_t* rows, i64 num_rows, const i64* offsets,
                                     const i64* indptr, const vertex_t* targets, i64 base, i64 stride, i64 multiplier,
                                     vertex_t* parents) {
  i64 length = ArcTile::length(hi - lo);
  for (i64 begin = lo + blockIdx.x * length; begin < hi; begin += gridDim.x * length) {
    i64 end = begin + length < hi ? begin + length : hi;
    ArcTile tile(offsets, num_rows, begin, end);
    for (i64 arc = begin + threadIdx.x; arc < end; arc += blockDim.x) {
      i64 k = tile.row_of(arc), row = rows ? (i64)rows[k] : k;
      vertex_t u = position_of((vertex_t)(base + row), stride, multiplier);
      vertex_t v = position_of(targets[indptr[row] + arc - offsets[k]], stride, multiplier);
      if (load_stale(&parents[u]) != load_stale(&parents[v])) link(parents, u, v);
    }
  }
}

extern "C" __global__ void mark_giant(i64 lo, i64 hi, i64 base, i64 num_positions, i64 stride, i64 multiplier,
                                      const vertex_t* giant, vertex_t* parents, u32* bits) {
  vertex_t root = root_of(parents, giant);
  for (i64 word = lo + warp_index(); word < hi; word += warp_count()) {
    vertex_t v = position_of((vertex_t)(base + 32 * word + lane_index()), stride, multiplier);
    u32 mask = __ballot_sync(0xFFFFFFFFu, v < num_positions && fold(parents, v) == root);
    if (lane_index() == 0) bits[word] = mask;
  }
}

extern "C" __global__ void join_giant(i64 lo, i64 hi, i64 stride, i64 multiplier, const u32* bits,
                                      const vertex_t* giant, vertex_t* parents) {
  vertex_t root = root_of(parents, giant);
  for (i64 first = lo + thread_index(); first < hi; first += DEPTH * thread_count()) {
    bool is_told[DEPTH];
    vertex_t parent[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      i64 v = first + k * thread_count();
      is_told[k] = v < hi && test_bit(bits, state_of(v, stride, multiplier));
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) parent[k] = is_told[k] ? load_stale(&parents[first + k * thread_count()]) : root;
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      vertex_t v = (vertex_t)(first + k * thread_count());
      if (parent[k] == root) continue;
      if (parent[k] == v && root < v)
        store_relaxed(&parents[v], root);
      else
        link(parents, v, root);
    }
  }
}

extern "C" __global__ void list_others(i64 lo, i64 hi, i64 room, i64 num_positions, i64 stride, i64 multiplier,
                                       const u32* bits, const vertex_t* giant, vertex_t* parents, i64* counters,
                                       vertex_t* others, vertex_t* roots) {
  vertex_t none = top_of<vertex_t>::value();
  i64 of_giant = giant[0] == none ? -1 : state_of(giant[0], stride, multiplier);
  // Words come one a lane; in most of them no bit is left.
  for (i64 group = lo + warp_index() * 32; group < hi; group += warp_count() * 32) {
    i64 word = group + lane_index();
    u32 open = word < hi ? ~bits[word] : 0;
    if (word == of_giant >> 5 && word < hi) open |= 1u << (of_giant & 31);
    each_bit(group, open, [&](const i64(&state)[2], const bool (&there)[2]) {
      for (int half = 0; half < 2; half++) {
        vertex_t v = there[half] ? position_of((vertex_t)state[half], stride, multiplier) : none;
        vertex_t root = v < num_positions ? find(parents, v) : v;
        if (root == v) continue;
        i64 slot = reserve(&counters[0]);
        if (slot < room) others[slot] = v, roots[slot] = root;
      }
    });
  }
}

extern "C" __global__ void link_roots(i64 lo, i64 hi, const vertex_t* vertices, const vertex_t* roots,
                                      vertex_t* parents) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t v = vertices ? vertices[i] : (vertex_t)i, root = roots[i];
    if (root != v && root != load_stale(&parents[v])) link(parents, v, root);
  }
}

extern "C" __global__ void find_smallest(i64 lo, i64 hi, const id_t* positions, i64 first, i64 num_positions,
                                         const vertex_t* roots, id_t* smallest) {
  vertex_t last = top_of<vertex_t>::value();
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    if ((i64)positions[i] >= num_positions) continue;
    vertex_t root = roots[positions[i]];
    id_t user = (id_t)(first + i);
    if (root != last && load_relaxed(&smallest[root]) > user) atomic_min(&smallest[root], user);
    last = root;
  }
}

extern "C" __global__ void list_roots(i64 lo, i64 hi, i64 first, i64 step, i64 room, const vertex_t* roots,
                                      i64* counters, vertex_t* found) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 v = first + i * step;
    if ((i64)roots[v] != v) continue;
    i64 slot = reserve(&counters[0]);
    if (slot < room) found[slot] = (vertex_t)v;
  }
}

extern "C" __global__ void label_users(i64 lo, i64 hi, const id_t* positions, i64 first, i64 num_positions,
                                       const vertex_t* roots, const id_t* smallest, i64* labels) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 position = (i64)positions[i];
    labels[i] = position < num_positions ? (i64)smallest[roots[position]] : (i64)(first + i);
  }
}
