// A whole breadth-first search in one launch: run() is the loop of algorithms/bfs/step.py. One rank
// holds the graph, so that a state index is a position. persistent_kernels.py describes the
// parameters.
//
//   persistent_kernels.cuh          state of a search (a table of it), its phases, trace and report
//   persistent_kernels.steps.cuh    ways to do a level: push to a queue or to parents, pull, list
//   persistent_kernels.chunked.cuh  many levels of a deep graph with narrow frontiers at a time
//   parent_scans.cuh                scans of rows for a parent, as on several GPUs

#include "frontiers.cuh"
#include "persistent_kernels.chunked.cuh"
#include "persistent_kernels.cuh"
#include "persistent_kernels.steps.cuh"
#include "prelude.cuh"

// After this many pulled levels the cost of leaving the bitmaps is no longer counted against a
// push: a deep graph would pull thousands of levels.
constexpr i64 MAX_HYSTERESIS_PULLS = 8;
// Parents in a sector of 32 bytes, the unit of a memory access.
constexpr i64 PARENTS_PER_SECTOR = 8;
// This many rows a thread, and this many arcs, one block scans in 2 us, where a level over all
// blocks takes 6 to 14 us (H200).
constexpr int THREAD_ROWS = 4;
constexpr i64 ONE_BLOCK_LISTED_ARCS = 4096;
// All blocks scan this many listed arcs faster than they pass over the bitmaps; the bound also
// keeps a deep tail, which scans the list once a level, cheap.
constexpr i64 MAX_LISTED_ARCS = 1 << 18;
// Unreached vertices are listed when less than 1 / LISTED_SHARE of all are left.
constexpr i64 LISTED_SHARE = 8;

struct PersistentBfs : BfsSteps {
  i64 narrow_levels = 0;  // consecutive levels with narrow frontiers
  i64 scanned = 0, num_pulls = 0;

  __device__ void run() {
    clear_bits();
    __syncthreads();
    i64 arcs_before = 0;
    bool single_source = parameter(NUM_SOURCES) == 1,
         pushed_first = single_source && start_from_source();
    if (!sync_phase()) return;
    if (!single_source) {
      start_from_sources();
      if (!sync_phase()) return;
    }
    if (pushed_first) arcs_before = scanned = arcs;
    if (pushed_first || !single_source) finish_level();
    if (pushed_first) trace(PUSH, 1, scanned, 1);
    while (count && level != parameter(DEPTH_LIMIT) && !are_targets_visited()) {
      i64 frontier = count;
      pulling = has_list || pull_pays(arcs_before);
      if (!(pulling ? pull_level() : push_level())) return;
      arcs_before = scanned;
      finish_level();
      trace(pulling ? PULL : PUSH, frontier, scanned, 1);
      narrow_levels = !pulling && in_queue && is_narrow(count) && is_narrow(arcs / ALONE)
                          ? narrow_levels + 1
                          : 0;
      if (sizeof(vertex_t) == 4 && packed && narrow_levels == MIN_NARROW_LEVELS) {
        if (!ChunkedExpansion{*this}.expand_in_chunks()) return;
        narrow_levels = 0;
      }
      if (listing && finish_in_one_block()) return;
    }
    if (!counted && !queue_up()) return;
    write_unreached();
    if (is_reporter()) report_to_host();
  }

  // Costs of the ways to do the next level, without the barriers that all of them need.
  __device__ i64 queueing_cost() { return arcs * cost(QUEUEING); }
  // Once more than one vertex in PARENTS_PER_SECTOR is found, found vertices share sectors.
  __device__ i64 proposing_cost() {
    i64 apart = arcs < n / PARENTS_PER_SECTOR ? arcs : n / PARENTS_PER_SECTOR;
    return cost(PHASE) + n * cost(PASSING) + apart * cost(SETTLING) + arcs * cost(PROPOSING);
  }
  __device__ i64 pushing_cost() {
    i64 queueing = queueing_cost(), proposing = proposing_cost(),
        leaving = cost(PHASE) + passing_bits_cost();
    return (queueing < proposing ? queueing : proposing) +
           (in_queue || num_pulls >= MAX_HYSTERESIS_PULLS ? 0 : leaving);
  }
  __device__ i64 pulling_cost() { return passing_bits_cost() + (n - reached) * cost(OPENING); }
  __device__ i64 passing_bits_cost() { return n / 8 * cost(PASSING); }
  // Expected arcs that a pull scans after the first of each row. Of the arcs that no level has
  // scanned, one in others / arcs starts at the frontier, so that a vertex scans as many before a
  // hit. Rows begin with hubs: with hubs on the frontier hits come earlier, on RMAT graphs by the
  // square root of the ratio of the frontier's mean degree to the graph's (31 scans become 4.3 on
  // rmat24, 13 become 2.6, and 4 become 1.5).
  __device__ float expected_scans() {
    float others = (float)(parameter(NUM_ARCS) - reached_arcs), own = (float)(arcs ? arcs : 1);
    float degrees = own / (float)count * ((float)n / (float)parameter(NUM_ARCS));
    float scans = (others / own - 1) * (float)(n - reached) / sqrtf(degrees > 1 ? degrees : 1);
    return scans < 0 ? 0 : scans < others ? scans : others;
  }
  // A frontier larger than a queue is pulled. Otherwise the estimate of scans holds only where
  // distances are short, which shows in growing frontiers; on a grid they never grow. The test for
  // growth also spares small levels the divisions.
  __device__ bool pull_pays(i64 arcs_before) {
    if (in_bits && count > parameter(CAPACITY)) return true;
    if (!pulling && arcs <= parameter(GROWTH) * arcs_before) return false;
    i64 spare = pushing_cost() - pulling_cost();
    return spare > 0 && expected_scans() * (float)cost(SCANNING) < (float)spare;
  }

  __device__ bool push_level() {
    if (!in_queue && !queue_up()) return false;
    scanned = arcs;
    in_queue = queueing_cost() <= proposing_cost() && arcs <= parameter(CAPACITY);
    in_bits = !in_queue;
    if (in_queue) {
      push_to_queue();
      return sync_phase();
    }
    push_to_parents();
    if (!sync_phase()) return false;
    mark_found();
    return sync_phase();
  }

  __device__ bool pull_level() {
    in_bits = true;
    in_queue = false;
    num_pulls++;
    // A search for several targets needs all reached vertices in one bitmap: after a list each has
    // those of every other level.
    listing = !has_list && !parameter(NUM_TARGETS) && (n - reached) * LISTED_SHARE < n;
    has_list ? scan_list() : pull();
    if (!sync_phase()) return false;
    scanned = total(SCANNED);
    return true;
  }

  // ---- the end ---------------------------------------------------------------------------------
  // After a list was made: scan it with all blocks or, if it is short, finish the search in one
  // block, which needs no further grid barrier; the other blocks return.
  //
  // Race: `levels` serves as the visited set here. A level that another thread stores meanwhile is
  // level + 1, and that of an unreached vertex is the largest value: both are above `level`, so
  // that either reading gives the same result.
  __device__ bool finish_in_one_block() {
    i64 queued = total(QUEUED), arcs_listed = queued_arcs(queued);
    listing = false;
    listed = queued_vertices(queued);
    has_list = listed <= parameter(CAPACITY) && arcs_listed <= MAX_LISTED_ARCS;
    if (!has_list || listed > THREAD_ROWS * blockDim.x || arcs_listed > ONE_BLOCK_LISTED_ARCS)
      return false;
    if (!is_reporter()) return true;
    // Each thread holds its rows in registers, and the first target of each.
    Queue left = filled();
    vertex_t v[THREAD_ROWS], first[THREAD_ROWS];
    i64 begin[THREAD_ROWS], end[THREAD_ROWS];
    bool open[THREAD_ROWS];
    for (int k = 0; k < THREAD_ROWS; k++) {
      i64 i = threadIdx.x + k * (i64)blockDim.x;
      open[k] = i < listed;
      v[k] = open[k] ? left.vertices[i] : 0;
      begin[k] = open[k] ? left.offsets[i] : 0;
      if (open[k]) levels[v[k]] = top_of<dist_t>::value();
      end[k] = open[k] && i + 1 < listed ? left.offsets[i + 1] : arcs_listed;
      open[k] = open[k] && begin[k] < end[k];
      if (open[k]) {
        end[k] += left.first[i];
        begin[k] += left.first[i];
      }
      first[k] = open[k] ? load_readonly(in_targets + begin[k]) : 0;
    }
    __syncthreads();
    for (i64 before = reached, arcs_before = reached_arcs;
         count && level != parameter(DEPTH_LIMIT) && !is_target_in_level();) {
      i64 frontier = count;
      dist_t near[THREAD_ROWS];
      for (int k = 0; k < THREAD_ROWS; k++) near[k] = open[k] ? load_relaxed(&levels[first[k]]) : 0;
      for (int k = 0; k < THREAD_ROWS; k++) {
        if (!open[k]) continue;
        vertex_t parent = first[k];
        for (i64 i = begin[k] + 1; near[k] > level && i < end[k]; i++) {
          parent = load_readonly(in_targets + i);
          near[k] = load_relaxed(&levels[parent]);
        }
        if (near[k] > level) continue;
        open[k] = false;
        parents[v[k]] = parent;
        store_relaxed(&levels[v[k]], (dist_t)(level + 1));
        my_count++;
        my_arcs += row_length(indptr, v[k]);
      }
      add_to_block_sum(&block->sums[COUNT], my_count);
      add_to_block_sum(&block->sums[ARCS], my_arcs);
      my_count = my_arcs = 0;
      __syncthreads();
      count = before + block->sums[COUNT] - reached;
      reached += count;
      reached_arcs = arcs_before + block->sums[ARCS];
      level++;
      trace(PULL, frontier, arcs_listed, 1);
      __syncthreads();
    }
    report_to_host();
    return true;
  }
};

// Find levels and parents from the sources in `control`.
extern "C" __global__ void __launch_bounds__(BLOCK)
    search_levels(i64 lo, i64 hi, const u32* abort, const i64* indptr, const vertex_t* targets,
                  const i64* in_indptr, const vertex_t* in_targets, const vertex_t* first_neighbors,
                  dist_t* levels, vertex_t* parents, u32* work, i64* packed, i64* arrived,
                  i64* control) {
  __shared__ BfsShared block;
  if (threadIdx.x < 3) block.sums[threadIdx.x] = 0;
  // The load from host memory overlaps clearing the states.
  i64 loaded = threadIdx.x < REPORT_AT ? control[threadIdx.x] : 0;
  PersistentBfs search;
  search.started = clock_ns();
  search.n = hi;
  search.abort = abort;
  search.indptr = indptr;
  search.targets = targets;
  search.in_indptr = in_indptr;
  search.in_targets = in_targets;
  search.first_neighbors = first_neighbors;
  search.levels = levels;
  search.parents = parents;
  search.work = work;
  search.packed = packed;
  search.arrived = arrived;
  search.control = control;
  search.block = &block;
  search.clear_parents();
  if (threadIdx.x < REPORT_AT) block.parameters[threadIdx.x] = loaded;
  __syncthreads();
  search.run();
}
