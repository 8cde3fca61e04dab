"""Distances from many sources on one GPU: a block for each source, beside one search after another on the whole GPU.

Prints the seconds of each, on a road map and on an RMAT graph, with the width of a bucket (in mean weights) and the
threads of a block that `mgraph/algorithms/distance_matrix/per_block.py` chooses from. Rows are compared.

    python bench/distance_matrix_gpu.py NY.gr.xz --scale 20 --sources 1024
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

import mgraph as mg
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.distance_matrix import per_block
from mgraph.algorithms.distance_matrix.searches import Searches
from mgraph.algorithms.run_variant import prepare, search
from mgraph.algorithms.variant import TraversalSpec
from mgraph.api.graph import Graph
from mgraph.api.traversal import state_dtype
from mgraph.cluster.base import Rank
from mgraph.shard.user_ids import positions_of
from mgraph.types import LEVEL

WIDTHS = (2.0, 4.0, 8.0, 16.0, 32.0)
THREADS = (64, 128, 256, 512)


def main() -> int:
    """Measure the graphs that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roads", nargs="*", help="road maps; weights are random, 1 to 255")
    parser.add_argument("--scale", type=int, default=20, help="of the RMAT graph")
    parser.add_argument("--sources", type=int, default=1024)
    parser.add_argument("--backend", default="cuda")
    given = parser.parse_args()
    with mg.connect(num_ranks=1, backend=given.backend) as cluster:
        for path in given.roads:
            with mg.read(path, cluster=cluster) as roads:
                ends = roads.edges.to_numpy()
                weights = np.random.default_rng(1).integers(1, 256, len(ends[0]))
                for dtype in (np.uint8, np.float32):
                    with mg.from_edges(
                        *ends, weights.astype(dtype), num_vertices=roads.num_vertices, cluster=cluster
                    ) as g:
                        measure(g, given.sources, f"{path} {np.dtype(dtype)}")
        with mg.rmat(given.scale, cluster=cluster) as g:
            measure(g, given.sources, f"rmat{given.scale}", widths=(0.5, 2.0), threads=(256, 512))
    return 0


def measure(
    g: Graph, count: int, name: str, *, widths: Sequence[float] = WIDTHS, threads: Sequence[int] = THREADS
) -> None:
    """Print a line for each way to search."""
    sources = random_sources(g, count)
    for weighted in (True, False):
        how = f"{name}, {'weights' if weighted else 'hops'}, {count} sources"
        expected = None
        for label, seconds, sums in g._run(measured, (), sources, weighted, widths if weighted else (1.0,), threads)[0]:
            assert expected is None or sums == expected, f"{label} finds other distances"
            expected = sums
            print(f"{how}: {label}: {seconds:.3f} s", flush=True)


def random_sources(g: Graph, count: int) -> list[int]:
    """Return vertices that have edges, the same on every run."""
    ends = np.unique(np.concatenate(g.edges.to_numpy()[:2]))
    return np.random.default_rng(2).choice(ends, count, replace=False).tolist()


def measured(
    rank: Rank, graph: str, sources: list[int], weighted: bool, widths: Sequence[float], threads: Sequence[int]
) -> list[tuple[str, float, list[int]]]:
    """Return the seconds of each way, and sums of what it found."""
    shard = rank.objects[graph].for_call(rank.comm)
    comm = rank.comm
    dtype = state_dtype(shard.info) if weighted else LEVEL
    starts = [p for p in positions_of(shard, comm, sources) if p < shard.partition.num_positions]
    searches = Searches(starts, weighted, dtype)
    found = []

    def time_it(label: str, run: Callable[[], list[int]]) -> None:
        run()
        began = time.perf_counter()
        sums = run()
        rank.backend.synchronize()
        found.append((label, time.perf_counter() - began, sums))

    def one_by_one() -> list[int]:
        sums = []
        for source in sources:
            algorithm = "sssp" if weighted else "bfs"
            spec = TraversalSpec(algorithm, "auto", (source,), dtype, predecessors=False)
            trace = Trace(rank.backend, comm, shows=False)
            result = search(prepare(shard, comm, spec), shard, comm, spec, trace)
            if len(sums) < 3:
                sums.append(checked(result.distances))
        return sums

    def by_blocks() -> list[int]:
        sums: list[int] = []
        trace = Trace(rank.backend, comm, shows=False)
        for batch in per_block.search_by_blocks(shard, comm, searches, trace):
            sums += [checked(row) for row in batch[: max(0, 3 - len(sums))]]
        return sums

    def checked(row: object) -> int:
        host = rank.backend.to_host(row)
        reached = host[host < (np.inf if host.dtype.kind == "f" else np.iinfo(host.dtype).max)]
        return int(reached.astype(np.float64).sum())

    time_it("one by one", one_by_one)
    kernel = per_block.search_each
    for block in threads:
        for width in widths:
            per_block.DELTA_BLOCK = width
            kernel.block = kernel.lanes = block
            time_it(f"{block} threads a block, width {width:g}", by_blocks)
    return found


if __name__ == "__main__":
    sys.exit(main())
