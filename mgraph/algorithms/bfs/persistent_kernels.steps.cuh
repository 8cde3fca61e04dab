// How a level of bfs_fused.cu is found: by offers of parents, or by looks for one.

#include "frontiers.cuh"
#include "persistent_kernels.cuh"
#include "prelude.cuh"

// One rank holds the graph: states are positions.
struct IdentityPosition {
  __device__ vertex_t operator()(vertex_t v) const { return v; }
};

struct BfsSteps : BfsState {
  // ---- push ------------------------------------------------------------------------------------------
  // Every arc of the queue offers its source as a parent; blocks take equal parts of the arcs.
  template <int EACH, class Propose> __device__ void push(Propose propose) {
    BlockShare share(0, arcs);
    each_arc<EACH>(
        pushed(), count, targets, share, block->scratch, [](vertex_t v) { return v; }, propose);
  }

  // Few arcs: who finds a vertex gives it its level and queues it. Visited afterwards is who was
  // before the last level, those found there, and those found now.
  __device__ void push_to_queue() {
    const u32* before = visited();
    u32* after = other_visited();
    for (i64 i = thread_index(); i < count; i += thread_count())
      set_bit(after, pushed().vertices[i]);
    push<2>([&](const vertex_t(&v)[2], const vertex_t(&u)[2], const bool (&there)[2]) {
      i64 begin[2], length[2];
      u32 seen[2];
      vertex_t parent[2];
      bool found[2];
      for (int k = 0; k < 2; k++) {
        seen[k] = there[k] ? before[v[k] >> 5] : ~0u;
        parent[k] = there[k] ? load_relaxed(&parents[v[k]]) : 0;
        begin[k] = there[k] ? load_readonly(indptr + v[k]) : 0;
        length[k] = there[k] ? load_readonly(indptr + v[k] + 1) - begin[k] : 0;
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

  // Many arcs: parents alone; mark_found() looks for who has one. Parents that do not fit the cache
  // are offered to one part after another: an atomic beyond the cache takes three times as long as
  // another look at an arc and one within.
  __device__ void push_to_parents() {
    i64 parts = arcs > n / 2 ? parameter(PARTS) : 1;
    // Where offers to a vertex are many most are in vain, and a look beforehand spares them.
    bool prefilter = arcs > PREFILTER_RATIO * (n - reached);
    for (i64 part = 0; part < parts; part++)
      push_to_part(n * part / parts, n * (part + 1) / parts, prefilter);
  }
  __device__ void push_to_part(i64 first, i64 last, bool prefilter) {
    const u32* seen = visited();
    push<4>([&](const vertex_t(&v)[4], const vertex_t(&u)[4], const bool (&there)[4]) {
      // Without branches between them all loads are under way together.
      u32 word[4];
      vertex_t parent[4];
      bool open[4];
      for (int k = 0; k < 4; k++) open[k] = there[k] && v[k] >= first && v[k] < last;
      for (int k = 0; k < 4; k++) word[k] = seen[open[k] ? v[k] >> 5 : 0];
      for (int k = 0; k < 4; k++) open[k] = open[k] && !(word[k] >> (v[k] & 31) & 1);
      for (int k = 0; k < 4; k++)
        parent[k] = prefilter && open[k] ? load_relaxed(&parents[v[k]]) : top_of<vertex_t>::value();
      for (int k = 0; k < 4; k++)
        if (open[k] && parent[k] > u[k]) atomic_min(&parents[v[k]], u[k]);
    });
  }
  // Only loads that are under way together fill the bus of the memory: parents of many words, then
  // the rows of those found in some. Where rows are alike nobody looks at them: that would take as
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
  __device__ i64 arcs_from(i64 v) {
    return load_readonly(indptr + v + 1) - load_readonly(indptr + v);
  }

  // ---- pull ------------------------------------------------------------------------------------------
  // Every vertex not visited looks in its row for one that is: none of those is nearer than the
  // frontier, or it would have found the vertex, so that the first there is the smallest of the
  // frontier. A warp takes a run of words: first all their vertices look at the first of their row,
  // of which there is a copy side by side and which most find there, where hubs come first; then
  // those that found nothing look on, all lanes at work again.
  __device__ void pull() {
    // Where few are left most words have none.
    i64 run = listing ? run_of_words(8, 32, 1) : run_of_words(8, 16);
    Runs runs(0, words(), run, counter(TAKEN));
    for (i64 word = runs.begin(); word < words(); word = runs.behind(word)) {
      bool mine = lane_index() < run && word + lane_index() < words();
      u32 seen = mine ? visited()[word + lane_index()] : ~0u;
      u32 found = scan_first(word, run, seen);
      found |= scan_rest(word, ~(seen | found));
      if (listing) queue_word(in_indptr, word, ~(seen | found));
      if (mine) other_visited()[word + lane_index()] = seen | found;
    }
  }
  // Lane k has in `seen` who is visited of the k-th word, and returns who of that finds a parent.
  __device__ u32 scan_first(i64 word, i64 run, u32 seen) {
    i64 v = word * 32;
    my_scanned += __popc(~seen);
    u32 found = look_at_firsts(visited(), firsts + v, parents + v, levels + v, ~seen, (int)run,
                               (dist_t)(level + 1), IdentityPosition());
    my_count += __popc(found);
    return found;
  }
  __device__ u32 scan_rest(i64 word, u32 open) {
    if ((word + lane_index()) * 32 >= parameter(DEGREE_ONE_FROM)) {
      my_arcs += __popc(open);
      open = 0;
    }
    if (!__any_sync(WARP, open)) return 0;
    u32* hits = (u32*)block->scratch + (threadIdx.x & ~31u);
    hits[lane_index()] = 0;
    __syncwarp();
    each_bit(word, open, [&](const i64(&v)[2], const bool (&there)[2]) {
      find_parents(v, there, 1,
                   [&](i64 found) { atomic_or(&hits[(found >> 5) - word], 1u << (found & 31)); });
    });
    __syncwarp();
    u32 found = hits[lane_index()];
    __syncwarp();
    return found;
  }
  // Behind the first so many of the rows; arcs are counted of those that find nothing. A warp
  // together, each lane for two vertices of its own; call hit(v) for those that find a parent.
  template <class Hit>
  __device__ void find_parents(const i64 (&v)[2], const bool (&open)[2], i64 first, Hit hit) {
    i64 begin[2], length[2], place[2], arcs_of[2] = {};
    vertex_t parent[2] = {};
    for (int half = 0; half < 2; half++) {
      begin[half] = open[half] ? load_readonly(in_indptr + v[half]) + first : 0;
      length[half] = open[half] ? load_readonly(in_indptr + v[half] + 1) - begin[half] : 0;
      if (open[half])
        arcs_of[half] = indptr == in_indptr ? length[half] + first : arcs_from(v[half]);
      if (length[half] <= 0) begin[half] = length[half] = 0;
    }
    RowSearch{visited(), in_targets, parameter(NUM_ARCS)}.find(begin, length, place, parent);
    for (int half = 0; half < 2; half++) {
      my_scanned += place[half] < length[half] ? place[half] + 1 : length[half];
      if (place[half] == length[half]) {
        my_arcs += arcs_of[half];
        continue;
      }
      settle(v[half], parent[half]);
      hit(v[half]);
    }
  }
  // Those who were listed look on alone. Who is not visited yet has no neighbours visited but in
  // the level before: who is found is marked in the bitmap that is not read, and needs not stand in
  // the other too.
  __device__ void scan_list() {
    each_listed(filled().vertices, listed, [&](const i64(&v)[2], const bool (&there)[2]) {
      bool open[2];
      for (int half = 0; half < 2; half++) {
        u32 seen = visited()[v[half] >> 5] | load_relaxed(other_visited() + (v[half] >> 5));
        open[half] = there[half] && !(seen >> (v[half] & 31) & 1);
      }
      find_parents(v, open, 0, [&](i64 found) { set_bit(other_visited(), found); });
    });
  }
  __device__ void settle(i64 v, vertex_t parent) {
    parents[v] = parent;
    levels[v] = (dist_t)(level + 1);
    my_count++;
  }
};
