#include "prelude.cuh"

// Rows of more arcs are relaxed by a whole warp.
constexpr i64 SHORT_ROW = 32;

// The search from one source, by one block: its barriers are those of the block. Distances are
// relaxed in buckets, near before far. State, where b is `bound`:
//
//   dist    falls to the distance; settled where it is below `least`, once near is empty
//   near    vertices of least <= dist <= b that were lowered since their arcs were relaxed
//   far     vertices that were lowered to more than b; may have an entry more than once, and
//           entries of vertices that have been lowered to b or less since
//   counts  entries of near, of the next near, and of the one after it (0), by the round modulo 3;
//           a count beyond num_owned: later entries were dropped, and the queue is made anew from
//           the distances
struct BlockSearch {
  u32 counts[3], num_far, num_kept;
  dist_t nearest;
};

struct Given {
  const i64* indptr;
  const vertex_t* targets;
  const weight_t* weights;
  u32 num_owned;
  dist_t delta, limit;
};

struct Search {
  BlockSearch& block;
  const Given& given;
  dist_t* dist;
  vertex_t *near, *next, *far;
  dist_t least, bound;
  u32 round;

  __device__ dist_t bound_of(dist_t from) const {
    dist_t top = top_of<dist_t>::value();
    return top - from < given.delta ? top : from + given.delta;
  }

  __device__ void append(vertex_t* queue, u32* count, vertex_t v) {
    u32 place = atomic_add(count, 1u);
    if (place < given.num_owned) queue[place] = v;
  }

  __device__ void relax(dist_t from, i64 arc) {
    vertex_t v = load_readonly(&given.targets[arc]);
    dist_t through =
        from + (given.weights ? (dist_t)load_readonly(&given.weights[arc]) : (dist_t)1);
    if (through > given.limit || !lower(&dist[v], through)) return;
    if (through <= bound)
      append(next, &block.counts[(round + 1) % 3], v);
    else
      append(far, &block.num_far, v);
  }

  // Relax the arcs of near. Race: a vertex may be lowered while its arcs are relaxed; then it is in
  // the next near as well, and they are relaxed again.
  __device__ void relax_near(u32 count) {
    for (u32 first = threadIdx.x - lane_index(); first < count; first += blockDim.x) {
      u32 k = first + lane_index();
      i64 begin = 0, end = 0;
      dist_t from = 0;
      if (k < count) {
        vertex_t u = near[k];
        begin = load_readonly(&given.indptr[u]);
        end = load_readonly(&given.indptr[(i64)u + 1]);
        from = load_relaxed(&dist[u]);
      }
      bool is_short = end - begin <= SHORT_ROW;
      if (is_short)
        for (i64 arc = begin; arc < end; arc++) relax(from, arc);
      for (u32 left = __ballot_sync(0xFFFFFFFFu, !is_short); left; left &= left - 1) {
        int lane = __ffs(left) - 1;
        i64 stop = __shfl_sync(0xFFFFFFFFu, end, lane);
        dist_t of_row = __shfl_sync(0xFFFFFFFFu, from, lane);
        for (i64 arc = __shfl_sync(0xFFFFFFFFu, begin, lane) + lane_index(); arc < stop; arc += 32)
          relax(of_row, arc);
      }
    }
  }

  // Make a queue of all vertices with distances in a range: each once.
  __device__ void list(vertex_t* queue, u32* count, dist_t from, dist_t to) {
    __syncthreads();
    if (threadIdx.x == 0) *count = 0;
    __syncthreads();
    for (u32 v = threadIdx.x; v < given.num_owned; v += blockDim.x) {
      dist_t d = load_relaxed(&dist[v]);
      if (from <= d && d <= to && d != top_of<dist_t>::value()) append(queue, count, (vertex_t)v);
    }
    __syncthreads();
  }

  // Settle the bucket up to `bound`.
  __device__ void settle() {
    u32 count;
    while ((count = block.counts[round % 3])) {
      if (count > given.num_owned) {
        list(near, &block.counts[round % 3], least, bound);
        count = block.counts[round % 3];
      }
      // The count of the round before: all threads have read it.
      if (threadIdx.x == 0) block.counts[(round + 2) % 3] = 0;
      relax_near(count);
      __syncthreads();
      vertex_t* last = near;
      near = next;
      next = last;
      round++;
    }
  }

  // Begin the bucket of the nearest vertex that waits; false if none does.
  __device__ bool advance() {
    u32 count = block.num_far;
    if (count > given.num_owned) {
      // Only distances beyond the bound: no later bucket's are equal to it.
      list(far, &block.num_far, bound, top_of<dist_t>::value());
      count = block.num_far;
    }
    if (threadIdx.x == 0) {
      block.nearest = top_of<dist_t>::value();
      block.num_kept = 0;
    }
    __syncthreads();
    dist_t nearest = top_of<dist_t>::value();
    for (u32 k = threadIdx.x; k < count; k += blockDim.x) {
      dist_t d = load_relaxed(&dist[far[k]]);
      if (d > bound && d < nearest) nearest = d;
    }
    nearest = warp_min(nearest);
    if (lane_index() == 0) atomic_min(&block.nearest, nearest);
    __syncthreads();
    least = block.nearest;
    if (least == top_of<dist_t>::value()) return false;
    dist_t settled = bound;
    bound = bound_of(least);
    // Far is compacted in place: a tile is read before entries are written to where it was.
    for (u32 first = 0; first < count; first += blockDim.x) {
      u32 k = first + threadIdx.x;
      vertex_t v = k < count ? far[k] : 0;
      dist_t d = k < count ? load_relaxed(&dist[v]) : settled;
      __syncthreads();
      if (d > bound)
        append(far, &block.num_kept, v);
      else if (d > settled)
        append(near, &block.counts[round % 3], v);
    }
    __syncthreads();
    if (threadIdx.x == 0) block.num_far = block.num_kept;
    __syncthreads();
    return true;
  }
};

extern "C" __global__ void search_each(i64 lo, i64 hi, const i64* indptr, const vertex_t* targets,
                                       const weight_t* weights, const vertex_t* starts,
                                       const vertex_t* until, i64 num_until, i64 num_owned,
                                       const dist_t* bounds, dist_t* dist, vertex_t* queues) {
  __shared__ BlockSearch block;
  Given given = {indptr, targets, weights, (u32)num_owned, bounds[0], bounds[1]};
  for (i64 i = lo + blockIdx.x; i < hi; i += gridDim.x) {
    vertex_t* waiting = queues + 3 * i * num_owned;
    Search search = {block,
                     given,
                     dist + i * num_owned,
                     waiting,
                     waiting + num_owned,
                     waiting + 2 * num_owned,
                     0,
                     bounds[0],
                     0};
    for (u32 v = threadIdx.x; v < num_owned; v += blockDim.x)
      search.dist[v] = top_of<dist_t>::value();
    __syncthreads();
    if (threadIdx.x == 0) {
      search.dist[starts[i]] = 0;
      search.near[0] = starts[i];
      block.counts[0] = 1;
      block.counts[1] = block.counts[2] = block.num_far = 0;
    }
    __syncthreads();
    i64 settled = 0;
    do {
      search.settle();
      // How many of the first targets are settled, in tiles of a block.
      while (settled < num_until) {
        i64 k = settled + threadIdx.x;
        bool is_open = k < num_until && load_relaxed(&search.dist[until[k]]) > search.bound;
        if (__syncthreads_or(is_open)) break;
        settled += blockDim.x;
      }
    } while ((num_until == 0 || settled < num_until) && search.advance());
    __syncthreads();
  }
}
