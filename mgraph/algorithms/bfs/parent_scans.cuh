// How unreached vertices find a parent in their rows: what both persistent searches do in a pull,
// the one of a single GPU and the one of several.
//
// Some of their methods are alike and stay apart, since one text for both is other machine code,
// with other spills: the test for open vertices in scan_list(), which branches in one of them and
// loads at once in the other; enqueue(), which counts in one; the steps by which rows are loaded
// before scan_rows(). For the same reason lambdas copy what they pass on (hit, miss), and
// parameters of scan_first_neighbors() are no struct.

#include "frontiers.cuh"
#include "prelude.cuh"

// ---- first neighbors ---------------------------------------------------------------------------
// Lane k has in `open` the vertices of the k-th word that test their first neighbor; return those
// with a first neighbor in `bits`, which becomes their parent. All arrays begin at the first
// word. The loads of WIDE words are in flight together: not inlined, the function has registers for
// that where a search's loops have none left; lanes that do not scan load the first element, which
// all of them share, instead of branching; and no bitmap word is used before all are requested (BFS
// of rmat26 on one H200: 0.64 ms, and 0.61 ms so).
template <class Of>
__device__ __noinline__ u32 scan_first_neighbors(const u32* bits, const vertex_t* first_neighbors,
                                                 vertex_t* parents, dist_t* levels, u32 open,
                                                 int run, dist_t level, Of position_of) {
  constexpr int WIDE = 8;
  u32 found = 0;
  first_neighbors = global(first_neighbors);
  bits = global(bits);
  parents = global(parents) + lane_index();
  levels = global(levels) + lane_index();
  for (int k = 0; k < run; k += WIDE) {
    if (__any_sync(WARP, lane_index() >= k && lane_index() < k + WIDE && open)) {
      u32 open_mask[WIDE], near[WIDE];
      vertex_t first[WIDE];
#pragma unroll
      for (int j = 0; j < WIDE; j++)
        open_mask[j] = 0 - (__shfl_sync(WARP, open, k + j) >> lane_index() & 1);
#pragma unroll
      for (int j = 0; j < WIDE; j++)
        first[j] = first_neighbors[(32 * j + lane_index()) & open_mask[j]];
      __syncwarp();
#pragma unroll
      for (int j = 0; j < WIDE; j++) near[j] = bits[first[j] >> 5];
      __syncwarp();
#pragma unroll
      for (int j = 0; j < WIDE; j++) open_mask[j] &= near[j] >> (first[j] & 31) & 1;
#pragma unroll
      for (int j = 0; j < WIDE; j++) {
        u32 found_bits = __ballot_sync(WARP, open_mask[j]);
        if (lane_index() == k + j) found = found_bits;
        if (open_mask[j]) {
          parents[32 * j] = position_of(first[j]);
          levels[32 * j] = level;
        }
      }
    }
    first_neighbors += 32 * WIDE;
    parents += 32 * WIDE;
    levels += 32 * WIDE;
  }
  return found;
}
// The number of arcs of the vertices that lane k has in `members` of the k-th word.
__device__ __noinline__ i64 count_arcs(const i64* indptr, u32 members, int run) {
  constexpr int WIDE = 4;
  i64 arcs = 0;
  indptr = global(indptr) + lane_index();
  for (int k = 0; k < run; k += WIDE, indptr += 32 * WIDE) {
    if (!__any_sync(WARP, lane_index() >= k && lane_index() < k + WIDE && members)) continue;
    i64 begin[WIDE], end[WIDE];
#pragma unroll
    for (int j = 0; j < WIDE; j++) {
      bool valid = __shfl_sync(WARP, members, k + j) >> lane_index() & 1;
      begin[j] = valid ? load_readonly(indptr + 32 * j) : 0;
      end[j] = valid ? load_readonly(indptr + 32 * j + 1) : 0;
    }
#pragma unroll
    for (int j = 0; j < WIDE; j++) arcs += end[j] - begin[j];
  }
  return arcs;
}

// ---- rows --------------------------------------------------------------------------------------
// The first target of a row that is in a bitmap; by whole warps, two rows per lane.
struct RowSearch {
  const u32* bits;
  const vertex_t* targets;
  i64 num_arcs;

  // `place` is the index in the row of `parent`, or the row's length if there is none.
  __device__ inline void find(const i64 (&begin)[2], const i64 (&length)[2], i64 (&place)[2],
                              vertex_t (&parent)[2]) const {
    find_alone(begin, length, place, parent);
    for (int half = 0; half < 2; half++)
      find_together(begin[half], length[half], place[half], parent[half]);
  }
  // Scan the first targets of two rows, 16 bytes at a time: all bits of these are loaded together,
  // and nothing further before they are known, since a multiprocessor's rate of cache line requests
  // limits a pull.
  __device__ inline void find_alone(const i64 (&begin)[2], const i64 (&length)[2], i64 (&place)[2],
                                    vertex_t (&parent)[2]) const {
    constexpr int WIDE = Quad<vertex_t>::size;
    int skew = (int)((u64)targets / sizeof(vertex_t) % WIDE), at[2];
    Quad<vertex_t> near[2];
    for (int half = 0; half < 2; half++) {
      place[half] = length[half];
      at[half] = -(int)((begin[half] + skew) % WIDE);
    }
    auto scanning = [&](int half) {
      return at[half] < ALONE && at[half] < length[half] && place[half] == length[half];
    };
    while (scanning(0) || scanning(1)) {
      for (int half = 0; half < 2; half++)
        near[half] = quad_of(begin[half] + at[half], scanning(half));
      // Lanes that do not scan load one shared word instead of branching, so that all loads are in
      // flight together.
      u32 word[2][WIDE];
      bool here[2][WIDE];
      for (int k = 0; k < WIDE; k++) {
        for (int half = 0; half < 2; half++) {
          int i = at[half] + k;
          here[half][k] = scanning(half) && i >= 0 && i < length[half];
          word[half][k] = bits[here[half][k] ? near[half].of[k] >> 5 : 0];
        }
      }
      for (int k = WIDE - 1; k >= 0; k--)
        for (int half = 0; half < 2; half++)
          if (here[half][k] && word[half][k] >> (near[half].of[k] & 31) & 1) {
            place[half] = at[half] + k;
            parent[half] = near[half].of[k];
          }
      at[0] += WIDE;
      at[1] += WIDE;
    }
  }
  // The targets from `arc` on, which is aligned, if they are `wanted`; none beyond the last.
  __device__ inline Quad<vertex_t> quad_of(i64 arc, bool wanted) const {
    constexpr int WIDE = Quad<vertex_t>::size;
    if (wanted && arc >= 0 && arc + WIDE <= num_arcs) return load_quad(targets + arc);
    Quad<vertex_t> near = {};
    for (int k = 0; k < WIDE; k++)
      if (wanted && arc + k >= 0 && arc + k < num_arcs)
        near.of[k] = load_readonly(targets + arc + k);
    return near;
  }
  // The warp scans together the rest of rows in which a lane by itself found nothing.
  __device__ inline void find_together(i64 begin, i64 length, i64& place, vertex_t& parent) const {
    for (u32 pending = __ballot_sync(WARP, length > ALONE && place == length); pending;
         pending &= pending - 1) {
      int lane = __ffs(pending) - 1;
      i64 row = __shfl_sync(WARP, begin, lane), end = __shfl_sync(WARP, length, lane), found = end;
      for (i64 i = ALONE; i < end && found == end; i += 32) {
        bool here = i + lane_index() < end;
        vertex_t u = here ? load_readonly(targets + row + i + lane_index()) : 0;
        u32 agreeing = __ballot_sync(WARP, here && test_bit(bits, u));
        if (agreeing) found = i + __ffs(agreeing) - 1;
      }
      if (lane_index() == lane && found < end) {
        place = found;
        parent = load_readonly(targets + row + found);
      }
    }
  }
};

// Two vertices per lane, by whole warps, scan rows that begin at arcs `begin`. Call found(half,
// parent) for each that finds one, missed(half) for the others. The search has row_search(), by
// which rows are scanned, and count_scanned().
template <class Search, class Found, class Missed>
__device__ inline void scan_rows(Search& search, const i64 (&begin)[2], const i64 (&length)[2],
                                 Found found, Missed missed) {
  i64 place[2];
  vertex_t parent[2] = {};
  search.row_search().find(begin, length, place, parent);
  for (int half = 0; half < 2; half++) {
    search.count_scanned(place[half] < length[half] ? place[half] + 1 : length[half]);
    if (place[half] == length[half]) {
      missed(half);
      continue;
    }
    found(half, parent[half]);
  }
}

// The vertices of a warp's words that found a parent: a word per lane, in shared scratch, since any
// lane may scan for any vertex.
struct WarpHits {
  u32* words;
  i64 first_word;
  __device__ WarpHits(i64* scratch, i64 word)
      : words((u32*)scratch + (threadIdx.x & ~31u)), first_word(word) {}
  __device__ u32& own() const { return words[lane_index()]; }
  // v counts from bit 0 of all words.
  __device__ void operator()(i64 v) const {
    atomic_or(&words[(v >> 5) - first_word], 1u << (v & 31));
  }
  // The own word, behind the hits of all lanes. Until the next __syncwarp() no lane may change it.
  __device__ u32 all_of_own() const {
    __syncwarp();
    return own();
  }
};

// Lane k has in `open` the vertices of the k-th of `run` words from `word` on that test their first
// neighbor; return those that find a parent.
template <class Search>
__device__ inline u32 scan_first_by_word(Search& search, i64 word, i64 run, u32 open) {
  i64 v = word * 32;
  search.count_scanned(__popc(open));
  return scan_first_neighbors(search.row_search().bits, search.first_neighbors + v,
                              search.parents + v, search.levels + v, open, (int)run,
                              (dist_t)(search.level + 1), search.positions());
}
