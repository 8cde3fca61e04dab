#include "multi_source_wide_kernels.py"
#include "prelude.cuh"

// Threads that gather a short row together.
constexpr int TILE = 8;

struct Words {
  i64 of[WORDS];
};

// The roots that are alive and have not reached a vertex.
__device__ inline Words wanted_of(i64 v, const i64* seen, const i64* alive) {
  Words wanted;
  for (int w = 0; w < WORDS; w++)
    wanted.of[w] = load_readonly(&alive[w]) & ~load_readonly(&seen[v * WORDS + w]);
  return wanted;
}

__device__ inline void gather(Words& found, vertex_t from, const i64* front) {
  for (int w = 0; w < WORDS; w += 2) {
    Quad<i64> two = load_quad(&front[(i64)from * WORDS + w]);
    found.of[w] |= two.of[0];
    found.of[w + 1] |= two.of[1];
  }
}

// Merge the words of `lanes` neighboring lanes, which `mask` has.
__device__ inline void merge(Words& found, u32 mask, int lanes) {
  for (int w = 0; w < WORDS; w++)
    for (int d = 1; d < lanes; d <<= 1) found.of[w] |= __shfl_xor_sync(mask, found.of[w], d);
}

__device__ inline bool is_missing(const Words& wanted, const i64* found) {
  i64 missing = 0;
  for (int w = 0; w < WORDS; w++) missing |= wanted.of[w] & ~found[w];
  return missing != 0;
}

extern "C" __global__ void push_wide(i64 lo, i64 hi, const vertex_t* frontier, const i64* indptr,
                                     const vertex_t* targets, const i64* front, i64* incoming) {
  for (i64 k = lo + blockIdx.x; k < hi; k += gridDim.x) {
    i64 u = frontier[k], end = indptr[u + 1];
    Words words;
    for (int w = 0; w < WORDS; w++) words.of[w] = load_readonly(&front[u * WORDS + w]);
    for (i64 arc = indptr[u] + threadIdx.x; arc < end; arc += blockDim.x) {
      i64* into = &incoming[(i64)targets[arc] * WORDS];
      for (int w = 0; w < WORDS; w++) {
        // Of a small front most words are 0: their targets' are not loaded.
        i64 word = words.of[w];
        if (word && word & ~load_relaxed(&into[w])) atomic_or(&into[w], word);
      }
    }
  }
}

extern "C" __global__ void pull_wide(i64 lo, i64 hi, const vertex_t* rows, const i64* indptr,
                                     const vertex_t* targets, const i64* front, const i64* seen,
                                     const i64* alive, i64* incoming) {
  int lane = lane_index() % TILE;
  u32 mask = ((1u << TILE) - 1) << (lane_index() - lane);
  for (i64 k = lo + thread_index() / TILE; k < hi; k += thread_count() / TILE) {
    i64 v = rows[k], end = indptr[v + 1];
    Words wanted = wanted_of(v, seen, alive), found = {};
    for (i64 first = indptr[v]; first < end; first += TILE) {
      if (first + lane < end) gather(found, load_readonly(&targets[first + lane]), front);
      merge(found, mask, TILE);
      if (!is_missing(wanted, found.of)) break;
    }
    for (int w = 0; w < WORDS; w++)
      if (lane == w && wanted.of[w] & found.of[w])
        incoming[v * WORDS + w] = wanted.of[w] & found.of[w];
  }
}

extern "C" __global__ void pull_wide_long(i64 lo, i64 hi, const vertex_t* rows, const i64* indptr,
                                          const vertex_t* targets, const i64* front,
                                          const i64* seen, const i64* alive, i64* incoming) {
  // A thread scans this many arcs before the block checks what all its threads have found.
  constexpr int STEPS = 4;
  __shared__ i64 of_block[WORDS];
  for (i64 k = lo + blockIdx.x; k < hi; k += gridDim.x) {
    i64 v = rows[k], end = indptr[v + 1];
    Words wanted = wanted_of(v, seen, alive);
    bool is_open = true;
    if (threadIdx.x < WORDS) of_block[threadIdx.x] = 0;
    __syncthreads();
    for (i64 first = indptr[v]; is_open && first < end; first += STEPS * blockDim.x) {
      Words found = {};
      for (int step = 0; step < STEPS; step++) {
        i64 arc = first + step * blockDim.x + threadIdx.x;
        if (arc < end) gather(found, load_readonly(&targets[arc]), front);
      }
      merge(found, 0xFFFFFFFFu, 32);
      for (int w = 0; w < WORDS; w++)
        if (lane_index() == w && found.of[w]) atomic_or(&of_block[w], found.of[w]);
      __syncthreads();
      is_open = is_missing(wanted, of_block);
      __syncthreads();
    }
    for (int w = 0; w < WORDS; w++)
      if (threadIdx.x == w) incoming[v * WORDS + w] = wanted.of[w] & of_block[w];
    __syncthreads();
  }
}

// A bit for each group of four lanes that has one in a mask.
__device__ inline u32 quads_of(u32 mask) {
  mask |= mask >> 1;
  mask |= mask >> 2;
  mask &= 0x11111111u;
  mask = (mask | mask >> 3) & 0x03030303u;
  mask = (mask | mask >> 6) & 0x000F000Fu;
  return (mask | mask >> 12) & 0xFFu;
}

// A warp has 32 vertices, and 32 words at a time, each of them a lane's; then each lane lists a
// vertex.
extern "C" __global__ void settle_wide(i64 lo, i64 hi, const i64* indptr, const i64* in_indptr,
                                       i64 level, i64 num_owned, i64* incoming, i64* seen,
                                       i64* front, i64* planes, vertex_t* frontier, vertex_t* rows,
                                       i64* alive, i64* counters) {
  i64 leaving = 0, entering = 0, of_front = 0, w = lane_index() % WORDS;
  i64 was_alive = load_relaxed(&alive[w]);
  bool begins_plane = level && !(level & (level - 1));
  for (i64 first = lo + 32 * warp_index(); first < hi; first += 32 * warp_count()) {
    u32 fronts = 0, open = 0;
    for (int part = 0; part < WORDS; part++) {
      i64 at = first * WORDS + 32 * part + lane_index(), before = 0, fresh = 0;
      bool is_word = at < hi * WORDS;
      if (is_word) {
        before = seen[at];
        fresh = incoming[at] & ~before;
        incoming[at] = 0;
        front[at] = fresh;
        if (fresh) seen[at] = before | fresh;
        if (fresh || begins_plane)
          for (i64 k = 0; level >> k; k++) {
            i64* word = &planes[k * num_owned * WORDS + at];
            if ((level >> k) & 1) *word = begins_plane ? fresh : *word | fresh;
          }
      }
      of_front |= fresh;
      bool is_open = is_word && (was_alive & ~(before | fresh));
      fronts |= quads_of(__ballot_sync(0xFFFFFFFFu, fresh != 0)) << (8 * part);
      open |= quads_of(__ballot_sync(0xFFFFFFFFu, is_open)) << (8 * part);
    }
    i64 v = first + lane_index();
    if ((fronts >> lane_index()) & 1) {
      frontier[reserve(&counters[0])] = (vertex_t)v;
      leaving += indptr[v + 1] - indptr[v];
    }
    if ((open >> lane_index()) & 1) {
      i64 length = in_indptr[v + 1] - in_indptr[v];
      entering += length;
      if (length < BLOCK_ROW)
        rows[reserve(&counters[2])] = (vertex_t)v;
      else
        rows[num_owned - 1 - reserve(&counters[3])] = (vertex_t)v;
    }
    __syncwarp();
  }
  for (int d = WORDS; d < 32; d <<= 1) of_front |= __shfl_xor_sync(0xFFFFFFFFu, of_front, d);
  if (lane_index() < WORDS && of_front) atomic_or(&alive[WORDS + w], of_front);
  warp_add(&counters[1], leaving);
  warp_add(&counters[4], entering);
}

// A warp transposes 32 words by ballots: lane l then has the bits of roots l and 32 + l of the
// word.
extern "C" __global__ void count_wide(i64 lo, i64 hi, const vertex_t* frontier, const i64* front,
                                      i64* counts) {
  i64 low[WORDS] = {}, high[WORDS] = {};
  for (i64 first = lo + 32 * warp_index(); first < hi; first += 32 * warp_count()) {
    i64 i = first + lane_index(), at = i < hi ? (i64)frontier[i] * WORDS : 0;
    for (int w = 0; w < WORDS; w++) {
      i64 word = i < hi ? front[at + w] : 0;
      for (u32 bit = 0; bit < 32; bit++) {
        u32 of_low = __ballot_sync(0xFFFFFFFFu, (word >> bit) & 1);
        u32 of_high = __ballot_sync(0xFFFFFFFFu, (word >> (32 + bit)) & 1);
        if (lane_index() == bit) {
          low[w] += __popc(of_low);
          high[w] += __popc(of_high);
        }
      }
    }
  }
  for (int w = 0; w < WORDS; w++) {
    if (low[w]) atomic_add(&counts[64 * w + lane_index()], low[w]);
    if (high[w]) atomic_add(&counts[64 * w + 32 + lane_index()], high[w]);
  }
}

extern "C" __global__ void levels_wide(i64 lo, i64 hi, const i64* seen, const i64* planes,
                                       i64 num_planes, i64 num_owned, i64 root, i32* levels) {
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) {
    i64 at = v * WORDS + root / 64, bit = root % 64, level = 0;
    for (i64 k = 0; k < num_planes; k++)
      level |= ((planes[k * num_owned * WORDS + at] >> bit) & 1) << k;
    levels[v] = (seen[at] >> bit) & 1 ? (i32)level : top_of<i32>::value();
  }
}
