"""A client of the soak: its threads run random jobs, and compare every answer with an oracle.

Requests and replies are JSON objects, one a line. `python -m faults.soak_client OPTIONS`, where OPTIONS is a JSON
object: scheduler_file, ranks, seed, threads, out (the beginning of its outputs' paths), verb_timeout_s. A job's line
says how it ended, and when; `pause` makes every thread close what it has, and run a last call that must succeed. It
ends with its standard input.
"""

from __future__ import annotations

import functools
import gc
import itertools
import json
import pathlib
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import oracles
from forest_checks import check as check_forest
from hits_checks import ITERATIONS, expected_hits
from pagerank_checks import expected_scores
from traversal_checks import check_traversal, expected_traversal
from user_graphs import ORDERS, graph_of
from zoo import GraphCase, random_case

import mgraph as mg
from faults import leftovers, stacks  # noqa: F401
from faults.phases import digest
from mgraph.cluster.base import Cluster

# Graphs that the jobs draw from; their oracles are computed once in a process.
CASES = [random_case(seed, directed=seed % 3 == 0) for seed in range(12)]
# Roots of searches, so that oracles are used again.
ROOTS = 3
JOBS = ["bfs", "sssp", "components", "many roots", "distances", "core numbers", "pagerank", "hits", "validate", "write"]
OF_DIRECTED = ["strong components"]
OF_UNDIRECTED = ["forest", "bridges", "sides", "tree of terminals"]
# A call that fails at once is not repeated more often than this.
PAUSE_AFTER_ERROR_S = 0.05


class Jobs:
    """The graph of one thread, and the jobs on it; each raises AssertionError for a wrong answer."""

    def __init__(self, cluster: Cluster, chance: random.Random, out: pathlib.Path) -> None:
        self._cluster = cluster
        self._chance = chance
        self._out = out
        self._case: GraphCase
        self._order = ORDERS[0]
        self._graph: mg.Graph | None = None

    def draw(self) -> tuple[str, Callable[[], None]]:
        """Draw a job: its name, and a function that runs it."""
        if self._graph is None or self._chance.random() < 0.25:
            self._case = self._chance.choice(CASES)
            self._order = self._chance.choice(ORDERS)
            return "build", self._build
        name = self._chance.choice(self._names())
        return name, functools.partial(self._job(name), self._chance.randrange(ROOTS))

    def run_all(self) -> None:
        """Run every job on every graph, which is in one of the orders."""
        for self._case, self._order in zip(CASES, itertools.cycle(ORDERS), strict=False):
            self._build()
            for name in self._names():
                self._job(name)(0)
        self.close()

    def _names(self) -> list[str]:
        return [*JOBS, *(OF_DIRECTED if self._case.directed else OF_UNDIRECTED)]

    def _job(self, name: str) -> Callable[[int], None]:
        return getattr(self, f"_{name.replace(' ', '_')}")

    def close(self) -> None:
        """Close the graph: after an error its ranks may be gone."""
        graph = self._graph
        self._graph = None
        if graph is not None:
            graph.close()

    def _build(self) -> None:
        self.close()
        self._graph = graph_of(self._case, self._cluster, self._order)
        assert self._graph.num_vertices == self._case.num_vertices

    def _bfs(self, root: int) -> None:
        with mg.bfs(self._graph, root) as found:
            check_traversal(found, self._case, [root], self._order)

    def _sssp(self, root: int) -> None:
        with mg.sssp(self._graph, [root, 9]) as found:
            check_traversal(found, self._case, [root, 9], self._order)

    def _components(self, root: int) -> None:
        self._check(mg.connected_components, oracles.components)

    def _strong_components(self, root: int) -> None:
        self._check(mg.strongly_connected_components, oracles.strong_components)

    def _core_numbers(self, root: int) -> None:
        self._check(mg.core_numbers, oracles.core_numbers)

    def _sides(self, root: int) -> None:
        self._check(mg.is_bipartite, oracles.sides)

    def _pagerank(self, root: int) -> None:
        with mg.pagerank(self._graph, tolerance=None, max_iterations=ITERATIONS) as found:
            np.testing.assert_array_equal(found.scores.to_numpy(), expected_scores(self._case, True, None))

    def _hits(self, root: int) -> None:
        with mg.hits(self._graph, tolerance=None, max_iterations=ITERATIONS) as found:
            for column, right in zip(found.columns, expected_hits(self._case, True, True), strict=True):
                np.testing.assert_array_equal(column.to_numpy(), right)

    def _bridges(self, root: int) -> None:
        with mg.bridges(self._graph) as found:
            ends = [column.to_numpy().tolist() for column in found]
        assert list(zip(*ends, strict=True)) == expected(oracles.bridges, self._case)

    def _tree_of_terminals(self, root: int) -> None:
        terminals = np.flatnonzero(expected(oracles.components, self._case) == 0)[:4]
        with mg.steiner_tree(self._graph, terminals) as tree:
            edges = zip(*(column.to_numpy().tolist() for column in tree), strict=True)
        _, chosen, _ = expected_traversal(self._case, "sssp", tuple(terminals.tolist()), self._order)
        assert list(edges) == oracles.steiner_tree(self._case, terminals.tolist(), chosen)

    def _forest(self, root: int) -> None:
        with mg.minimum_spanning_forest(self._graph) as found:
            check_forest(found, self._case, self._order)

    def _many_roots(self, root: int) -> None:
        roots = [root, 7, 100]
        with mg.bfs_together(self._graph, roots) as together:
            for i, source in enumerate(roots):
                with together.answer(i) as found:
                    check_traversal(found, self._case, [source], self._order)

    def _distances(self, root: int) -> None:
        sources = [root, 7, 100]
        with mg.distance_matrix(self._graph, sources) as found:
            rows = found.to_numpy()
        for row, source in zip(rows, sources, strict=True):
            np.testing.assert_array_equal(row, expected_traversal(self._case, "sssp", (source,), self._order)[0])

    def _validate(self, root: int) -> None:
        with mg.bfs(self._graph, root) as found:
            mg.validate(found)

    def _write(self, root: int) -> None:
        with mg.bfs(self._graph, root) as found:
            found.write(self._out, overwrite=True)
            with np.load(self._out) as written:
                assert digest(*(written[column.name] for column in found.columns)) == digest(
                    *(column.to_numpy() for column in found.columns)
                ), f"{self._out.name} differs from the result"

    def _check(self, find: Callable, oracle: Callable) -> None:
        """Compare the one column of a result with what an oracle finds."""
        with find(self._graph) as found:
            (column,) = found.columns
            np.testing.assert_array_equal(column.to_numpy(), expected(oracle, self._case))


@functools.cache
def expected(oracle: Callable, case: GraphCase) -> Any:
    """Return what an oracle finds, from the first time on."""
    return oracle(case)


class Threads:
    """The threads of a client: they run jobs until they are paused, and end with the process."""

    def __init__(self, options: dict[str, Any], cluster: Cluster) -> None:
        self.cluster = cluster
        self._seed = options["seed"]
        self._out = pathlib.Path(options["out"])
        self._lock = threading.Lock()
        self._is_running = threading.Event()
        self._is_running.set()
        self._is_over = False
        self._paused = threading.Barrier(options["threads"] + 1)

    def send(self, **facts: Any) -> None:
        """Write a line; threads take turns."""
        with self._lock:
            print(json.dumps(facts), flush=True)

    def read_requests(self) -> None:
        """Serve the requests on standard input until it ends."""
        for line in sys.stdin:
            if json.loads(line)["do"] == "pause":
                self._is_running.clear()
                self._paused.wait()
                gc.collect()
                self.send(paused=leftovers.of_process() | leftovers.of_cluster(self.cluster))
            else:
                self._is_running.set()
        self._is_over = True
        self._is_running.set()

    def run_jobs(self, index: int) -> None:
        """Run the jobs of one thread."""
        chance = random.Random(f"{self._seed} {index}")
        jobs = Jobs(self.cluster, chance, self._out.with_name(f"{self._out.name}-{index}.npz"))
        while not self._is_over:
            self._run(jobs, *jobs.draw())
            if not self._is_running.is_set() and not self._is_over:
                self._close_and_check(jobs)
                self._paused.wait()
                self._is_running.wait()
        jobs.close()

    def _close_and_check(self, jobs: Jobs) -> None:
        """Close everything, and make a last call in a new graph, which must succeed: there are no faults now."""
        jobs.close()
        for job in (jobs._build, lambda: jobs._bfs(0), jobs.close):
            self._run(jobs, "check", job)

    def _run(self, jobs: Jobs, name: str, job: Callable[[], None]) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        ended: dict[str, Any] = {"outcome": "answered"}
        begun = time.time()
        try:
            # A SIGINT while a job runs is Ctrl-C; each call of `signal.signal` first handles a pending one.
            if is_main:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            job()
            if is_main:
                signal.signal(signal.SIGINT, _ignore)
        except BaseException as error:
            at = time.time()
            if is_main:
                signal.signal(signal.SIGINT, _ignore)
            ended = {"outcome": _kind(error), "error": f"{type(error).__name__}: {error}"[:2000], "at": at}
            ended["worker"] = getattr(error, "worker", None)
            jobs.close()
        self.send(**({"job": name, "began": begun, "at": time.time()} | ended))
        if ended["outcome"] == "named":
            time.sleep(PAUSE_AFTER_ERROR_S)


def _kind(error: BaseException) -> str:
    if isinstance(error, AssertionError) and not isinstance(error, mg.ValidationFailed):
        return "wrong"
    if isinstance(error, mg.ValidationFailed):
        return "wrong"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return "named" if isinstance(error, mg.MgraphError) else "foreign"


def _ignore(number: int, frame: Any) -> None:
    pass


def main() -> None:
    """Connect, and run jobs until standard input ends."""
    signal.signal(signal.SIGINT, _ignore)
    options = json.loads(sys.argv[1])
    with mg.connect(
        scheduler_file=options["scheduler_file"],
        num_ranks=options["ranks"],
        backend="cpu",
        verb_timeout_s=options["verb_timeout_s"],
    ) as cluster:
        threads = Threads(options, cluster)
        threads.send(ready=options["ranks"])
        threading.Thread(target=threads.read_requests, name="requests", daemon=True).start()
        others = [threading.Thread(target=threads.run_jobs, args=(i,)) for i in range(1, options["threads"])]
        for other in others:
            other.start()
        threads.run_jobs(0)
        for other in others:
            other.join()


if __name__ == "__main__":
    main()
