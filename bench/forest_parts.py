"""What each preparation of a spanning forest brings, on one rank: it is made, the forest found, and both timed.

    python bench/forest_parts.py rmat22 ssca2-21 --backend cuda

The forest is found from the rows as they are built; each line below is one thing done otherwise.

    natural order     vertices keep the numbers of the input (the graph is built anew; not timed)
    local order       the same without scrambled labels: neighbours have near numbers where the generator gave them
    one list          all edges between trees in one list: no light ones first
    wide keys         weight and edge apart, as for weights that do not fit 32 bits
    ranks             float64 weights that need 64 bits, replaced by their ranks: sorted, made unique, searched
    two minima        the same weights as they are, by two minima instead of one
    sorted rows       every row sorted by weight, alone: what the papers' search for a lightest edge starts from

What compressed neighbour ids would bring is measured by `bench/neighbours.py`.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable

import click
import numpy as np
import record
from run import source_of

import mgraph as mg
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.spanning_forest import filter_boruvka as loop
from mgraph.algorithms.spanning_forest import local_edges as own_edges
from mgraph.api.graph import Graph
from mgraph.cluster.base import Rank
from mgraph.edges import EdgeSource
from mgraph.shard.rows_kernels import unpack_rows
from mgraph.shard.shard import Shard
from mgraph.types import Array


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True, metavar="GRAPH...")
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), required=True)
@click.option("--runs", type=int, default=5, show_default=True)
@click.option("--commit", help="Of the code, where there is no checkout to ask.")
def main(graphs: tuple[str, ...], backend: str, runs: int, commit: str | None) -> None:
    with mg.connect(num_ranks=1, backend=backend) as cluster:
        for name in graphs:
            lines = {}
            source = source_of(name, "int")
            built = {"as it is": (source, "auto"), "natural order": (source, "natural")}
            if local := unscrambled(source):
                built["local order"] = (local, "natural")
            for part, (edges, order) in built.items():
                with Graph.from_source(edges, cluster=cluster, order=order) as g:
                    (found,) = cluster.run(measure, g.key, runs, part == "as it is")
                    lines |= found if part == "as it is" else {part: found["as it is"]}
            print(f"{name}: {g.num_edges:,} edges")
            for part, (milliseconds, prepared) in lines.items():
                times = {"forest_ms": round(milliseconds, 4), "prepare_ms": round(prepared, 4)}
                facts = {"bench": "forest parts", "algorithm": "msf", "graph": name, "part": part}
                record.append(backend, commit, facts | times)
                print(f"  {part:16} {milliseconds:9.2f} ms" + (f" and {prepared:9.2f} ms before" if prepared else ""))


def unscrambled(source: EdgeSource) -> EdgeSource | None:
    """Return the same graph under the labels that the generator gave, None if it has those."""
    return dataclasses.replace(source, scramble=False) if getattr(source, "scramble", False) else None  # type: ignore[type-var]


def measure(rank: Rank, key: str, runs: int, everything: bool) -> dict[str, tuple[float, float]]:
    """Return the milliseconds of the forest, and those of its preparation, by what was done otherwise."""
    shard: Shard = rank.objects[key]

    def forest(of: Shard = shard) -> Array:
        return loop.msf(of, rank.comm, Trace(rank.backend, rank.comm))

    lines = {"as it is": (timed(rank, forest, runs), 0.0)}
    if not everything:
        return lines
    wanted = sorted_arcs(rank, forest())
    with_value(loop, "SHARE", 1, lambda: lines.update({"one list": (timed(rank, forest, runs), 0.0)}))
    with_value(own_edges, "EDGE_MASK", 0, lambda: lines.update({"wide keys": (timed(rank, forest, runs), 0.0)}))
    assert (sorted_arcs(rank, with_value(own_edges, "EDGE_MASK", 0, forest)) == wanted).all()

    # The same order of edges under weights that no float32 holds.
    fine = dataclasses.replace(shard.rows, weights=shard.rows.weights.astype(np.float64) * (1 + 2**-40))
    wide = dataclasses.replace(shard, stored_rows=fine)
    lines["two minima"] = (timed(rank, lambda: forest(wide), runs), 0.0)
    assert (sorted_arcs(rank, forest(wide)) == wanted).all()
    ranked = dataclasses.replace(shard, stored_rows=dataclasses.replace(fine, weights=ranks(rank, fine.weights)))
    prepared = timed(rank, lambda: ranks(rank, fine.weights), runs)
    lines["ranks"] = (timed(rank, lambda: forest(ranked), runs), prepared)
    lines["sorted rows"] = (0.0, timed(rank, lambda: sort_rows(rank, shard), runs))
    return lines


def timed(rank: Rank, work: Callable[[], object], runs: int) -> float:
    """Return the median milliseconds after a run that does not count."""
    times = []
    for _ in range(runs + 1):
        rank.backend.synchronize()
        started = time.perf_counter()
        work()
        rank.backend.synchronize()
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times[1:])


def with_value(module: object, name: str, value: int, work: Callable[[], Array]) -> Array:
    """Do the work while a constant of the module has another value."""
    usual = getattr(module, name)
    setattr(module, name, value)
    try:
        return work()
    finally:
        setattr(module, name, usual)


def sorted_arcs(rank: Rank, arcs: Array) -> np.ndarray:
    """Return arcs on the host, in order."""
    return np.sort(rank.backend.to_host(arcs))


def ranks(rank: Rank, weights: Array) -> Array:
    """Return the rank of every weight among the distinct ones."""
    xp = rank.backend.xp
    return xp.searchsorted(xp.unique(weights), weights).astype(np.uint32)


def sort_rows(rank: Rank, shard: Shard) -> Array:
    """Sort the arcs by row, then weight: the weights here fit a byte."""
    xp, rows = rank.backend.xp, shard.rows
    owners = xp.empty(len(rows.targets), rows.targets.dtype)
    unpack_rows[rank.backend](0, len(owners), rows.indptr, shard.num_owned, 0, 1, 0, owners)
    return xp.argsort(owners.astype(np.int64) << 8 | rows.weights)


if __name__ == "__main__":
    main()
