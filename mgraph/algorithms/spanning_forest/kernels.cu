#include "kernels.cuh"
#include "prelude.cuh"

constexpr int MAX_JOIN_HOPS = 128;
// Threads of a block that searches for hubs.
constexpr int HUBS_BLOCK = 256;
// Edges that a warp of list_edges processes after one search for their rows, and loads of each lane
// at a time. Where rows have few edges a tile takes long: tiles are smaller where there are few, so
// that no warp finishes long after the others.
constexpr int MIN_TILE = 256, MAX_TILE = 2048, TILES_PER_WARP = 8, BATCH = 3;

// The lightest arc that a thread has read, the first of equal ones.
struct Lightest {
  i64 weight, arc;
  __device__ inline Lightest() : weight(TOP), arc(TOP) {}
  __device__ inline void update(i64 w, i64 i) {
    if (w < weight || (w == weight && i < arc)) {
      weight = w;
      arc = i;
    }
  }
};

// Adjacent weights that one load brings.
struct alignas((sizeof(weight_t) < 8 ? 4 : 2) * sizeof(weight_t)) Pack {
  static constexpr int size = sizeof(weight_t) < 8 ? 4 : 2;
  weight_t of[size];
};

// Update `best` by those arcs from begin to end that are in this thread's packs, every
// `threads`-th.
__device__ inline void update_by_arcs(Lightest& best, i64 begin, i64 end, const weight_t* weights,
                                      int thread, int threads) {
  i64 before = (begin + (i64)((u64)weights / sizeof(weight_t))) % Pack::size;
#pragma unroll 4
  for (i64 i = begin - before + thread * Pack::size; i < end; i += threads * Pack::size) {
    if (i >= begin && i + Pack::size <= end) {
      Pack pack = *(const Pack*)&weights[i];
#pragma unroll
      for (int k = 0; k < Pack::size; k++) best.update(weight_sort_key(pack.of[k]), i + k);
    } else {
      for (i64 k = i < begin ? begin : i; k < i + Pack::size && k < end; k++)
        best.update(weight_sort_key(weights[k]), k);
    }
  }
}

extern "C" __global__ void lightest_arcs(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                         const weight_t* weights, i64 base, i64 longest,
                                         vertex_t* above, i64* arcs) {
  // A warp processes four rows, a sub-warp tile of eight lanes each.
  for (i64 first = lo + warp_index() * 4; first < hi; first += warp_count() * 4) {
    i64 v = first + (lane_index() >> 3);
    i64 begin = v < hi ? indptr[v] : 0, end = v < hi ? indptr[v + 1] : 0;
    bool is_own_row = v < hi && end - begin < longest;
    Lightest best;
    if (is_own_row) update_by_arcs(best, begin, end, weights, lane_index() & 7, 8);
    for (int d = 4; d; d >>= 1) {
      i64 weight = __shfl_xor_sync(0xFFFFFFFFu, best.weight, d),
          arc = __shfl_xor_sync(0xFFFFFFFFu, best.arc, d);
      best.update(weight, arc);
    }
    if (is_own_row && (lane_index() & 7) == 0) {
      arcs[v] = best.arc;
      above[v] = best.arc == TOP ? (vertex_t)(base + v) : targets[best.arc];
    }
  }
}

// Find the lightest arc of a row, by a whole block.
__device__ inline void find_lightest_by_block(i64 v, const i64* indptr, const vertex_t* targets,
                                              const weight_t* weights, vertex_t* above, i64* arcs) {
  __shared__ i64 least, first;
  if (threadIdx.x == 0) {
    least = TOP;
    first = TOP;
  }
  Lightest best;
  update_by_arcs(best, indptr[v], indptr[v + 1], weights, threadIdx.x, blockDim.x);
  __syncthreads();
  if (best.arc != TOP) atomic_min(&least, best.weight);
  __syncthreads();
  if (best.arc != TOP && best.weight == least) atomic_min(&first, best.arc);
  __syncthreads();
  if (threadIdx.x == 0) {
    arcs[v] = first;
    above[v] = targets[first];
  }
  __syncthreads();  // all threads are done with what the next row resets
}

extern "C" __global__ void lightest_arcs_of_hubs(i64 lo, i64 hi, i64 num_rows, i64 num_runs,
                                                 const i64* indptr, const vertex_t* targets,
                                                 const weight_t* weights, i64 longest,
                                                 vertex_t* above, i64* arcs) {
  __shared__ i64 hubs[HUBS_BLOCK];
  __shared__ i32 count;
  for (i64 run = lo + blockIdx.x; run < hi; run += gridDim.x) {
    // Each thread reads the length of one row; the block processes the long ones together.
    for (i64 first = run; first < num_rows; first += num_runs * blockDim.x) {
      if (threadIdx.x == 0) count = 0;
      __syncthreads();
      i64 own = first + num_runs * threadIdx.x;
      if (own < num_rows && indptr[own + 1] - indptr[own] >= longest)
        hubs[atomic_add(&count, 1)] = own;
      __syncthreads();
      for (int k = 0; k < count; k++)
        find_lightest_by_block(hubs[k], indptr, targets, weights, above, arcs);
      __syncthreads();  // all threads have read the list
    }
  }
}

extern "C" __global__ void find_uppers(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                       i64 base, i64 stride, i64 multiplier, i64* uppers,
                                       i64* lengths) {
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

extern "C" __global__ void find_arcs(i64 lo, i64 hi, const i64* chosen, const i64* offsets,
                                     i64 num_rows, const i64* uppers, i64* rows, i64* arcs) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 row = row_of_arc(offsets, num_rows, chosen[i]);
    rows[i] = row;
    arcs[i] = uppers[row] + chosen[i] - offsets[row];
  }
}

// Weight and edge in one word; the weight's sign stays its own.
__device__ inline i64 pack(i64 weight, i64 edge) { return (i64)((u64)weight << 32) | edge; }

extern "C" __global__ void sample_edges(i64 lo, i64 hi, i64 step, i64 packed, const i64* offsets,
                                        i64 num_rows, const i64* uppers, const vertex_t* targets,
                                        const weight_t* weights, const vertex_t* labels, i64 base,
                                        i64* keys) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 e = i * step, row = row_of_arc(offsets, num_rows, e), arc = uppers[row] + e - offsets[row];
    i64 key = weight_sort_key(weights[arc]);
    if (packed) key = pack(key, e);
    keys[i] = labels[base + row] == labels[targets[arc]] ? TOP : key;
  }
}

extern "C" __global__ void mark_tree(i64 lo, i64 hi, i64 num_states, const vertex_t* labels,
                                     i64 tree, u32* bits) {
  for (i64 word = lo + warp_index(); word < hi; word += warp_count()) {
    i64 state = 32 * word + lane_index();
    u32 mask = __ballot_sync(0xFFFFFFFFu, state < num_states && (i64)labels[state] == tree);
    if (lane_index() == 0) bits[word] = mask;
  }
}

// Stages the few edges of a warp that pass a first test, until there is one for every lane.
struct EdgeStage {
  static constexpr int CAPACITY = 32 * BATCH + 31;
  vertex_t* trees;
  i64 *arcs, *edges;
  int length;
  __device__ inline EdgeStage() : length(0) {
    __shared__ vertex_t all_trees[Appender::MAX_WARPS][CAPACITY];
    __shared__ i64 all_arcs[Appender::MAX_WARPS][CAPACITY],
        all_edges[Appender::MAX_WARPS][CAPACITY];
    int warp = threadIdx.x >> 5;
    trees = all_trees[warp];
    arcs = all_arcs[warp];
    edges = all_edges[warp];
  }
  // Add an edge of each lane that has one, by the tree of its lower end; called by the whole warp.
  __device__ inline void push(bool has_edge, vertex_t tree, i64 arc, i64 edge) {
    u32 mask = __ballot_sync(0xFFFFFFFFu, has_edge);
    int place = length + lanes_before(mask);
    if (has_edge) {
      trees[place] = tree;
      arcs[place] = arc;
      edges[place] = edge;
    }
    length += __popc(mask);
  }
  // Visit staged edges, the last first, until fewer than `limit` are left.
  template <class Visit> __device__ inline void visit_until(int limit, Visit visit) {
    while (length >= limit) {
      __syncwarp();
      int count = length < 32 ? length : 32, place = length - count + lane_index();
      bool has_edge = lane_index() < count;
      visit(has_edge, has_edge ? trees[place] : 0, has_edge ? arcs[place] : 0,
            has_edge ? edges[place] : 0);
      length -= count;
      __syncwarp();  // all lanes have read what the next push overwrites
    }
  }
};

// Up to 32 rows of a tile, one per lane, from `first` on: where each starts in the tile, the offset
// from its edges to its arcs, and its tree.
struct TileRows {
  int start, widest;
  i64 shift;
  vertex_t tree;
  __device__ inline TileRows(i64 first, i64 last, i64 begin, const i64* offsets, const i64* uppers,
                             const vertex_t* labels) {
    bool is_row = first + lane_index() <= last;
    i64 row = is_row ? first + lane_index() : last, offset = offsets[row];
    shift = uppers[row] - offset;
    tree = labels[row];
    start = !is_row ? MAX_TILE : offset <= begin ? 0 : (int)(offset - begin);
    // Few rows need few shuffles; one needs none.
    int below_mask = (int)(last - first < 31 ? last - first : 31);
    widest = below_mask ? 1 << (31 - __clz(below_mask)) : 0;
  }
  // The lane that has the row of an edge of the tile.
  __device__ inline int lane_of(int edge) const {
    int lane = 0;
    for (int d = widest; d; d >>= 1)
      lane += __shfl_sync(0xFFFFFFFFu, start, lane + d) <= edge ? d : 0;
    return lane;
  }
};

// Stage those edges at .. stop of a tile, BATCH per lane, that may be requested: by their keys, or,
// where the giant is known, unless both ends are in it. All loads are issued first, so that none
// waits for another edge's test.
template <class IsRequested>
__device__ inline void stage_open(const TileRows& rows, int at, int stop, i64 begin,
                                  const u32* inside, i64 giant, const vertex_t* targets,
                                  IsRequested is_requested, EdgeStage& stage) {
  vertex_t tree[BATCH], target[BATCH];
  i64 arc[BATCH];
  bool is_open[BATCH];
#pragma unroll
  for (int k = 0; k < BATCH; k++) {
    int e = at + 32 * k, lane = rows.lane_of(e);
    arc[k] = begin + e + __shfl_sync(0xFFFFFFFFu, rows.shift, lane);
    tree[k] = __shfl_sync(0xFFFFFFFFu, rows.tree, lane);
    is_open[k] = e < stop;
  }
  if (inside) {
#pragma unroll
    for (int k = 0; k < BATCH; k++)
      target[k] = is_open[k] && (i64)tree[k] == giant ? targets[arc[k]] : 0;
#pragma unroll
    for (int k = 0; k < BATCH; k++)
      is_open[k] &= (i64)tree[k] != giant || !test_bit(inside, target[k]);
  } else {
#pragma unroll
    for (int k = 0; k < BATCH; k++)
      is_open[k] = is_open[k] && is_requested(arc[k], begin + at + 32 * k);
  }
#pragma unroll
  for (int k = 0; k < BATCH; k++) stage.push(is_open[k], tree[k], arc[k], begin + at + 32 * k);
}

extern "C" __global__ void list_edges(i64 lo, i64 hi, const i64* offsets, const i64* uppers,
                                      const vertex_t* targets, const weight_t* weights,
                                      const vertex_t* labels, i64 base, const u32* inside,
                                      const i64* bounds, i64* counters, vertex_t* ends, i64* keys,
                                      i64* edges) {
  i64 min_key = bounds[0], max_key = bounds[1], num_rows = bounds[3],
      giant = inside ? bounds[4] : -1;
  Appender list(bounds[2], &counters[0], ends, keys, edges);
  EdgeStage stage;
  auto key_of = [&](i64 arc, i64 e) {
    return edges ? weight_sort_key(weights[arc]) : pack(weight_sort_key(weights[arc]), e);
  };
  auto is_requested = [&](i64 arc, i64 e) {
    i64 key = key_of(arc, e);
    return key >= min_key && key <= max_key;
  };
  auto list_edge = [&](bool has_edge, vertex_t u, i64 arc, i64 e) {
    vertex_t v = has_edge && is_requested(arc, e) ? labels[targets[arc]] : u;
    list.push(u != v, u, v, u != v ? key_of(arc, e) : 0, e);
  };
  i64 tile = (hi - lo) / (TILES_PER_WARP * warp_count()) / MIN_TILE * MIN_TILE;
  tile = tile < MIN_TILE ? MIN_TILE : tile > MAX_TILE ? MAX_TILE : tile;
  for (i64 begin = lo + warp_index() * tile; begin < hi; begin += warp_count() * tile) {
    i64 end = begin + tile < hi ? begin + tile : hi;
    i64 found = row_of_arc(offsets, num_rows, lane_index() & 1 ? end - 1 : begin);
    i64 first_row = __shfl_sync(0xFFFFFFFFu, found, 0),
        last_row = __shfl_sync(0xFFFFFFFFu, found, 1);
    // Where most rows have no edge, each lane searches for its own row.
    for (i64 at = begin; last_row - first_row >= tile && at < end; at += 32) {
      i64 e = at + lane_index(), row = first_row;
      if (e < end) row += row_of_arc(offsets + first_row, last_row - first_row + 1, e);
      stage.push(e < end, labels[base + row], uppers[row] + e - offsets[row], e);
      stage.visit_until(32, list_edge);
    }
    // Elsewhere 32 rows are loaded at a time: each lane has the start of one and gets the others'
    // by shuffles.
    for (; last_row - first_row < tile && first_row <= last_row; first_row += 32) {
      TileRows rows(first_row, last_row, begin, offsets, uppers, labels + base);
      int stop = (int)((first_row + 32 <= last_row ? offsets[first_row + 32] : end) - begin);
      for (int at = __shfl_sync(0xFFFFFFFFu, rows.start, 0); at < stop; at += 32 * BATCH) {
        stage_open(rows, at + lane_index(), stop, begin, inside, giant, targets, is_requested,
                   stage);
        stage.visit_until(32, list_edge);
      }
    }
  }
  stage.visit_until(1, list_edge);
  list.flush();
}

extern "C" __global__ void find_lightest(i64 lo, i64 hi, const vertex_t* ends, const i64* keys,
                                         i64* best) {
  lower_best_of_edges(lo, hi, ends, keys, nullptr, nullptr, best);
}

extern "C" __global__ void find_first(i64 lo, i64 hi, const vertex_t* ends, const i64* keys,
                                      const i64* edges, const i64* best, i64* first) {
  lower_best_of_edges(lo, hi, ends, keys, edges, best, first);
}

extern "C" __global__ void hook(i64 lo, i64 hi, const vertex_t* ends, const i64* names,
                                const i64* best, vertex_t* above) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t u = ends[2 * i], v = ends[2 * i + 1];
    i64 name = names[i];
    if (name == best[u]) above[u] = v;
    if (name == best[v]) above[v] = u;
  }
}

extern "C" __global__ void remove_cycles(i64 lo, i64 hi, vertex_t* above) {
  cut_cycles(lo, hi, above);
}

extern "C" __global__ void take_edges(i64 lo, i64 hi, const vertex_t* above, const i64* best,
                                      const vertex_t* numbers, i64 base, i64 mask, i64* forest) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    if ((i64)above[i] != base + i)
      forest[i - ((i64)numbers[i] - (i64)numbers[0])] = best[i] == TOP ? TOP : best[i] & mask;
}

extern "C" __global__ void join(i64 lo, i64 hi, vertex_t* above, vertex_t* is_root, i64* counters) {
  for (i64 tree = lo + thread_index(); tree < hi; tree += thread_count()) {
    vertex_t root = load_stale(&above[tree]), next = load_stale(&above[root]);
    // Written at each hop, so that other threads skip along.
    for (int hop = 0; hop < MAX_JOIN_HOPS && next != root; hop++) {
      store_relaxed(&above[tree], next);
      root = next;
      next = load_stale(&above[root]);
    }
    if (next != root) atomic_add(&counters[0], (i64)1);
    is_root[tree] = (i64)root == tree;
  }
}

extern "C" __global__ void renumber(i64 lo, i64 hi, i64 num_trees, const vertex_t* above,
                                    const vertex_t* numbers, i64* counters, vertex_t* labels) {
  for (i64 tree = lo + thread_index(); tree < hi; tree += thread_count()) {
    labels[tree] = numbers[above[tree]];
    if (tree == num_trees - 1) counters[2] = numbers[num_trees];
  }
}

extern "C" __global__ void contract(i64 lo, i64 hi, const vertex_t* ends, const i64* keys,
                                    const i64* edges, const vertex_t* labels, i64* counters,
                                    vertex_t* new_ends, i64* new_keys, i64* new_edges) {
  contract_edges(lo, hi, {ends, keys, edges}, &counters[1], {new_ends, new_keys, new_edges},
                 [&](vertex_t tree) { return labels[tree]; });
}
