// How a frontier is pushed. Arcs travel as offers of parents, side by side into the owners'
// windows: whoever few offers find is settled, queued and told to all one by one, and whoever more
// of them find word by word. Of still more arcs only bits are marked, each rank's in its own other
// copy of who is reached, from which the owners gather theirs.

#include "frontiers.cuh"
#include "persistent_multi_gpu_kernels.cuh"
#include "prelude.cuh"
#include "ranks.cuh"

// Targets of arcs are marked in a copy of who is reached. A function that is called has registers
// for more arcs a lane than the loops of a search leave.
__device__ __noinline__ void mark_targets(Queue from, i64 num_queued, const vertex_t* targets,
                                          BlockShare share, i64* room, u32* copy) {
  constexpr int EACH = 8;
  auto mark = [&](const vertex_t(&v)[EACH], const vertex_t(&)[EACH], const bool (&there)[EACH]) {
    // Without branches between them all loads are under way together. An older word makes for an
    // atomic too many.
    u32 word[EACH];
    for (int k = 0; k < EACH; k++) word[k] = load_stale(copy + (v[k] >> 5));
    for (int k = 0; k < EACH; k++)
      if (there[k] && !(word[k] >> (v[k] & 31) & 1))
        atomic_or(copy + (v[k] >> 5), 1u << (v[k] & 31));
  };
  each_arc<EACH>(
      from, num_queued, global(targets), share, room, [](vertex_t) { return (vertex_t)0; }, mark);
}

struct Pushes : Slices {
  // Who is not reached yet at the end of the queue's arcs is offered a parent, for which a block
  // has `room` with each owner; where there is none, who is there is marked in one's own other
  // copy. That may lag behind by what was reached since, which the owners know.
  __device__ void push(u32 room) {
    i64 queued = *queue_counter(turn);
    BlockShare share(0, queued_arcs(queued));
    if (threadIdx.x < MOST_RANKS) block->num_offers[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0 && share.begin < share.end) tally[LOOKED] += share.end - share.begin;
    if (room)
      push_offers(queued_vertices(queued), share, room);
    else
      mark_targets(queue(), queued_vertices(queued), targets, share, block->room, then());
  }
  // Two arcs a lane: more take registers from those who look (there, the levels that look most of
  // rmat27 on two H200: 570 and 224 us with four, 554 and 217 with two).
  __device__ void push_offers(i64 num_queued, const BlockShare& share, u32 room) {
    const u32* reached = now();
    auto position = [&](vertex_t v) { return (vertex_t)(v * fact(MULTIPLIER) + fact(FIRST)); };
    auto offer = [&](const vertex_t(&v)[2], const vertex_t(&u)[2], const bool (&there)[2]) {
      // Without branches between them all loads are under way together.
      u32 word[2];
      for (int k = 0; k < 2; k++) word[k] = load_stale(reached + (v[k] >> 5));
      for (int k = 0; k < 2; k++) send(v[k], u[k], there[k] && !(word[k] >> (v[k] & 31) & 1), room);
    };
    each_arc<2>(queue(), num_queued, targets, share, block->room, position, offer);
  }
  // Blocks have places of their own with the owners, as many for all that have arcs, and say how
  // many they took; those beyond MAX_BLOCKS have none.
  __device__ i64 num_offering() const {
    i64 arcs = queued_arcs(*queue_counter(turn)), each = BlockShare(0, arcs).length,
        num = (arcs + each - 1) / each;
    return num < MAX_BLOCKS ? num : MAX_BLOCKS;
  }
  __device__ u32 room_for_offers() const {
    i64 num_blocks = num_offering();
    return (u32)(fact(INBOX) / (num_blocks ? num_blocks : 1));
  }
  __device__ void tell_offers(u32 room) {
    __syncthreads();
    i64 num_blocks = num_offering();
    if (threadIdx.x >= num_ranks()) return;
    i64* here = told(window(threadIdx.x), rank());
    u32 own = block->num_offers[threadIdx.x];
    if (blockIdx.x == 0) here[0] = num_blocks << 32 | room;
    if (blockIdx.x < num_blocks) here[1 + blockIdx.x] = own < room ? own : room;
  }
  // A warp's offers, one a lane if it is `there`: those to a rank go side by side, as they travel.
  // Those that find no room are counted.
  __device__ void send(vertex_t v, vertex_t u, bool there, u32 room) {
    vertex_t owner = there ? owner_of(v) : (vertex_t)num_ranks();
    u32 before = 0, num = 0;
    for (int r = 0; r < num_ranks(); r++) {
      u32 to_rank = __ballot_sync(WARP, owner == r);
      if (owner == r) before = __popc(to_rank & ((1u << lane_index()) - 1));
      if (lane_index() == r) num = __popc(to_rank);
    }
    u32 place = num ? atomic_add(&block->num_offers[lane_index()], num) : 0;
    u32 at = __shfl_sync(WARP, place, (int)owner & 31) + before;
    if (owner >= num_ranks()) return;
    if (owner != rank()) tally[SENT] += sizeof(Candidate);
    if (at < room && blockIdx.x < MAX_BLOCKS)
      inbox(window(owner), rank())[blockIdx.x * (i64)room + at] = {
          v - owner * (vertex_t)fact(STRIDE), u};
    else
      tally[COUNT]++;
  }
  // Call take(offer, there), by whole warps, EACH a lane, for what every rank's blocks offer.
  template <int EACH, class Take> __device__ void each_offer(Take take) {
    i64 most = blockIdx.x + 1;
    for (i64 of = blockIdx.x; of < most; of += gridDim.x) {
      __syncthreads();
      if (threadIdx.x < num_ranks()) {
        const i64* from = told(window(), threadIdx.x);
        block->told[threadIdx.x] = from[0];
        block->num_offers[threadIdx.x] = of < from[0] >> 32 ? (u32)from[1 + of] : 0;
      }
      __syncthreads();
      u32 total = 0;
      for (i64 r = 0; r < num_ranks(); r++) {
        total += block->num_offers[r];
        if (block->told[r] >> 32 > most) most = block->told[r] >> 32;
      }
      for (u32 group = (threadIdx.x & ~31) * EACH; group < total; group += blockDim.x * EACH) {
        Candidate offer[EACH];
        bool there[EACH];
        for (int k = 0; k < EACH; k++) {
          u32 i = group + k * 32 + lane_index();
          i64 from = 0;
          there[k] = i < total;
          while (there[k] && i >= block->num_offers[from]) i -= block->num_offers[from++];
          offer[k] =
              there[k] ? inbox(window(), from)[of * (u32)block->told[from] + i] : Candidate{0, 0};
        }
        take(offer, there);
      }
    }
  }
  // Who was not offered a parent before, by the bits of `copy`, is found and takes it; offers that
  // come later wait until all have met.
  template <int EACH> __device__ void take(const Candidate (&offer)[EACH],
                                           const bool (&there)[EACH], bool (&found)[EACH],
                                           u32* copy) {
    u32 num_late = 0;
    for (int k = 0; k < EACH; k++)
      found[k] = there[k] && set_bit(copy, own_words() * 32 + offer[k].to);
    for (int k = 0; k < EACH; k++) {
      if (found[k]) parents[offer[k].to] = offer[k].parent;
      num_late += there[k] && !found[k];
    }
    if (!__any_sync(WARP, num_late)) return;
    WarpScan scan(num_late);
    i64 place = lane_index() == 0 ? atomic_add(late_counter(!turn), (i64)scan.total) : 0;
    Candidate* next = late() + __shfl_sync(WARP, place, 0) + scan.before;
    for (int k = 0; k < EACH; k++)
      if (there[k] && !found[k]) *next++ = offer[k];
  }
  // Who is reached is read before all have met, and written behind: one copy does.
  __device__ void take_few() {
    each_offer<2>([&](const Candidate(&offer)[2], const bool (&there)[2]) {
      i64 v[2] = {(i64)offer[0].to, (i64)offer[1].to};
      bool found[2];
      take(offer, there, found, now());
      for (int half = 0; half < 2; half++)
        if (found[half]) levels[v[half]] = (dist_t)(level + 1), tell_others(v[half], side);
      enqueue(!turn, v, found);
    });
  }
  // Whoever more offers find stands in one's own other copy alone until all have been taken, and is
  // settled in the order of the slice: that of offers leads all over memory, and nobody may ask for
  // a queue of so many.
  __device__ void take_more() {
    each_offer<4>([&](const Candidate(&offer)[4], const bool (&there)[4]) {
      bool found[4];
      take(offer, there, found, then());
    });
  }
  __device__ void settle_slice() {
    for (i64 word = warp_index() << 5; word < words(); word += warp_count() << 5) {
      i64 at = own_words() + word + lane_index();
      bool here = word + lane_index() < words();
      u32 before = here ? now()[at] : 0, marked = here ? then()[at] : 0, found = marked & ~before;
      if (here) tell_word(at, before | found), then()[at] = marked & before;
      if (!__any_sync(WARP, found)) continue;
      tally[COUNT] += __popc(found);
      each_bit(word, found, [&](const i64(&v)[2], const bool (&there)[2]) {
        i64 length[2];
        for (int half = 0; half < 2; half++) length[half] = there[half] ? arcs_of(v[half]) : 0;
        for (int half = 0; half < 2; half++) {
          if (there[half]) levels[v[half]] = (dist_t)(level + 1);
          tally[ARCS] += length[half];
        }
      });
    }
  }
  // The smallest parent is taken of those that came late too.
  __device__ void take_late() {
    for (i64 i = thread_index(), count = *late_counter(turn); i < count; i += thread_count())
      atomic_min(parents + late()[i].to, late()[i].parent);
  }
};
