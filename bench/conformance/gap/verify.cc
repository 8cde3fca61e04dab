// Gives the result of another program to the verifier of a kernel of the GAP benchmark: exits with
// 0 if it is accepted, 1 if not.
//
//   verify -f GRAPH -r SOURCE < RESULT
//
// Compiled with -DBFS, -DSSSP or -DCC, and -I of GAP's sources. The result is a 32-bit value for
// each vertex: its parent (the source's is the source, -1 if it was not reached), its distance
// (half the largest value if it was not reached), or its component.

#define main gap_main
#if defined BFS
#include "bfs.cc"
#elif defined SSSP
#include "sssp.cc"
#else
#include "cc.cc"
#endif
#undef main

#include <cstdio>

template <typename T> static pvector<T> read_result(int64_t num_vertices) {
  pvector<T> result(num_vertices);
  const size_t count = std::fread(result.data(), sizeof(T), result.size(), stdin);
  if (count != result.size() || std::fgetc(stdin) != EOF) {
    std::cerr << "expected a value for each of " << num_vertices << " vertices" << std::endl;
    std::exit(2);
  }
  return result;
}

static bool verify(const CLApp& cli) {
#if defined SSSP
  WeightedBuilder builder(cli);
  const WGraph graph = builder.MakeGraph();
  return SSSPVerifier(graph, cli.start_vertex(), read_result<WeightT>(graph.num_nodes()));
#else
  Builder builder(cli);
  const Graph graph = builder.MakeGraph();
#if defined BFS
  return BFSVerifier(graph, cli.start_vertex(), read_result<NodeID>(graph.num_nodes()));
#else
  return CCVerifier(graph, read_result<NodeID>(graph.num_nodes()));
#endif
#endif
}

int main(int argc, char* argv[]) {
  CLApp cli(argc, argv, "verify");
  if (!cli.ParseArgs()) return 2;
  return verify(cli) ? 0 : 1;
}
