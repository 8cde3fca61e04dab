// Near and far in one launch: every warp relaxes a share of near, all blocks meet, and so on to the end.

// Arcs that a queue entry stands for: longer rows are queued in parts, so that no warp is long behind the others.
constexpr i64 PART = 256;
// Arcs that a thread has in flight.
constexpr int DEPTH = 4;
// Far is kept as a queue while it holds less than this share of the vertices; then a pass over all distances is
// cheaper than looking up those of the queue.
constexpr i64 DENSE_SHARE = 16;
// Buckets with less than this share of the arcs of the largest one are widened.
constexpr i64 TAIL_SHARE = 16;
// Rounds of at most this many entries a warp go on within the warps, for up to HOPS steps, before all meet.
constexpr i64 FEW = 4, HOPS = 16, HOP_ARCS = 16;
// Numbers of a line of the log, and lines at most: the last one stands for all further rounds.
constexpr i64 LINE = 4, LINES = 1 << 14;

// Places in `counters`, lines of memory apart, for some are waited at while others are counted up. Those of three are
// used in turn: one is read, one is written, one is cleared.
constexpr i64 APART = 16, THREE = 3 * APART;
constexpr i64 ARRIVED = 0, ROUNDS = APART, BEGAN = ROUNDS + 1, HUBS = ROUNDS + 2, KIND = ROUNDS + 3;
constexpr i64 NEAR = 2 * APART, LONG = NEAR + THREE, FAR = LONG + THREE, ARCS = FAR + THREE, VERTICES = ARCS + THREE;
constexpr i64 LOG = VERTICES + THREE;
__device__ inline i64* in_turn(i64* counters, i64 place, int turn) { return &counters[place + turn % 3 * APART]; }

// Places in `bounds`.
enum { CUTOFF, DELTA, LOWEST };

// What a warp found, held back until there are 32: then one reservation serves all. Up to 32 are left over, and a
// step of DEPTH gives each lane as many.
struct Held {
  static constexpr int MOST = 32 + 32 * DEPTH;
  vertex_t* items;
  int length;
  // Take v of each lane that gives one.
  __device__ inline void add(bool gives, vertex_t v) {
    u32 givers = __ballot_sync(0xFFFFFFFFu, gives);
    if (gives) items[length + __popc(givers & ((1u << lane_index()) - 1))] = v;
    length += __popc(givers);
  }
  // Take out the last, up to 32, one a lane; how many.
  __device__ inline int take(vertex_t* v) {
    __syncwarp();
    int count = length < 32 ? length : 32;
    length -= count;
    if (lane_index() < count) *v = items[length + lane_index()];
    __syncwarp();
    return count;
  }
};

// One warp's view of the search. All warps take the same turns: `round` and `bucket` are equal everywhere.
struct Search {
  const i64* indptr;
  const vertex_t* targets;
  const weight_t* weights;
  dist_t *bounds, *dist;
  u32* bits;
  vertex_t *near, *far;
  u32* parts;
  i64* counters;
  i64 n, words, capacity;
  dist_t cutoff, delta, bound, lowest;
  dist_t* hub;  // what this block last saw of the distances of the first vertices, in shared memory
  i64 hubs;
  bool dense;
  int round, bucket;
  i64 arcs, vertices, done, most;  // arcs of this bucket and of the largest so far
  Held found, later;

  __device__ inline vertex_t* near_of(int r) { return near + (r & 1) * capacity; }
  __device__ inline vertex_t* long_of(int r) { return near + 2 * capacity + (r & 1) * (capacity - n); }
  __device__ inline u32* marks_of(int r) { return bits + (r & 1) * words; }
  __device__ inline u32* in_far() { return bits + 2 * words; }
  // Places in a queue for the lanes that take one.
  __device__ inline i64 places(bool takes, i64* length) {
    u32 takers = __ballot_sync(0xFFFFFFFFu, takes);
    i64 at = 0;
    if (takers && lane_index() == 0) at = atomic_add(length, (i64)__popc(takers));
    return __shfl_sync(0xFFFFFFFFu, at, 0) + __popc(takers & ((1u << lane_index()) - 1));
  }

  // Queue vertices for the next round, those with long rows apart.
  __device__ inline void queue_found(bool is_new, vertex_t v, i64 length) {
    bool is_short = is_new && length && length <= PART, is_long = is_new && length > PART;
    i64 at = places(is_short, in_turn(counters, NEAR, round + 1));
    if (is_short) near_of(round + 1)[at] = v, parts[near_of(round + 1) - near + at] = 0;
    if (!__any_sync(0xFFFFFFFFu, is_long)) return;
    at = places(is_long, in_turn(counters, LONG, round + 1));
    if (is_long) long_of(round + 1)[at] = v;
  }
  // What a relaxation found may have been found before.
  __device__ inline void flush_found(bool twice) {
    vertex_t v = 0;
    bool is_new = lane_index() < found.take(&v);
    if (twice) is_new = is_new && set_bit(marks_of(round + 1), v);
    queue_found(is_new, v, is_new ? indptr[v + 1] - indptr[v] : 0);
  }
  // Queue long rows for this round in parts, each as long as a short row: a warp takes a row.
  __device__ inline void cut_long(i64 count) {
    for (i64 k = warp_index(); k < count; k += warp_count()) {
      vertex_t v = load_relaxed(&long_of(round)[k]);
      i64 number = (indptr[v + 1] - indptr[v] + PART - 1) / PART, at = 0;
      if (lane_index() == 0) at = atomic_add(in_turn(counters, NEAR, round), number);
      at = __shfl_sync(0xFFFFFFFFu, at, 0);
      for (i64 i = lane_index(); i < number; i += 32) {
        near_of(round)[at + i] = v;
        parts[near_of(round) - near + at + i] = (u32)i;
      }
    }
  }
  __device__ inline void flush_later() {
    vertex_t v = 0;
    bool is_mine = lane_index() < later.take(&v);
    i64 at = places(is_mine, in_turn(counters, FAR, bucket));
    if (is_mine) far[(bucket & 1) * n + at] = v;
  }
  // Hand over what is held back, but for less than `least`.
  __device__ inline void flush(int least, bool twice) {
    while (found.length >= least && found.length) flush_found(twice);
    while (later.length >= least && later.length) flush_later();
  }

  // Queue the sources, which are few, for the first round.
  __device__ inline void begin(const vertex_t* sources, i64 count) {
    for (i64 first = 0; first < count; first += 32) {
      bool mine = first + lane_index() < count;
      vertex_t v = mine ? sources[first + lane_index()] : 0;
      if (mine) store_relaxed(&dist[v], (dist_t)0);
      found.add(mine, v);
      flush(32, false);
    }
  }

  // Entries of near from `first` on, one a lane: a vertex and its arcs, none where there is no entry.
  __device__ inline void take_entries(i64 first, i64 count, bool marked, vertex_t* u, i64* begin, i64* end) {
    if (lane_index() >= count) return;
    i64 i = first + lane_index();
    *u = load_relaxed(&near_of(round)[i]);
    i64 part = load_relaxed(&parts[near_of(round) - near + i]);
    *begin = indptr[*u] + part * PART, *end = indptr[*u + 1];
    if (*end - *begin > PART) *end = *begin + PART;
    if (marked && part == 0) clear_bit(marks_of(round), *u);
    vertices += part == 0;
  }
  // The same of what this warp itself found; longer rows are for all warps, in the next round.
  __device__ inline void take_found(vertex_t* u, i64* begin, i64* end) {
    bool is_mine = lane_index() < found.take(u);
    if (is_mine) *begin = indptr[*u], *end = indptr[*u + 1];
    bool is_longer = *end - *begin > HOP_ARCS;
    vertices += is_mine && !is_longer;
    queue_found(is_longer && set_bit(marks_of(round + 1), *u), *u, *end - *begin);
    if (is_longer) *end = *begin;
  }
  // Relax the arcs begin .. end of one vertex a lane, all lanes taking their share of all.
  __device__ inline void relax(vertex_t u, i64 begin, i64 end) {
    u32 length = (u32)(end - begin);
    dist_t from = length ? load_relaxed(&dist[u]) : (dist_t)0;
    WarpScan scan(length);
    arcs += length;
    begin -= scan.before;
    for (u32 base = 0; base < scan.total; base += 32 * DEPTH) {
      vertex_t v[DEPTH];
      dist_t through[DEPTH], seen[DEPTH];
#pragma unroll
      for (int k = 0; k < DEPTH; k++) {
        u32 arc = base + 32 * k + lane_index();
        int lane = scan.owner(arc);
        i64 slot = __shfl_sync(0xFFFFFFFFu, begin, lane) + arc;
        dist_t start = __shfl_sync(0xFFFFFFFFu, from, lane);
        v[k] = 0, through[k] = top_of<dist_t>::value();
        if (arc < scan.total) v[k] = targets[slot], through[k] = start + (dist_t)weights[slot];
      }
      // Many arcs lead to hubs, in degree order the first vertices: this block has seen their distances. What it
      // saw is never smaller than they are, so that nothing is lost.
#pragma unroll
      for (int k = 0; k < DEPTH; k++) seen[k] = load_relaxed(v[k] < hubs ? &hub[v[k]] : &dist[v[k]]);
#pragma unroll
      for (int k = 0; k < DEPTH; k++) {
        if (through[k] > cutoff || through[k] >= seen[k]) {
          seen[k] = 0;
          continue;
        }
        seen[k] = atomic_min(&dist[v[k]], through[k]);
        if (v[k] < hubs) store_relaxed(&hub[v[k]], through[k] < seen[k] ? through[k] : seen[k]);
      }
#pragma unroll
      for (int k = 0; k < DEPTH; k++) {
        bool lowered = through[k] < seen[k], is_near = lowered && through[k] < bound;
        if (!__any_sync(0xFFFFFFFFu, lowered)) continue;
        if (lowered && !is_near && through[k] < lowest) lowest = through[k];
        found.add(is_near, v[k]);
        if (!dense) later.add(lowered && !is_near && set_bit(in_far(), v[k]), v[k]);
      }
      flush(32, true);
    }
  }

  // Relax all of near: few entries are dealt out one a warp, many 32 at a time. Where they are few, a warp goes on
  // with what it found.
  __device__ inline void relax_all(i64 count, bool marked) {
    i64 each = (count + warp_count() - 1) / warp_count();
    int hops = each <= FEW ? HOPS : 0;
    if (each > 32) each = 32;
    i64 first = warp_index() * each;
    while (true) {
      vertex_t u = 0;
      i64 begin = 0, end = 0;
      if (first < count)
        take_entries(first, count - first < each ? count - first : each, marked, &u, &begin, &end);
      else if (found.length && found.length <= 64 && hops-- > 0)
        take_found(&u, &begin, &end);
      else
        break;
      relax(u, begin, end);
      first += warp_count() * each;
    }
  }

  // End a round: hand over what is held back and what was counted, and wait for all blocks.
  __device__ inline bool meet(const u32* abort, bool twice) {
    flush(1, twice);
    i64 a = warp_sum(arcs), v = warp_sum(vertices);
    if (lane_index() == 0 && a) {
      atomic_add(in_turn(counters, ARCS, round), a);
      atomic_add(in_turn(counters, VERTICES, round), v);
    }
    arcs = vertices = 0;
    for (int d = 16; d; d >>= 1) {
      dist_t other = __shfl_xor_sync(0xFFFFFFFFu, lowest, d);
      if (other < lowest) lowest = other;
    }
    dist_t* shared = &bounds[LOWEST + bucket % 3];
    if (lane_index() == 0 && lowest < load_relaxed(shared)) atomic_min(shared, lowest);
    return grid_barrier(&counters[ARRIVED], abort);
  }

  // Move what the raised bound reaches from far to near. Entries that went through near meanwhile are dropped.
  __device__ inline void split_far(i64 count, dist_t settled) {
    const vertex_t* waiting = far + ((bucket - 1) & 1) * n;
    for (i64 first = warp_index() * 32; first < count; first += warp_count() * 32) {
      bool mine = first + lane_index() < count;
      vertex_t v = mine ? load_relaxed(&waiting[first + lane_index()]) : 0;
      dist_t d = mine ? load_relaxed(&dist[v]) : 0;
      bool stays = mine && d >= bound, goes = mine && d < bound;
      if (goes) clear_bit(in_far(), v);
      if (stays && d < lowest) lowest = d;
      found.add(goes && d >= settled, v);
      later.add(stays, v);
      flush(32, false);
    }
  }
  // The same where far is not kept: look at every distance.
  __device__ inline void scan_all(dist_t settled) {
    for (i64 first = warp_index() * 32 * DEPTH; first < n; first += warp_count() * 32 * DEPTH) {
      dist_t d[DEPTH];
#pragma unroll
      for (int k = 0; k < DEPTH; k++) {
        i64 v = first + 32 * k + lane_index();
        d[k] = v < n ? load_relaxed(&dist[v]) : (dist_t)0;
      }
#pragma unroll
      for (int k = 0; k < DEPTH; k++) {
        i64 v = first + 32 * k + lane_index();
        if (d[k] >= bound && d[k] < lowest) lowest = d[k];
        found.add(settled <= d[k] && d[k] < bound && v < n, (vertex_t)v);
      }
      flush(32, false);
    }
  }
  // Find how many entries near has in this round, long rows cut into parts; false where the search is aborted.
  __device__ inline bool open_round(const u32* abort, i64* count) {
    // Of the places in turn one was filled in the last round, one is in this; the third was read in the last.
    if (thread_index() == 0) {
      store_relaxed(in_turn(counters, NEAR, round + 2), (i64)0);
      store_relaxed(in_turn(counters, LONG, round + 2), (i64)0);
    }
    i64 num_long = load_relaxed(in_turn(counters, LONG, round));
    if (num_long) {
      cut_long(num_long);
      if (!grid_barrier(&counters[ARRIVED], abort)) return false;
    }
    *count = load_relaxed(in_turn(counters, NEAR, round));
    return true;
  }

  // Near is empty: all below the bound is settled. Raise it, and move what it reaches to near; false where no vertex
  // waits. What waits is not nearer than the lowest that was seen to.
  __device__ inline bool advance() {
    dist_t top = top_of<dist_t>::value(), low = load_relaxed(&bounds[LOWEST + bucket % 3]), settled = bound;
    if (low == top) return false;
    i64 waiting = load_relaxed(in_turn(counters, FAR, bucket));
    // Behind the peak few arcs are left, and to look at some of them twice costs less than the rounds of a bucket.
    if (done * TAIL_SHARE < most && delta < top / 4) delta += delta;
    if (done > most) most = done;
    done = 0;
    bound = raised(low, delta);
    lowest = top;
    dense = dense || waiting * DENSE_SHARE > n;
    bucket++;
    if (thread_index() == 0) {
      store_relaxed(&bounds[LOWEST + (bucket + 1) % 3], top);
      store_relaxed(in_turn(counters, FAR, bucket + 1), (i64)0);
    }
    if (dense)
      scan_all(settled);
    else
      split_far(waiting, settled);
    return true;
  }
};

__device__ inline void clear(i64 n, i64 words, dist_t* bounds, dist_t* dist, u32* bits) {
  for (i64 v = thread_index(); v < n; v += thread_count()) dist[v] = top_of<dist_t>::value();
  for (i64 i = thread_index(); i < 3 * words; i += thread_count()) bits[i] = 0;
  if (thread_index() < 3) bounds[LOWEST + thread_index()] = top_of<dist_t>::value();
}

// Note what a round did, and clear the counts of the one before, which all have read.
__device__ inline void log_round(i64* counters, int round) {
  i64* line = counters + LOG + (round < LINES ? round : LINES - 1) * LINE;
  line[0] = counters[KIND];
  line[1] += load_relaxed(in_turn(counters, VERTICES, round));
  line[2] += load_relaxed(in_turn(counters, ARCS, round));
  line[3] = clock_ns();
  store_relaxed(in_turn(counters, VERTICES, round + 2), (i64)0);
  store_relaxed(in_turn(counters, ARCS, round + 2), (i64)0);
  store_relaxed(&counters[ROUNDS], (i64)round + 1);
}

extern "C" __global__ void __launch_bounds__(512, 2)
    find_distances(i64 lo, i64 hi, const u32* abort, const i64* indptr, const vertex_t* targets,
                   const weight_t* weights, const vertex_t* sources, dist_t* bounds, dist_t* dist, u32* bits,
                   vertex_t* near, u32* parts, vertex_t* far, i64* counters) {
  __shared__ vertex_t held[2][16 * Held::MOST];
  dist_t top = top_of<dist_t>::value();
  i64 warp = threadIdx.x >> 5, n = hi, words = (n + 31) / 32, num_sources = load_relaxed(&counters[ROUNDS]);
  Search search = {indptr,
                   targets,
                   weights,
                   bounds,
                   dist,
                   bits,
                   near,
                   far,
                   parts,
                   counters,
                   n,
                   words,
                   n + indptr[n] / PART,
                   bounds[CUTOFF],
                   bounds[DELTA],
                   raised(0, bounds[DELTA]),
                   top,
                   dynamic_shared<dist_t>(),
                   load_relaxed(&counters[HUBS]),
                   false,
                   -1,
                   0,
                   0,
                   0,
                   0,
                   0,
                   {held[0] + Held::MOST * warp, 0},
                   {held[1] + Held::MOST * warp, 0}};
  clear(n, words, bounds, dist, bits);
  for (i64 i = threadIdx.x; i < search.hubs; i += blockDim.x) search.hub[i] = top;
  if (!grid_barrier(&counters[ARRIVED], abort)) return;
  // The last thread keeps the log: where there is little to do, it is others that do it.
  bool logs = thread_index() == thread_count() - 1, relaxed = false;
  if (logs) counters[BEGAN] = clock_ns(), counters[ROUNDS] = 0;
  // The sources make up round 0, below the first bound.
  if (warp_index() == 0) search.begin(sources, num_sources);
  while (search.meet(abort, relaxed)) {
    if (logs && search.round >= 0) log_round(counters, search.round);
    if (relaxed) search.done += load_relaxed(in_turn(counters, ARCS, search.round));
    search.round++;
    i64 count;
    if (!search.open_round(abort, &count)) return;
    if (count)
      search.relax_all(count, relaxed);
    else if (!search.advance())
      break;
    relaxed = count;
    if (logs) counters[KIND] = count ? 0 : search.dense ? 2 : 1;
  }
}
