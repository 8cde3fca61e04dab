#include "kernels.cuh"
#include "prelude.cuh"

constexpr int MAX_JOIN_HOPS = 128;
// Arcs of a warp of list_light after one search for their rows: few where there are few arcs, so
// that every warp has some.
constexpr i64 MIN_TILE = 512, MAX_TILE = 8192;

// Keys of weights, in 32 bits if the weights have no more.
template <int bytes> struct key_of {
  typedef i32 type;
};
template <> struct key_of<8> {
  typedef i64 type;
};
typedef key_of<sizeof(weight_t)>::type weight_key_t;
__device__ inline weight_key_t key_of_weight(weight_t w) {
  return (weight_key_t)weight_sort_key(w);
}

// Adjacent weights that one load brings.
struct alignas((sizeof(weight_t) < 8 ? 4 : 2) * sizeof(weight_t)) Pack {
  static constexpr int size = sizeof(weight_t) < 8 ? 4 : 2;
  weight_t of[size];
};

// The weights of a row, in packs, where `limit` is the number of all arcs.
struct PackedRow {
  const weight_t* weights;
  i64 first, limit;  // the first arc of the first pack; it may be one of the row before
  int begin, end;    // of the row, from `first` on
  __device__ inline PackedRow(const weight_t* weights_, i64 row_begin, i64 row_end, i64 limit_)
      : weights(weights_), limit(limit_) {
    begin = (int)((row_begin + (i64)((u64)weights / sizeof(weight_t))) % Pack::size);
    first = row_begin - begin;
    end = begin + (int)(row_end - row_begin);
  }
  __device__ inline Pack load(int at) const {
    if (first + at >= 0 && first + at + Pack::size <= limit)
      return *(const Pack*)&weights[first + at];
    Pack pack;
    for (int k = 0; k < Pack::size; k++)
      pack.of[k] = at + k >= begin && at + k < end ? weights[first + at + k] : weight_t();
    return pack;
  }
};

// The least weight that a lane has read, and the pack that has it; -1 for none.
struct Lightest {
  weight_key_t weight;
  int at;
  __device__ inline Lightest() : weight(top_of<weight_key_t>::value()), at(-1) {}
  __device__ inline void update(weight_key_t w, int i) {
    if (i >= 0 && (at < 0 || w < weight || (w == weight && i < at))) {
      weight = w;
      at = i;
    }
  }
};

// The lightest arc of a row, TOP if it is empty; by the `width` lanes of a mask, which stop where
// one of them has found an arc of the lowest weight.
__device__ inline i64 lightest_of_row(const PackedRow& row, int width, u32 mask,
                                      weight_key_t lowest) {
  constexpr int PACKS = 4;
  Lightest best;
  int lane = lane_index() & (width - 1);
  for (int first = 0; first < row.end; first += PACKS * width * Pack::size) {
    Pack packs[PACKS];
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
      int at = first + (p * width + lane) * Pack::size;
      if (at < row.end) packs[p] = row.load(at);
    }
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
      int at = first + (p * width + lane) * Pack::size;
      weight_key_t least = top_of<weight_key_t>::value();
#pragma unroll
      for (int k = 0; k < Pack::size; k++) {
        weight_key_t weight = key_of_weight(packs[p].of[k]);
        if (at + k >= row.begin && at + k < row.end && weight < least) least = weight;
      }
      best.update(least, at < row.end ? at : -1);
    }
    if (__any_sync(mask, best.at >= 0 && best.weight == lowest)) break;
  }
  for (int d = width / 2; d; d >>= 1) {
    weight_key_t weight = __shfl_xor_sync(mask, best.weight, d);
    best.update(weight, __shfl_xor_sync(mask, best.at, d));
  }
  if (row.begin == row.end) return TOP;
  // Of the pack its first arc of this weight.
  i64 arc = row.first + (best.at < row.begin ? row.begin : best.at);
  while (key_of_weight(row.weights[arc]) != best.weight) arc++;
  return arc;
}

extern "C" __global__ void lightest_arcs(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                         const weight_t* weights, i64 base, i64 longest, i64 lowest,
                                         vertex_t* above, i64* arcs) {
  constexpr int MAX_WIDTH = 16;
  if (lo >= hi) return;
  i64 limit = indptr[hi];
  // A warp processes 32 rows, as many lanes for each as have two packs of the longest.
  for (i64 first = lo + warp_index() * 32; first < hi; first += warp_count() * 32) {
    i64 v = first + lane_index(), begin = v < hi ? indptr[v] : 0, end = v < hi ? indptr[v + 1] : 0;
    if (end - begin >= longest) end = begin;
    i64 most = -warp_min(begin - end);
    int width = 1;
    while (width < MAX_WIDTH && 2 * width * Pack::size < most) width *= 2;
    u32 mask = ((1u << width) - 1) << (lane_index() & ~(width - 1));
    int rows = 32 / width;
    i64 arc = TOP;
    for (int turn = 0; turn < width; turn++) {
      int row = turn * rows + lane_index() / width;
      i64 row_begin = __shfl_sync(0xFFFFFFFFu, begin, row),
          row_end = __shfl_sync(0xFFFFFFFFu, end, row);
      i64 found = lightest_of_row(PackedRow(weights, row_begin, row_end, limit), width, mask,
                                  (weight_key_t)lowest);
      // From the lanes of a row to its own.
      found = __shfl_sync(0xFFFFFFFFu, found, (lane_index() - turn * rows) * width & 31);
      if (lane_index() / rows == turn) arc = found;
    }
    if (v < hi) {
      arcs[v] = arc;
      above[v] = arc == TOP ? (vertex_t)(base + v) : targets[arc];
    }
  }
}

extern "C" __global__ void sample_edges(i64 lo, i64 hi, i64 step, const i64* indptr, i64 num_rows,
                                        const vertex_t* targets, const weight_t* weights,
                                        const vertex_t* labels, i64 base, i64 stride,
                                        i64 multiplier, i64* keys, i64* positions) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 arc = i * step, row = row_of_arc(indptr, num_rows, arc);
    vertex_t target = targets[arc], own = position_of((vertex_t)(base + row), stride, multiplier);
    bool is_edge =
        labels[base + row] != labels[target] && position_of(target, stride, multiplier) > own;
    keys[i] = is_edge ? weight_sort_key(weights[arc]) : TOP;
    positions[i] = is_edge ? (i64)own : TOP;
  }
}

// Stages the few arcs of a warp that pass a first test, until there is one for every lane.
struct ArcStage {
  static constexpr int CAPACITY = 63;
  i64* arcs;
  int length;
  __device__ inline ArcStage() : length(0) {
    __shared__ i64 all_arcs[Appender::MAX_WARPS][CAPACITY];
    arcs = all_arcs[threadIdx.x >> 5];
  }
  // Add an arc of each lane that has one; called by the whole warp, with fewer than 32 staged.
  __device__ inline void push(bool has_arc, i64 arc) {
    u32 mask = __ballot_sync(0xFFFFFFFFu, has_arc);
    if (has_arc) arcs[length + lanes_before(mask)] = arc;
    length += __popc(mask);
  }
  // Visit staged arcs, the last first, until fewer than `limit` are left.
  template <class Visit> __device__ inline void visit_until(int limit, Visit visit) {
    while (length >= limit) {
      __syncwarp();
      int count = length < 32 ? length : 32, place = length - count + lane_index();
      visit(lane_index() < count, lane_index() < count ? arcs[place] : 0);
      length -= count;
      __syncwarp();  // all lanes have read what the next push overwrites
    }
  }
};

// Bits of those weights from `at` on that are not above `most`, in the part of 16 bytes between
// begin and end.
__device__ inline u32 light_of_quad(i64 at, i64 begin, i64 end, const weight_t* weights,
                                    weight_key_t most) {
  u32 light = 0;
  if (at >= begin && at + Quad<weight_t>::size <= end) {
    Quad<weight_t> quad = load_quad(&weights[at]);
#pragma unroll
    for (int k = 0; k < Quad<weight_t>::size; k++)
      light |= (u32)(key_of_weight(quad.of[k]) <= most) << k;
  } else {
    for (int k = 0; k < Quad<weight_t>::size; k++)
      if (at + k >= begin && at + k < end)
        light |= (u32)(key_of_weight(weights[at + k]) <= most) << k;
  }
  return light;
}

extern "C" __global__ void list_light(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                      const weight_t* weights, const vertex_t* labels,
                                      const i64* bounds, i64* counters, vertex_t* ends, i64* keys,
                                      i64* edges) {
  constexpr int SIZE = Quad<weight_t>::size, QUADS = 2;
  i64 heaviest = bounds[0], last_position = bounds[1], num_rows = bounds[3], base = bounds[4],
      stride = bounds[5], multiplier = bounds[6], shift = bounds[7];
  weight_key_t top = top_of<weight_key_t>::value(),
               most = heaviest < (i64)top ? (weight_key_t)heaviest : top;
  Appender list(bounds[2], &counters[0], ends, keys, edges);
  ArcStage stage;
  i64 tile = (hi - lo) / warp_count() / MIN_TILE * MIN_TILE;
  tile = tile < MIN_TILE ? MIN_TILE : tile > MAX_TILE ? MAX_TILE : tile;
  // Tiles begin where 16 bytes do.
  i64 aligned = lo - (lo + (i64)((u64)weights / sizeof(weight_t))) % SIZE;
  for (i64 first = aligned + warp_index() * tile; first < hi; first += warp_count() * tile) {
    i64 begin = first < lo ? lo : first, end = first + tile < hi ? first + tile : hi;
    i64 found = row_of_arc(indptr, num_rows, lane_index() & 1 ? end - 1 : begin);
    i64 first_row = __shfl_sync(0xFFFFFFFFu, found, 0),
        rows = __shfl_sync(0xFFFFFFFFu, found, 1) - first_row + 1;
    auto list_arc = [&](bool has_arc, i64 arc) {
      vertex_t u = 0, v = 0;
      i64 key = 0;
      if (has_arc) {
        i64 state = base + first_row + row_of_arc(indptr + first_row, rows, arc);
        vertex_t target = targets[arc], own = position_of((vertex_t)state, stride, multiplier);
        key = weight_sort_key(weights[arc]);
        if (position_of(target, stride, multiplier) > own &&
            (key < heaviest || (i64)own <= last_position)) {
          u = labels[state];
          v = labels[target];
        }
        if (!edges) key = (i64)((u64)key << shift) | arc;
      }
      list.push(u != v, u, v, key, arc);
    };
    // Where all are light there is nothing to stage.
    for (i64 at = begin; most == top && at < end; at += 32)
      list_arc(at + lane_index() < end, at + lane_index());
    for (i64 at = first; most != top && at < end; at += QUADS * 32 * SIZE) {
      u32 light[QUADS];
#pragma unroll
      for (int q = 0; q < QUADS; q++)
        light[q] = light_of_quad(at + (q * 32 + lane_index()) * SIZE, begin, end, weights, most);
#pragma unroll
      for (int q = 0; q < QUADS; q++)
        while (__any_sync(0xFFFFFFFFu, light[q])) {
          stage.push(light[q], at + (q * 32 + lane_index()) * SIZE + __ffs(light[q]) - 1);
          light[q] &= light[q] - 1;
          stage.visit_until(32, list_arc);
        }
    }
    stage.visit_until(1, list_arc);  // the next tile has other rows
  }
  list.flush();
}

// The place of each lane that has an entry in a list of *count, which grows by these; by the whole
// warp.
__device__ inline i64 place_in_list(i64* count, bool has_entry) {
  u32 mask = __ballot_sync(0xFFFFFFFFu, has_entry);
  i64 first = 0;
  if (lane_index() == 0 && mask) first = atomic_add(count, (i64)__popc(mask));
  return __shfl_sync(0xFFFFFFFFu, first, 0) + lanes_before(mask);
}

extern "C" __global__ void list_rows(i64 lo, i64 hi, const i64* indptr, const vertex_t* labels,
                                     i64 base, i64* counters, i64* rows, i64* lengths) {
  vertex_t giant = labels[0];
  i64 num_arcs = 0;
  for (i64 begin = lo + warp_index() * 32; begin < hi; begin += warp_count() * 32) {
    i64 row = begin + lane_index();
    bool is_outside = row < hi && labels[base + row] != giant;
    i64 place = place_in_list(&counters[0], is_outside);
    if (is_outside) {
      i64 length = indptr[row + 1] - indptr[row];
      rows[place] = row;
      lengths[place] = length;
      num_arcs += length;
    }
  }
  num_arcs = warp_sum(num_arcs);
  if (lane_index() == 0 && num_arcs) atomic_add(&counters[1], num_arcs);
}

extern "C" __global__ void list_outside(i64 lo, i64 hi, const i64* offsets, const i64* rows,
                                        const i64* indptr, const vertex_t* targets,
                                        const weight_t* weights, const vertex_t* labels,
                                        const i64* bounds, i64* counters, i64* arcs, i64* best) {
  i64 capacity = bounds[0], base = bounds[2], stride = bounds[3], multiplier = bounds[4],
      shift = bounds[5], length = ArcTile::length(hi - lo);
  vertex_t giant = labels[0];
  for (i64 begin = lo + blockIdx.x * length; begin < hi; begin += gridDim.x * length) {
    i64 end = begin + length < hi ? begin + length : hi;
    ArcTile tile(offsets, bounds[1], begin, end);
    for (i64 at = begin; at < end; at += blockDim.x) {
      i64 item = at + threadIdx.x, arc = 0;
      bool is_listed = false;
      if (item < end) {
        i64 place = tile.row_of(item), row = rows[place];
        arc = indptr[row] + item - offsets[place];
        vertex_t target = targets[arc], state = (vertex_t)(base + row), v = labels[target];
        if (v == giant && best) {
          i64 key = (i64)((u64)weight_sort_key(weights[arc]) << shift) | arc;
          if (key < load_stale(&best[place])) atomic_min(&best[place], key);
        } else {
          is_listed =
              labels[state] != v && (v == giant || position_of(target, stride, multiplier) >
                                                       position_of(state, stride, multiplier));
        }
      }
      i64 place = place_in_list(&counters[0], is_listed);
      if (is_listed && place < capacity) arcs[place] = arc;
    }
  }
}

extern "C" __global__ void append_best(i64 lo, i64 hi, const i64* best, i64 mask, i64 capacity,
                                       i64* counters, i64* arcs) {
  for (i64 begin = lo + warp_index() * 32; begin < hi; begin += warp_count() * 32) {
    i64 i = begin + lane_index(), key = i < hi ? best[i] : TOP,
        place = place_in_list(&counters[0], key != TOP);
    if (key != TOP && place < capacity) arcs[place] = key & mask;
  }
}

extern "C" __global__ void find_ends(i64 lo, i64 hi, const i64* arcs, const i64* indptr,
                                     i64 num_rows, const vertex_t* targets, i64 base, i64 stride,
                                     i64 multiplier, i64* lower, i64* higher) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 near = position_of((vertex_t)(base + row_of_arc(indptr, num_rows, arcs[i])), stride,
                           multiplier),
        far = position_of(targets[arcs[i]], stride, multiplier);
    i64 low = near < far ? near : far, high = near < far ? far : near;
    lower[i] = higher ? low : low << 32 | high;
    if (higher) higher[i] = high;
  }
}

extern "C" __global__ void list_arcs(i64 lo, i64 hi, const i64* arcs, const i64* indptr,
                                     i64 num_rows, const vertex_t* targets, const weight_t* weights,
                                     const vertex_t* labels, i64 base, i64 shift, vertex_t* ends,
                                     i64* keys, i64* edges) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 key = weight_sort_key(weights[arcs[i]]);
    ends[2 * i] = labels[base + row_of_arc(indptr, num_rows, arcs[i])];
    ends[2 * i + 1] = labels[targets[arcs[i]]];
    keys[i] = edges ? key : (i64)((u64)key << shift) | i;
    if (edges) edges[i] = i;
  }
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
