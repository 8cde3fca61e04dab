"""Times of hubs and authorities beside SciPy, NetworkX and igraph on the same cores, in one run.

    pip install igraph
    python bench/hits.py rmat:15 fixed:32768:8
    python bench/hits.py rmat:22 rmat:24 rmat:26 rmat:28 --backend cuda --alone

A call begins with the library's own graph in memory, without its weights, and ends when both scores are in arrays, or
in what the library returns. Ten iterations are made by mgraph and by SciPy's products of a matrix and a vector; then
each library goes on to its own end: NetworkX and igraph call ARPACK. Every result is compared with mgraph's validated
one, hub scores within 1e-6 in all: a difference ends the run. Times are the least of --repeats. The table is that of
docs/hits.md.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator

import click
import networkx as nx
import numpy as np
import record
from timing import least

import mgraph as mg

ITERATIONS = 10
DIFFERENCE = 1e-6
TO_THE_END = {"tolerance": 1e-10, "max_iterations": 10_000}


def found_by_mgraph(g: mg.Graph, **how: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Return mgraph's hubs and authorities."""
    with mg.hits(g, weighted=False, **how) as found:
        return found.hubs.to_numpy(), found.authorities.to_numpy()


def others(g: mg.Graph) -> Iterator[tuple[str, Callable[[], tuple[np.ndarray, np.ndarray]]]]:
    """Yield libraries with calls; the first makes ten iterations, others go on to the end."""
    import igraph
    import scipy.sparse

    n = g.num_vertices
    sources, targets, *_ = g.edges.to_numpy()
    ends = (sources, targets) if g.info.directed else (np.append(sources, targets), np.append(targets, sources))
    out = scipy.sparse.csr_array((np.ones(len(ends[0])), ends), shape=(n, n))
    into = out.T.tocsr()

    def by_scipy() -> tuple[np.ndarray, np.ndarray]:
        hubs = np.full(n, 1 / n)
        for _ in range(ITERATIONS):
            authorities = into @ hubs
            authorities /= authorities.sum()
            hubs = out @ authorities
            hubs /= hubs.sum()
        return hubs, authorities

    graph = (nx.DiGraph if g.info.directed else nx.Graph)()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(zip(sources.tolist(), targets.tolist(), strict=True))
    of_igraph = igraph.Graph(n=n, edges=np.column_stack((sources, targets)), directed=g.info.directed)
    yield "SciPy", by_scipy
    yield "NetworkX", lambda: tuple(np.array([*one.values()]) for one in nx.hits(graph, backend="networkx"))
    # It advises others for undirected graphs.
    warnings.filterwarnings("ignore", module=__name__, category=RuntimeWarning)
    yield "igraph", lambda: tuple(map(normalized, (of_igraph.hub_score(), of_igraph.authority_score())))


def normalized(scores: list[float]) -> np.ndarray:
    """Return scores that sum up to 1."""
    return np.array(scores) / sum(scores)


def compare(name: str, found: np.ndarray, right: np.ndarray) -> None:
    """End the run if hubs differ."""
    away = float(np.abs(found - right).sum())
    if not away < DIFFERENCE:
        raise SystemExit(f"{name}: hubs differ by {away:.3g} in all")


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True)
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--workers", "num_ranks", type=click.IntRange(1), default=1, show_default=True)
@click.option("--alone", is_flag=True, help="Ten iterations of mgraph alone.")
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True)
def main(graphs: tuple[str, ...], backend: str, num_ranks: int, alone: bool, repeats: int) -> None:
    click.echo("| graph | arcs | ten: mgraph | SciPy | to the end: mgraph | NetworkX | igraph |")
    for name in graphs:
        with mg.connect(num_ranks=num_ranks, backend=backend) as cluster, mg.read(name, cluster=cluster) as g:
            for how in {"tolerance": None, "max_iterations": ITERATIONS}, TO_THE_END:
                with mg.hits(g, weighted=False, **how) as checked:
                    mg.validate(checked)
            ten, fixed = least(repeats, lambda g=g: found_by_mgraph(g, tolerance=None, max_iterations=ITERATIONS))
            facts = {"bench": "hits", "graph": name, "arcs": g.info.num_arcs, "ranks": g.num_ranks}
            facts |= {"iterations": ITERATIONS, "validated": True, "load": round(os.getloadavg()[0], 1)}
            facts["ms"] = round(1e3 * ten, 3)
            cells = [ten]
            if not alone:
                seconds, right = least(repeats, lambda g=g: found_by_mgraph(g, **TO_THE_END))
                for library, call in others(g):
                    taken, scores = least(repeats, call)
                    compare(library, scores[0], fixed[0] if library == "SciPy" else right[0])
                    cells += [taken, seconds] if library == "SciPy" else [taken]
                    facts[f"{library}_ms"] = round(1e3 * taken, 3)
                facts["to_the_end_ms"] = round(1e3 * seconds, 3)
            record.append(cluster.backend, None, facts)
            click.echo(f"| {name} | {g.info.num_arcs:,} | {' | '.join(f'{1e3 * cell:.4g}' for cell in cells)} |")


if __name__ == "__main__":
    main()
