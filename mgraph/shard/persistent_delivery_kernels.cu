// Results on their way to the ranks that serve their user ids: each rank writes into the peer
// buffers of all, between two barriers. persistent_delivery_kernels.py describes the parameters.

#include "packed_tree.cuh"
#include "prelude.cuh"
#include "ranks.cuh"

constexpr int BLOCK = 512;

struct DeliveryShared {
  RankScratch ranks;
  // Where each rank's part of the order begins, and the end of the last; where this rank's values
  // begin in each rank's buffer.
  i64 routes[2 * MAX_RANKS + 1];
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    send_tree(i64 lo, i64 hi, const u32* abort, const i64* peer_buffers, const u8* buffer,
              const i64* routes, const vertex_t* order, const dist_t* values,
              const parent_t* parents, const id_t* users, i64 stride, i64 multiplier,
              i64 parents_at, u32* done) {
  __shared__ DeliveryShared block;
  Ranks ranks(&block.ranks, peer_buffers, buffer, abort);
  i64 size = block.ranks.size, tally[NUM_SUMS] = {};
  if (threadIdx.x < 2 * size + 1) block.routes[threadIdx.x] = routes[threadIdx.x];
  // Until every rank is here, a search of another may still use its buffer.
  if (!ranks.barrier(tally)) return;
  const i64 *begins = block.routes, *received_from = block.routes + size + 1;
  i64 first = begins[block.ranks.rank], total = begins[size];
  // Ranks begin with their own parts: so no two of them send to one rank at a time.
  pack(
      {order, values, parents, users, stride, multiplier}, 0, total,
      [&](i64 i) { return first + i < total ? first + i : first + i - total; },
      [&](i64 i, dist_t value, id_t parent) {
        i64 r = 0;
        while (i >= begins[r + 1]) r++;
        i64 place = received_from[r] + i - begins[r];
        u8* to = ranks.buffer_of(r) + HEAD_BYTES;
        if (values) ((dist_t*)to)[place] = value;
        if (parents) ((id_t*)(to + parents_at))[place] = parent;
      });
  if (!ranks.barrier(tally)) return;
  if (ranks.leave(tally) && threadIdx.x == 0) *done = 1;
}
