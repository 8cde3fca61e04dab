// A whole breadth-first search in one launch: the loop of algorithms/bfs/step.py, and one for deep
// graphs with narrow frontiers. bfs_fused.py says what the parameters are; one rank holds the
// graph, so that a state index is a position.

#include "frontiers.cuh"
#include "persistent_kernels.cuh"
#include "persistent_kernels.walk.cuh"
#include "prelude.cuh"

// Levels that are pulled because it costs something to leave bitmaps: a deep graph has thousands of
// them.
constexpr i64 LINGERING = 8;
// Parents that a line of 32 bytes holds.
constexpr i64 SETTLED_TOGETHER = 8;
// So many rows a thread, and so many arcs, one block looks at in 2 us where a level of all blocks
// takes 6 to 14 (H200).
constexpr int LISTED = 4;
constexpr i64 FEW_LISTED = 4096;
// So many arcs all blocks look at sooner than they pass over bitmaps; fewer than a deep tail could
// make dear.
constexpr i64 MOST_LISTED = 1 << 18;
// Few are left when they are less than one in so many.
constexpr i64 FEW_LEFT = 8;

struct Search : Walk {
  i64 looked = 0, lingering = 0;

  __device__ void run() {
    clear_bits();
    __syncthreads();
    i64 arcs_before = 0;
    bool one = order(NUM_SOURCES) == 1, pushed_first = one && begin_with_source();
    if (!meet()) return;
    if (!one) {
      settle_sources();
      if (!meet()) return;
    }
    if (pushed_first) arcs_before = looked = arcs;
    if (pushed_first || !one) arrive();
    if (pushed_first) trace(PUSH, 1, looked, 1);
    while (count && level != order(DEPTH_LIMIT)) {
      i64 frontier = count;
      pulling = has_list || pull_pays(arcs_before);
      if (!(pulling ? pull_level() : push_level())) return;
      arcs_before = looked;
      arrive();
      trace(pulling ? PULL : PUSH, frontier, looked, 1);
      narrow = !pulling && in_queue && is_narrow(count) && is_narrow(arcs / ALONE) ? narrow + 1 : 0;
      if (sizeof(vertex_t) == 4 && packed && narrow == NARROW_LEVELS && !walk()) return;
      if (listing && end_alone()) return;
    }
    if (!counted && !queue_up()) return;
    leave_unreached();
    if (tells()) tell();
  }

  // What each form of the next level takes beyond a phase.
  __device__ i64 queueing_cost() { return arcs * cost(QUEUEING); }
  // Vertices that are found share the lines in which they are settled once there are more than one
  // in so many.
  __device__ i64 offering_cost() {
    i64 apart = arcs < n / SETTLED_TOGETHER ? arcs : n / SETTLED_TOGETHER;
    return cost(PHASE) + n * cost(PASSING) + apart * cost(SETTLING) + arcs * cost(OFFERING);
  }
  __device__ i64 pushing_cost() {
    i64 queueing = queueing_cost(), offering = offering_cost(),
        leaving = cost(PHASE) + passing_bits_cost();
    return (queueing < offering ? queueing : offering) +
           (in_queue || lingering >= LINGERING ? 0 : leaving);
  }
  __device__ i64 pulling_cost() { return passing_bits_cost() + (n - reached) * cost(OPENING); }
  __device__ i64 passing_bits_cost() { return n / 8 * cost(PASSING); }
  // Arcs that a pull looks at behind the first ones. Of those that no level has looked at, one in
  // others / arcs comes from the frontier: so many a vertex looks at before it hits. Fewer where
  // hubs are on the frontier, with which rows begin: of RMAT graphs as many times fewer as is the
  // root of how many times the mean degree theirs is (31 become 4.3 on rmat24, 13 become 2.6, and 4
  // become 1.5).
  __device__ float looks_further() {
    float others = (float)(order(NUM_ARCS) - reached_arcs), own = (float)(arcs ? arcs : 1);
    float degrees = own / (float)count * ((float)n / (float)order(NUM_ARCS));
    float looks = (others / own - 1) * (float)(n - reached) / sqrtf(degrees > 1 ? degrees : 1);
    return looks < 0 ? 0 : looks < others ? looks : others;
  }
  // A frontier that no queue holds is pulled; and looks hit as often as that only where all are
  // near, where frontiers grow as they do there. On a grid they never do. Divisions take time too:
  // they are for levels that may be pulled.
  __device__ bool pull_pays(i64 arcs_before) {
    if (in_bits && count > order(CAPACITY)) return true;
    if (!pulling && arcs <= order(GROWTH) * arcs_before) return false;
    i64 spare = pushing_cost() - pulling_cost();
    return spare > 0 && looks_further() * (float)cost(LOOKING) < (float)spare;
  }

  __device__ bool push_level() {
    if (!in_queue && !queue_up()) return false;
    looked = arcs, in_queue = queueing_cost() <= offering_cost() && arcs <= order(CAPACITY),
    in_bits = !in_queue;
    if (in_queue) {
      push_to_queue();
      return meet();
    }
    push_to_parents();
    if (!meet()) return false;
    mark_found();
    return meet();
  }

  __device__ bool pull_level() {
    in_bits = true, in_queue = false, lingering++;
    listing = !has_list && (n - reached) * FEW_LEFT < n;
    has_list ? look_through_list() : pull();
    if (!meet()) return false;
    looked = total(LOOKED);
    return true;
  }

  // ---- the end ---------------------------------------------------------------------------------------
  // Those who found nothing look on alone once they are listed: in all blocks or, if they are few,
  // in one, which need not meet with the others: they are done. Levels say there who was visited.
  // One that another thread gives at this moment is above that of the frontier, as that of who is
  // not reached is: whichever is read says the same.
  __device__ bool end_alone() {
    i64 queued = total(QUEUED), arcs_listed = queued_arcs(queued);
    listing = false, listed = queued_vertices(queued);
    has_list = listed <= order(CAPACITY) && arcs_listed <= MOST_LISTED;
    if (!has_list || listed > LISTED * blockDim.x || arcs_listed > FEW_LISTED) return false;
    if (!tells()) return true;
    // A thread keeps its rows, and of each the first target.
    Queue left = filled();
    vertex_t v[LISTED], first[LISTED];
    i64 begin[LISTED], end[LISTED];
    bool open[LISTED];
    for (int k = 0; k < LISTED; k++) {
      i64 i = threadIdx.x + k * (i64)blockDim.x;
      open[k] = i < listed;
      v[k] = open[k] ? left.vertices[i] : 0, begin[k] = open[k] ? left.offsets[i] : 0;
      if (open[k]) levels[v[k]] = top_of<dist_t>::value();
      end[k] = open[k] && i + 1 < listed ? left.offsets[i + 1] : arcs_listed;
      open[k] = open[k] && begin[k] < end[k];
      if (open[k]) end[k] += left.first[i], begin[k] += left.first[i];
      first[k] = open[k] ? load_readonly(in_targets + begin[k]) : 0;
    }
    __syncthreads();
    for (i64 before = reached, arcs_before = reached_arcs; count && level != order(DEPTH_LIMIT);) {
      i64 frontier = count;
      dist_t near[LISTED];
      for (int k = 0; k < LISTED; k++) near[k] = open[k] ? load_relaxed(&levels[first[k]]) : 0;
      for (int k = 0; k < LISTED; k++) {
        if (!open[k]) continue;
        vertex_t parent = first[k];
        for (i64 i = begin[k] + 1; near[k] > level && i < end[k]; i++) {
          parent = load_readonly(in_targets + i);
          near[k] = load_relaxed(&levels[parent]);
        }
        if (near[k] > level) continue;
        open[k] = false;
        parents[v[k]] = parent, store_relaxed(&levels[v[k]], (dist_t)(level + 1));
        my_count++, my_arcs += arcs_from(v[k]);
      }
      add_up(&block->sums[COUNT], my_count), add_up(&block->sums[ARCS], my_arcs);
      my_count = my_arcs = 0;
      __syncthreads();
      count = before + block->sums[COUNT] - reached;
      reached += count, reached_arcs = arcs_before + block->sums[ARCS], level++;
      trace(PULL, frontier, arcs_listed, 1);
      __syncthreads();
    }
    tell();
    return true;
  }
};

// Find levels and parents from the sources in `host`.
extern "C" __global__ void __launch_bounds__(BLOCK)
    search_levels(i64 lo, i64 hi, const u32* abort, const i64* indptr, const vertex_t* targets,
                  const i64* in_indptr, const vertex_t* in_targets, const vertex_t* firsts,
                  dist_t* levels, vertex_t* parents, u32* work, i64* packed, i64* arrived,
                  i64* host) {
  __shared__ Block block;
  if (threadIdx.x < 3) block.sums[threadIdx.x] = 0;
  // From host memory, and on the way while states are cleared.
  i64 asked = threadIdx.x < REPORT_AT ? host[threadIdx.x] : 0;
  Search search;
  search.started = clock_ns();
  search.n = hi, search.abort = abort;
  search.indptr = indptr, search.targets = targets, search.in_indptr = in_indptr,
  search.in_targets = in_targets;
  search.firsts = firsts;
  search.levels = levels, search.parents = parents, search.work = work, search.packed = packed;
  search.arrived = arrived, search.host = host, search.block = &block;
  search.clear_parents();
  if (threadIdx.x < REPORT_AT) block.orders[threadIdx.x] = asked;
  __syncthreads();
  search.run();
}
