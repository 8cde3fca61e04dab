// What the rounds of sssp_peers.cu are made of: phases, between which all ranks meet.
//
// Every rank has in its window a copy of all distances, and a bitmap of those that it lowered in
// this round, its own and others', with a bit for each word of that in which there is one, unless
// there is in most. The owner's copy is the truth, the others are upper bounds, good to see what
// could not win.
//
// A round has two phases: each rank relaxes the arcs out of near, in its own copy; then the owners
// gather the bits of their slices, read the distances that are marked, keep the smallest, and queue
// what fell. So nothing is sent to where there is no room for it, and a distance travels once a
// round, however often it fell.
//
// Far is whatever has a distance from the bound on: a pass over one's own slice finds what the next
// bound reaches, and what the bucket below it has left: its heavy arcs, or those that lead to what
// is not settled. Who is to pull must know what is settled: owners write the distances of the
// bucket into the others' copies, and of its neighbours. When few arcs are left to pull over, they
// write all that are reached there, and their vertices pull from any: what falls meanwhile is
// pushed, and written there too, so that in the end all ranks know all distances.
//
// Between two meetings an array is either read or changed by atomics, or each word has one writer.

#include "frontiers.cuh"
#include "persistent_multi_gpu_kernels.py"
#include "prelude.cuh"
#include "ranks.cuh"

// What the ranks add up at a meeting: of ARCS those relaxed, or those of whole rows. Of the last
// two each keeps its own.
enum Sum { COUNT, ARCS, LOOKED, SENT };
constexpr int BLOCK = 768;
// Words of counters, of the queue and of its parts, in turn.
constexpr i64 NUM_COUNTERS = 4;
// Rows of more arcs are pulled by all warps.
constexpr i64 LONG_ROW = 256;
// Words of a line that stand side by side: half of what one access over a link brings.
constexpr u32 TOGETHER = 4;

// A distance where blocks and ranks take minima of few: in shared memory, and between GPUs.
typedef wide_of<dist_t>::type wide_t;

// What a block keeps in shared memory.
struct Block {
  i64 room[3 * BLOCK];           // rows that are relaxed
  u32 marks[MOST_RANKS][BLOCK];  // words of bits, one a thread, of each rank
  wide_t lowest;
  i64 facts[NUM_FACTS], sources[FEW_SOURCES], part;
  RanksHere ranks;
};

// What is left of the rows of a bucket that is settled waits for nothing else: out of its vertices
// the arcs that were too heavy for it, each once, or, where fewer lead to what is not settled,
// those, into their vertices.
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
  dist_t floor = 0, settled = 0, bound = 0, untold = 0;
  wide_t lowest = top_of<dist_t>::value();
  int bucket = 0;
  bool turn = false, finishes = false;
  i64 queue_begin = 0;  // where the queue begins: those before are being looked through

  // One's own distances, and bits; what is worked out of facts is read from shared memory again
  // wherever it is used.
  dist_t* own_copy = dist(window());
  u32* own_bits = bits(window());
  // So many vertices are marked in a round that nobody marks lines: owners look at all words.
  bool is_wide = false;

  __device__ i64 fact(Fact which) const { return block->facts[which]; }
  __device__ i64 rank() const { return block->ranks.rank; }
  __device__ i64 size() const { return block->ranks.size; }
  __device__ i64 words() const { return fact(STRIDE) >> 5; }  // of a slice
  __device__ i64 base() const { return rank() * fact(STRIDE); }
  // Those of a window: one's own, or that of rank r.
  __device__ u8* window() const { return ranks.window; }
  __device__ u8* window(i64 r) const { return ranks.window_of(r); }
  __device__ u32* bits(u8* in) const { return (u32*)(in + HEAD_BYTES); }
  // In which words of them there are any: of a slice, 32 words are a line.
  __device__ u32* lines(u8* in) const { return (u32*)(in + fact(LINES)); }
  __device__ i64 num_lines() const { return (words() + 31) >> 5; }  // of a slice
  __device__ dist_t* dist(u8* in) const { return (dist_t*)(in + fact(COPY)); }
  // The smallest distance that waits; buckets have them in turn: one is read, one is written, one
  // is cleared.
  __device__ wide_t* waiting(u8* in, int of_bucket) const {
    return (wide_t*)(dist(in) + fact(STRIDE) * size()) + of_bucket % 3;
  }
  __device__ i64* queue_counter(bool which) const { return (i64*)work + which; }
  // How many parts of a queue were taken beside the first of each block.
  __device__ i64* part_counter(bool which) const { return (i64*)work + 2 + which; }
  __device__ i64* rows() const { return (i64*)work + NUM_COUNTERS; }  // of the trace
  __device__ Queue queue() const {
    i64 *offsets = rows() + fact(TRACE_ROWS) * ROW, *first = offsets + fact(CAPACITY);
    vertex_t* vertices = (vertex_t*)(first + fact(CAPACITY));
    return {offsets + queue_begin, first + queue_begin, vertices + queue_begin};
  }

  // All ranks meet; by then each knows the smallest distance that any thread saw to wait.
  __device__ bool meet() {
    lowest = warp_min(lowest);
    if (lane_index() == 0 && lowest < load_relaxed(&block->lowest))
      atomic_min(&block->lowest, lowest);
    __syncthreads();
    // Who has told one rank has told all, or is about to.
    if (threadIdx.x == 0 && block->lowest < load_relaxed(waiting(window(), bucket)))
      for (i64 r = 0; r < size(); r++) atomic_min_system(waiting(window(r), bucket), block->lowest);
    return ranks.meet(tally);
  }
  // A warp's vertices, two a lane, whose distances are d, go to a queue with a part of their rows
  // if they are `there` and the part has arcs; those are counted.
  template <Part part> __device__ void enqueue(bool which, const i64 (&v)[2], const dist_t (&d)[2],
                                               const bool (&there)[2]) {
    vertex_t own[2];
    i64 begin[2] = {}, length[2] = {};
    bool has_arcs[2];
    for (int half = 0; half < 2; half++) {
      own[half] = (vertex_t)v[half];
      if (there[half]) {
        begin[half] = load_readonly(indptr + v[half]);
        i64 end = load_readonly(indptr + v[half] + 1);
        if (part == LIGHT) tally[ARCS] += end - begin[half];
        dist_t room = part == LIGHT  ? bound - d[half]
                      : part == REST ? settled - d[half]
                                     : d[half] - floor;
        i64 split = light_end(weights, begin[half], end, scale, class_edge(room, scale));
        (part == REST ? begin[half] : end) = split;
        length[half] = end - begin[half];
      }
      has_arcs[half] = length[half] > 0;
      tally[COUNT] += has_arcs[half];
    }
    ::enqueue<2>(queue(), fact(CAPACITY) - queue_begin, queue_counter(which), own, has_arcs, begin,
                 length);
  }

  // ---- arcs -------------------------------------------------------------------------------------
  // Relax the arcs of the queue in one's own copy. A source that falls meanwhile is queued again.
  __device__ void relax() {
    i64 first = base(), looked = tally[LOOKED];
    auto from = [&](vertex_t v) { return load_relaxed(&own_copy[first + v]); };
    each_queued(from, [&](const i64(&slot)[4], const dist_t(&source)[4], const bool (&there)[4]) {
      vertex_t v[4];
      dist_t through[4], seen[4];
      // Without branches between them all loads are under way together.
      for (int k = 0; k < 4; k++) {
        v[k] = there[k] ? load_readonly(targets + slot[k]) : 0;
        through[k] = there[k] ? source[k] + (dist_t)load_readonly(weights + slot[k]) : cutoff;
      }
      // An older distance is a larger one: it makes for an atomic too many.
      for (int k = 0; k < 4; k++) seen[k] = load_stale(&own_copy[v[k]]);
      for (int k = 0; k < 4; k++) seen[k] = there[k] && through[k] <= cutoff ? seen[k] : (dist_t)0;
      lower(v, through, seen);
    });
    tally[ARCS] = tally[LOOKED] - looked;
  }
  template <class Of, class Visit> __device__ void each_queued(Of fact_of, Visit visit) {
    i64 queued = *queue_counter(turn);
    Parts parts(queued_arcs(queued));
    for (i64 k = blockIdx.x; k < parts.count; k = block->part) {
      i64 next = threadIdx.x == 0 ? gridDim.x + atomic_add(part_counter(turn), (i64)1) : 0;
      // The last first: rows of few arcs, which take longest, were queued behind the others.
      BlockShare share = parts.share(parts.count - 1 - k);
      if (threadIdx.x == 0) tally[LOOKED] += share.end - share.begin;
      each_slot<4>(queue(), queued_vertices(queued), share, block->room, fact_of, visit);
      __syncthreads();
      if (threadIdx.x == 0) block->part = next;
      __syncthreads();
    }
  }
  // Lower in one's own copy what is above `through` still, if it was when it was seen.
  __device__ void lower(const vertex_t (&v)[4], const dist_t (&through)[4],
                        const dist_t (&seen)[4]) {
    dist_t before[4];
    u32 marked[4];
    for (int k = 0; k < 4; k++)
      marked[k] = through[k] < seen[k] ? load_stale(&own_bits[v[k] >> 5]) : 0;
    for (int k = 0; k < 4; k++)
      before[k] = through[k] < seen[k] ? atomic_min(&own_copy[v[k]], through[k]) : (dist_t)0;
    for (int k = 0; k < 4; k++)
      if (through[k] < before[k]) mark(v[k] >> 5, 1u << (v[k] & 31), marked[k]);
  }
  // Who saw none marked of a word marks that in its line.
  __device__ void mark(i64 word, u32 marks, u32 seen) {
    if ((seen & marks) == marks) return;
    atomic_or(&own_bits[word], marks);
    if (!seen && !is_wide) mark_line(word);
  }
  // The words of a line stand apart, a few together: so no warp has to settle hubs alone, which
  // stand side by side.
  __device__ void mark_line(i64 word) {
    u32 owner = (u32)word / (u32)words(), of_slice = (u32)word - owner * (u32)words(),
        lines_each = (u32)num_lines();
    u32 few = of_slice / TOGETHER, own = 1u << (few / lines_each * TOGETHER + of_slice % TOGETHER);
    u32* line = &lines(window())[owner * (i64)lines_each + few % lines_each];
    if (!(load_stale(line) & own)) atomic_or(line, own);
  }
  // The word of one's own slice that is a bit of a line.
  __device__ i64 word_of(i64 line, i64 bit) const {
    return (bit / TOGETHER * num_lines() + line) * TOGETHER + bit % TOGETHER;
  }
  __device__ void tell_others(i64 v, dist_t d) {
    tally[SENT] += sizeof(dist_t) * (size() - 1);
    for (i64 r = 0; r < size(); r++)
      if (r != rank()) dist(window(r))[base() + v] = d;
  }
  __device__ i64 arcs_of(i64 v) const {
    return load_readonly(indptr + v + 1) - load_readonly(indptr + v);
  }
  __device__ bool is_long(i64 v, i64 arcs) const { return v < fact(LONG_ROWS) && arcs > LONG_ROW; }
};
