"""From how many arcs on a function of the NetworkX backend is faster than NetworkX's own.

For each function and size: NetworkX's time; the backend's at a first call, which converts the graph and builds it; and
the backend's on a graph that is converted and built. One CPU rank in this process, random graphs of mean degree 8, the
least time of `--repeats` calls. Results are compared with NetworkX's: a difference ends the run. The last columns are
those of `mgraph/nx_backend/thresholds.py`, before rounding: the least size of those measured from which on the backend
is always faster. The last lines name the functions for which that file has another threshold; the table of
docs/networkx.md must equal the file, which a test checks.

    python bench/networkx_thresholds.py --sizes 10-18
    python bench/networkx_thresholds.py --sizes 8-13 --functions all_pairs_dijkstra eccentricity
"""

from __future__ import annotations

import argparse
import collections
import functools
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx

from mgraph.nx_backend.convert import convert_from_nx
from mgraph.nx_backend.interface import FUNCTIONS
from mgraph.nx_backend.thresholds import MIN_ARCS

MEAN_DEGREE = 8
SEED = 1
# Those that search from every node take the smaller sizes.
QUADRATIC = ("all_pairs_", "eccentricity", "diameter", "radius", "center", "periphery", "closeness_", "harmonic_")
TREES = ("minimum_spanning", "maximum_spanning", "k_core")


def main() -> int:
    """Print a table with a row for each function."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10-18", help="powers of two of arcs, first-last")
    parser.add_argument("--quadratic-sizes", default="7-13", help="of functions that search from every node")
    parser.add_argument("--functions", nargs="*", default=sorted(FUNCTIONS))
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    print(f"{'function':38} {'arcs: NetworkX / first call / converted, in ms':90} first converted")
    found = {}
    for name in given.functions:
        sizes = given.quadratic_sizes if name.startswith(QUADRATIC) else given.sizes
        first, last = map(int, sizes.split("-"))
        rows = {1 << power: measured(name, 1 << power, given.repeats) for power in range(first, last + 1)}
        cells = "  ".join(f"{arcs}: " + "/".join(f"{1e3 * s:.3g}" for s in row) for arcs, row in rows.items())
        found[name] = threshold(rows, 1), threshold(rows, 2)
        print(f"{name:38} {cells:90} {found[name][0]} {found[name][1]}", flush=True)
    print("\nmgraph/nx_backend/thresholds.py, where it differs:")
    for name, measured_now in found.items():
        if measured_now != MIN_ARCS[name]:
            print(f'    "{name}": {measured_now},  # now {MIN_ARCS[name]}')
    return 0


def threshold(rows: dict[int, tuple[float, ...]], column: int) -> int | None:
    """Return the least size from which on a column is below that of NetworkX."""
    found = None
    for arcs, row in sorted(rows.items(), reverse=True):
        if row[column] >= row[0]:
            break
        found = arcs
    return found


def measured(name: str, arcs: int, repeats: int) -> tuple[float, float, float]:
    """Return the seconds of NetworkX, of a first call and of a call on a converted graph."""
    directed = "weakly" in name or "strongly" in name or name in ("ancestors", "hits", "pagerank")
    graph = made(arcs, directed=directed, connected=name.startswith(QUADRATIC))
    arguments = arguments_of(name)
    ours = FUNCTIONS[name]
    keep: dict[str, Any] = {"edge_attrs": {"weight": 1}}
    if name.startswith(TREES):
        keep = {"preserve_edge_attrs": True, "preserve_node_attrs": True}
    theirs = getattr(nx, name)
    own = least(repeats, lambda: theirs(graph, **arguments, backend="networkx"))
    converted = convert_from_nx(graph, **keep)
    # Compiles the kernels, too.
    if not are_equal(plain(ours(converted, **arguments)), plain(theirs(graph, **arguments, backend="networkx"))):
        raise SystemExit(f"{name}: results differ on {arcs} arcs")
    first = least(repeats, lambda: ours(convert_from_nx(graph, **keep), **arguments))
    return own, first, least(repeats, lambda: ours(converted, **arguments))


@functools.cache
def made(arcs: int, *, directed: bool, connected: bool) -> nx.Graph:
    """Return a random graph with this number of arcs, or with a ring of all nodes in addition."""
    nodes = max(arcs // MEAN_DEGREE, 2)
    graph = nx.gnm_random_graph(nodes, arcs // (1 if directed else 2), SEED, directed=directed, backend="networkx")
    if connected:
        graph.add_edges_from(zip(range(nodes), [*range(1, nodes), 0], strict=True))
    for number, (_, _, data) in enumerate(graph.edges(data=True)):
        data["weight"] = 1 + number * 7919 % 1009
    return graph


def arguments_of(name: str) -> dict[str, Any]:
    """Return arguments for the slowest case: everything is reached, or nothing is found early."""
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    given: dict[str, Any] = {"source": 0} if "source" in parameters else {}
    if name.startswith("single_target"):
        given["target"] = 0
    if "sources" in parameters and parameters["sources"].default is inspect.Parameter.empty:
        given["sources"] = [0]
    if name in ("has_path", "dijkstra_path", "dijkstra_path_length"):
        given["target"] = 1
    if name == "descendants_at_distance":
        given["distance"] = 3
    if name == "node_connected_component":
        given["n"] = 0
    return given


def least(repeats: int, call: Callable[[], Any]) -> float:
    """Return the least seconds of some calls, their results consumed."""

    def timed() -> float:
        began = time.perf_counter()
        consume(call())
        return time.perf_counter() - began

    return min(timed() for _ in range(repeats))


def plain(result: Any) -> Any:
    """Return a value that is equal to that of an equal result."""
    if isinstance(result, nx.Graph):
        return list(result.nodes(data=True)), list(result.edges(data=True))
    if isinstance(result, dict) and any(isinstance(value, float) for value in result.values()):
        # The last bits of sums depend on their order.
        return {key: f"{value:.12g}" for key, value in result.items()}
    return list(result) if isinstance(result, Iterator) else result


def are_equal(ours: Any, theirs: Any) -> bool:
    """Return whether results are equal, scores but for the rounding of NetworkX, and its tolerance in HITS."""
    if isinstance(theirs, tuple) and all(map(are_scores, theirs)):
        return all(abs(a[node] - b[node]) < 1e-6 for a, b in zip(ours, theirs, strict=True) for node in b)
    if isinstance(theirs, dict) and isinstance(next(iter(theirs.values())), float):
        return ours.keys() == theirs.keys() and all(abs(ours[node] - theirs[node]) < 1e-14 for node in theirs)
    return bool(ours == theirs)


def are_scores(found: Any) -> bool:
    """Return whether a result has a float for each vertex."""
    return isinstance(found, dict) and all(isinstance(value, float) for value in found.values())


def consume(result: Any) -> None:
    """Take everything that a generator yields."""
    if isinstance(result, Iterator):
        collections.deque(result, maxlen=0)


if __name__ == "__main__":
    sys.exit(main())
