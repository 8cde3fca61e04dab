// Hands BFS parents of another process to the reference code of Graph500 in place of a search of
// its own.
//
// The reference generates the graph, chooses the roots and validates. For each search, process 0
// prints "search bfs ROOT" and waits for a line; then the file $GRAPH500_RESULT has the number of
// vertices and their parents (int64), for shortest paths also their distances (float32). All
// processes read it. (Launchers of MPI lose standard input that is not read fast enough.)

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "aml.h"
#include "common.h"
#include "csr_reference.h"

// The reference's rows, by which it chooses roots that are not isolated; csr_reference.c links to
// this name.
oned_csr_graph g;

static const int64_t* reached;  // parents of the last search

static void stop(const char* why) {
  fprintf(stderr, "%s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void* read_array(FILE* file, int64_t count, size_t size) {
  void* values = xmalloc(count * size);
  if (fread(values, size, count, file) != (size_t)count) stop("the result is too short");
  return values;
}

void make_graph_data_structure(const tuple_graph* const tg) { convert_graph_to_oned_csr(tg, &g); }

// Fill parents, and distances if there are any, of this process's vertices. The reference counts
// vertices up to one beyond the last that has an edge: those that another process does not know
// remain unreached.
void receive_search(const char* kernel, int64_t root, int64_t* parents, float* distances) {
  if (my_pe() == 0) {
    printf("search %s %" PRId64 "\n", kernel, root);
    fflush(stdout);
    if (getchar() != '\n') stop("no results any more");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  FILE* file = fopen(getenv("GRAPH500_RESULT"), "rb");
  if (!file) stop("there is no file $GRAPH500_RESULT");
  int64_t* count = read_array(file, 1, sizeof *count);
  int64_t* all_parents = read_array(file, *count, sizeof *all_parents);
  float* all_distances = distances ? read_array(file, *count, sizeof *all_distances) : NULL;
  fclose(file);
  for (size_t i = 0; i < g.nlocalverts; i++) {
    const int64_t v = VERTEX_TO_GLOBAL(my_pe(), i);
    if (v >= *count) continue;
    parents[i] = all_parents[v];
    if (distances) distances[i] = all_distances[v];
  }
  free(count);
  free(all_parents);
  free(all_distances);
  reached = parents;
}

void run_bfs(int64_t root, int64_t* pred) { receive_search("bfs", root, pred, NULL); }

// Edges of the root's component: each is in the rows of both its ends.
void get_edge_count_for_teps(int64_t* edge_visit_count) {
  long ends = 0;
  for (size_t i = 0; i < g.nlocalverts; i++) {
    if (reached[i] != -1) ends += g.rowstarts[i + 1] - g.rowstarts[i];
  }
  aml_long_allsum(&ends);
  *edge_visit_count = ends / 2;
}

void clean_pred(int64_t* pred) {
  for (size_t i = 0; i < g.nlocalverts; i++) pred[i] = -1;
}

void free_graph_data_structure(void) { free_oned_csr_graph(&g); }

size_t get_nlocalverts_for_pred(void) { return g.nlocalverts; }
