// A row of this many arcs or more is searched by a whole block of threads, one of up to SHORT_ROW by one thread, and
// one between by a warp: the hubs of an RMAT graph have hundreds of thousands, and most of its vertices a few.
constexpr i64 LONG_ROW = 1024, SHORT_ROW = 64;
// Longer rows are divided among warps where only their light arcs are looked at.
constexpr i64 HUB_ROW = 16384;
// Where more than one arc of a row in so many is light, it is left to be read by position, up to the first hit.
constexpr i64 LIGHT_SHARE = 4;
// Arcs that a thread looks at together.
constexpr int DEPTH = 4;

// DEPTH neighbours in an array, 16 bytes or less by one load.
template <class T> struct alignas(sizeof(T) * DEPTH < 16 ? sizeof(T) * DEPTH : 16) Neighbours {
  T of[DEPTH];
};

// Arcs: where they start, and what they weigh, which is too much where there is none.
struct Arcs {
  const vertex_t* targets;
  const weight_t* weights;
  i64 count;
  bool is_aligned;
  __device__ inline Arcs(const vertex_t* all_targets, const weight_t* all_weights, i64 all)
      : targets(all_targets),
        weights(all_weights),
        count(all),
        is_aligned((u64)all_targets % alignof(Neighbours<vertex_t>) == 0 &&
                   (u64)all_weights % alignof(Neighbours<weight_t>) == 0) {}
  // first, first + step, ...
  __device__ inline void load_apart(i64 first, i64 step, i64 end, vertex_t (&u)[DEPTH], dist_t (&w)[DEPTH]) const {
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      i64 i = first + k * step;
      u[k] = i < end ? targets[i] : 0;
      w[k] = i >= end ? top_of<dist_t>::value() : weights ? (dist_t)weights[i] : (dist_t)1;
    }
  }
  // Those from `at` on, a multiple of DEPTH, that are from begin to end: how many lines a multiprocessor looks up is
  // what limits threads that read a row each.
  __device__ inline void load_next(i64 at, i64 begin, i64 end, vertex_t (&u)[DEPTH], dist_t (&w)[DEPTH]) const {
    if (!is_aligned || at + DEPTH > count) {
      load_apart(at, 1, end, u, w);
    } else {
      Neighbours<vertex_t> starts = *(const Neighbours<vertex_t>*)(targets + at);
      Neighbours<weight_t> lengths;
      if (weights) lengths = *(const Neighbours<weight_t>*)(weights + at);
#pragma unroll
      for (int k = 0; k < DEPTH; k++) {
        u[k] = starts.of[k];
        w[k] = at + k >= end ? top_of<dist_t>::value() : weights ? (dist_t)lengths.of[k] : (dist_t)1;
      }
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
      if (at + k < begin) w[k] = top_of<dist_t>::value();
  }
};

// Rows that a block looks at one after the other. Not in the template: g++ would not keep it apart by block there.
struct BlockRows {
  i64 rows[1024], first_hit;
  u32 count;
};
__device__ inline BlockRows& block_rows() {
  __shared__ BlockRows of_block;
  return of_block;
}
// Call look(v), a block together, for every v of lo .. hi that is_wanted(v). Where it `spreads` them, neighbours go to
// different blocks; else what is known of them is read together.
template <class Wanted, class Look>
__device__ inline void each_row_by_block(i64 lo, i64 hi, bool spreads, Wanted is_wanted, Look look) {
  BlockRows& s = block_rows();
  for (i64 base = lo; base < hi; base += thread_count()) {
    i64 v = base + (spreads ? (i64)threadIdx.x * gridDim.x + blockIdx.x : thread_index());
    bool wanted = v < hi && is_wanted(v);
    if (!__syncthreads_or(wanted)) continue;
    if (threadIdx.x == 0) s.count = 0;
    __syncthreads();
    if (wanted) s.rows[atomic_add(&s.count, 1u)] = v;
    __syncthreads();
    for (u32 k = 0; k < s.count; k++) look(s.rows[k]);
    __syncthreads();  // before those of the next turn are listed
  }
}

// Call settle(v, i) for every v that is open, where i is the first arc of its row that explains its distance, or the
// row's end. explains(own, u, w) says which of DEPTH arcs do.
template <class Open, class Explains, class Settle>
__device__ inline void settle_long_rows(i64 lo, i64 hi, const i64* indptr, const Arcs& arcs, const dist_t* own,
                                        Open open, Explains explains, Settle settle) {
  BlockRows& s = block_rows();
  auto is_long = [&](i64 v) { return indptr[v + 1] - indptr[v] >= LONG_ROW && open(v); };
  // In degree order the longest rows are neighbours: each block gets one of them.
  each_row_by_block(lo, hi, true, is_long, [&](i64 row) {
    i64 end = indptr[row + 1];
    __syncthreads();  // all have read the hit of the row before
    if (threadIdx.x == 0) s.first_hit = end;
    __syncthreads();
    for (i64 first = indptr[row]; first < end; first += DEPTH * blockDim.x) {
      i64 i = first + threadIdx.x;
      vertex_t u[DEPTH];
      dist_t w[DEPTH];
      arcs.load_apart(i, blockDim.x, end, u, w);
      u32 hits = explains(own[row], u, w);
      if (hits) atomic_min(&s.first_hit, i + (__ffs(hits) - 1) * (i64)blockDim.x);
      if (__syncthreads_or(hits)) break;
    }
    if (threadIdx.x == 0) settle(row, s.first_hit);
  });
}
template <class Open, class Explains, class Settle>
__device__ inline void settle_rows(i64 lo, i64 hi, i64 long_rows, const i64* indptr, const Arcs& arcs,
                                   const dist_t* own, Open open, Explains explains, Settle settle) {
  constexpr u32 all = 0xFFFFFFFFu;
  i64 longs = long_rows < hi ? long_rows : hi;
  settle_long_rows(lo, longs, indptr, arcs, own, open, explains, settle);
  for (i64 first = lo + warp_index() * 32; first < hi; first += warp_count() * 32) {
    i64 v = first + lane_index(), begin = 0, end = 0;
    bool is_open = v < hi && open(v);
    dist_t target = is_open ? own[v] : (dist_t)0;
    if (is_open) begin = indptr[v], end = indptr[v + 1];
    i64 length = end - begin;
    for (u32 medium = __ballot_sync(all, length > SHORT_ROW && (length < LONG_ROW || v >= longs)); medium;
         medium &= medium - 1) {
      int lane = __ffs(medium) - 1;
      i64 row_end = __shfl_sync(all, end, lane), hit = row_end;
      dist_t of_row = __shfl_sync(all, target, lane);
      for (i64 i = __shfl_sync(all, begin, lane); hit == row_end && i < row_end; i += 32 * DEPTH) {
        vertex_t u[DEPTH];
        dist_t w[DEPTH];
        arcs.load_apart(i + lane_index(), 32, row_end, u, w);
        u32 hits = explains(of_row, u, w);
        for (int k = DEPTH - 1; k >= 0; k--) {
          u32 agreeing = __ballot_sync(all, hits >> k & 1);
          if (agreeing) hit = i + 32 * k + __ffs(agreeing) - 1;
        }
      }
      if (lane_index() == 0) settle(first + lane, hit);
    }
    if (!is_open || length > SHORT_ROW) continue;
    u32 hits = 0;
    i64 at = begin & ~(i64)(DEPTH - 1);
    for (; !hits && at < end; at += DEPTH) {
      vertex_t u[DEPTH];
      dist_t w[DEPTH];
      arcs.load_next(at, begin, end, u, w);
      hits = explains(target, u, w);
    }
    settle(v, hits ? at - DEPTH + __ffs(hits) - 1 : end);
  }
}

extern "C" __global__ void digest_distances(i64 lo, i64 hi, const dist_t* dist, u8* digests) {
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) digests[v] = (u8)dist[v];
}

extern "C" __global__ void find_core(i64 lo, i64 hi, i64 step, const dist_t* dist, i64 stride, i64 multiplier,
                                     dist_t* core) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count())
    atomic_min(core, dist[state_of(i * step, stride, multiplier)]);
}

extern "C" __global__ void offer_early(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                       const weight_t* weights, const dist_t* dist, const dist_t* core, i64 base,
                                       i64 stride, i64 multiplier, i64 most, vertex_t* offers, i64* counters) {
  Arcs arcs(targets, weights, indptr[hi]);
  dist_t begins = *core;
  auto is_early = [&](i64 v) { return dist[base + v] < begins; };
  each_row_by_block(lo, hi, false, is_early, [&](i64 row) {
    i64 end = indptr[row + 1];
    dist_t own = dist[base + row];
    vertex_t position = position_of((vertex_t)(base + row), stride, multiplier);
    for (i64 i = indptr[row] + threadIdx.x; i < end; i += DEPTH * blockDim.x) {
      vertex_t u[DEPTH];
      dist_t w[DEPTH], far[DEPTH];
      arcs.load_apart(i, blockDim.x, end, u, w);
#pragma unroll
      for (int j = 0; j < DEPTH; j++) far[j] = w[j] < top_of<dist_t>::value() ? dist[u[j]] : own;
#pragma unroll
      for (int j = 0; j < DEPTH; j++) {
        if (far[j] <= own || far[j] == top_of<dist_t>::value() || (dist_t)(own + w[j]) != far[j]) continue;
        i64 place = reserve(&counters[0]);
        if (place < most) offers[2 * place] = u[j], offers[2 * place + 1] = position;
      }
    }
  });
}

// As many threads as there is room for offers share those that there are.
extern "C" __global__ void take_offers(i64 lo, i64 hi, const vertex_t* offers, i64 most, const i64* counts,
                                       i64 num_ranks, i64 base, i64 num_owned, vertex_t* parents, dist_t* core) {
  for (i64 r = 0; r < num_ranks; r++) {
    if (counts[r] <= most) continue;
    if (thread_index() == 0) *core = 0;
    return;
  }
  for (i64 r = 0; r < num_ranks; r++) {
    const vertex_t* of_rank = offers + 2 * most * r;
    for (i64 i = thread_index(); i < counts[r]; i += thread_count()) {
      i64 v = (i64)of_rank[2 * i] - base;
      if (v >= 0 && v < num_owned) atomic_min(&parents[v], of_rank[2 * i + 1]);
    }
  }
}

// How many rows are longer, where they stand by falling length; a warp looks together.
__device__ inline i64 longer_rows(i64 length, i64 lo, i64 hi, const i64* indptr) {
  while (lo < hi) {
    i64 step = (hi - lo + 31) / 32, at = lo + (lane_index() + 1) * step - 1;
    lo += __popc(__ballot_sync(0xFFFFFFFFu, at < hi && indptr[at + 1] - indptr[at] > length)) * step;
    if (lo + step - 1 < hi) hi = lo + step - 1;
  }
  return lo;
}

// Lanes of a warp that look through a row together.
template <int LANES> struct Crew {
  static constexpr int lanes = LANES;
};
// Rows that stand by weight: which vertex explains a row's distance, the first by position.
struct LightArcs {
  const i64* indptr;
  const vertex_t* targets;
  const weight_t* weights;
  const dist_t* dist;
  const vertex_t* parents;
  double scale;
  dist_t begins;
  i64 stride, multiplier;
  Arcs arcs;

  __device__ inline bool is_light(dist_t weight, double edge) const { return (double)weight * scale < edge; }
  // Of DEPTH arcs from `at` on, that stand `apart`, none of them behind `end`; the last one's weight in `last`.
  __device__ inline vertex_t first_of(i64 at, i64 apart, i64 end, dist_t own, dist_t* last) const {
    vertex_t u[DEPTH], parent = top_of<vertex_t>::value();
    dist_t w[DEPTH], near[DEPTH];
    arcs.load_apart(at, apart, end, u, w);
#pragma unroll
    for (int k = 0; k < DEPTH; k++) near[k] = (dist_t)(own - begins) < w[k] ? own : dist[u[k]];
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
      if (near[k] < own && (dist_t)(near[k] + w[k]) == own) {
        vertex_t position = position_of(u[k], stride, multiplier);
        if (position < parent) parent = position;
      }
    *last = w[DEPTH - 1];
    return parent;
  }
  // Whether so many arcs are light that a row by position is looked through as fast. Who has an offer is not looked at
  // there again: nobody has found one for it here who saw that it had none.
  __device__ inline bool has_too_many(i64 v, i64 begin, i64 end, double edge) const {
    return is_light((dist_t)weights[begin + (end - begin) / LIGHT_SHARE], edge) &&
           load_relaxed(&parents[v]) == top_of<vertex_t>::value();
  }
  // Of the `part`-th of so many parts of a hub's row, for a warp together.
  __device__ inline vertex_t first_of_part(i64 v, dist_t own, i64 part, i64 parts) const {
    vertex_t parent = top_of<vertex_t>::value();
    dist_t last;
    i64 first = indptr[v], end = indptr[v + 1];
    double edge = class_edge((dist_t)(own - begins), scale);
    if (has_too_many(v, first, end, edge)) return parent;
    end = light_end_by_warp(weights, first, end, scale, edge);
    for (first += part * 32 * DEPTH; first < end; first += parts * 32 * DEPTH) {
      vertex_t found = first_of(first + lane_index(), 32, end, own, &last);
      if (found < parent) parent = found;
    }
    return warp_min(parent);
  }
  // Of a row for each crew of so many lanes, if it `is_open`; all lanes of a crew return it. What is heavy comes behind
  // what is light: they look on as long as the last one is.
  template <int CREW>
  __device__ inline vertex_t first_by_crew(bool is_open, i64 v, i64 begin, i64 end, dist_t own) const {
    vertex_t parent = top_of<vertex_t>::value();
    int lane = lane_index() % CREW;
    double edge = is_open ? class_edge((dist_t)(own - begins), scale) : 0;
    bool looks = is_open && !has_too_many(v, begin, end, edge);
    for (i64 at = begin; __any_sync(WARP, looks); at += CREW * DEPTH) {
      dist_t last = 0;
      vertex_t found = looks ? first_of(at + lane, CREW, end, own, &last) : parent;
      if (found < parent) parent = found;
      last = __shfl_sync(WARP, last, CREW - 1, CREW);
      looks = looks && at + CREW * DEPTH < end && is_light(last, edge);
    }
    for (int d = CREW / 2; d; d >>= 1) {
      vertex_t other = __shfl_xor_sync(WARP, parent, d);
      if (other < parent) parent = other;
    }
    return parent;
  }
};

extern "C" __global__ void find_nearer_by_weight(i64 lo, i64 hi, i64 falling, const i64* indptr,
                                                 const vertex_t* targets, const weight_t* weights, double scale,
                                                 const dist_t* dist, const dist_t* core, i64 base, i64 stride,
                                                 i64 multiplier, vertex_t* parents) {
  dist_t begins = core ? *core : 0;
  LightArcs light = {indptr, targets, weights, dist,       parents,
                     scale,  begins,  stride,  multiplier, Arcs(targets, weights, indptr[hi])};
  // In degree order the longest rows come first: those of hubs are dealt out in parts, so that all warps have some.
  i64 hubs = falling ? longer_rows(HUB_ROW, lo, hi, indptr) - lo : 0;
  i64 longs = falling ? longer_rows(LONG_ROW, lo, hi, indptr) : hi;
  i64 mediums = falling ? longer_rows(SHORT_ROW, lo, hi, indptr) : hi;
  i64 parts = hubs && hubs < warp_count() ? warp_count() / hubs : 1;
  for (i64 k = warp_index(); k < hubs * parts; k += warp_count()) {
    i64 v = lo + k % hubs;
    dist_t own = dist[base + v];
    if (own <= begins || own == top_of<dist_t>::value()) continue;
    vertex_t parent = light.first_of_part(v, own, k / hubs, parts);
    if (lane_index() == 0 && parent < top_of<vertex_t>::value()) atomic_min(&parents[v], parent);
  }
  auto search = [&](auto crew, i64 from, i64 to, bool spreads) {
    constexpr int CREW = decltype(crew)::lanes;
    i64 apart = spreads ? warp_count() : 1;
    for (i64 turn = from; turn < to; turn += 32 * warp_count()) {
      i64 v = turn + warp_index() * (spreads ? 1 : 32) + lane_index() * apart, begin = 0, end = 0;
      dist_t own = 0;
      if (v < to) begin = indptr[v], end = indptr[v + 1];
      bool is_open = end - begin > SHORT_ROW;
      if (is_open) own = dist[base + v], is_open = own > begins && own != top_of<dist_t>::value();
      for (u32 rows = __ballot_sync(WARP, is_open); rows;) {
        int which = lane_index() / CREW, lane = which < __popc(rows) ? nth_bit(rows, which) : -1, from_lane = lane & 31;
        i64 row = __shfl_sync(WARP, v, from_lane), first = __shfl_sync(WARP, begin, from_lane);
        i64 last = __shfl_sync(WARP, end, from_lane);
        vertex_t parent = light.first_by_crew<CREW>(lane >= 0, row, first, last, __shfl_sync(WARP, own, from_lane));
        if (lane >= 0 && lane_index() % CREW == 0 && parent < parents[row]) parents[row] = parent;
        for (int k = 0; k < 32 / CREW; k++) rows &= rows - 1;
      }
    }
  };
  // Neighbours are of like length then: each warp gets one of them. Else they are read together.
  search(Crew<32>(), lo + hubs, longs, falling);
  search(Crew<8>(), longs, mediums, true);
  // It is degrees that fall: rows have lost their parallel arcs, and a few longer ones come behind shorter ones. Nobody
  // else looks at those that have an offer.
  if (begins) search(Crew<32>(), mediums, hi, false);
}

extern "C" __global__ void __launch_bounds__(1024)
    find_nearer(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets, const weight_t* weights, i64 long_rows,
                const dist_t* dist, const u8* digests, const dist_t* core, i64 base, i64 stride, i64 multiplier,
                vertex_t* parents, i64* counters) {
  vertex_t none = top_of<vertex_t>::value();
  dist_t begins = core ? *core : 0;
  auto open = [&](i64 v) {
    dist_t own = dist[base + v];
    if (own == top_of<dist_t>::value()) return false;
    if (load_relaxed(&parents[v]) == none) return true;
    return begins && own > begins && indptr[v + 1] - indptr[v] <= SHORT_ROW;
  };
  auto explains = [&](dist_t own, const vertex_t(&u)[DEPTH], const dist_t(&w)[DEPTH]) {
    dist_t near[DEPTH], room = own > begins ? own - begins : 0;
    bool looks[DEPTH];
    u32 hits = 0;
    // What is longer than the way from the core is no part of it; its start is not looked up. Nor is one whose distance
    // has another last byte, where these stand by themselves.
#pragma unroll
    for (int k = 0; k < DEPTH; k++) looks[k] = w[k] <= room && (!digests || digests[u[k]] == (u8)(own - w[k]));
#pragma unroll
    for (int k = 0; k < DEPTH; k++) near[k] = looks[k] ? dist[u[k]] : own;
#pragma unroll
    for (int k = 0; k < DEPTH; k++) hits |= (u32)(near[k] < own && (dist_t)(near[k] + w[k]) == own) << k;
    return hits;
  };
  auto settle = [&](i64 v, i64 i) {
    vertex_t offered = load_relaxed(&parents[v]);
    vertex_t parent = i < indptr[v + 1] ? position_of(targets[i], stride, multiplier) : none;
    if (parent < offered)
      store_relaxed(&parents[v], parent);
    else if (offered == none)
      atomic_add(&counters[0], (i64)1);
  };
  settle_rows(lo, hi, long_rows, indptr, Arcs(targets, weights, indptr[hi]), dist + base, open, explains, settle);
}

extern "C" __global__ void __launch_bounds__(1024)
    find_equal(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets, const weight_t* weights, const dist_t* dist,
               const u8* hops, i64 base, i64 stride, i64 multiplier, vertex_t* parents, u8* new_hops, i64* counters) {
  auto open = [&](i64 v) {
    return load_relaxed(&parents[v]) == top_of<vertex_t>::value() && dist[base + v] != top_of<dist_t>::value();
  };
  auto explains = [&](dist_t own, const vertex_t(&u)[DEPTH], const dist_t(&w)[DEPTH]) {
    u32 hits = 0;
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
  settle_rows(lo, hi, hi, indptr, Arcs(targets, weights, indptr[hi]), dist + base, open, explains, settle);
}
