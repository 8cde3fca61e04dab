#include "multi_source_bitmaps_kernels.py"
#include "prelude.cuh"

// Two of a vertex's words. A pair of lanes loads all four: the even lane the first two, the odd
// lane the last two.
typedef Quad<i64> Half;
// Thread blocks of 256 at once on a multiprocessor: before compute capability 8.0 it has 1,024
// threads.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int MIN_BLOCKS = 4;
#else
constexpr int MIN_BLOCKS = PULL_BLOCKS;
#endif
constexpr u32 ALL_LANES = 0xFFFFFFFFu;
static_assert(WORDS == 4 && TILE >= 2 && TILE <= 32, "a pair of lanes has a vertex's words");
// The tiles of a warp, and the bytes of a bitmap that these take at once: one, or two if TILE is 2.
constexpr u32 TILES = 32 / TILE, BYTES = TILES > 8 ? TILES / 8 : 1;

__device__ inline int first_word() { return 2 * (lane_index() & 1); }
__device__ inline bool has_any(const Half& words) { return words.of[0] | words.of[1]; }
__device__ inline Half both(const Half& a, const Half& b) {
  return {{a.of[0] & b.of[0], a.of[1] & b.of[1]}};
}
__device__ inline Half without(const Half& a, const Half& b) {
  return {{a.of[0] & ~b.of[0], a.of[1] & ~b.of[1]}};
}
__device__ inline void add(Half& to, const Half& more) {
  for (int w = 0; w < 2; w++) to.of[w] |= more.of[w];
}

// The bytes of one of the bitmaps in `marks`.
__device__ inline i64 marks_bytes(i64 num_owned) { return (num_owned + 63) / 64 * 8; }
__device__ inline bool is_marked(const u8* marks, vertex_t v) {
  return load_readonly(&marks[v >> 3]) >> (v & 7) & 1;
}

__device__ inline Half alive_of(const i64* state) {
  const i64* alive = &state[ALIVE + first_word()];
  return {{load_readonly(&alive[0]), load_readonly(&alive[1])}};
}

// Gather the words of COUNT neighbors, `stride` apart, by each pair of lanes: all loads are in
// flight at once. After the end of a row its last neighbor is loaded again. With TESTS only the
// words of neighbors in the front are loaded.
template <int COUNT, bool TESTS>
__device__ inline void gather_of(Half& found, u32 first, u32 stride, u32 length,
                                 const vertex_t* row, const i64* front, const u8* marks) {
  vertex_t from[COUNT];
  Half words[COUNT];
  for (int i = 0; i < COUNT; i++) {
    u32 arc = first + i * stride;
    from[i] = load_readonly(&row[arc < length ? arc : length - 1]);
  }
  for (int i = 0; i < COUNT; i++) {
    words[i] = {};
    if (!TESTS || is_marked(marks, from[i]))
      words[i] = load_quad(&front[(i64)from[i] * WORDS + first_word()]);
  }
  for (int i = 0; i < COUNT; i++) add(found, words[i]);
}
template <int COUNT> __device__ inline void gather(Half& found, u32 first, u32 stride, u32 length,
                                                   const vertex_t* row, const i64* front,
                                                   const u8* marks, bool tests) {
  if (tests)
    gather_of<COUNT, true>(found, first, stride, length, row, front, marks);
  else
    gather_of<COUNT, false>(found, first, stride, length, row, front, marks);
}

// Merge the words of `lanes` neighboring lanes.
__device__ inline void merge(Half& found, int lanes) {
  for (int w = 0; w < 2; w++)
    for (int d = 2; d < lanes; d <<= 1) found.of[w] |= __shfl_xor_sync(ALL_LANES, found.of[w], d);
}

// Record the level of new bits of a word. The plane that a level begins is 0: it is not read.
__device__ inline void record(i64* planes, i64 level, i64 num_owned, i64 at, i64 fresh) {
  bool begins_plane = !(level & (level - 1));
  for (i64 k = 0; level >> k; k++) {
    i64* word = &planes[k * num_owned * WORDS + at];
    if ((level >> k) & 1) *word = begins_plane ? fresh : *word | fresh;
  }
}

__device__ inline void add_reached(i64* state, i64 w, i64 bits) {
  if (bits & ~load_relaxed(&state[REACHED + w])) atomic_or(&state[REACHED + w], bits);
}

// The lanes of the calling lane's tile that vote for something; by a whole warp.
__device__ inline u32 votes_of_tile(bool vote) {
  constexpr u32 OF_TILE = (u32)((1ull << TILE) - 1);
  return __ballot_sync(ALL_LANES, vote) >> (lane_index() / TILE * TILE) & OF_TILE;
}

// Gather the rows of a warp's tiles, each until it has the wanted bits, and return whether that of
// the calling lane's tile lacks some.
__device__ inline bool gather_rows(Half& found, const Half& wanted, u32 length, const vertex_t* row,
                                   const i64* front, const u8* marks, bool tests) {
  constexpr u32 ARCS = TILE / 2;
  u32 pair = lane_index() % TILE / 2, arc = 0;
  bool is_missing = votes_of_tile(has_any(wanted));
  for (u32 rounds = 1; __any_sync(ALL_LANES, is_missing && arc < length);
       rounds = rounds < MAX_ROUNDS ? 2 * rounds : rounds) {
    if (is_missing)
      for (u32 round = 0; round < rounds && arc < length; round++, arc += STEPS * ARCS)
        gather<STEPS>(found, arc + pair, ARCS, length, row, front, marks, tests);
    merge(found, TILE);
    is_missing = votes_of_tile(has_any(without(wanted, found)));
  }
  return is_missing;
}

// Settle two words of a vertex.
__device__ inline void settle_half(i64 at, const Half& fresh, i64 level, i64 num_owned, i64* seen,
                                   i64* next_front, i64* planes) {
  *(Half*)&next_front[at] = fresh;
  if (!has_any(fresh)) return;
  Half* words = (Half*)&seen[at];
  add(*words, fresh);
  for (int w = 0; w < 2; w++)
    if (fresh.of[w]) record(planes, level, num_owned, at + w, fresh.of[w]);
}

// A warp has BYTES of each bitmap at a time, and a tile of it a vertex. It alone reads and writes
// `seen` and writes the next front, marks and planes there; what others read is of the level
// before. So no two warps race.
extern "C" __global__ void __launch_bounds__(256, MIN_BLOCKS)
    pull_bitmaps(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets, const i64* front,
                 const u8* marks, i64 level, i64 num_owned, i64* seen, i64* next_front,
                 u8* next_marks, i64* planes, i64* state) {
  u32 lane = lane_index() % TILE, tile = lane_index() / TILE;
  i64 open_at = marks_bytes(num_owned);
  bool tests = load_readonly(&state[TESTS_FRONT]);
  Half reached = {};
  // Rows are short: what a thread counts fits.
  u32 num_front = 0, front_arcs = 0, open_arcs = 0;
  for (i64 k = lo + BYTES * warp_index(); k < hi; k += BYTES * warp_count()) {
    u32 was_open = 0, front_bits = 0;
    for (u32 b = 0; b < BYTES && k + b < hi; b++)
      was_open |= (u32)load_readonly(&marks[open_at + k + b]) << (8 * b);
    u32 open_bits = was_open;
    for (u32 part = 0; part < 8 * BYTES && was_open >> part; part += TILES) {
      i64 v = 8 * k + part + tile;
      bool is_mine = was_open >> (part + tile) & 1;
      u32 length = 0;
      const vertex_t* row = targets;
      Half wanted = {}, found = {};
      if (is_mine) {
        i64 begin = indptr[v], arcs = indptr[v + 1] - begin;
        row += begin;
        is_mine = arcs < BLOCK_ROW;
        length = (u32)arcs;
      }
      if (is_mine) wanted = without(alive_of(state), *(const Half*)&seen[v * WORDS + first_word()]);
      bool is_missing = gather_rows(found, wanted, length, row, front, marks, tests);
      Half fresh = both(wanted, found);
      add(reached, fresh);
      bool is_front = votes_of_tile(has_any(fresh));
      if (is_mine && lane < 2)
        settle_half(v * WORDS + first_word(), fresh, level, num_owned, seen, next_front, planes);
      if (is_mine && lane == 0) {
        num_front += is_front;
        front_arcs += is_front ? length : 0;
        open_arcs += is_missing ? length : 0;
      }
      u32 in_front = __ballot_sync(ALL_LANES, lane == 0 && is_front),
          closed = __ballot_sync(ALL_LANES, lane == 0 && is_mine && !is_missing);
      for (u32 t = 0; t < TILES; t++) {
        front_bits |= (in_front >> (t * TILE) & 1) << (part + t);
        open_bits &= ~((closed >> (t * TILE) & 1) << (part + t));
      }
    }
    u32 b = lane_index();
    if (b < BYTES && k + b < hi) {
      next_marks[k + b] = (u8)(front_bits >> (8 * b));
      next_marks[open_at + k + b] = (u8)(open_bits >> (8 * b));
    }
  }
  merge(reached, 32);
  for (int w = 0; w < 2; w++)
    if (lane_index() < 2) add_reached(state, first_word() + w, reached.of[w]);
  warp_add(&state[NUM_FRONT], num_front);
  warp_add(&state[FRONT_ARCS], front_arcs);
  warp_add(&state[OPEN_ARCS], open_arcs);
}

// A block has a vertex. Vertices of other blocks share the words of the next bitmaps with it: bits
// are changed by atomics.
extern "C" __global__ void pull_bitmaps_long(i64 lo, i64 hi, const vertex_t* rows,
                                             const i64* indptr, const vertex_t* targets,
                                             const i64* front, const u8* marks, i64 level,
                                             i64 num_owned, i64* seen, i64* next_front,
                                             u8* next_marks, i64* planes, i64* state) {
  __shared__ i64 of_block[WORDS];
  i64 open_at = marks_bytes(num_owned);
  u32 arcs = blockDim.x / 2;
  bool tests = load_readonly(&state[TESTS_FRONT]);
  for (i64 k = lo + blockIdx.x; k < hi; k += gridDim.x) {
    i64 v = rows[k], begin = indptr[v], length = indptr[v + 1] - begin;
    if (!is_marked(marks + open_at, (vertex_t)v)) continue;
    Half wanted = without(alive_of(state), *(const Half*)&seen[v * WORDS + first_word()]);
    if (threadIdx.x < WORDS) of_block[threadIdx.x] = 0;
    bool is_missing = __syncthreads_or(has_any(wanted));
    for (i64 first = 0; is_missing && first < length; first += BLOCK_STEPS * arcs) {
      Half found = {};
      // The arcs that are left, in 32 bits: a step reads fewer than the bound.
      i64 left = length - first;
      gather<BLOCK_STEPS>(found, threadIdx.x / 2, arcs, left < 1 << 30 ? (u32)left : 1u << 30,
                          targets + begin + first, front, marks, tests);
      merge(found, 32);
      for (int w = 0; w < 2; w++)
        if (lane_index() < 2 && found.of[w]) atomic_or(&of_block[first_word() + w], found.of[w]);
      __syncthreads();
      is_missing =
          __syncthreads_or(has_any(without(wanted, *(const Half*)&of_block[first_word()])));
    }
    if (threadIdx.x < 32) {
      i64 w = threadIdx.x, at = v * WORDS + w, wants = 0, fresh = 0;
      if (w < WORDS) {
        wants = load_readonly(&state[ALIVE + w]) & ~seen[at];
        fresh = wants & of_block[w];
        next_front[at] = fresh;
        if (fresh) {
          seen[at] |= fresh;
          record(planes, level, num_owned, at, fresh);
          add_reached(state, w, fresh);
        }
      }
      u32 got = __ballot_sync(ALL_LANES, fresh != 0),
          missing = __ballot_sync(ALL_LANES, (wants & ~fresh) != 0);
      if (w == 0) {
        if (got) {
          set_bit((u32*)next_marks, v);
          atomic_add(&state[NUM_FRONT], (i64)1);
          atomic_add(&state[FRONT_ARCS], length);
        }
        if (missing) {
          atomic_add(&state[NUM_LONG], (i64)1);
          atomic_add(&state[OPEN_ARCS], length);
        } else {
          clear_bit((u32*)(next_marks + open_at), v);
        }
      }
    }
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

// A warp has a word of 32 bits of each bitmap at a time, and a lane a word of a vertex: of 8
// vertices in each of WORDS parts.
extern "C" __global__ void settle_bitmaps(i64 lo, i64 hi, const i64* indptr, i64 level,
                                          i64 num_owned, i64* seen, i64* next_front, u8* next_marks,
                                          i64* planes, i64* state) {
  i64 w = lane_index() % WORDS, reached = 0, alive = load_relaxed(&state[ALIVE + w]);
  i64 num_front = 0, front_arcs = 0, num_long = 0, open_arcs = 0;
  for (i64 k = lo + warp_index(); k < hi; k += warp_count()) {
    u32 front_bits = 0, open_bits = 0;
    for (int part = 0; part < WORDS; part++) {
      i64 at = 32 * (k * WORDS + part) + lane_index(), before = 0, fresh = 0;
      bool is_word = at < num_owned * WORDS;
      if (is_word) {
        i64 incoming = next_front[at];
        before = seen[at];
        fresh = incoming & ~before;
        if (fresh != incoming) next_front[at] = fresh;
        if (fresh) {
          seen[at] = before | fresh;
          record(planes, level, num_owned, at, fresh);
        }
      }
      reached |= fresh;
      bool is_open = is_word && (alive & ~(before | fresh));
      front_bits |= quads_of(__ballot_sync(ALL_LANES, fresh != 0)) << (8 * part);
      open_bits |= quads_of(__ballot_sync(ALL_LANES, is_open)) << (8 * part);
    }
    i64 v = 32 * k + lane_index();
    i64 length = v < num_owned ? indptr[v + 1] - indptr[v] : 0;
    bool is_front = front_bits >> lane_index() & 1, is_open = open_bits >> lane_index() & 1;
    num_front += is_front;
    front_arcs += is_front ? length : 0;
    num_long += is_open && length >= BLOCK_ROW;
    open_arcs += is_open ? length : 0;
    if (lane_index() == 0) {
      ((u32*)next_marks)[k] = front_bits;
      ((u32*)(next_marks + marks_bytes(num_owned)))[k] = open_bits;
    }
  }
  for (int d = WORDS; d < 32; d <<= 1) reached |= __shfl_xor_sync(ALL_LANES, reached, d);
  if (lane_index() < WORDS) add_reached(state, w, reached);
  warp_add(&state[NUM_FRONT], num_front);
  warp_add(&state[FRONT_ARCS], front_arcs);
  warp_add(&state[NUM_LONG], num_long);
  warp_add(&state[OPEN_ARCS], open_arcs);
}

extern "C" __global__ void list_front(i64 lo, i64 hi, const i64* indptr, const u8* marks,
                                      vertex_t* frontier, i64* counters) {
  i64 arcs = 0;
  for (i64 v = lo + thread_index(); v < hi; v += thread_count())
    if (is_marked(marks, (vertex_t)v)) {
      frontier[reserve(&counters[0])] = (vertex_t)v;
      arcs += indptr[v + 1] - indptr[v];
    }
  warp_add(&counters[1], arcs);
}

// A block has a vertex.
extern "C" __global__ void push_front(i64 lo, i64 hi, const vertex_t* frontier, const i64* indptr,
                                      const vertex_t* targets, const i64* front, i64* next_front) {
  for (i64 k = lo + blockIdx.x; k < hi; k += gridDim.x) {
    i64 u = frontier[k], end = indptr[u + 1], words[WORDS];
    for (int w = 0; w < WORDS; w++) words[w] = load_readonly(&front[u * WORDS + w]);
    for (i64 arc = indptr[u] + threadIdx.x; arc < end; arc += blockDim.x) {
      i64* into = &next_front[(i64)targets[arc] * WORDS];
      // Of a small front most words are 0: their targets' are not loaded.
      for (int w = 0; w < WORDS; w++)
        if (words[w] && words[w] & ~load_relaxed(&into[w])) atomic_or(&into[w], words[w]);
    }
  }
}

// A warp transposes 32 words by ballots: lane l then has the bits of roots l and 32 + l of the
// word.
extern "C" __global__ void count_front(i64 lo, i64 hi, const vertex_t* frontier, const i64* front,
                                       i64* counts) {
  i64 low[WORDS] = {}, high[WORDS] = {};
  for (i64 first = lo + 32 * warp_index(); first < hi; first += 32 * warp_count()) {
    i64 i = first + lane_index(), at = i < hi ? (i64)frontier[i] * WORDS : 0;
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      i64 word = i < hi ? front[at + w] : 0;
      for (u32 bit = 0; bit < 32; bit++) {
        u32 of_low = __ballot_sync(ALL_LANES, (word >> bit) & 1);
        u32 of_high = __ballot_sync(ALL_LANES, (word >> (32 + bit)) & 1);
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

extern "C" __global__ void assemble_levels(i64 lo, i64 hi, const i64* seen, const i64* planes,
                                           i64 num_planes, i64 num_owned, i64 root, i32* levels) {
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) {
    i64 at = v * WORDS + root / 64, bit = root % 64, level = 0;
    for (i64 k = 0; k < num_planes; k++)
      level |= ((planes[k * num_owned * WORDS + at] >> bit) & 1) << k;
    levels[v] = (seen[at] >> bit) & 1 ? (i32)level : top_of<i32>::value();
  }
}
