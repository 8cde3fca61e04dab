#include "prelude.cuh"

extern "C" __global__ void users_of_arcs(i64 lo, i64 hi, const i64* arcs, const i64* rows, i64 base,
                                         const vertex_t* targets, const id_t* users, i64* lower,
                                         i64* higher) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    i64 near = base + rows[i], far = targets[arcs[i]];
    if (users) {
      near = users[near];
      far = users[far];
    }
    lower[i] = near < far ? near : far;
    higher[i] = near < far ? far : near;
  }
}

extern "C" __global__ void pack_edges(i64 lo, i64 hi, const i64* sources, const i64* targets,
                                      const weight_t* weights, i64 vertex_bits, i64 weight_bits,
                                      u64* words) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    u64 word = (u64)sources[i] << vertex_bits | (u64)targets[i];
    words[i] = weights ? word << weight_bits | (u64)weights[i] : word;
  }
}

extern "C" __global__ void unpack_edges(i64 lo, i64 hi, const u64* words, i64 vertex_bits,
                                        i64 weight_bits, i64* sources, i64* targets,
                                        weight_t* weights) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    u64 word = words[i];
    if (weights) {
      weights[i] = (weight_t)(word & ((1ull << weight_bits) - 1));
      word >>= weight_bits;
    }
    sources[i] = (i64)(word >> vertex_bits);
    targets[i] = (i64)(word & ((1ull << vertex_bits) - 1));
  }
}
