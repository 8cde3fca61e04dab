// Read targets in 32, 24 or 16 bits: a warp reads a group of 128 arcs, each lane four consecutive
// ones, and counts the targets outside of tree `tree`. With 16 bits a target is the group's base
// plus an offset; a group with targets too far apart has no base and is read in 32 bits.
typedef unsigned u32;
typedef long long i64;
#define NO_BASE 0xFFFFFFFFu

__device__ inline void read_four(i64 four, const u32* ids, const u32* packed, const u32* bases,
                                 u32* v) {
#if BITS == 24
  u32 a = packed[3 * four], b = packed[3 * four + 1], c = packed[3 * four + 2];
  v[0] = a & 0xFFFFFF, v[1] = a >> 24 | (b & 0xFFFF) << 8, v[2] = b >> 16 | (c & 0xFF) << 16,
  v[3] = c >> 8;
#else
#if BITS == 16
  u32 base = bases[four >> 5];
  if (base != NO_BASE) {
    uint2 pair = ((const uint2*)packed)[four];
    v[0] = base + (pair.x & 0xFFFF), v[1] = base + (pair.x >> 16);
    v[2] = base + (pair.y & 0xFFFF), v[3] = base + (pair.y >> 16);
    return;
  }
#endif
  uint4 quad = ((const uint4*)ids)[four];
  v[0] = quad.x, v[1] = quad.y, v[2] = quad.z, v[3] = quad.w;
#endif
}

extern "C" __global__ void read_neighbours(i64 num_arcs, const u32* ids, const u32* packed,
                                           const u32* bases, const u32* trees, u32 tree,
                                           unsigned long long* outside) {
  u32 found = 0;
  for (i64 four = (i64)blockIdx.x * blockDim.x + threadIdx.x; four < num_arcs / 4;
       four += (i64)gridDim.x * blockDim.x) {
    u32 v[4];
    read_four(four, ids, packed, bases, v);
    for (int k = 0; k < 4; k++) found += (LOOK_UP ? trees[v[k]] : v[k]) != tree;
  }
  for (int d = 16; d; d >>= 1) found += __shfl_xor_sync(0xFFFFFFFFu, found, d);
  if ((threadIdx.x & 31) == 0) atomicAdd(outside, (unsigned long long)found);
}
