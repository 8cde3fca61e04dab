// What a block keeps for its warps: staged vertices, sums before a barrier and totals after it; and
// what a lane has in flight.

#include "persistent_kernels.py"
#include "prelude.cuh"

// What a thread has in flight: arcs, arcs of a row that it pulls over by itself, and distances in a
// scan of all, of which two bits each fit a word.
constexpr int RELAX_DEPTH = 2, PULL_DEPTH = 4, SCAN_DEPTH = 8;
// A warp divides its part of a scan of all into at least SCANS steps.
constexpr i64 SCANS = 32;

// The slot of a triple-buffered counter that belongs to this round or bucket.
__device__ inline i64* rotated(i64* counters, i64 place, int which) {
  return &counters[place + which % 3 * COUNTER_STRIDE];
}
// A counter that holds a distance.
__device__ inline dist_t* distance_at(i64* counter) { return (dist_t*)counter; }

// Warps of a block of 512 threads.
constexpr int NUM_WARPS = 16;
// A warp's staging buffer for vertices: one reservation of queue slots serves 32. Up to 31 remain
// staged, and one step of RELAX_DEPTH adds as many per lane.
struct Staging {
  static constexpr int CAPACITY = 32 + 32 * RELAX_DEPTH;
  vertex_t* items;
  int length;
  // Append v of each lane that has one.
  __device__ inline void push(bool valid, vertex_t v) {
    u32 mask = __ballot_sync(0xFFFFFFFFu, valid);
    if (valid) items[length + lanes_before(mask)] = v;
    length += __popc(mask);
  }
  // Remove the last, up to 32, one per lane; return how many.
  __device__ inline int pop(vertex_t* v) {
    __syncwarp();
    int count = length < 32 ? length : 32;
    length -= count;
    if (lane_index() < count) *v = items[length + lane_index()];
    __syncwarp();
    return count;
  }
};

// Shared memory of a block: sums before a barrier, totals of all blocks after it, and values that
// one thread maintains for the block.
enum Total { TOTAL_NEAR, TOTAL_PIECES, TOTAL_ARCS, TOTAL_ROWS, TOTAL_FAR, TOTAL_LOWEST };
struct SsspBlock {
  vertex_t staged[3][NUM_WARPS * Staging::CAPACITY];
  i64 sums[3], totals[5];
  i64 max_pieces;                    // a quarter of the pieces that may be queued in one round
  i64 bucket_arcs, max_bucket_arcs;  // arcs relaxed in this bucket, and in the largest so far
  i64 bucket_row_arcs,
      settled_row_arcs;  // rows' arcs of this bucket, repeats included; of all settled
  dist_t lowest, lowest_waiting, cutoff, delta;
  i64 target;  // the target that the block watches
  i64 max_rounds;
};

// A lane's arcs to relax: out of u, at distance `from`, or, where a remainder is pulled, into it.
struct LaneArcs {
  vertex_t u;
  dist_t from;
  i64 begin, end;
  bool remainder;
};

// Where a distance is: settled before, in the bucket settled last, below the bound, or beyond.
enum Interval { IS_SETTLED, IN_BUCKET, IS_NEAR, IS_FAR };

// Record a round, and clear the counts of the round before, which all blocks have read.
__device__ inline void record_round(i64* log, i64* counters, Kind kind, int round) {
  i64* record = log + (round < MAX_RECORDS ? round : MAX_RECORDS - 1) * RECORD_WORDS;
  bool accumulates = round >= MAX_RECORDS;
  record[0] = kind;
  record[1] = (accumulates ? record[1] : 0) + load_relaxed(rotated(counters, VERTICES, round));
  record[2] = (accumulates ? record[2] : 0) + load_relaxed(rotated(counters, ARCS, round));
  record[3] = clock_ns();
  store_relaxed(rotated(counters, VERTICES, round + 2), (i64)0);
  store_relaxed(rotated(counters, ARCS, round + 2), (i64)0);
  store_relaxed(rotated(counters, ROWS, round + 2), (i64)0);
}
