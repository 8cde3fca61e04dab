// Pushes of persistent_multi_gpu_kernels.cu. Few arcs are sent as candidates, contiguously, into
// the owners' inboxes: after a small push the owner settles, queues and broadcasts each found
// vertex at once; after a larger one it does so word by word of its slice. Of many arcs only target
// bits are marked, in this rank's next_copy(), from which the owners gather their slices.

#include "frontiers.cuh"
#include "persistent_multi_gpu_kernels.cuh"
#include "prelude.cuh"
#include "ranks.cuh"

// Mark targets of arcs in a copy of the reached bitmap. Not inlined: a function of its own has
// registers for more arcs per lane than the search's loops leave.
__device__ __noinline__ void mark_targets(Queue from, i64 num_queued, const vertex_t* targets,
                                          BlockShare share, i64* scratch, u32* copy) {
  constexpr int EACH = 8;
  auto mark = [&](const vertex_t(&v)[EACH], const vertex_t(&)[EACH], const bool (&valid)[EACH]) {
    // No branches in between, so that all loads are in flight together. A stale word causes at most
    // an unnecessary atomic.
    u32 word[EACH];
    for (int k = 0; k < EACH; k++) word[k] = load_stale(copy + (v[k] >> 5));
    for (int k = 0; k < EACH; k++)
      if (valid[k] && !(word[k] >> (v[k] & 31) & 1))
        atomic_or(copy + (v[k] >> 5), 1u << (v[k] & 31));
  };
  each_arc<EACH>(
      from, num_queued, global(targets), share, scratch, [](vertex_t) { return (vertex_t)0; },
      mark);
}

struct MultiGpuPush : MultiGpuState {
  // Push the queue: send candidates to unreached targets, with `block_capacity` slots for each
  // block and owner; with capacity 0 mark the targets in this rank's next_copy(). The bitmap may
  // lack vertices reached since, which the owners know.
  __device__ void push(u32 block_capacity) {
    i64 queued = *queue_counter(parity);
    BlockShare share(0, queued_arcs(queued));
    if (threadIdx.x < MAX_RANKS) block->num_candidates[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0 && share.begin < share.end) tally[SCANNED] += share.end - share.begin;
    if (block_capacity)
      push_candidates(queued_vertices(queued), share, block_capacity);
    else
      mark_targets(queue(), queued_vertices(queued), targets, share, block->scratch, next_copy());
  }
  // Two arcs per lane: with more, scans lose registers (rmat27 on two H200, the levels that scan
  // most: 570 and 224 us with four, 554 and 217 us with two).
  __device__ void push_candidates(i64 num_queued, const BlockShare& share, u32 block_capacity) {
    const u32* reached = current_copy();
    auto position = [&](vertex_t v) {
      return (vertex_t)(v * parameter(MULTIPLIER) + parameter(FIRST));
    };
    auto candidate = [&](const vertex_t(&v)[2], const vertex_t(&u)[2], const bool (&valid)[2]) {
      // No branches in between, so that all loads are in flight together.
      u32 word[2];
      for (int k = 0; k < 2; k++) word[k] = load_stale(reached + (v[k] >> 5));
      for (int k = 0; k < 2; k++)
        send_candidate(v[k], u[k], valid[k] && !(word[k] >> (v[k] & 31) & 1), block_capacity);
    };
    each_arc<2>(queue(), num_queued, targets, share, block->scratch, position, candidate);
  }
  // Each sending block has slots of its own in every inbox, equally many, and publishes how many it
  // filled; blocks from MAX_BLOCKS on have none.
  __device__ i64 num_sending_blocks() const {
    i64 arcs = queued_arcs(*queue_counter(parity)), each = BlockShare(0, arcs).length,
        num = (arcs + each - 1) / each;
    return num < MAX_BLOCKS ? num : MAX_BLOCKS;
  }
  __device__ u32 candidate_capacity() const {
    i64 num_blocks = num_sending_blocks();
    return (u32)(parameter(INBOX) / (num_blocks ? num_blocks : 1));
  }
  __device__ void publish_counts(u32 block_capacity) {
    __syncthreads();
    i64 num_blocks = num_sending_blocks();
    if (threadIdx.x >= num_ranks()) return;
    i64* here = counts_from(buffer(threadIdx.x), rank());
    u32 own = block->num_candidates[threadIdx.x];
    if (blockIdx.x == 0) here[0] = num_blocks << 32 | block_capacity;
    if (blockIdx.x < num_blocks) here[1 + blockIdx.x] = own < block_capacity ? own : block_capacity;
  }
  // Send a warp's candidates, one per lane where `valid` is set; those to one rank are contiguous,
  // so that they share packets. Those over capacity are counted.
  __device__ void send_candidate(vertex_t v, vertex_t u, bool valid, u32 block_capacity) {
    vertex_t owner = valid ? owner_of(v) : (vertex_t)num_ranks();
    u32 before = 0, num = 0;
    for (int r = 0; r < num_ranks(); r++) {
      u32 to_rank = __ballot_sync(WARP, owner == r);
      if (owner == r) before = lanes_before(to_rank);
      if (lane_index() == r) num = __popc(to_rank);
    }
    u32 place = num ? atomic_add(&block->num_candidates[lane_index()], num) : 0;
    u32 at = __shfl_sync(WARP, place, (int)owner & 31) + before;
    if (owner >= num_ranks()) return;
    if (owner != rank()) tally[SENT] += sizeof(Candidate);
    if (at < block_capacity && blockIdx.x < MAX_BLOCKS)
      inbox(buffer(owner), rank())[blockIdx.x * (i64)block_capacity + at] = {
          v - owner * (vertex_t)parameter(STRIDE), u};
    else
      tally[COUNT]++;
  }
  // Call accept(candidate, valid), by whole warps, EACH per lane, for the candidates of all ranks'
  // blocks.
  template <int EACH, class Accept> __device__ void each_candidate(Accept accept) {
    i64 most = blockIdx.x + 1;
    for (i64 of = blockIdx.x; of < most; of += gridDim.x) {
      __syncthreads();
      if (threadIdx.x < num_ranks()) {
        const i64* from = counts_from(buffer(), threadIdx.x);
        block->counts_from[threadIdx.x] = from[0];
        block->num_candidates[threadIdx.x] = of < from[0] >> 32 ? (u32)from[1 + of] : 0;
      }
      __syncthreads();
      u32 total = 0;
      for (i64 r = 0; r < num_ranks(); r++) {
        total += block->num_candidates[r];
        if (block->counts_from[r] >> 32 > most) most = block->counts_from[r] >> 32;
      }
      for (u32 group = (threadIdx.x & ~31) * EACH; group < total; group += blockDim.x * EACH) {
        Candidate candidate[EACH];
        bool valid[EACH];
        for (int k = 0; k < EACH; k++) {
          u32 i = group + k * 32 + lane_index();
          i64 from = 0;
          valid[k] = i < total;
          while (valid[k] && i >= block->num_candidates[from]) i -= block->num_candidates[from++];
          candidate[k] = valid[k] ? inbox(buffer(), from)[of * (u32)block->counts_from[from] + i]
                                  : Candidate{0, 0};
        }
        accept(candidate, valid);
      }
    }
  }
  // The first candidate of a vertex, by the bits of `copy`, finds it and becomes its parent;
  // further ones are deferred until after the barrier.
  template <int EACH> __device__ void accept(const Candidate (&candidate)[EACH],
                                             const bool (&valid)[EACH], bool (&found)[EACH],
                                             u32* copy) {
    u32 num_deferred = 0;
    for (int k = 0; k < EACH; k++)
      found[k] = valid[k] && set_bit(copy, own_words() * 32 + candidate[k].to);
    for (int k = 0; k < EACH; k++) {
      if (found[k]) parents[candidate[k].to] = candidate[k].parent;
      num_deferred += valid[k] && !found[k];
    }
    if (!__any_sync(WARP, num_deferred)) return;
    WarpScan scan(num_deferred);
    i64 place = lane_index() == 0 ? atomic_add(deferred_counter(!parity), (i64)scan.total) : 0;
    Candidate* next = deferred() + __shfl_sync(WARP, place, 0) + scan.before;
    for (int k = 0; k < EACH; k++)
      if (valid[k] && !found[k]) *next++ = candidate[k];
  }
  // Small push: other ranks read the reached bitmap before the last barrier and write it after the
  // next, so that one copy suffices.
  __device__ void apply_small_push() {
    each_candidate<2>([&](const Candidate(&candidate)[2], const bool (&valid)[2]) {
      i64 v[2] = {(i64)candidate[0].to, (i64)candidate[1].to};
      bool found[2];
      accept(candidate, valid, found, current_copy());
      for (int half = 0; half < 2; half++)
        if (found[half]) levels[v[half]] = (dist_t)(level + 1), broadcast_vertex(v[half], side);
      enqueue(!parity, v, found);
    });
  }
  // Larger push: found vertices are marked in this rank's next_copy() only, until all candidates
  // are accepted, and then settled in slice order. Candidates arrive in an order that scatters over
  // memory, and a queue of this many vertices may never be needed.
  __device__ void apply_large_push() {
    each_candidate<4>([&](const Candidate(&candidate)[4], const bool (&valid)[4]) {
      bool found[4];
      accept(candidate, valid, found, next_copy());
    });
  }
  __device__ void settle_slice() {
    for (i64 word = warp_index() << 5; word < words(); word += warp_count() << 5) {
      i64 at = own_words() + word + lane_index();
      bool here = word + lane_index() < words();
      u32 before = here ? current_copy()[at] : 0, marked = here ? next_copy()[at] : 0,
          found = marked & ~before;
      if (here) {
        broadcast_word(at, before | found);
        next_copy()[at] = marked & before;
      }
      if (!__any_sync(WARP, found)) continue;
      tally[COUNT] += __popc(found);
      each_bit(word, found, [&](const i64(&v)[2], const bool (&valid)[2]) {
        i64 length[2];
        for (int half = 0; half < 2; half++)
          length[half] = valid[half] ? row_length(indptr, v[half]) : 0;
        for (int half = 0; half < 2; half++) {
          if (valid[half]) levels[v[half]] = (dist_t)(level + 1);
          tally[ARCS] += length[half];
        }
      });
    }
  }
  // The smallest of all candidates becomes the parent.
  __device__ void apply_deferred() {
    for (i64 i = thread_index(), count = *deferred_counter(parity); i < count; i += thread_count())
      atomic_min(parents + deferred()[i].to, deferred()[i].parent);
  }
};
