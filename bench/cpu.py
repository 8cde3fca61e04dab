"""Compare mgraph on the CPU with the GAP benchmark and SciPy in one run.

    python bench/cpu.py 18 --gap ~/gapbs

The folder --gap has the programs `converter`, `bfs`, `sssp` and `cc`. Times are medians over the roots. BFS of mgraph
and of GAP includes parents; SSSP of mgraph does too, where GAP and SciPy find distances only. Components and spanning
forests have no roots and run as often; GAP has no forests. `call` is the whole Python call with the translation to user
ids.
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
from run import METHODS, WHOLE
from scipy.sparse import csgraph

import mgraph as mg
from mgraph.api.graph500 import KERNELS, random_roots
from mgraph.api.results import Result
from mgraph.backends.cpu import CpuBackend, available_cores
from mgraph.generate.rmat import Rmat
from mgraph.io.formats import read_source
from mgraph.io.write import write_edges

# Deltas for GAP's SSSP; its own script uses the first for its Kronecker graph.
GAP_DELTAS = (2, 16, 64)
GAP_PROGRAMS = ("converter", "bfs", "sssp", "cc")


@click.command(help=__doc__)
@click.argument("scale", type=int, default=18)
@click.option("--gap", "gap_dir", type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path), required=True)
@click.option("--sources", type=int, default=16, show_default=True)
@click.option("--root-seed", type=int)
@click.option(
    "--delta",
    "deltas",
    type=int,
    multiple=True,
    default=GAP_DELTAS,
    help="A delta for GAP; the best of all is recorded.",
)
def main(scale: int, gap_dir: pathlib.Path, sources: int, root_seed: int | None, deltas: tuple[int, ...]) -> None:
    if missing := [name for name in GAP_PROGRAMS if not (gap_dir / name).is_file()]:
        raise click.BadParameter(f"{gap_dir} has no {', '.join(missing)}: build them there", param_hint="--gap")
    source = Rmat(scale)
    with mg.connect(num_ranks=1, backend="cpu") as cluster, tempfile.TemporaryDirectory() as folder:
        g = mg.Graph.from_source(source, cluster=cluster)
        roots = random_roots(g, sources, root_seed)
        ours = {name: measure(search, g, [(root,) for root in roots]) for name, search in KERNELS.items()}
        ours |= {name: measure(find, g, [()] * sources) for name, (find, _) in WHOLE.items()}
        files = convert(source, pathlib.Path(folder), gap_dir)
        gap = {
            "bfs": gap_ms(gap_dir / "bfs", files["sg"], roots),
            "sssp": min(gap_ms(gap_dir / "sssp", files["wsg"], roots, "-d", str(d)) for d in deltas),
            "components": gap_ms(gap_dir / "cc", files["sg"], roots),
        }
        scipy_times = scipy_ms(files["csr"], roots)
    for name, (times, calls) in ours.items():
        facts = {
            "graph": source.name, "launcher": cluster.launcher, "gpus": 0, "backend": "cpu", "algorithm": name,
            "method": METHODS.get(name, ("frontier",))[0], "n": g.num_vertices, "m": g.num_edges,
            "sources": len(roots), **record.spread(times),
            "call_ms": round(statistics.median(calls), 3), "gap_ms": gap.get(name), "scipy_ms": scipy_times[name],
            "cores": available_cores(), "validated": True,
        }  # fmt: skip
        record.append("cpu", None, facts)
        gap_text = f"GAP {gap[name]:8.2f} ms ({facts['median_ms'] / gap[name]:.2f}x)  " if name in gap else ""
        print(
            f"{source.name} {name:10} mgraph {facts['median_ms']:8.2f} ms (call {facts['call_ms']:.2f})  {gap_text}"
            f"SciPy {scipy_times[name]:8.2f} ms ({scipy_times[name] / facts['median_ms']:.1f}x faster)"
        )


def measure(find: Callable[..., Result], g: mg.Graph, roots: list[tuple[int, ...]]) -> tuple[list[float], list[float]]:
    """Return times without translation, and of whole calls, from every root."""
    times = []
    calls = []
    find(g, *roots[0]).close()
    for root in roots:
        started = time.perf_counter()
        with find(g, *root) as result:
            calls.append(1e3 * (time.perf_counter() - started))
            times.append(1e3 * (result.stats.total_s - result.stats.seconds["translate"]))
            mg.validate(result)
    return times, calls


def convert(source: Rmat, folder: pathlib.Path, gap_dir: pathlib.Path) -> dict[str, pathlib.Path]:
    """Write the graph as CSR and in GAP's formats with and without weights."""
    files = {kind: folder / f"graph.{kind}" for kind in ("csr", "wel", "sg", "wsg")}
    write_edges(files["csr"], source)
    edges = folder / "edges.csv"
    write_edges(edges, source)
    # GAP reads "u v w" lines without a header.
    text = edges.read_text().split("\n", 1)[1].replace(",", " ")
    files["wel"].write_text(text)
    files["el"] = folder / "graph.el"
    files["el"].write_text(re.sub(r" \d+$", "", text, flags=re.M))
    for kind, words in {"sg": ["-f", files["el"]], "wsg": ["-f", files["wel"], "-w"]}.items():
        subprocess.run([gap_dir / "converter", *words, "-s", "-b", files[kind]], check=True, capture_output=True)
    return files


def gap_ms(program: pathlib.Path, graph: pathlib.Path, roots: list[int], *words: str) -> float:
    """Return GAP's median over the roots, each the best of three trials."""
    best = []
    for root in roots:
        command = [program, "-f", graph, "-r", str(root), "-n", "3", *words]
        threads = os.environ | {"OMP_NUM_THREADS": str(available_cores())}
        printed = subprocess.run(command, check=True, capture_output=True, text=True, env=threads).stdout
        best.append(min(float(t) for t in re.findall(r"Trial Time:\s+([0-9.]+)", printed)))
    return round(1e3 * statistics.median(best), 3)


def scipy_ms(path: pathlib.Path, roots: list[int]) -> dict[str, float]:
    """Return SciPy's medians over the first roots."""
    file = read_source(path)
    arcs = file.chunk(0, 1, CpuBackend(1))
    n = file.num_vertices
    indices = arcs.targets.astype(np.int32)
    weights = arcs.weights.astype(np.float64)
    indptr = np.searchsorted(arcs.sources, np.arange(n + 1))
    matrix = scipy.sparse.csr_array((weights, indices, indptr), shape=(n, n))
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
