"""Compute floors: the least time for SSSP, spanning forests and components.

    python bench/floors.py rmat20 rmat22 rmat24 uni24 grid4k --backend cuda

The floors in bench/peers.toml are sums of bytes that must be moved and of unavoidable latencies, at the rates that
bench/rates.py measures:

- Shortest paths: the arcs that suffice to verify known distances, if rows are by weight. For a bound: of vertices up
  to the bound, the arcs that do not lead beyond it; of all others, the arcs not heavier than their distance. The bound
  is the one with the fewest arcs. Each arc is read and its other end looked up. The arcs of a path depend on each
  other: two loads and an atomic for each arc of the longest path.
- Forests: an unread edge could be the lightest of all. Each is read once, and its other end looked up.
- Components: the head of every row is read, and the tree root looked up.

Lookups have the rate of a table of all vertices; in RMAT graphs the best rate, since most are lookups of hubs; in a
grid, where neighbors are close in memory, they are free.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import click
import numpy as np
from run import source_of

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.api.graph500 import random_roots
from mgraph.backends.rates_file import H200
from mgraph.shard.shard import Shard
from mgraph.types import Array

# NVIDIA H200: bytes per second of a stream; seconds of a dependent load, of a dependent atomic, and of a launch with a
# word read back.
STREAM = 1.024e18 / H200.stream
LOAD = 1e-15 * H200.load_wait
ATOMIC = 1e-15 * H200.atomic_wait
LAUNCH = 19e-6
# Bytes of an arc, of its target, of a row's offset, of a distance and a predecessor, of a forest's edge, of a label.
ARC = 5
TARGET = 4
PLACE = 8
ANSWER = 8
EDGE = 8
LABEL = 4
SECTOR = 32
AT_ONCE = 1 << 25


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True, metavar="GRAPH...")
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), required=True)
@click.option("--sources", type=int, default=4, show_default=True)
def main(graphs: tuple[str, ...], backend: str, sources: int) -> None:
    with mg.connect(num_ranks=1, backend=backend) as cluster:
        (rank,) = cluster._ranks  # in process, so its shard is accessible
        for name in graphs:
            with Graph.from_source(source_of(name, "int"), cluster=cluster) as g:
                shard = rank.objects[g._key]
                proofs = [proof_of(g, root) for root in random_roots(g, sources, None)]
                arcs, hops = (statistics.median(counts) for counts in zip(*proofs, strict=True))
                for algorithm, terms in floors(name, shard, arcs, hops).items():
                    show(name, algorithm, terms)


def show(name: str, algorithm: str, terms: list[tuple[str, float]]) -> None:
    """Print the floor of a cell, and its terms."""
    taken = "; ".join(f"{words}: {1e6 * seconds:.3g} us" for words, seconds in terms)
    total = 1e3 * (sum(seconds for _, seconds in terms) + LAUNCH)
    print(f"{name} {algorithm}: {total:.2g} ms: {taken}; the launch", flush=True)


def floors(name: str, shard: Shard, arcs: float, hops: float) -> dict[str, list[tuple[str, float]]]:
    """Return the terms of every algorithm's floor: description and seconds."""
    n = shard.num_owned
    edges = shard.info.num_edges
    rate = lookup_seconds(name, n)
    lookup = " and a lookup" if rate else ""
    heads = shard.backend.xp.minimum(SECTOR, TARGET * shard.degrees).sum().item()
    return {
        "sssp": [
            (f"{millions(arcs)} arcs of {ARC} bytes{lookup}", arcs * (ARC / STREAM + rate)),
            (f"{millions(n)} vertices of {PLACE + ANSWER} bytes", n * (PLACE + ANSWER) / STREAM),
            (f"{hops:.0f} dependent arcs", hops * (2 * LOAD + ATOMIC)),
        ],
        "msf": [
            (f"{millions(edges)} edges of {ARC} bytes{lookup}", edges * (ARC / STREAM + rate)),
            (f"{millions(n)} vertices of {PLACE + EDGE} bytes", n * (PLACE + EDGE) / STREAM),
        ],
        "components": [
            (
                f"{millions(n)} vertices of {PLACE + LABEL + heads / n:.0f} bytes{lookup}",
                (n * (PLACE + LABEL) + heads) / STREAM + n * rate,
            ),
        ],
    }


def lookup_seconds(name: str, n: int) -> float:
    """Return the seconds of one random lookup among n values of 4 bytes."""
    if name.startswith("grid"):
        return 0.0
    return random_load(4 * n if not name.startswith("rmat") else 0)


def random_load(table_bytes: int) -> float:
    """Return the seconds of one random load of many from this table."""
    return 1e-15 * H200.load(table_bytes)


def millions(count: float) -> str:
    return f"{count / 1e6:.3g} M"


def proof_of(g: Graph, root: int) -> tuple[int, int]:
    """Return the arcs that verify a root's distances, and the longest path's hops."""
    with mg.sssp(g, root) as result:
        return result._stored.run(count_proof, g._key)[0]


def count_proof(rank: Any, key: str, graph: str) -> tuple[int, int]:
    shard = rank.objects[graph]
    found = rank.objects[key].traversal
    return fewest_arcs(shard, found.distances), longest_path(shard, found.predecessors)


def fewest_arcs(shard: Shard, distances: Array) -> int:
    """Return the smallest number of arcs that verify all distances, over all bounds."""
    xp = shard.backend.xp
    top = np.iinfo(np.int32).max
    dist = xp.where(distances < np.inf, distances, 0).astype(np.int32)
    most = int(dist.max()) + 1
    below = xp.zeros(most + 1, np.int64)
    light = xp.zeros(most + 1, np.int64)
    for own, weights in parts(shard, xp.where(distances < np.inf, dist, top)):
        own, weights = own[own != top], weights[own != top]
        below += xp.bincount(xp.minimum(own + weights, most), minlength=most + 1)
        light += xp.bincount(own[weights <= own], minlength=most + 1)
    arcs = int((xp.cumsum(below) + light.sum() - xp.cumsum(light)).min())
    # Alternatively all edges, each from one of its ends.
    return min(arcs, shard.info.num_edges)


def parts(shard: Shard, values: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the values of the arcs' rows and their weights, in pieces."""
    xp = shard.backend.xp
    rows = shard.rows
    for lo in range(0, len(rows.targets), AT_ONCE):
        hi = min(lo + AT_ONCE, len(rows.targets))
        of_arc = xp.searchsorted(rows.indptr, xp.arange(lo, hi), side="right") - 1
        yield values[of_arc], rows.weights[lo:hi].astype(np.int32)


def longest_path(shard: Shard, predecessors: Array) -> int:
    """Return the number of arcs of the longest path of predecessors, by pointer doubling."""
    xp = shard.backend.xp
    places = xp.arange(len(predecessors))
    above = xp.where(predecessors < len(predecessors), predecessors, places).astype(np.int64)
    hops = (above != places).astype(np.int64)
    while bool((above[above] != above).any()):
        hops += hops[above]
        above = above[above]
    return int(hops.max())


if __name__ == "__main__":
    main()
