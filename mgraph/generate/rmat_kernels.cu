// RMAT graphs: each edge descends `scale` levels of quadrants of the adjacency matrix (Graph500's a
// .57, b c .19).

#include "prelude.cuh"

extern "C" __global__ void rmat_edges(i64 lo, i64 hi, i64 first, i64 scale, i64 seed, i64 scramble,
                                      i64 max_weight, vertex_t* sources, vertex_t* targets,
                                      weight_t* weights) {
  // Cumulative probabilities of the quadrants, times 2^32: a, a + b, a + b + c.
  const u32 A = (u32)(0.57 * 4294967296.0);
  const u32 AB = (u32)((0.57 + 0.19) * 4294967296.0);
  const u32 ABC = (u32)((0.57 + 0.19 + 0.19) * 4294967296.0);
  const u64 stream = mix(seed), weights_key = weight_key(seed);
  const u64 k0 = permutation_key(seed, 0), k1 = permutation_key(seed, 1);
  const u64 k2 = permutation_key(seed, 2), k3 = permutation_key(seed, 3);
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    u64 state = stream ^ mix(i), a = 0, b = 0, word = 0;
    for (i64 level = 0; level < scale; level++) {
      // One 64-bit random number is used for two levels.
      u32 x;
      if ((level & 1) == 0) {
        word = mix(state);
        state += GOLDEN;
        x = (u32)word;
      } else {
        x = (u32)(word >> 32);
      }
      u32 down = x >= AB;
      a = a << 1 | down;
      b = b << 1 | ((u32)(x >= A) ^ down ^ (u32)(x >= ABC));
    }
    if (scramble) {
      a = scrambled(a, scale, k0, k1, k2, k3);
      b = scrambled(b, scale, k0, k1, k2, k3);
    }
    sources[i - first] = (vertex_t)a;
    targets[i - first] = (vertex_t)b;
    if (weights)
      weights[i - first] =
          (weight_t)edge_weight(weights_key, a < b ? a : b, a < b ? b : a, max_weight);
  }
}
