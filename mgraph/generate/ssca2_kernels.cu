// SSCA#2 graphs: cliques of random size, joined by edges that become less probable with distance
// (see ssca2.py). A warp generates the edges of a vertex.

#include "prelude.cuh"

extern "C" __global__ void ssca2_edges(i64 lo, i64 hi, i64 first, i64 scale, i64 seed,
                                       i64 max_clique, i64 window, i64 scramble, i64 max_weight,
                                       i64 none, vertex_t* sources, vertex_t* targets,
                                       weight_t* weights) {
  const u64 size_stream = mix((u64)seed + 49), join_stream = mix((u64)seed + 50),
            weights_key = weight_key(seed);
  const u64 k0 = permutation_key(seed, 0), k1 = permutation_key(seed, 1);
  const u64 k2 = permutation_key(seed, 2), k3 = permutation_key(seed, 3);
  const i64 n = 1ll << scale, slots = max_clique / 2 + 1;
  for (i64 v = lo + warp_index(); v < hi; v += warp_count()) {
    // Draw the sizes of the window's cliques in order, until one contains v.
    i64 end = v / window * window, start = end;
    const i64 last = end + window < n ? end + window : n;
    u64 state = size_stream ^ mix(v / window);
    while (end <= v) {
      start = end;
      end = start + 1 + (i64)multiply_high(mix(state), max_clique);
      if (end > last) end = last;
      state += GOLDEN;
    }
    const i64 size = end - start;
    for (i64 slot = lane_index(); slot < slots; slot += 32) {
      const i64 j = (v - first) * slots + slot;
      i64 u;
      bool missing;
      if (slot < slots - 1) {
        // Members 1 .. size / 2 further around the clique; of an opposite pair one end has the
        // edge.
        i64 step = slot + 1;
        u = start + (v - start + step) % size;
        missing = 2 * step > size || (2 * step == size && v - start >= step);
      } else {
        u64 word = mix(join_stream ^ mix(v));
        i64 octave = 0;
        while (octave < scale && ((word >> octave) & 1) == 0) octave++;
        i64 far = 1ll << octave;
        far += (i64)multiply_high(mix(word), far);
        u = (v + far) % n;
        missing = far >= n || (start <= u && u < end);
      }
      if (missing) {
        sources[j] = (vertex_t)none;
        continue;
      }
      u64 a = v, b = u;
      if (scramble) {
        a = scrambled(a, scale, k0, k1, k2, k3);
        b = scrambled(b, scale, k0, k1, k2, k3);
      }
      sources[j] = (vertex_t)a;
      targets[j] = (vertex_t)b;
      if (weights)
        weights[j] = (weight_t)edge_weight(weights_key, a < b ? a : b, a < b ? b : a, max_weight);
    }
  }
}
