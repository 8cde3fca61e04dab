// What the rounds of sssp_peers.cu are made of: phases, between which all ranks meet.
//
// Every rank has in its window a copy of all distances, and a bitmap of those that it lowered in this round, its own
// and others', with a bit for each word of that in which there is one. The owner's copy is the truth, the others are
// upper bounds, good to see what could not win. A round has two phases: each rank relaxes the arcs out of near, in its
// own copy; then the owners gather the bits of their slices, read the distances that are marked, keep the smallest, and
// queue what fell. So nothing is sent to where there is no room for it, and a distance travels once a round, however
// often it fell.
// Far is whatever has a distance from the bound on: a pass over one's own slice finds what the next bound reaches, and
// what the bucket below it has left: its heavy arcs, or those that lead to what is not settled. Who is to pull must
// know what is settled: owners write the distances of the bucket into the others' copies. When few arcs are left to
// pull over, they write all that are reached there, and their vertices pull from any: what falls meanwhile is pushed,
// and written there too, so that in the end all ranks know all distances.
// Between two meetings an array is either read or changed by atomics, or each word has one writer; but a line may be
// read while its other owner clears what is his.

// CUTOFF, DELTA and BEYOND are distances; from BEYOND on they are counted in the end. FOUND is told by the search where
// it finds the sources itself; they stand behind the trace. LINES and COPY say how many bytes behind its beginning the
// bits of words and the distances of a window are.
enum Fact {
  CUTOFF,
  DELTA,
  FOUND,
  BEYOND,
  STRIDE,
  MULTIPLIER,
  NUM_POSITIONS,
  NUM_OWNED,
  NUM_STARTS,
  NUM_ARCS,
  CAPACITY,
  HEAVIES,
  PULLS,
  LINES,
  COPY,
  FIRST_USER,
  NUM_USERS,
  TRACE_ROWS,
  NUM_FACTS
};
enum Report { DONE, NUM_ROWS, NUM_BEYOND, EVERYWHERE, NUM_REPORTS };
enum Method { PUSH, SCAN, HEAVY, PULL };
// What the ranks add up at a meeting: of ARCS those relaxed, or those of whole rows. Of the last two each keeps its
// own.
enum Sum { COUNT, ARCS, LOOKED, SENT };
constexpr int BLOCK = 768;
// Rows of more arcs are pulled by all warps.
constexpr i64 LONG_ROW = 256;

// What a block keeps in shared memory.
struct Block {
  i64 room[3 * BLOCK];           // rows that are relaxed
  u32 marks[MOST_RANKS][BLOCK];  // words of bits, one a thread, of each rank
  dist_t lowest;
  i64 facts[NUM_FACTS], sources[FEW_SOURCES];
  RanksHere ranks;
};

// What is left of the rows of a bucket that is settled waits for nothing else: out of its vertices the arcs that were
// too heavy for it, each once, or, where fewer lead to what is not settled, those, into their vertices.
enum Part { LIGHT, REST, PULLED };

struct Copies {
  Block* block;
  Ranks ranks;
  const i64* indptr;
  const vertex_t* targets;
  const weight_t* weights;
  u32* work;
  double scale;
  dist_t cutoff;

  i64 tally[NUM_SUMS] = {};  // counted by this thread since the last meeting
  // A bucket is settled from `floor` to `settled`, what is near from there to `bound`.
  // What is nearer than `untold` was settled before any vertex pulled.
  dist_t floor = 0, settled = 0, bound = 0, untold = 0, lowest = top_of<dist_t>::value();
  int bucket = 0;
  bool turn = false, finishes = false;
  i64 queue_begin = 0;  // where the queue begins: those before are being looked through

  __device__ i64 fact(Fact which) const { return block->facts[which]; }
  __device__ i64 rank() const { return block->ranks.rank; }
  __device__ i64 size() const { return block->ranks.size; }
  __device__ i64 words() const { return fact(STRIDE) >> 5; }  // of a slice
  __device__ i64 base() const { return rank() * fact(STRIDE); }
  // Those of a window: one's own, or that of rank r.
  __device__ u8* window() const { return ranks.window; }
  __device__ u8* window(i64 r) const { return ranks.window_of(r); }
  __device__ u32* bits(u8* in) const { return (u32*)(in + HEAD_BYTES); }
  // In which words of them there are any: 32 are a line, which may reach over the end of a slice.
  __device__ u32* lines(u8* in) const { return (u32*)(in + fact(LINES)); }
  __device__ dist_t* dist(u8* in) const { return (dist_t*)(in + fact(COPY)); }
  // The smallest distance that waits; buckets have them in turn: one is read, one is written, one is cleared.
  __device__ dist_t* waiting(u8* in, int of_bucket) const { return dist(in) + fact(STRIDE) * size() + of_bucket % 3; }
  __device__ i64* queue_counter(bool which) const { return (i64*)work + which; }
  __device__ i64* rows() const { return (i64*)work + 2; }  // of the trace
  __device__ Queue queue() const {
    i64 *offsets = rows() + fact(TRACE_ROWS) * ROW, *first = offsets + fact(CAPACITY);
    vertex_t* vertices = (vertex_t*)(first + fact(CAPACITY));
    return {offsets + queue_begin, first + queue_begin, vertices + queue_begin};
  }

  // All ranks meet; by then each knows the smallest distance that any thread saw to wait.
  __device__ bool meet() {
    lowest = warp_min(lowest);
    if (lane_index() == 0 && lowest < load_relaxed(&block->lowest)) atomic_min(&block->lowest, lowest);
    __syncthreads();
    // Who has told one rank has told all, or is about to.
    if (threadIdx.x == 0 && block->lowest < load_relaxed(waiting(window(), bucket)))
      for (i64 r = 0; r < size(); r++) atomic_min_system(waiting(window(r), bucket), block->lowest);
    return ranks.meet(tally);
  }
  // A warp's vertices, two a lane, whose distances are d, go to a queue with a part of their rows if they are `there`
  // and the part has arcs; those are counted.
  template <Part part>
  __device__ void enqueue(bool which, const i64 (&v)[2], const dist_t (&d)[2], const bool (&there)[2]) {
    vertex_t own[2];
    i64 begin[2] = {}, length[2] = {};
    bool has_arcs[2];
    for (int half = 0; half < 2; half++) {
      own[half] = (vertex_t)v[half];
      if (there[half]) {
        begin[half] = load_readonly(indptr + v[half]);
        i64 end = load_readonly(indptr + v[half] + 1);
        if (part != PULLED) tally[ARCS] += end - begin[half];
        dist_t room = part == LIGHT ? bound - d[half] : part == REST ? settled - d[half] : d[half] - floor;
        i64 split = light_end(weights, begin[half], end, scale, class_edge(room, scale));
        (part == REST ? begin[half] : end) = split;
        length[half] = end - begin[half];
      }
      has_arcs[half] = length[half] > 0;
      tally[COUNT] += has_arcs[half];
    }
    ::enqueue<2>(queue(), fact(CAPACITY) - queue_begin, queue_counter(which), own, has_arcs, begin, length);
  }

  // ---- arcs ------------------------------------------------------------------------------------------
  // Relax the arcs of the queue in one's own copy. A source that falls meanwhile is queued again.
  __device__ void relax() {
    dist_t* own = dist(window());
    i64 first = base(), looked = tally[LOOKED];
    auto from = [&](vertex_t v) { return load_relaxed(&own[first + v]); };
    each_queued(from, [&](const i64(&slot)[4], const dist_t(&source)[4], const bool (&there)[4]) {
      vertex_t v[4];
      dist_t through[4], seen[4];
      // Without branches between them all loads are under way together.
      for (int k = 0; k < 4; k++) {
        v[k] = there[k] ? load_readonly(targets + slot[k]) : 0;
        through[k] = there[k] ? source[k] + (dist_t)load_readonly(weights + slot[k]) : cutoff;
      }
      // An older distance is a larger one: it makes for an atomic too many.
      for (int k = 0; k < 4; k++) seen[k] = load_stale(&own[v[k]]);
      for (int k = 0; k < 4; k++)
        if (there[k] && through[k] <= cutoff && through[k] < seen[k]) lower(v[k], through[k]);
    });
    tally[ARCS] = tally[LOOKED] - looked;
  }
  // Lower one's own vertices over the arcs that lead there from what is settled: short rows, then the queue of long
  // ones. A distance of a short row has one writer, and others may look at it meanwhile: see pulled(). So it is queued
  // here, behind the long ones, if it is near.
  __device__ void pull() {
    dist_t* own = dist(window()) + base();
    i64 longs = queued_vertices(*queue_counter(turn));
    queue_begin = longs;
    for (i64 run = warp_index() * 64; run < fact(STRIDE); run += warp_count() * 64) {
      i64 v[2] = {run + lane_index(), run + 32 + lane_index()}, at[2], end[2];
      // Those of long rows may be lowered meanwhile, and are not used.
      dist_t d[2] = {load_stale(&own[v[0]]), load_stale(&own[v[1]])}, before[2] = {d[0], d[1]};
      bool near[2];
      for (int half = 0; half < 2; half++) {
        near[half] = d[half] >= settled && v[half] < fact(NUM_OWNED);
        at[half] = near[half] ? load_readonly(indptr + v[half]) : 0;
        end[half] = near[half] ? load_readonly(indptr + v[half] + 1) : 0;
        if (end[half] - at[half] > LONG_ROW) end[half] = at[half], near[half] = false;
      }
      pull_alone(at, end, d);
      for (int half = 0; half < 2; half++) {
        pull_together(at[half], end[half], d[half]);
        bool fell = d[half] < before[half];
        if (fell) store_relaxed(&own[v[half]], d[half]);
        near[half] = near[half] && d[half] < bound && (fell || !finishes);
        if (near[half] && finishes) tell_others(v[half], d[half]);
        if (fell && !near[half] && d[half] < lowest) lowest = d[half];
      }
      enqueue<LIGHT>(!turn, v, d, near);
    }
    queue_begin = 0;
    pull_long();
    queue_begin = longs;
  }
  // Whether an arc is so light that what is settled since may be so near. The arcs of a row come in order of weight.
  __device__ bool may_lower(dist_t weight, dist_t d) const {
    double edge = class_edge(d - floor, scale);
    return edge == top_of<double>::value() || (double)weight * scale < edge;
  }
  __device__ dist_t pulled(vertex_t u, dist_t weight) const {
    // What is settled was so when all met: any value that is seen of it is the last one. What is not may fall after it
    // was seen here, and is pushed then.
    dist_t near = load_stale(&dist(window())[u]);
    if (near >= (finishes ? top_of<dist_t>::value() : settled)) return top_of<dist_t>::value();
    dist_t through = near + weight;
    return through <= cutoff ? through : top_of<dist_t>::value();
  }
  // Each lane looks at the first arcs of its two rows, one after another: what it finds makes most of the others too
  // heavy.
  __device__ void pull_alone(i64 (&at)[2], i64 (&end)[2], dist_t (&d)[2]) {
    for (int k = 0; k < ALONE && (at[0] < end[0] || at[1] < end[1]); k++) {
      vertex_t u[2];
      dist_t weight[2], through[2];
      for (int half = 0; half < 2; half++) {
        weight[half] = at[half] < end[half] ? (dist_t)load_readonly(weights + at[half]) : 0;
        u[half] = at[half] < end[half] ? load_readonly(targets + at[half]) : 0;
      }
      for (int half = 0; half < 2; half++)
        if (at[half] < end[half] && !may_lower(weight[half], d[half])) end[half] = at[half];
      for (int half = 0; half < 2; half++)
        through[half] = at[half] < end[half] ? pulled(u[half], weight[half]) : top_of<dist_t>::value();
      for (int half = 0; half < 2; half++) {
        if (through[half] < d[half]) d[half] = through[half];
        tally[LOOKED] += at[half] < end[half], at[half] += at[half] < end[half];
      }
    }
  }
  // The warp looks at what is left of a row of each lane.
  __device__ void pull_together(i64 at, i64 end, dist_t& d) {
    for (u32 pending = __ballot_sync(WARP, at < end); pending; pending &= pending - 1) {
      int lane = __ffs(pending) - 1;
      i64 last = __shfl_sync(WARP, end, lane);
      dist_t least = __shfl_sync(WARP, d, lane);
      for (i64 i = __shfl_sync(WARP, at, lane) + lane_index(); __any_sync(WARP, i < last); i += 32) {
        dist_t weight = i < last ? (dist_t)load_readonly(weights + i) : 0, through = top_of<dist_t>::value();
        bool looks = i < last && may_lower(weight, least);
        if (looks) through = pulled(load_readonly(targets + i), weight);
        tally[LOOKED] += looks;
        through = warp_min(through);
        if (through < least) least = through;
        if (!__all_sync(WARP, looks)) break;
      }
      if (lane_index() == lane) d = least;
    }
  }
  __device__ void pull_long() {
    dist_t* own = dist(window());
    vertex_t first = (vertex_t)base();
    auto itself = [&](vertex_t v) { return (vertex_t)(first + v); };
    each_queued(itself, [&](const i64(&slot)[4], const vertex_t(&v)[4], const bool (&there)[4]) {
      for (int k = 0; k < 4; k++) {
        dist_t top = top_of<dist_t>::value();
        dist_t through =
            there[k] ? pulled(load_readonly(targets + slot[k]), (dist_t)load_readonly(weights + slot[k])) : top;
        if (through < load_stale(&own[v[k]])) lower(v[k], through);
      }
    });
  }
  template <class Of, class Visit> __device__ void each_queued(Of fact_of, Visit visit) {
    i64 queued = *queue_counter(turn);
    InterleavedShare share(queued_arcs(queued));
    if (threadIdx.x == 0) tally[LOOKED] += share.size();
    for (i64 k = blockIdx.x; k < share.num_parts; k += gridDim.x)
      each_slot<4>(queue(), queued_vertices(queued), share.part(k), block->room, fact_of, visit);
  }
  __device__ void lower(vertex_t v, dist_t through) {
    u32 own = 1u << (v & 31);
    if (through < atomic_min(&dist(window())[v], through) && !(load_stale(&bits(window())[v >> 5]) & own))
      mark(v >> 5, own);
  }
  __device__ void mark(i64 word, u32 marks) {
    atomic_or(&bits(window())[word], marks);
    u32 *line = &lines(window())[word >> 5], own = 1u << (word & 31);
    if (!(load_stale(line) & own)) atomic_or(line, own);
  }
  // ---- one's own slice -------------------------------------------------------------------------------
  // The owner takes the smallest of what any rank has for its vertices, and sorts what fell into near and far. Lanes
  // look for lines with marks, each in other ones; then the warp goes through those.
  __device__ void settle() {
    i64 first = base() / 32 >> 5, last = (base() / 32 + words() - 1) >> 5;
    for (i64 group = first + warp_index(); group <= last; group += 32 * warp_count()) {
      i64 own = group + lane_index() * warp_count();
      u32 any = 0, theirs[MOST_RANKS];
      if (own <= last) {
        ranks.from_all(theirs, [&](i64 r) { return load_relaxed(&lines(window(r))[own]); });
        for (u32 marks : theirs) any |= marks;
        any &= own_part(own), tally[SENT] += 4 * (size() - 1);
      }
      for (u32 marked = __ballot_sync(WARP, any != 0); marked; marked &= marked - 1)
        settle_line(group + (__ffs(marked) - 1) * warp_count());
    }
  }
  // Words of a line that are one's own.
  __device__ u32 own_part(i64 line) const {
    i64 lo = base() / 32 - (line << 5), hi = lo + words();
    return (lo > 0 ? ~0u << lo : ~0u) & (hi < 32 ? ~(~0u << hi) : ~0u);
  }
  __device__ void settle_line(i64 line) {
    i64 first = threadIdx.x & ~31, at = line << 5 | lane_index(), word = at - base() / 32;
    u32 own = own_part(line), any = 0, theirs[MOST_RANKS];
    bool here = own >> lane_index() & 1;
    ranks.from_all(theirs, [&](i64 r) { return here ? bits(window(r))[at] : 0; });
#pragma unroll
    for (int r = 0; r < MOST_RANKS; r++) {
      any |= block->marks[r][threadIdx.x] = theirs[r];
      if (theirs[r]) bits(window(r))[at] = 0;
    }
    if (here) tally[SENT] += 4 * (size() - 1);
    if (lane_index() < size()) atomic_and_system(&lines(window(lane_index()))[line], ~own);
    __syncwarp();
    word -= lane_index();
    each_bit(word, any, [&](const i64(&v)[2], const bool (&there)[2]) {
      dist_t fell[2];
      bool near[2];
      for (int half = 0; half < 2; half++) {
        fell[half] = there[half] ? take_smallest(first + (v[half] >> 5) - word, v[half]) : top_of<dist_t>::value();
        near[half] = fell[half] < bound;
        if (near[half] && finishes) tell_others(v[half], fell[half]);
        if (!near[half] && fell[half] < lowest) lowest = fell[half];
      }
      enqueue<LIGHT>(turn, v, fell, near);
    });
    __syncwarp();
  }
  // What a vertex has fallen to, where any rank marked it in its word, which is that of thread `owner`.
  __device__ dist_t take_smallest(i64 owner, i64 v) {
    dist_t *own = &dist(window())[base() + v], before = *own, least = before;
    auto is_marked = [&](i64 r) { return block->marks[r][owner] >> (v & 31) & 1; };
    dist_t theirs[MOST_RANKS];
    ranks.from_all(theirs, [&](i64 r) { return is_marked(r) ? dist(window(r))[base() + v] : top_of<dist_t>::value(); });
#pragma unroll
    for (int r = 0; r < MOST_RANKS; r++) {
      if (r >= size() || !is_marked(r)) continue;
      if (theirs[r] < least) least = theirs[r];
      if (r != rank()) tally[SENT] += sizeof(dist_t);
    }
    if (least < before) *own = least;
    return least < before || is_marked(rank()) ? least : top_of<dist_t>::value();
  }
  template <Part part> __device__ void scan_slice() {
    // Distances of the next two turns are under way.
    const dist_t* own = dist(window()) + base() + lane_index();
    i64 first = warp_index() * 64, turn_length = warp_count() * 64;
    dist_t coming[4] = {};
    for (int k = 0; k < 4; k++) {
      i64 at = first + k / 2 * turn_length + k % 2 * 32;
      if (at < fact(STRIDE)) coming[k] = own[at];
    }
    for (i64 run = first; run < fact(STRIDE); run += turn_length) {
      i64 v[2] = {run + lane_index(), run + 32 + lane_index()}, after = run + 2 * turn_length;
      dist_t d[2] = {coming[0], coming[1]};
      coming[0] = coming[2], coming[1] = coming[3];
      if (after < fact(STRIDE)) coming[2] = own[after], coming[3] = own[after + 32];
      bool takes[2];
      for (int half = 0; half < 2; half++) {
        bool near = !finishes && settled <= d[half] && d[half] < bound;
        bool is_new = floor <= d[half] && d[half] < (finishes ? bound : settled);
        if (d[half] >= bound && d[half] < lowest) lowest = d[half];
        // Where there is something left to do first, who is near is marked, as if it had fallen, or queued by the pull.
        u32 marks = __ballot_sync(WARP, near && (part == REST || (part == PULLED && is_long(v[half]))));
        if (marks && lane_index() == 0) mark((base() + run) / 32 + half, marks);
        if (part == PULLED && is_new) tally[ARCS] += arcs_of(v[half]);
        if (part == PULLED && (is_new || (finishes && d[half] < untold))) tell_others(v[half], d[half]);
        if (part == PULLED) tally[COUNT] += d[half] >= settled && v[half] < fact(NUM_OWNED) && !is_long(v[half]);
        takes[half] = part == LIGHT ? near : part == REST ? is_new : is_long(v[half]) && d[half] >= settled;
      }
      enqueue<part>(turn, v, d, takes);
    }
  }
  __device__ i64 arcs_of(i64 v) const { return load_readonly(indptr + v + 1) - load_readonly(indptr + v); }
  __device__ bool is_long(i64 v) const { return v < fact(NUM_OWNED) && arcs_of(v) > LONG_ROW; }
  __device__ void tell_others(i64 v, dist_t d) {
    tally[SENT] += sizeof(dist_t) * (size() - 1);
    for (i64 r = 0; r < size(); r++)
      if (r != rank()) dist(window(r))[base() + v] = d;
  }
};
