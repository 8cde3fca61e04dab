"""Measure what each preparation of a spanning forest gains on one rank.

    python bench/forest_parts.py rmat22 ssca2-21 --backend cuda

The base is the forest from the rows as they are built; each line below is one change.

    natural order     vertices in the order of the input (the graph is built again; not timed)
    local order       the same without scrambled ids: neighbors have close ids, as generated
    one list          all edges between trees in one work list, instead of light edges first
    wide keys         weight and edge in separate words, as for weights that do not fit 32 bits
    ranks             float64 weights that need 64 bits, replaced by integer ranks: sorted, made unique, searched
    two minima        the same weights unchanged, by two minima instead of one
    sorted rows       only the time to sort every row by weight, from which the papers' search starts

`bench/five_papers.py` measures the preparations of the paper's own search.
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
from mgraph.backends.base import PersistentBackend
from mgraph.cluster.base import Rank
from mgraph.edges import EdgeSource
from mgraph.shard.rows_kernels import unpack_rows
from mgraph.shard.shard import Shard
from mgraph.types import Array


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True, metavar="GRAPH...")
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), required=True)
@click.option("--runs", type=int, default=5, show_default=True)
@click.option("--commit", help="The commit to record, if this is not a checkout.")
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
                    (found,) = cluster.run(measure, g._key, runs, part == "as it is")
                    lines |= found if part == "as it is" else {part: found["as it is"]}
            print(f"{name}: {g.num_edges:,} edges")
            for part, (milliseconds, prepared) in lines.items():
                times = {"forest_ms": round(milliseconds, 4), "prepare_ms": round(prepared, 4)}
                facts = {"bench": "forest parts", "algorithm": "msf", "graph": name, "part": part}
                record.append(backend, commit, facts | times)
                print(f"  {part:16} {milliseconds:9.2f} ms" + (f" and {prepared:9.2f} ms before" if prepared else ""))


def unscrambled(source: EdgeSource) -> EdgeSource | None:
    """Return the graph without scrambled ids, None if it has none."""
    return dataclasses.replace(source, scramble=False) if getattr(source, "scramble", False) else None  # type: ignore[type-var]


def measure(rank: Rank, key: str, runs: int, everything: bool) -> dict[str, tuple[float, float]]:
    """Return the milliseconds of the forest and of its preparation, by change."""
    shard: Shard = rank.objects[key]

    def forest(of: Shard = shard) -> Array:
        trace = Trace(rank.backend, rank.comm)
        return loop.msf(of, rank.comm, trace, is_persistent=isinstance(rank.backend, PersistentBackend))

    lines = {"as it is": (timed(rank, forest, runs), 0.0)}
    if not everything:
        return lines
    wanted = sorted_arcs(rank, forest())
    with_value(loop, "SHARE", 1, lambda: lines.update({"one list": (timed(rank, forest, runs), 0.0)}))
    with_value(own_edges, "KEY_BITS", {}, lambda: lines.update({"wide keys": (timed(rank, forest, runs), 0.0)}))
    assert (sorted_arcs(rank, with_value(own_edges, "KEY_BITS", {}, forest)) == wanted).all()

    # Weights of the same order that do not fit a float32.
    fine = dataclasses.replace(shard.rows, weights=shard.rows.weights.astype(np.float64) * (1 + 2**-40))
    wide = with_weights(shard, fine.weights)
    lines["two minima"] = (timed(rank, lambda: forest(wide), runs), 0.0)
    assert (sorted_arcs(rank, forest(wide)) == wanted).all()
    ranked = with_weights(shard, ranks(rank, fine.weights))
    assert (sorted_arcs(rank, forest(ranked)) == wanted).all()
    prepared = timed(rank, lambda: ranks(rank, fine.weights), runs)
    lines["ranks"] = (timed(rank, lambda: forest(ranked), runs), prepared)
    lines["sorted rows"] = (0.0, timed(rank, lambda: sort_rows(rank, shard), runs))
    return lines


def with_weights(shard: Shard, weights: Array) -> Shard:
    """Return the shard with other weights."""
    bounds = {"min_weight": weights.min().item(), "max_weight": weights.max().item()}
    info = dataclasses.replace(shard.info, **bounds)
    return dataclasses.replace(shard, info=info, stored_rows=dataclasses.replace(shard.rows, weights=weights))


def timed(rank: Rank, work: Callable[[], object], runs: int) -> float:
    """Return the median milliseconds after a warm-up run."""
    times = []
    for _ in range(runs + 1):
        rank.backend.synchronize()
        started = time.perf_counter()
        work()
        rank.backend.synchronize()
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times[1:])


def with_value(module: object, name: str, value: object, work: Callable[[], Array]) -> Array:
    """Run `work` while a constant of the module has another value."""
    usual = getattr(module, name)
    setattr(module, name, value)
    try:
        return work()
    finally:
        setattr(module, name, usual)


def sorted_arcs(rank: Rank, arcs: Array) -> np.ndarray:
    """Return the arcs on the host, sorted."""
    return np.sort(rank.backend.to_host(arcs))


def ranks(rank: Rank, weights: Array) -> Array:
    """Return the rank of every weight among the distinct weights."""
    xp = rank.backend.xp
    return xp.searchsorted(xp.unique(weights), weights).astype(np.uint32)


def sort_rows(rank: Rank, shard: Shard) -> Array:
    """Sort the arcs by row, then by weight, which fits a byte here."""
    xp = rank.backend.xp
    rows = shard.rows
    owners = xp.empty(len(rows.targets), rows.targets.dtype)
    unpack_rows[rank.backend](0, len(owners), rows.indptr, shard.num_owned, 0, 1, 0, owners)
    return xp.argsort(owners.astype(np.int64) << 8 | rows.weights)


if __name__ == "__main__":
    main()
