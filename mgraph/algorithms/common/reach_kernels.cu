#include "prelude.cuh"

// A thread for each flag, then the whole block for each marked grain. Adjacent grains tend to be
// marked together: they are of different blocks.
extern "C" __global__ void __launch_bounds__(256)
    note_lowered(i64 lo, i64 hi, i64 grain_bits, i64 visit, const dist_t* states, u8* lowered,
                 dist_t* before, vertex_t* parents, i32* stamps, i32* latest, i64* counters) {
  __shared__ i64 marked[256];
  __shared__ i32 num_marked;
  i64 count = 0;
  for (i64 next = lo + blockIdx.x; next < hi; next += blockDim.x * (i64)gridDim.x) {
    if (threadIdx.x == 0) num_marked = 0;
    __syncthreads();
    i64 own = next + threadIdx.x * (i64)gridDim.x;
    if (own < hi && lowered[own]) {
      lowered[own] = 0;
      marked[atomic_add(&num_marked, 1)] = own;
    }
    __syncthreads();
    for (int k = 0; k < num_marked; k++) {
      i64 grain = marked[k], first = grain << grain_bits, last = (grain + 1) << grain_bits;
      i64 noted = count;
#pragma unroll 8
      for (i64 i = first + threadIdx.x; i < last; i += blockDim.x) {
        // Both loaded at once: in most of these grains many states are lower.
        dist_t state = states[i], old = before[i];
        if (!(state < old)) continue;
        before[i] = state;
        parents[i] = top_of<vertex_t>::value();
        stamps[i] = (i32)visit;
        count++;
      }
      if (count > noted) store_relaxed(&latest[grain], (i32)visit);
    }
    __syncthreads();  // all threads have read the list
  }
  warp_add(&counters[0], count);
}

extern "C" __global__ void find_farthest(i64 lo, i64 hi, i64 grain_bits, const dist_t* states,
                                         const vertex_t* parents, dist_t* far_states,
                                         vertex_t* far_parents) {
  for (i64 grain = lo + warp_index(); grain < hi; grain += warp_count()) {
    i64 first = grain << grain_bits, last = (grain + 1) << grain_bits;
    dist_t far = states[first];
    vertex_t parent = parents[first];
    auto raise_to = [&](dist_t state, vertex_t own) {
      if (state < far || (state == far && own <= parent)) return;
      far = state;
      parent = own;
    };
    for (i64 i = first + lane_index(); i < last; i += 32) raise_to(states[i], parents[i]);
    for (int d = 16; d; d >>= 1) {
      dist_t state = __shfl_xor_sync(0xFFFFFFFFu, far, d);
      vertex_t own = __shfl_xor_sync(0xFFFFFFFFu, parent, d);
      raise_to(state, own);
    }
    if (lane_index() != 0) continue;
    far_states[grain] = far;
    far_parents[grain] = parent;
  }
}

// The least state that a thread or a block has seen, and the lowest position with it.
struct Nearest {
  dist_t state;
  vertex_t position;
  __device__ void lower_to(dist_t other, vertex_t place) {
    if (other > state || (other == state && place >= position)) return;
    state = other;
    position = place;
  }
  // The nearest of all threads of the block, which all call it. `shared` may be written again after
  // another barrier.
  __device__ Nearest of_block(Nearest* shared) const {
    if (threadIdx.x == 0) *shared = {top_of<dist_t>::value(), top_of<vertex_t>::value()};
    __syncthreads();
    bool has_any = position < top_of<vertex_t>::value();
    if (has_any) lower(&shared->state, state);
    __syncthreads();
    if (has_any && state == shared->state) lower(&shared->position, position);
    __syncthreads();
    return *shared;
  }
};

// A block processes a work item: its threads share the latest stamps, then the states of each grain
// that has a later one.
extern "C" __global__ void __launch_bounds__(1024)
    find_nearest(i64 lo, i64 hi, const i64* shape, const i64* ranges, const i64* visited,
                 const dist_t* states, const i32* stamps, const i32* latest, dist_t* nearest,
                 vertex_t* positions) {
  __shared__ Nearest shared;
  __shared__ i64 lowered[1024];
  __shared__ i32 count;
  i64 grain_bits = shape[0], slices = shape[4];
  for (i64 item = lo + blockIdx.x; item < hi; item += gridDim.x) {
    i64 direction = item / slices, seen = visited[direction >> 1];
    const i64* near = ranges + 2 * direction;
    i64 end = (direction & 1) && !shape[1] ? near[0] : near[1];
    Nearest own{top_of<dist_t>::value(), top_of<vertex_t>::value()};
    for (i64 begin = near[0] + item % slices; begin < end; begin += blockDim.x * slices) {
      if (threadIdx.x == 0) count = 0;
      __syncthreads();
      i64 grain = begin + threadIdx.x * slices;
      if (grain < end && latest[grain] > seen) lowered[atomic_add(&count, 1)] = grain;
      __syncthreads();
      for (int k = 0; k < count; k++) {
        i64 first = lowered[k] << grain_bits, last = first + ((i64)1 << grain_bits);
#pragma unroll 4
        for (i64 i = first + threadIdx.x; i < last; i += blockDim.x) {
          // Loaded at once: most of a grain that was lowered has a late stamp.
          i32 stamp = stamps[i];
          dist_t state = states[i];
          if (stamp > seen && state <= own.state)
            own.lower_to(state, position_of((vertex_t)i, shape[2], shape[3]));
        }
      }
      __syncthreads();  // all threads have read the list
    }
    Nearest all = own.of_block(&shared);
    if (threadIdx.x == 0) {
      nearest[item] = all.state;
      positions[item] = all.position;
    }
    __syncthreads();  // before the next item's writes to shared memory
  }
}

// A block processes a work item: its threads share the slices, then the far grains.
extern "C" __global__ void __launch_bounds__(1024)
    find_reach(i64 lo, i64 hi, i64 slices, const dist_t* bounds, const i64* ranges,
               const dist_t* nearest, const vertex_t* positions, const dist_t* far_states,
               const vertex_t* far_parents, dist_t* reach) {
  __shared__ Nearest shared;
  const dist_t top = top_of<dist_t>::value();
  for (i64 item = lo + blockIdx.x; item < hi; item += gridDim.x) {
    const i64* far = ranges + 4 * (item >> 1) + 2 - 2 * (item & 1);
    Nearest own{top, top_of<vertex_t>::value()};
    for (i64 k = threadIdx.x; k < slices; k += blockDim.x)
      own.lower_to(nearest[item * slices + k], positions[item * slices + k]);
    own = own.of_block(&shared);
    dist_t through = own.state;
    bool reaches = false;
    if (through < top && (through += bounds[0]) <= bounds[1])
      for (i64 grain = far[0] + threadIdx.x; grain < far[1]; grain += blockDim.x)
        reaches |= through < far_states[grain] ||
                   (through == far_states[grain] && own.position < far_parents[grain]);
    // Also the barrier between these reads of shared memory and the next item's writes.
    reaches = __syncthreads_or(reaches);
    if (threadIdx.x == 0) reach[item] = reaches ? own.state : top;
  }
}
