#include "prelude.cuh"

extern "C" __global__ void note_lowered(i64 lo, i64 hi, i64 grain_bits, i64 visit,
                                        const dist_t* states, dist_t* before, vertex_t* parents,
                                        i32* stamps, i32* latest) {
  for (i64 grain = lo + warp_index(); grain < hi; grain += warp_count()) {
    i64 first = grain << grain_bits, last = (grain + 1) << grain_bits;
    bool any = false;
    for (i64 i = first + lane_index(); i < last; i += 32) {
      dist_t state = states[i];
      if (!(state < before[i])) continue;
      before[i] = state;
      parents[i] = top_of<vertex_t>::value();
      stamps[i] = (i32)visit;
      any = true;
    }
    if (__any_sync(0xFFFFFFFFu, any) && lane_index() == 0) latest[grain] = (i32)visit;
  }
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

// A block processes a work item: its threads share the latest stamps, the states of each grain that
// has a later one, then the far grains.
extern "C" __global__ void __launch_bounds__(1024)
    find_reach(i64 lo, i64 hi, const i64* shape, const dist_t* bounds, const i64* ranges,
               const i64* visited, const dist_t* states, const i32* stamps, const i32* latest,
               const dist_t* far_states, const vertex_t* far_parents, dist_t* reach) {
  __shared__ dist_t least;
  __shared__ vertex_t position;
  __shared__ i32 lowered[1024];
  __shared__ i32 count;
  const dist_t top = top_of<dist_t>::value();
  const vertex_t none = top_of<vertex_t>::value();
  i64 grain_bits = shape[0];
  for (i64 item = lo + blockIdx.x; item < hi; item += gridDim.x) {
    const i64 *near = ranges + 4 * (item >> 1) + 2 * (item & 1),
              *far = ranges + 4 * (item >> 1) + 2 - 2 * (item & 1);
    i64 seen = visited[item >> 1];
    if (threadIdx.x == 0) {
      least = top;
      position = none;
    }
    __syncthreads();
    dist_t own = top;
    vertex_t at = none;
    i64 end = (item & 1) && !shape[1] ? near[0] : near[1];
    for (i64 begin = near[0]; begin < end; begin += blockDim.x) {
      if (threadIdx.x == 0) count = 0;
      __syncthreads();
      i64 grain = begin + threadIdx.x;
      if (grain < end && latest[grain] > seen) lowered[atomic_add(&count, 1)] = threadIdx.x;
      __syncthreads();
      for (int k = 0; k < count; k++) {
        i64 first = (begin + lowered[k]) << grain_bits, last = first + ((i64)1 << grain_bits);
#pragma unroll 4
        for (i64 i = first + threadIdx.x; i < last; i += blockDim.x) {
          // Loaded at once: most of a grain that was lowered has a late stamp.
          i32 stamp = stamps[i];
          dist_t state = states[i];
          if (stamp <= seen || own < state) continue;
          vertex_t place = position_of((vertex_t)i, shape[2], shape[3]);
          if (state == own && at <= place) continue;
          own = state;
          at = place;
        }
      }
      __syncthreads();  // all threads have read the list
    }
    if (own < top) lower(&least, own);
    __syncthreads();
    if (own < top && own == least) lower(&position, at);
    __syncthreads();
    dist_t through = least;
    bool reaches = false;
    if (through < top && (through += bounds[0]) <= bounds[1])
      for (i64 grain = far[0] + threadIdx.x; grain < far[1]; grain += blockDim.x)
        reaches |= through < far_states[grain] ||
                   (through == far_states[grain] && position < far_parents[grain]);
    // Also the barrier between these reads of shared memory and the next item's writes.
    reaches = __syncthreads_or(reaches);
    if (threadIdx.x == 0) reach[item] = reaches ? least : top;
  }
}
