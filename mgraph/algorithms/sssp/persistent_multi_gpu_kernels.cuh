// Shortest paths on several GPUs: the copies of distances, marks and queues that all phases of
// persistent_multi_gpu_kernels.cu use. Between two phases is a barrier over all ranks.
//
// The peer buffer of each rank holds a copy of all distances, and a bitmap of the distances that
// this rank lowered in the round, its own and those of other owners, with a summary that has a bit
// for each word of the bitmap that is not 0, unless most words are not. The owner's copy is
// exact. Other copies are upper bounds, good to reject candidates.
//
// A round has two phases. First each rank relaxes the arcs of its near vertices in its own copy.
// Then each owner gathers the marks of its slice from all ranks, reads the marked distances, keeps
// the smallest, and queues the vertices that fell. So no message needs memory at its receiver, and
// a distance is transferred once a round, however often it fell.
//
// Far is every vertex at a distance of at least the bound. A scan of the own slice finds the
// vertices below the next bound, and what the bucket below left over: its heavy arcs, or the arcs
// into unsettled vertices. A pull needs the distances of settled neighbors: owners write the
// bucket's distances, with adjacent ones, into the copies of other ranks. When few arcs remain to
// be pulled over, owners write the distances of all their reached vertices, and unsettled vertices
// pull from any. A distance that falls meanwhile is pushed and written there too, so that in the
// end every rank has all distances.
//
// State, `b` the bucket. A phase reads what earlier phases wrote; between two barriers an array is
// either read, or changed by atomics alone, or each word has one writer.
//   name            where      holds                        written by
//   distances       buffer     copy of all distances        own rank: minima; owners
//   marks, summary  buffer     what fell in this round      own rank sets, owners clear
//   lowest_waiting  buffer     least distance beyond bound  all ranks: minima; triple by b
//   queue           work       rows to relax or to pull     own rank, counter double
//   part_counter    work       parts of the queue taken     own rank, double-buffered
//   trace_records   work       a record of each round       thread 0
//   tally           registers  sums for the next barrier    this thread
//   lowest          registers  least distance seen to wait  this thread, for one bucket
//   bucket_begin..  registers  borders of buckets           all threads of all ranks alike

#include "frontiers.cuh"
#include "lightest_arcs.cuh"
#include "persistent_multi_gpu_kernels.py"
#include "prelude.cuh"
#include "ranks.cuh"

// Sums over the ranks at a barrier: ARCS counts arcs relaxed, or the arcs of whole rows. Of the
// last two each rank uses its own.
enum Sum { COUNT, ARCS, SCANNED, SENT };
constexpr int BLOCK = 768;
// Adjacent words of the bitmap that share a summary word: half of what one access over a link
// transfers.
constexpr u32 ADJACENT_WORDS = 4;

// A distance for minima of blocks and ranks: in shared memory, and between GPUs.
typedef wide_of<dist_t>::type wide_t;

// Shared memory of a block.
struct MultiGpuBlock {
  i64 scratch[3 * BLOCK];       // rows that are relaxed, or vertices that wait to pull
  u32 marks[MAX_RANKS][BLOCK];  // words of marks, one per thread, of each rank
  wide_t lowest;
  i64 parameters[NUM_PARAMETERS], sources[MAX_SHARED_SOURCES], part;
  RankScratch ranks;
};

// Which arcs of a row are queued: the light ones of a near vertex; those of a settled one, for its
// remainder; or, where fewer arcs lead to unsettled vertices, the arcs into one of these. Where no
// arc counts as heavy a near vertex has all of its arcs relaxed.
enum ArcRange { LIGHT, REMAINDER, PULLED };

struct DistanceCopies : SsspWork<DistanceCopies> {
  MultiGpuBlock* block;
  Ranks ranks;
  RowsAndLightest rows;
  u32* work;
  dist_t cutoff;

  i64 tally[NUM_SUMS] = {};  // counted by this thread since the last barrier
  // Settled last: distances in [bucket_begin, settled). Near: in [settled, bound). Distances below
  // `settled_before_pull` were settled before any vertex pulled.
  dist_t bucket_begin = 0, settled = 0, bound = 0, settled_before_pull = 0;
  wide_t lowest = top_of<dist_t>::value();
  int bucket = 0;
  bool parity = false, is_last_bucket = false;
  i64 queue_begin = 0;  // entries before are being read

  // The own distances and marks. Values computed from launch parameters are read from shared memory
  // again at each use.
  dist_t* own_copy = distances_in(buffer());
  u32* own_marks = marks_in(buffer());
  // A dense round marks so many vertices that summaries are not kept: owners scan all words.
  bool is_dense = false;

  __device__ i64 parameter(Parameter which) const { return block->parameters[which]; }
  __device__ i64 rank() const { return block->ranks.rank; }
  __device__ i64 size() const { return block->ranks.size; }
  __device__ i64 slice_words() const { return parameter(STRIDE) >> 5; }
  __device__ i64 base() const { return rank() * parameter(STRIDE); }
  // The own peer buffer, or that of rank r.
  __device__ u8* buffer() const { return ranks.buffer; }
  __device__ u8* buffer(i64 r) const { return ranks.buffer_of(r); }
  __device__ u32* marks_in(u8* in) const { return (u32*)(in + HEAD_BYTES); }
  // Which words of marks are not 0: of a slice, a bit for each word.
  __device__ u32* summary_in(u8* in) const { return (u32*)(in + parameter(SUMMARY)); }
  __device__ i64 summary_words() const { return (slice_words() + 31) >> 5; }
  __device__ dist_t* distances_in(u8* in) const { return (dist_t*)(in + parameter(DISTANCES)); }
  // The smallest distance beyond the bound, triple-buffered by bucket: one is read, one is written,
  // one is cleared.
  __device__ wide_t* lowest_waiting(u8* in, int of_bucket) const {
    return (wide_t*)(distances_in(in) + parameter(STRIDE) * size()) + of_bucket % 3;
  }
  __device__ i64* queue_counter(bool which) const { return counters() + QUEUE_COUNTERS + which; }
  // Parts of a queue taken in addition to the first of each block.
  __device__ i64* part_counter(bool which) const { return counters() + PART_COUNTERS + which; }
  __device__ i64 record_capacity() const { return parameter(TRACE_RECORDS); }
  __device__ i64 capacity() const { return parameter(CAPACITY); }
  __device__ Queue queue() const {
    // queue_offsets(), queue_first() and queue_vertices() in one chain: apart they spill more.
    i64 *offsets = trace_records() + record_capacity() * TRACE_WORDS, *first = offsets + capacity();
    vertex_t* vertices = (vertex_t*)(first + capacity());
    return {offsets + queue_begin, first + queue_begin, vertices + queue_begin};
  }

  // A barrier over all ranks; after it each has the smallest waiting distance that any thread saw.
  __device__ bool end_phase() {
    lowest = warp_min(lowest);
    if (lane_index() == 0 && lowest < load_relaxed(&block->lowest))
      atomic_min(&block->lowest, lowest);
    __syncthreads();
    // A minimum in the own buffer has been sent to all ranks, or is being sent.
    if (threadIdx.x == 0 && block->lowest < load_relaxed(lowest_waiting(buffer(), bucket)))
      for (i64 r = 0; r < size(); r++)
        atomic_min_system(lowest_waiting(buffer(r), bucket), block->lowest);
    return ranks.barrier(tally);
  }
  // Append a warp's vertices, two per lane at distances d, to a queue with a range of their rows,
  // if they are `valid` and the range has arcs; count these.
  template <ArcRange range> __device__ void enqueue(bool which, const i64 (&v)[2],
                                                    const dist_t (&d)[2], const bool (&valid)[2]) {
    vertex_t own[2];
    i64 begin[2] = {}, length[2] = {};
    bool has_arcs[2];
    for (int half = 0; half < 2; half++) {
      own[half] = (vertex_t)v[half];
      if (valid[half]) {
        Slots arcs = row(v[half]);
        if (range == LIGHT) tally[ARCS] += arcs.end - arcs.begin;
        if (range != REMAINDER && parameter(HAS_HEAVY)) {
          dist_t max_weight = range == LIGHT ? bound - d[half] : d[half] - bucket_begin;
          arcs = rows.light_of(arcs.begin, arcs.end, class_edge(max_weight, rows.lightest.scale));
        }
        begin[half] = arcs.begin;
        length[half] = arcs.end - arcs.begin;
      }
      has_arcs[half] = length[half] > 0;
      tally[COUNT] += has_arcs[half];
    }
    ::enqueue<2>(queue(), parameter(CAPACITY) - queue_begin, queue_counter(which), own, has_arcs,
                 begin, length);
  }

  // ---- arcs ------------------------------------------------------------------------------------
  __device__ Slots row(i64 v) const {
    return {load_readonly(rows.indptr + v), load_readonly(rows.indptr + v + 1)};
  }
  // Relax the arcs of the queue in the own copy, if they end no farther than `farthest`. A source
  // that falls meanwhile is queued again.
  __device__ void relax(dist_t farthest) {
    i64 first = base(), scanned = tally[SCANNED];
    if (farthest > cutoff) farthest = cutoff;
    auto from = [&](vertex_t v) { return load_relaxed(&own_copy[first + v]); };
    each_queued(from, [&](const i64(&slot)[4], const dist_t(&source)[4], const bool (&valid)[4]) {
      vertex_t v[4];
      dist_t through[4], seen[4];
      // Without branches in between all loads are in flight together.
      for (int k = 0; k < 4; k++) {
        v[k] = valid[k] ? rows.target(slot[k]) : 0;
        through[k] = valid[k] ? source[k] + rows.weight(slot[k]) : top_of<dist_t>::value();
      }
      // A stale distance is a larger one: it causes one atomic too many.
      for (int k = 0; k < 4; k++)
        seen[k] = load_stale(&own_copy[through[k] <= farthest ? v[k] : 0]);
      for (int k = 0; k < 4; k++) seen[k] = through[k] <= farthest ? seen[k] : (dist_t)0;
      lower(v, through, seen);
    });
    tally[ARCS] = tally[SCANNED] - scanned;
  }
  template <class Of, class Visit> __device__ void each_queued(Of value_of, Visit visit) {
    i64 queued = *queue_counter(parity);
    Parts parts(queued_arcs(queued));
    for (i64 k = blockIdx.x; k < parts.count; k = block->part) {
      i64 next = threadIdx.x == 0 ? gridDim.x + atomic_add(part_counter(parity), (i64)1) : 0;
      // Last part first: rows of few arcs, which take longest, were queued after the others.
      BlockShare share = parts.share(parts.count - 1 - k);
      if (threadIdx.x == 0) tally[SCANNED] += share.end - share.begin;
      each_slot<4>(queue(), queued_vertices(queued), share, block->scratch, value_of, visit);
      __syncthreads();
      if (threadIdx.x == 0) block->part = next;
      __syncthreads();
    }
  }
  // Lower distances in the own copy, if they were above `through` when they were read.
  __device__ void lower(const vertex_t (&v)[4], const dist_t (&through)[4],
                        const dist_t (&seen)[4]) {
    dist_t before[4];
    u32 marked[4];
    for (int k = 0; k < 4; k++)
      marked[k] = through[k] < seen[k] ? load_stale(&own_marks[v[k] >> 5]) : 0;
    for (int k = 0; k < 4; k++)
      before[k] = through[k] < seen[k] ? atomic_min(&own_copy[v[k]], through[k]) : (dist_t)0;
    for (int k = 0; k < 4; k++)
      if (through[k] < before[k]) mark(v[k] >> 5, 1u << (v[k] & 31), marked[k]);
  }
  // The thread that read a word of marks as 0 sets its bit in the summary.
  __device__ void mark(i64 word, u32 marks, u32 seen) {
    if ((seen & marks) == marks) return;
    atomic_or(&own_marks[word], marks);
    if (!seen && !is_dense) mark_summary(word);
  }
  // The words of one summary word are spread over the slice, ADJACENT_WORDS at a time, so that
  // hubs, which are adjacent, are not all settled by one warp.
  __device__ void mark_summary(i64 word) {
    u32 owner = (u32)word / (u32)slice_words(), in_slice = (u32)word - owner * (u32)slice_words(),
        words_each = (u32)summary_words();
    u32 group = in_slice / ADJACENT_WORDS,
        own = 1u << (group / words_each * ADJACENT_WORDS + in_slice % ADJACENT_WORDS);
    u32* summary_word = &summary_in(buffer())[owner * (i64)words_each + group % words_each];
    if (!(load_stale(summary_word) & own)) atomic_or(summary_word, own);
  }
  // The word of the own slice that belongs to a summary bit.
  __device__ i64 word_of(i64 summary_index, i64 bit) const {
    return (bit / ADJACENT_WORDS * summary_words() + summary_index) * ADJACENT_WORDS +
           bit % ADJACENT_WORDS;
  }
  __device__ void broadcast(i64 v, dist_t d) {
    tally[SENT] += sizeof(dist_t) * (size() - 1);
    for (i64 r = 0; r < size(); r++)
      if (r != rank()) distances_in(buffer(r))[base() + v] = d;
  }
  __device__ bool is_long(i64 v, i64 arcs) const {
    return v < parameter(LONG_ROWS) && arcs > ALL_WARPS_ROW;
  }
};
