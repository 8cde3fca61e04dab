"""Compare mgraph on the CPU with the GAP benchmark and SciPy in one run.

    python bench/cpu.py rmat18 uni20 ~/roads/NY.gr.xz --gap ~/gapbs

The folder --gap has the programs `converter`, `bfs`, `sssp` and `cc`. From each root mgraph and GAP search one after
the other, each the best of three trials, so that both see the same noise; times are medians over the roots. BFS of
mgraph and of GAP includes parents; SSSP of mgraph does too, where GAP and SciPy find distances only. Components and
spanning forests have no roots and run as often; GAP has no forests. `call` is the whole Python call, columns not read.
Road maps have random weights.
"""

from __future__ import annotations

import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable

import click
import numpy as np
import record
import scipy.sparse
from run import METHODS, WHOLE, source_of
from scipy.sparse import csgraph
from shape_graphs import WEIGHTS, road

import mgraph as mg
from mgraph.api.graph500 import KERNELS, random_roots
from mgraph.api.results import Result
from mgraph.backends.cpu import available_cores
from mgraph.cluster.base import Cluster

# Deltas for GAP's SSSP; its own script uses the first for its Kronecker graph. Roads need wide ones.
GAP_DELTAS = (2, 16, 64, 1024)
GAP_PROGRAMS = {"bfs": "bfs", "sssp": "sssp", "components": "cc"}
TRIALS = 3


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True, metavar="GRAPH...")
@click.option("--gap", "gap_dir", type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path), required=True)
@click.option("--sources", type=int, default=16, show_default=True)
@click.option("--root-seed", type=int)
@click.option(
    "--delta",
    "deltas",
    type=int,
    multiple=True,
    default=GAP_DELTAS,
    help="A delta for GAP; the one that is best from the first root is taken.",
)
def main(
    graphs: tuple[str, ...], gap_dir: pathlib.Path, sources: int, root_seed: int | None, deltas: tuple[int, ...]
) -> None:
    if missing := [name for name in ("converter", *GAP_PROGRAMS.values()) if not (gap_dir / name).is_file()]:
        raise click.BadParameter(f"{gap_dir} has no {', '.join(missing)}: build them there", param_hint="--gap")
    for graph in graphs:
        with (
            mg.connect(num_ranks=1, backend="cpu") as cluster,
            graph_of(graph, cluster) as g,
            tempfile.TemporaryDirectory() as folder,
        ):
            roots = random_roots(g, sources, root_seed)
            gap = Gap(gap_dir, pathlib.Path(folder), g, roots[0], deltas)
            measured = {
                name: measure(search, g, name, [(root,) for root in roots], gap) for name, search in KERNELS.items()
            }
            measured |= {name: measure(find, g, name, [()] * sources, gap) for name, (find, _) in WHOLE.items()}
            scipy_times = scipy_ms(g, roots)
            for name, (times, calls, gap_times) in measured.items():
                facts = {
                    "graph": g.name, "launcher": cluster.launcher, "gpus": 0, "backend": "cpu", "algorithm": name,
                    "method": METHODS.get(name, ("frontier",))[0], "n": g.num_vertices, "m": g.num_edges,
                    "sources": len(roots), **record.spread(times), "call_ms": round(statistics.median(calls), 3),
                    "gap_ms": round(statistics.median(gap_times), 3) if gap_times else None,
                    "scipy_ms": scipy_times[name], "cores": available_cores(), "validated": True,
                }  # fmt: skip
                record.append("cpu", None, facts)
                show(facts)


def graph_of(name: str, cluster: Cluster) -> mg.Graph:
    """Build a graph by its benchmark name, or a road map of a file with random weights."""
    if not name.endswith(".gr.xz"):
        return mg.Graph.from_source(source_of(name, "int"), cluster=cluster)
    random = np.random.default_rng(1)
    file = pathlib.Path(name)
    n, u, v = road(file)(0, random)
    weights = WEIGHTS["byte"](len(u), random).astype(np.uint8)
    g = mg.from_edges(u, v, weights, num_vertices=n, cluster=cluster)
    g.name = f"road {file.name.partition('.')[0]}"
    return g


def show(facts: dict) -> None:
    """Print the times of an algorithm on a graph."""
    gap_text = (
        f"GAP {facts['gap_ms']:8.2f} ms ({facts['median_ms'] / facts['gap_ms']:.2f}x)  " if facts["gap_ms"] else ""
    )
    print(
        f"{facts['graph']} {facts['algorithm']:10} mgraph {facts['median_ms']:8.2f} ms (call {facts['call_ms']:.2f})  "
        f"{gap_text}SciPy {facts['scipy_ms']:8.2f} ms ({facts['scipy_ms'] / facts['median_ms']:.1f}x faster)",
        flush=True,
    )


def measure(
    find: Callable[..., Result], g: mg.Graph, name: str, roots: list[tuple[int, ...]], gap: Gap
) -> tuple[list[float], list[float], list[float]]:
    """Return times without translation, of whole calls, and of GAP, from every root."""
    times = []
    calls = []
    gap_times = []
    find(g, *roots[0]).close()
    for root in roots:
        trials = []
        for _ in range(TRIALS):
            started = time.perf_counter()
            with find(g, *root) as result:
                call_ms = 1e3 * (time.perf_counter() - started)
                trials.append((1e3 * (result.stats.total_s - result.stats.seconds["translate"]), call_ms))
                if len(trials) == 1:
                    mg.validate(result)
        times.append(min(searched for searched, _ in trials))
        calls.append(min(call for _, call in trials))
        if name in GAP_PROGRAMS:
            gap_times.append(gap.ms(name, *root))
    return times, calls, gap_times


class Gap:
    """The programs of GAP, with a graph in their formats, and the best delta for its shortest paths."""

    def __init__(
        self, programs: pathlib.Path, folder: pathlib.Path, g: mg.Graph, root: int, deltas: tuple[int, ...]
    ) -> None:
        self._programs = programs
        self._files = {name: folder / f"graph.{'wsg' if name == 'sssp' else 'sg'}" for name in GAP_PROGRAMS}
        columns = g.edges.to_numpy()
        for name, kind, words in (("bfs", "el", ()), ("sssp", "wel", ("-w",))):
            text = folder / f"graph.{kind}"
            np.savetxt(text, np.column_stack(columns[: len(kind)]), "%d")
            command = [programs / "converter", "-f", text, *words, "-s", "-b", self._files[name]]
            subprocess.run(command, check=True, capture_output=True)
        self._words: dict[str, tuple[str, ...]] = {}
        by_delta = {}
        for delta in deltas:
            self._words["sssp"] = ("-d", str(delta))
            by_delta[delta] = self.ms("sssp", root)
        self._words["sssp"] = ("-d", str(min(by_delta, key=by_delta.__getitem__)))

    def ms(self, name: str, root: int | None = None) -> float:
        """Return GAP's best of some trials."""
        start = () if root is None else ("-r", str(root))
        program = self._programs / GAP_PROGRAMS[name]
        command = [program, "-f", self._files[name], "-n", str(TRIALS), *start, *self._words.get(name, ())]
        threads = os.environ | {"OMP_NUM_THREADS": str(available_cores())}
        printed = subprocess.run(command, check=True, capture_output=True, text=True, env=threads).stdout
        return 1e3 * min(float(t) for t in re.findall(r"Trial Time:\s+([0-9.]+)", printed))


def scipy_ms(g: mg.Graph, roots: list[int]) -> dict[str, float]:
    """Return SciPy's medians over the first roots."""
    n = g.num_vertices
    u, v, weights = g.edges.to_numpy()
    ends = np.r_[u, v].astype(np.int32), np.r_[v, u].astype(np.int32)
    matrix = scipy.sparse.csr_array((np.r_[weights, weights].astype(np.float64), ends), shape=(n, n))
    searches = {
        "bfs": lambda root: csgraph.breadth_first_order(matrix, root),
        "sssp": lambda root: csgraph.dijkstra(matrix, indices=root),
        "components": lambda _: csgraph.connected_components(matrix, directed=False),
        "msf": lambda _: csgraph.minimum_spanning_tree(matrix),
    }
    medians = {}
    for name, search in searches.items():
        times = []
        for root in roots[: 1 if name == "msf" else 4]:
            started = time.perf_counter()
            search(root)
            times.append(1e3 * (time.perf_counter() - started))
        medians[name] = round(statistics.median(times), 2)
    return medians


if __name__ == "__main__":
    main()
