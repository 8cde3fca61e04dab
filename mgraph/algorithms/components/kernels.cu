#include "frontiers.cuh"
#include "prelude.cuh"
#include "trees.cuh"

// Vertices per thread in flight: scans of all vertices wait for memory most of the time.
constexpr int DEPTH = 4;

extern "C" __global__ void hook_first(i64 lo, i64 hi, i64 num_positions, const i64* indptr,
                                      const vertex_t* targets, i64 base, i64 num_owned, i64 stride,
                                      i64 multiplier, vertex_t* parents) {
  i64 first_row = multiplier == 1 ? base : 0, offset = multiplier == 1 ? 0 : base / stride;
  for (i64 base_item = lo + thread_index(); base_item < hi; base_item += DEPTH * thread_count()) {
    i64 begin[DEPTH], end[DEPTH];
    vertex_t first[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      i64 item = base_item + k * thread_count(), row = item < hi ? item - first_row : -1;
      bool is_own = 0 <= row && row < num_owned;
      begin[k] = is_own ? indptr[row] : 0;
      end[k] = is_own ? indptr[row + 1] : 0;
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) first[k] = begin[k] < end[k] ? targets[begin[k]] : 0;
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      i64 item = base_item + k * thread_count(), begin_v = item * multiplier;
      for (i64 v = begin_v; item < hi && v < begin_v + multiplier && v < num_positions; v++) {
        vertex_t parent = (vertex_t)v;
        if (v == begin_v + offset && begin[k] < end[k])
          parent = position_of(first[k], stride, multiplier);
        parents[v] = parent < v ? parent : (vertex_t)v;
      }
    }
  }
}

extern "C" __global__ void link_sample(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                       i64 base, i64 stride, i64 multiplier, vertex_t* parents) {
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
      v[k] = first + (item < hi ? item : i) * step;
      parent[k] = load_stale(&parents[v[k]]);
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) above[k] = load_stale(&parents[parent[k]]);
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
      if (above[k] != parent[k]) compress_path(parents, v[k]);
  }
}

extern "C" __global__ void vote_giant(i64 lo, i64 hi, i64 first, i64 step, i64 num_owned,
                                      vertex_t* parents, vertex_t* giant) {
  for (i64 item = lo + warp_index(); item < hi; item += warp_count()) {
    vertex_t root = top_of<vertex_t>::value();
    if (num_owned) root = find(parents, (vertex_t)(first + num_owned * lane_index() / 32 * step));
    int votes = 0;
    for (int lane = 0; lane < 32; lane++) votes += __shfl_sync(0xFFFFFFFFu, root, lane) == root;
    for (int d = 16; d; d >>= 1) {
      vertex_t other = __shfl_xor_sync(0xFFFFFFFFu, root, d);
      int others = __shfl_xor_sync(0xFFFFFFFFu, votes, d);
      if (others > votes || (others == votes && other < root)) {
        root = other;
        votes = others;
      }
    }
    if (lane_index() == 0) giant[item] = root;
  }
}

// The root of vertices[0]; top if that is top, no vertex.
__device__ inline vertex_t root_of(vertex_t* parents, const vertex_t* vertices) {
  return vertices[0] == top_of<vertex_t>::value() ? vertices[0] : find(parents, vertices[0]);
}

extern "C" __global__ void list_outside(i64 lo, i64 hi, const i64* indptr, i64 first, i64 step,
                                        const vertex_t* giant, vertex_t* parents, vertex_t* outside,
                                        i64* lengths, i64* counters) {
  vertex_t root = root_of(parents, giant);
  i64 arcs = 0;
  for (i64 row = lo + thread_index(); row < hi; row += thread_count()) {
    if (compress_path(parents, first + row * step) == root) continue;
    i64 length = indptr[row + 1] - indptr[row];
    if (length <= 0) continue;
    i64 slot = reserve(&counters[0]);
    outside[slot] = (vertex_t)row;
    lengths[slot] = length;
    arcs += length;
  }
  warp_add(&counters[1], arcs);
}

extern "C" __global__ void link_arcs(i64 lo, i64 hi, const vertex_t* rows, i64 num_rows,
                                     const i64* offsets, const i64* indptr, const vertex_t* targets,
                                     i64 base, i64 stride, i64 multiplier, const u32* bits,
                                     const vertex_t* giant, vertex_t* parents) {
  each_arc_of_rows(lo, hi, offsets, num_rows, [&](i64 k, i64 arc) {
    i64 row = rows ? (i64)rows[k] : k;
    vertex_t u = position_of((vertex_t)(base + row), stride, multiplier);
    vertex_t target = targets[indptr[row] + arc - offsets[k]];
    vertex_t v =
        bits && test_bit(bits, target) ? giant[0] : position_of(target, stride, multiplier);
    if (load_stale(&parents[u]) != load_stale(&parents[v])) link(parents, u, v);
  });
}

extern "C" __global__ void mark_reached(i64 lo, i64 hi, i64 base, i64 num_owned, i64 stride,
                                        i64 multiplier, const dist_t* levels, vertex_t* giant,
                                        u32* bits) {
  vertex_t smallest = top_of<vertex_t>::value();
  for (i64 word = lo + warp_index(); word < hi; word += warp_count()) {
    i64 row = 32 * word + lane_index();
    bool is_reached = row < num_owned && levels[row] != top_of<dist_t>::value();
    u32 mask = __ballot_sync(0xFFFFFFFFu, is_reached);
    if (is_reached && smallest == top_of<vertex_t>::value())
      smallest = position_of((vertex_t)(base + row), stride, multiplier);
    if (lane_index() == 0) bits[word] = mask;
  }
  // A thread scans rising positions.
  if (smallest < load_relaxed(&giant[0])) atomic_min(&giant[0], smallest);
}

extern "C" __global__ void mark_giant(i64 lo, i64 hi, i64 base, i64 num_positions, i64 stride,
                                      i64 multiplier, const vertex_t* giant, vertex_t* parents,
                                      vertex_t* root_of_giant, u32* bits) {
  vertex_t root = root_of(parents, giant);
  if (thread_index() == 0) root_of_giant[0] = root;
  for (i64 word = lo + warp_index(); word < hi; word += warp_count()) {
    vertex_t v = position_of((vertex_t)(base + 32 * word + lane_index()), stride, multiplier);
    u32 mask = __ballot_sync(0xFFFFFFFFu, v < num_positions && compress_path(parents, v) == root);
    if (lane_index() == 0) bits[word] = mask;
  }
}

extern "C" __global__ void join_giant(i64 lo, i64 hi, i64 stride, i64 multiplier, const u32* bits,
                                      const vertex_t* giant, vertex_t* parents) {
  vertex_t root = root_of(parents, giant);
  for (i64 first = lo + thread_index(); first < hi; first += DEPTH * thread_count()) {
    bool is_marked[DEPTH];
    vertex_t parent[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      i64 v = first + k * thread_count();
      is_marked[k] = v < hi && test_bit(bits, state_of(v, stride, multiplier));
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
      parent[k] = is_marked[k] ? load_stale(&parents[first + k * thread_count()]) : root;
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

// States from `base` on that have no bit set; all of them without bits.
struct UnmarkedStates {
  const u32* bits;
  i64 base, stride, multiplier;
  // Call visit(state, its position) for every unmarked state of the words lo .. hi, counted from
  // `base` on, and for `also`, below `end`; by whole warps. Lanes load one word each; most have no
  // unmarked state.
  template <class Visit>
  __device__ inline void each(i64 lo, i64 hi, i64 end, i64 also, Visit visit) const {
    for (i64 group = lo + warp_index() * 32; group < hi; group += warp_count() * 32) {
      i64 word = group + lane_index();
      u32 open = word < hi ? (bits ? ~bits[(base >> 5) + word] : ~0u) : 0;
      if (also >= 0 && word == (also - base) >> 5 && word < hi) open |= 1u << (also & 31);
      each_bit(group, open, [&](const i64(&place)[2], const bool (&valid)[2]) {
        for (int half = 0; half < 2; half++) {
          i64 state = base + place[half];
          if (valid[half] && state < end)
            visit(state, position_of((vertex_t)state, stride, multiplier));
        }
      });
    }
  }
};

// Each thread adds up a run of rows; the block scans these sums, and each thread places its run.
extern "C" __global__ void add_up_lengths(i64 lo, i64 hi, i64 count, const i64* lengths,
                                          i64* offsets) {
  __shared__ i64 of_warps[32];
  i64 run = (count + blockDim.x - 1) / blockDim.x, first = threadIdx.x * run;
  i64 last = first + run < count ? first + run : count, mine = 0;
  for (i64 k = first; k < last; k++) mine += lengths[k];
  i64 scanned = scan_warp(mine);
  if (lane_index() == 31) of_warps[threadIdx.x >> 5] = scanned;
  __syncthreads();
  i64 warps = blockDim.x >> 5, arcs = scanned - mine;
  i64 before = scan_warp(lane_index() < warps ? of_warps[lane_index()] : 0);
  if (threadIdx.x >= 32) arcs += __shfl_sync(0xFFFFFFFFu, before, (threadIdx.x >> 5) - 1);
  for (i64 k = first; k < last; k++) {
    offsets[k] = arcs;
    arcs += lengths[k];
  }
  if (threadIdx.x == blockDim.x - 1) offsets[count] = arcs;
}

extern "C" __global__ void list_untold(i64 lo, i64 hi, i64 num_owned, const i64* indptr, i64 base,
                                       i64 stride, i64 multiplier, const u32* bits,
                                       const vertex_t* root_of_giant, vertex_t* parents,
                                       vertex_t* outside, i64* lengths, i64* counters) {
  vertex_t giant = root_of_giant[0];
  i64 arcs = 0;
  UnmarkedStates{bits, base, stride, multiplier}.each(
      lo, hi, base + num_owned, -1, [&](i64 state, vertex_t v) {
        vertex_t root = compress_path(parents, v);
        if (test_bit(bits, state_of(root, stride, multiplier))) {
          link(parents, root, giant);
          return;
        }
        i64 row = state - base, length = root == giant ? 0 : indptr[row + 1] - indptr[row];
        if (length > 0) {
          i64 slot = reserve(&counters[0]);
          outside[slot] = (vertex_t)row;
          lengths[slot] = length;
          arcs += length;
        }
      });
  warp_add(&counters[1], arcs);
}

extern "C" __global__ void list_edges(i64 lo, i64 hi, i64 num_owned, const i64* indptr,
                                      const vertex_t* targets, i64 base, i64 stride, i64 multiplier,
                                      i64 capacity, const u32* bits, const vertex_t* giant,
                                      i64* counters, vertex_t* ends, vertex_t* others) {
  UnmarkedStates{bits, base, stride, multiplier}.each(
      lo, hi, base + num_owned, -1, [&](i64 state, vertex_t u) {
        i64 begin = indptr[state - base], end = indptr[state - base + 1];
        i64 slot = atomic_add(&counters[0], end - begin);
        if (slot + end - begin > capacity) return;
        for (i64 arc = begin; arc < end; arc++, slot++) {
          vertex_t target = targets[arc], v = position_of(target, stride, multiplier);
          if (test_bit(bits, target)) v = giant[0];
          ends[slot] = u;
          others[slot] = v < u || v == giant[0] ? v : u;
        }
      });
}

extern "C" __global__ void settle(i64 lo, i64 hi, i64 num_positions, i64 stride, i64 multiplier,
                                  const u32* bits, const vertex_t* giant, vertex_t* parents) {
  i64 also = state_of(giant[0], stride, multiplier), end = hi * 32;
  UnmarkedStates{bits, 0, stride, multiplier}.each(lo, hi, end, also, [&](i64, vertex_t v) {
    if (v < num_positions) compress_path(parents, v);
  });
}

extern "C" __global__ void list_others(i64 lo, i64 hi, i64 capacity, i64 num_positions, i64 stride,
                                       i64 multiplier, const u32* bits, const vertex_t* giant,
                                       vertex_t* parents, i64* counters, vertex_t* others,
                                       vertex_t* roots) {
  i64 also = giant[0] == top_of<vertex_t>::value() ? -1 : state_of(giant[0], stride, multiplier);
  UnmarkedStates{bits, 0, stride, multiplier}.each(lo, hi, hi * 32, also, [&](i64, vertex_t v) {
    vertex_t root = v < num_positions ? find(parents, v) : v;
    if (root == v) return;
    i64 slot = reserve(&counters[0]);
    if (slot < capacity) {
      others[slot] = v;
      roots[slot] = root;
    }
  });
}

extern "C" __global__ void link_roots(i64 lo, i64 hi, const vertex_t* vertices,
                                      const vertex_t* roots, vertex_t* parents) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t v = vertices ? vertices[i] : (vertex_t)i, root = roots[i];
    if (root != v && root != load_stale(&parents[v])) link(parents, v, root);
  }
}

// The root of a position: that of giant[0] where its state is marked.
__device__ inline vertex_t root_at(i64 position, i64 stride, i64 multiplier, const u32* bits,
                                   const vertex_t* giant, const vertex_t* roots) {
  return roots[bits && test_bit(bits, state_of(position, stride, multiplier)) ? (i64)giant[0]
                                                                              : position];
}

extern "C" __global__ void find_smallest(i64 lo, i64 hi, const id_t* users, i64 base, i64 stride,
                                         i64 multiplier, const u32* bits, const vertex_t* giant,
                                         const vertex_t* roots, id_t* smallest) {
  constexpr vertex_t NONE = top_of<vertex_t>::value();
  vertex_t last = NONE;
  id_t user = top_of<id_t>::value();
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    vertex_t position = position_of((vertex_t)(base + i), stride, multiplier);
    vertex_t root = roots[bits && test_bit(bits, base + i) ? giant[0] : position];
    if (root != last) {
      if (last != NONE) lower(&smallest[last], user);
      last = root;
      user = users[i];
    }
    user = users[i] < user ? users[i] : user;
  }
  if (last != NONE) lower(&smallest[last], user);
}

extern "C" __global__ void list_roots(i64 lo, i64 hi, i64 num_owned, i64 base, i64 stride,
                                      i64 multiplier, i64 capacity, const u32* bits,
                                      const vertex_t* giant, const vertex_t* roots, i64* counters,
                                      vertex_t* found) {
  i64 also = bits ? state_of(roots[giant[0]], stride, multiplier) : -1;
  UnmarkedStates{bits, base, stride, multiplier}.each(lo, hi, base + num_owned, also,
                                                      [&](i64, vertex_t v) {
                                                        if (roots[v] != v) return;
                                                        i64 slot = reserve(&counters[0]);
                                                        if (slot < capacity) found[slot] = v;
                                                      });
}

extern "C" __global__ void label_users(i64 lo, i64 hi, const vertex_t* positions, i64 first,
                                       i64 num_positions, i64 stride, i64 multiplier,
                                       const u32* bits, const vertex_t* giant,
                                       const vertex_t* roots, const id_t* smallest, i64* labels) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 position = positions ? (i64)positions[i] : first + i, label = first + i;
    if (position < num_positions) {
      vertex_t root = root_at(position, stride, multiplier, bits, giant, roots);
      label = smallest ? (i64)smallest[root] : (i64)root;
    }
    labels[i] = label;
  }
}
