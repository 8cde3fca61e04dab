// Moore's algorithm, layer by layer, and the mask-based search with which the paper compares it.
// Vertices are pairs (degree, offset), edges are pairs (vertex, weight).

#include "prelude.cuh"

// ---- IIIT (Harish, Narayanan): a thread for each vertex, a mask in global memory ---------------
extern "C" __global__ void relax_masked(i64 lo, i64 hi, const i32* vertices, const i32* edges,
                                        const u32* cost, u8* mask, u32* updating) {
  for (i64 u = lo + thread_index(); u < hi; u += thread_count()) {
    if (!mask[u]) continue;
    mask[u] = 0;
    i64 begin = vertices[2 * u + 1], end = begin + vertices[2 * u];
    for (i64 e = begin; e < end; e++)
      atomic_min(&updating[edges[2 * e]], cost[u] + (u32)edges[2 * e + 1]);
  }
}

extern "C" __global__ void commit_updates(i64 lo, i64 hi, u32* cost, u32* updating, u8* mask,
                                          i64* is_changed) {
  for (i64 v = lo + thread_index(); v < hi; v += thread_count()) {
    if (cost[v] > updating[v]) {
      cost[v] = updating[v];
      mask[v] = 1;
      store_relaxed(is_changed, (i64)1);
    }
    updating[v] = cost[v];
  }
}

// ---- Moore: queues of a block and of the grid ----------------------------------------------------
constexpr u32 BLOCK_QUEUE = 1024;

// A block gathers new vertices in shared memory, and what does not fit there in the grid's queue.
struct BlockQueue {
  u32 *queue, *count;
  __device__ inline void clear() {
    __syncthreads();
    if (threadIdx.x == 0) *count = 0;
    __syncthreads();
  }
  __device__ inline void push(u32 v, u32* next, i64* next_count) {
    u32 slot = atomic_add(count, 1u);
    if (slot < BLOCK_QUEUE)
      queue[slot] = v;
    else
      next[atomic_add(next_count, (i64)1)] = v;
  }
  // Gather up: copy to the grid's queue, with one atomic for the block.
  __device__ inline void flush(u32* next, i64* next_count) {
    __shared__ i64 base;
    __syncthreads();
    u32 own = *count < BLOCK_QUEUE ? *count : BLOCK_QUEUE;
    if (threadIdx.x == 0 && own) base = atomic_add(next_count, (i64)own);
    __syncthreads();
    for (u32 i = threadIdx.x; i < own; i += blockDim.x) next[base + i] = queue[i];
    clear();
  }
};

// Relax the edges of a layer's vertices; a vertex that improves is put into the next layer once.
// Race: a vertex of this layer may be lowered before or after it is read here. In both cases it is
// in the next layer, which relaxes its edges with a value at most this one.
__device__ inline void relax_vertices(i64 first, i64 count, const i32* vertices, const i32* edges,
                                      const u32* layer, u32 next_layer, u32* dist, u32* stamp,
                                      u32* next, i64* next_count, BlockQueue queue) {
  for (i64 i = first + thread_index(); i < count; i += thread_count()) {
    u32 u = layer[i], from = load_relaxed(&dist[u]);
    i64 begin = vertices[2 * (i64)u + 1], end = begin + vertices[2 * (i64)u];
    for (i64 e = begin; e < end; e++) {
      u32 v = edges[2 * e];
      if (lower(&dist[v], from + (u32)edges[2 * e + 1]) &&
          atomic_exchange(&stamp[v], next_layer) != next_layer)
        queue.push(v, next, next_count);
    }
  }
  queue.flush(next, next_count);
}

// K3: one launch for a layer.
extern "C" __global__ void relax_layer(i64 lo, i64 hi, const i32* vertices, const i32* edges,
                                       const u32* layer, i64 next_layer, u32* dist, u32* stamp,
                                       u32* next, i64* next_count) {
  __shared__ u32 found[BLOCK_QUEUE], num_found;
  BlockQueue queue = {found, &num_found};
  queue.clear();
  relax_vertices(lo, hi, vertices, edges, layer, (u32)next_layer, dist, stamp, next, next_count,
                 queue);
}

// K1, with one block, and K2, with several: many layers in one launch, while each has at least
// `least` and fewer than `most` vertices. words[0] is the layer, words[1 + layer % 3] its number of
// vertices; that of the layer after the next is cleared while no thread uses it.
extern "C" __global__ void relax_layers(i64 lo, i64 hi, const i32* vertices, const i32* edges,
                                        i64 least, i64 most, i64 capacity, const u32* abort,
                                        i64* arrived, u32* dist, u32* stamp, u32* queues,
                                        i64* words) {
  __shared__ u32 found[BLOCK_QUEUE], num_found;
  BlockQueue queue = {found, &num_found};
  queue.clear();
  const i64 first = words[0];
  i64 layer = first;
  for (;;) {
    i64 count = load_relaxed(&words[1 + layer % 3]);
    if (count < least || count >= most) break;
    if (thread_index() == 0) store_relaxed(&words[1 + (layer + 2) % 3], (i64)0);
    relax_vertices(0, count, vertices, edges, queues + (layer & 1) * capacity, (u32)(layer + 1),
                   dist, stamp, queues + (~layer & 1) * capacity, &words[1 + (layer + 1) % 3],
                   queue);
    if (gridDim.x == 1)
      __syncthreads();
    else if (!grid_barrier(arrived, abort))
      return;
    layer++;
  }
  if (thread_index() == 0 && layer > first) store_relaxed(&words[0], layer);
}
