// The papers' sweeps, one thread for each edge: every undirected edge once, both directions from
// one read of it. The state is read through `read`, which may be a copy made before the sweep (then
// the read-only path is used), and written through `state`. A smaller value is never lost, so the
// result is exact.
typedef unsigned char u8;
typedef unsigned u32;

#if READ_ONLY
#define LOAD(p) __ldg(p)
#else
#define LOAD(p) (*(const volatile state_t*)(p))
#endif

__device__ inline bool lower(u32* p, u32 v) { return atomicMin(p, v) > v; }

extern "C" __global__ void relax_edges(long long num_edges, int level, const u32* sources,
                                       const u32* targets, const u8* weights, const state_t* read,
                                       state_t* state, int* improved) {
  for (long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x; e < num_edges;
       e += (long long)gridDim.x * blockDim.x) {
    u32 u = sources[e], v = targets[e];
    state_t from = LOAD(&read[u]), to = LOAD(&read[v]);
#if WEIGHTED
    state_t weight = weights[e];
    bool better = from != UNREACHED && from + weight < to ? lower(&state[v], from + weight)
                  : to != UNREACHED && to + weight < from ? lower(&state[u], to + weight)
                                                          : false;
#else
    // A level is stored, not lowered: within a sweep every writer of a vertex stores the same.
    bool better = from == level && to > level + 1   ? (state[v] = level + 1, true)
                  : to == level && from > level + 1 ? (state[u] = level + 1, true)
                                                    : false;
#endif
    if (better) *improved = 1;
  }
}
