// How a search through windows begins: where its sources stand, and a meeting that all ranks leave together, with links
// awake. sources_peers.py says what the parameters are.

constexpr int BLOCK = 1024;

// Of each group a thread of the first block takes a source: it alone reads and writes its word. A user id is in one
// rank's range, and the others add nothing to its position.
extern "C" __global__ void __launch_bounds__(BLOCK)
    find_sources_on_ranks(i64 lo, i64 hi, const u32* abort, const i64* windows, const u8* window,
                          const vertex_t* positions, i64 first, i64 num_users, i64* words) {
  __shared__ RanksHere here;
  Ranks ranks(&here, windows, window, abort);
  ranks.wake_links();
  i64 tally[NUM_SUMS] = {}, k = thread_index();
  for (i64 group = lo; group < hi; group += NUM_SUMS) {
    bool asks = k < NUM_SUMS && group + k < hi;
    if (asks) {
      i64 user = words[group + k], in_range = user - first;
      if (0 <= in_range && in_range < num_users) tally[k] = positions ? (i64)positions[in_range] : user;
    }
    if (!ranks.meet(tally)) return;
    if (asks) words[group + k] = here.total[k];
  }
  ranks.leave();
  if (k == 0) words[hi] = 1;
}
