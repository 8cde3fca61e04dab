"""Multi-source BFS on one GPU: 64 roots a search beside 256, in GTEPS of all roots.

Prints the seconds of levels from many random roots, and the supersteps of one search; some levels are compared.

    python bench/multi_source_gpu.py rmat:20 rmat:22 --roots 1024
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mgraph as mg
from mgraph.algorithms.bfs.multi_source import BATCH_ROOTS, MAX_ROOTS, bfs_together
from mgraph.algorithms.bfs.multi_source_wide import bfs_wide
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.variant import require_variant
from mgraph.algorithms.variants import MULTI_SOURCE
from mgraph.cluster.base import Rank
from mgraph.shard.shard import Shard
from mgraph.types import LEVEL

REPEATS = 3


def main() -> int:
    """Measure the graphs that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", help="specs, such as rmat:22")
    parser.add_argument("--roots", type=int, default=1024)
    parser.add_argument("--backend", default="cuda")
    given = parser.parse_args()
    with mg.connect(num_ranks=1, backend=given.backend) as cluster:
        for spec in given.graphs:
            with mg.read(spec, cluster=cluster) as g:
                for line in g._run(measured, (), given.roots)[0]:
                    print(f"{g.name}: {line}", flush=True)
    return 0


def measured(rank: Rank, graph: str, count: int) -> list[str]:
    """Return a line for each way, and one for each superstep of a search."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    comm = rank.comm
    require_variant(MULTI_SOURCE, shard, comm, LEVEL)
    roots = np.random.default_rng(3).choice(shard.partition.num_positions, count, replace=False).tolist()

    def narrow(some: list[int]) -> tuple[Any, Trace]:
        trace = Trace(rank.backend, comm, shows=False)
        return bfs_together(shard, comm, some, trace), trace

    def wide(some: list[int]) -> tuple[Any, Trace]:
        trace = Trace(rank.backend, comm, shows=False)
        return bfs_wide(shard, comm, some, trace), trace

    lines = []
    found = {}
    for width, search in ((MAX_ROOTS, narrow), (BATCH_ROOTS, wide)):
        seconds, first = timed(rank, search, [roots[k : k + width] for k in range(0, count, width)])
        levels, trace = first
        found[width] = [rank.backend.to_host(levels.levels(shard, root)) for root in (0, 5, min(63, count - 1))]
        edges = [
            int((rank.backend.to_host(shard.degrees) * (one < np.iinfo(np.int32).max)).sum()) for one in found[width]
        ]
        rate = count * float(np.median(edges)) / 2 / seconds / 1e9
        lines.append(f"{width} roots a search: {1e3 * seconds:.1f} ms, {rate:.0f} GTEPS")
        for step in trace.supersteps:
            lines.append("  {method} front {frontier:,} arcs {arcs:,} {microseconds} us".format(**step))
    for one, other in zip(*found.values(), strict=True):
        np.testing.assert_array_equal(one, other)
    return lines


def timed(rank: Rank, search: Callable, batches: list[list[int]]) -> tuple[float, Any]:
    """Return the least seconds of all batches, and what the first one found, when all is warm."""
    search(batches[0])
    first = search(batches[0])
    seconds = []
    for _ in range(REPEATS):
        rank.backend.synchronize()
        began = time.perf_counter()
        for batch in batches:
            search(batch)
        rank.backend.synchronize()
        seconds.append(time.perf_counter() - began)
    return min(seconds), first


if __name__ == "__main__":
    sys.exit(main())
