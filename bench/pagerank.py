"""Times of PageRank beside SciPy, NetworkX and igraph on the same cores, in one run.

    pip install igraph
    python bench/pagerank.py rmat:15 fixed:32768:8
    python bench/pagerank.py rmat:18 rmat:20 --alone --gap ~/gapbs
    python bench/pagerank.py rmat:22 rmat:24 rmat:26 rmat:28 --backend cuda --alone

A call begins with the library's own graph in memory, without its weights, and ends when all scores are in an array, or
in what the library returns; of mgraph the time of the iterations alone is printed too. Ten iterations are made by
mgraph and by SciPy's product of a matrix and a vector; then each library iterates until all scores together change by
less than 1e-9 (igraph: as far as it does). Every result is compared with mgraph's validated one, within 1e-8 in all: a
difference ends the run. With --backend cuda two floors of the iterations are printed, at the rates that this device has
(mgraph/backends/rates.py): of a pull, with the targets read as a stream, and for each arc a random load from the first
vertices that include its source; and of arc bins, with both ends of each arc read, and what it brings written and read.

The folder --gap has the programs `converter` and `pr` of the GAP benchmark, which makes ten iterations too: in floats
of 32 bits, with new scores in use at once. mgraph and GAP take turns. (NetworKit is left out: it defines scores of
isolated vertices otherwise.) Times are the least of --repeats, one after another. The table is that of
docs/pagerank.md.
"""

from __future__ import annotations

import math
import os
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import click
import numpy as np
import record
from timing import least

import mgraph as mg
from mgraph.algorithms.pagerank.bins_kernels import VALUE_BYTES
from mgraph.backends.cpu import available_cores
from mgraph.backends.rates_file import require_rates
from mgraph.shard.arc_bins import drop_arc_bins
from mgraph.shard.shard import Shard

DAMPING = 0.85
ITERATIONS = 10
CHANGE = 1e-9
DIFFERENCE = 1e-8
AT_ONCE = 1 << 28
# Of an arc in bins.
ENDS_BYTES = 4


def iterated(g: mg.Graph, **how: Any) -> tuple[np.ndarray, float]:
    """Return mgraph's scores, and the milliseconds of its iterations."""
    with mg.pagerank(g, DAMPING, weighted=False, **how) as found:
        return found.scores.to_numpy(), 1e3 * found.stats.seconds["iterate"]


def shard_of(g: mg.Graph) -> Shard:
    """Return the shard of a graph of one rank in this process."""
    (rank,) = g.cluster._ranks  # type: ignore[attr-defined]
    shard: Shard = rank.objects[g._key]
    return shard


def prepared_ms(g: mg.Graph) -> float:
    """Return the milliseconds in which a call derives what it needs of the graph."""
    drop_arc_bins(shard_of(g))
    with mg.pagerank(g, DAMPING, weighted=False, tolerance=None, max_iterations=1) as found:
        return 1e3 * found.stats.seconds["prepare"]


def floors_ms(g: mg.Graph) -> dict[str, float]:
    """Return the milliseconds that iterations by a pull and by bins take at the device's rates."""
    shard = shard_of(g)
    rates = require_rates(shard.backend)
    targets = shard.incoming.targets
    of_pull = rates.stream * targets.nbytes / 1024
    within = 0
    for size, load in zip(rates.sizes, rates.loads, strict=True):
        before, within = within, sum(int((part < size // 8).sum()) for part in parts_of(targets))
        of_pull += load * (within - before)
    of_pull += rates.loads[-1] * (len(targets) - within)
    of_bins = rates.stream * len(targets) * (ENDS_BYTES + 2 * VALUE_BYTES) / 1024
    return {f"{name}_floor_ms": ITERATIONS * of / 1e12 for name, of in (("pull", of_pull), ("bins", of_bins))}


def parts_of(array: Any) -> Iterator[Any]:
    """Yield parts of an array so short that what is computed of one fits beside it."""
    for begin in range(0, len(array), AT_ONCE):
        yield array[begin : begin + AT_ONCE]


def by_scipy(g: mg.Graph) -> Callable[[], np.ndarray]:
    """Return the iterations by a matrix of SciPy."""
    import scipy.sparse

    n = g.num_vertices
    sources, targets, *_ = g.edges.to_numpy()
    ends = sources, targets
    if not g.info.directed:
        ends = np.concatenate(ends), np.concatenate(ends[::-1])
    degrees = np.bincount(ends[0], minlength=n)
    matrix = scipy.sparse.csr_array((1 / degrees[ends[0]], ends[::-1]), shape=(n, n))
    is_dangling = degrees == 0

    def iterate() -> np.ndarray:
        scores = np.full(n, 1 / n)
        for _ in range(ITERATIONS):
            scores = DAMPING * (matrix @ scores + scores[is_dangling].sum() / n) + (1 - DAMPING) / n
        return scores

    return iterate


def others(g: mg.Graph) -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """Yield libraries with calls that iterate to the end."""
    import igraph
    import networkx as nx

    n = g.num_vertices
    directed = g.info.directed
    sources, targets, *_ = g.edges.to_numpy()
    graph = (nx.DiGraph if directed else nx.Graph)()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(zip(sources.tolist(), targets.tolist(), strict=True))
    yield (
        "NetworkX",
        lambda: np.array([*nx.pagerank(graph, DAMPING, tol=CHANGE / n, max_iter=1000, backend="networkx").values()]),
    )
    of_igraph = igraph.Graph(n=n, edges=np.column_stack((sources, targets)), directed=directed)
    yield "igraph", lambda: np.array(of_igraph.pagerank(damping=DAMPING))


class Gap:
    """PageRank of the GAP benchmark, with a graph in its format."""

    def __init__(self, programs: pathlib.Path, folder: pathlib.Path, g: mg.Graph) -> None:
        text = folder / "graph.el"
        file = folder / "graph.sg"
        np.savetxt(text, np.column_stack(g.edges.to_numpy()[:2]), "%d")
        both_ways = () if g.info.directed else ("-s",)
        subprocess.run([programs / "converter", "-f", text, *both_ways, "-b", file], check=True, capture_output=True)
        self._command = [programs / "pr", "-f", file, "-i", str(ITERATIONS), "-t", "0", "-n", "1"]
        self._sizes = f" and {g.info.num_edges} {'' if g.info.directed else 'un'}directed edges"

    def ms(self) -> float:
        """Return the milliseconds of ten iterations."""
        threads = os.environ | {"OMP_NUM_THREADS": str(available_cores())}
        printed = subprocess.run(self._command, check=True, capture_output=True, text=True, env=threads).stdout
        if self._sizes not in printed:
            raise SystemExit(f"GAP has another graph, not one with{self._sizes[4:]}")
        (seconds,) = re.findall(r"Trial Time:\s+([0-9.]+)", printed)
        return 1e3 * float(seconds)


def compare(name: str, found: np.ndarray, right: np.ndarray) -> None:
    """End the run if scores differ."""
    away = float(np.abs(found - right).sum())
    if not away < DIFFERENCE:
        raise SystemExit(f"{name}: scores differ by {away:.3g} in all")


def ten(g: mg.Graph, repeats: int, gap: Gap | None) -> tuple[list[str], np.ndarray]:
    """Return the cells of ten iterations of mgraph, which are validated and recorded, and their scores."""
    runs = []
    of_gap = []
    for _ in range(repeats):
        runs.append(least(1, lambda: iterated(g, tolerance=None, max_iterations=ITERATIONS)))
        if gap is not None:
            of_gap.append(gap.ms())
    iterating = min(milliseconds for _, (_, milliseconds) in runs)
    rate = ITERATIONS * g.info.num_arcs / iterating / 1e6
    if g.info.layout == "rows":
        with mg.pagerank(g, DAMPING, weighted=False, tolerance=None, max_iterations=ITERATIONS) as checked:
            mg.validate(checked)
    facts = {"bench": "pagerank", "graph": g.name, "arcs": g.info.num_arcs, "layout": g.info.layout}
    facts |= {"ranks": g.num_ranks, "iterations": ITERATIONS, "validated": g.info.layout == "rows"}
    whole = 1e3 * min(one for one, _ in runs)
    of_device = {}
    if g.cluster.backend == "cuda" and g.num_ranks == 1 and g.info.layout == "rows":
        of_device = {"prep_ms": prepared_ms(g)} | floors_ms(g)
    times = {"ms": whole, "iterating_ms": iterating, "giga_arcs_per_s": rate} | of_device
    times |= {"gap_ms": min(of_gap)} if of_gap else {}
    facts |= {name: round(time, 3) for name, time in times.items()}
    record.append(g.cluster.backend, None, facts)
    of_device = of_device or dict.fromkeys(("prep_ms", "pull_floor_ms", "bins_floor_ms"), math.nan)
    cells = (whole, iterating, *of_device.values(), rate, times.get("gap_ms", math.nan))
    return [f"{cell:.4g}" for cell in cells], runs[0][1][0]


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True)
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--workers", "num_ranks", type=click.IntRange(1), default=1, show_default=True)
@click.option("--layout", type=click.Choice(["rows", "compact"]), default="rows", show_default=True)
@click.option("--alone", is_flag=True, help="Ten iterations of mgraph alone.")
@click.option("--gap", "programs", type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path))
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True)
def main(
    graphs: tuple[str, ...],
    backend: str,
    num_ranks: int,
    layout: Any,
    alone: bool,
    programs: pathlib.Path | None,
    repeats: int,
) -> None:
    times = "ten: mgraph ms | of these iterating | preparing once | floor of a pull | of bins | G arcs/s | GAP"
    times += " | SciPy ms | to the end: mgraph ms"
    click.echo(f"| graph | arcs | {times} |")
    for name in graphs:
        cluster = mg.connect(num_ranks=num_ranks, backend=backend)
        with cluster, mg.read(name, cluster=cluster, layout=layout) as g:
            iterated(g, tolerance=None, max_iterations=1)  # compiles
            with tempfile.TemporaryDirectory() as folder:
                cells, fixed = ten(g, repeats, None if programs is None else Gap(programs, pathlib.Path(folder), g))
            until = {"tolerance": CHANGE / g.num_vertices, "max_iterations": 1000}
            if not alone:
                seconds, scores = least(repeats, by_scipy(g))
                compare("SciPy", scores, fixed)
                with mg.pagerank(g, DAMPING, weighted=False, **until) as checked:
                    mg.validate(checked)
                cells.append(f"{1e3 * seconds:.4g}")
                seconds, (right, _) = least(repeats, lambda g=g, until=until: iterated(g, **until))
                cells.append(f"{1e3 * seconds:.4g}")
            for library, call in () if alone else others(g):
                seconds, scores = least(repeats, call)
                compare(library, scores, right)
                cells.append(f"{library} {1e3 * seconds:.4g}")
            click.echo(f"| {name} | {g.info.num_arcs:,} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
