// The ways to do a level of persistent_kernels.cu: push to a queue, push to parents, pull, scan of
// a list.

#include "frontiers.cuh"
#include "parent_scans.cuh"
#include "persistent_kernels.cuh"
#include "prelude.cuh"

// The position of a state where one rank holds the graph: the state itself.
struct IdentityPosition {
  __device__ vertex_t operator()(vertex_t v) const { return v; }
};

struct BfsSteps : BfsState {
  // ---- push -------------------------------------------------------------------------------------
  // Call propose(v, u, valid) for every arc (u, v) of the frontier; blocks have equal shares of
  // arcs.
  template <int EACH, class Propose> __device__ void push(Propose propose) {
    BlockShare share(0, arcs);
    each_arc<EACH>(
        pushed(), count, targets, share, block->scratch, [](vertex_t v) { return v; }, propose);
  }

  // Few arcs: the thread with the first candidate of a vertex writes its level and queues it.
  // Afterwards O holds the visited set of one level ago, the frontier and the vertices found now.
  __device__ void push_to_queue() {
    const u32* before = visited();
    u32* after = other_visited();
    for (i64 i = thread_index(); i < count; i += thread_count())
      set_bit(after, pushed().vertices[i]);
    push<2>([&](const vertex_t(&v)[2], const vertex_t(&u)[2], const bool (&valid)[2]) {
      i64 begin[2], length[2];
      u32 seen[2];
      vertex_t parent[2];
      bool found[2];
      for (int k = 0; k < 2; k++) {
        seen[k] = valid[k] ? before[v[k] >> 5] : ~0u;
        parent[k] = valid[k] ? load_relaxed(&parents[v[k]]) : 0;
        begin[k] = valid[k] ? load_readonly(indptr + v[k]) : 0;
        length[k] = valid[k] ? load_readonly(indptr + v[k] + 1) - begin[k] : 0;
      }
      for (int k = 0; k < 2; k++) {
        found[k] = !(seen[k] >> (v[k] & 31) & 1) && parent[k] > u[k];
        if (found[k]) found[k] = atomic_min(&parents[v[k]], u[k]) == top_of<vertex_t>::value();
      }
      for (int k = 0; k < 2; k++)
        if (found[k]) levels[v[k]] = (dist_t)(level + 1), set_bit(after, v[k]);
      ::enqueue(filled(), parameter(CAPACITY), counter(QUEUED), v, found, begin, length);
    });
  }

  // Many arcs: write parents only; mark_found() finds the vertices that have one. Parents that
  // exceed the cache are updated in parts, one after another: an atomic outside the cache takes
  // three times as long as scanning an arc once more and an atomic inside.
  __device__ void push_to_parents() {
    i64 parts = arcs > n / 2 ? parameter(PARTS) : 1;
    // With many arcs per unreached vertex most candidates lose, and a load beforehand saves the
    // atomic.
    bool prefilter = arcs > PREFILTER_RATIO * (n - reached);
    for (i64 part = 0; part < parts; part++)
      push_to_part(n * part / parts, n * (part + 1) / parts, prefilter);
  }
  __device__ void push_to_part(i64 first, i64 last, bool prefilter) {
    const u32* seen = visited();
    push<4>([&](const vertex_t(&v)[4], const vertex_t(&u)[4], const bool (&valid)[4]) {
      // No branches in between, so that all loads are in flight together.
      u32 word[4];
      vertex_t parent[4];
      bool open[4];
      for (int k = 0; k < 4; k++) open[k] = valid[k] && v[k] >= first && v[k] < last;
      for (int k = 0; k < 4; k++) word[k] = seen[open[k] ? v[k] >> 5 : 0];
      for (int k = 0; k < 4; k++) open[k] = open[k] && !(word[k] >> (v[k] & 31) & 1);
      for (int k = 0; k < 4; k++)
        parent[k] = prefilter && open[k] ? load_relaxed(&parents[v[k]]) : top_of<vertex_t>::value();
      for (int k = 0; k < 4; k++)
        if (open[k] && parent[k] > u[k]) atomic_min(&parents[v[k]], u[k]);
    });
  }
  // Only loads in flight together fill the memory bus: parents of many words first, then rows of
  // the vertices found in some. Where degrees are uniform the rows are not read: that would take as
  // long again.
  __device__ void mark_found() {
    constexpr int WIDE = 8, EACH = 4;
    for (i64 word = warp_index() * WIDE; word < words(); word += warp_count() * WIDE) {
      bool mine = lane_index() < WIDE && word + lane_index() < words();
      u32 seen = mine ? visited()[word + lane_index()] : ~0u, found = 0;
      vertex_t parent[WIDE];
      for (int k = 0; k < WIDE; k++) {
        i64 v = (word + k) << 5 | lane_index();
        parent[k] = v < n ? parents[v] : top_of<vertex_t>::value();
      }
      for (int k = 0; k < WIDE; k++) {
        bool open = !(__shfl_sync(WARP, seen, k) >> lane_index() & 1);
        bool here = open && parent[k] != top_of<vertex_t>::value();
        u32 hits = __ballot_sync(WARP, here);
        if (here) levels[(word + k) << 5 | lane_index()] = (dist_t)(level + 1);
        if (lane_index() == k) found = hits;
      }
      my_count += __popc(found);
      for (int first = 0; first < WIDE && !parameter(UNIFORM_DEGREE); first += EACH) {
        i64 begin[EACH], end[EACH];
        for (int k = 0; k < EACH; k++) {
          bool here = __shfl_sync(WARP, found, first + k) >> lane_index() & 1;
          i64 v = (word + first + k) << 5 | lane_index();
          begin[k] = here ? load_readonly(indptr + v) : 0;
          end[k] = here ? load_readonly(indptr + v + 1) : 0;
        }
        for (int k = 0; k < EACH; k++) my_arcs += end[k] - begin[k];
      }
      if (mine) other_visited()[word + lane_index()] = seen | found;
    }
  }

  // ---- pull ------------------------------------------------------------------------------------
  // Each unvisited vertex scans its row for a visited one. None of these is before the frontier, or
  // the vertex would be visited: the first hit is the smallest neighbor on the frontier. A warp
  // takes a run of words. First every vertex tests its first neighbor, of which there is a
  // contiguous copy; with hubs first in rows most vertices find a parent there. Then the remaining
  // ones are redistributed over all lanes and scan on.
  __device__ void pull() {
    // With few vertices left most words have none.
    i64 run = listing ? run_of_words(8, 32, 1) : run_of_words(8, 16);
    Runs runs(0, words(), run, counter(TAKEN));
    for (i64 word = runs.begin(); word < words(); word = runs.behind(word)) {
      bool mine = lane_index() < run && word + lane_index() < words();
      u32 seen = mine ? visited()[word + lane_index()] : ~0u;
      u32 found = scan_first_by_word(*this, word, run, ~seen);
      my_count += __popc(found);
      found |= scan_rest(word, ~(seen | found));
      if (listing) queue_word(in_indptr, word, ~(seen | found));
      if (mine) other_visited()[word + lane_index()] = seen | found;
    }
  }
  __device__ u32 scan_rest(i64 word, u32 open) {
    if ((word + lane_index()) * 32 >= parameter(DEGREE_ONE_FROM)) {
      my_arcs += __popc(open);
      open = 0;
    }
    if (!__any_sync(WARP, open)) return 0;
    WarpHits hits(block->scratch, word);
    hits.own() = 0;
    __syncwarp();
    each_bit(word, open,
             [&](const i64(&v)[2], const bool (&valid)[2]) { find_parents(v, valid, 1, hits); });
    u32 found = hits.all_of_own();
    __syncwarp();  // all lanes have read their word before the next hits
    return found;
  }
  // Scan rows from their `first`-th arc on, two vertices per lane, by whole warps: settle and call
  // hit(v) for those with a parent, count the arcs of the others.
  template <class Hit>
  __device__ void find_parents(const i64 (&v)[2], const bool (&open)[2], i64 first, Hit hit) {
    i64 begin[2], length[2], arcs_of[2] = {};
    for (int half = 0; half < 2; half++) {
      begin[half] = open[half] ? load_readonly(in_indptr + v[half]) + first : 0;
      length[half] = open[half] ? load_readonly(in_indptr + v[half] + 1) - begin[half] : 0;
      if (open[half])
        arcs_of[half] = indptr == in_indptr ? length[half] + first : row_length(indptr, v[half]);
      if (length[half] <= 0) begin[half] = length[half] = 0;
    }
    auto found = [this, &v, hit](int half, vertex_t parent) {
      settle(v[half], parent);
      hit(v[half]);
    };
    scan_rows(*this, begin, length, found, [&](int half) { my_arcs += arcs_of[half]; });
  }
  // Scan the listed vertices that are still unvisited. An unvisited vertex has visited neighbors in
  // the level before only: it is enough to mark a found one in the bitmap that this level does not
  // read.
  __device__ void scan_list() {
    each_listed(filled().vertices, listed, [&](const i64(&v)[2], const bool (&valid)[2]) {
      bool open[2];
      for (int half = 0; half < 2; half++) {
        u32 seen = visited()[v[half] >> 5] | load_relaxed(other_visited() + (v[half] >> 5));
        open[half] = valid[half] && !(seen >> (v[half] & 31) & 1);
      }
      find_parents(v, open, 0, [&](i64 found) { set_bit(other_visited(), found); });
    });
  }
  __device__ IdentityPosition positions() const { return {}; }
  __device__ RowSearch row_search() { return {visited(), in_targets, parameter(NUM_ARCS)}; }
  __device__ void count_scanned(i64 num) { my_scanned += num; }
  __device__ void settle(i64 v, vertex_t parent) {
    parents[v] = parent;
    levels[v] = (dist_t)(level + 1);
    my_count++;
  }
};
