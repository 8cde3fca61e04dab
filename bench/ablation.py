"""Measure what each optimization of the papers' sweeps gains on one GPU.

    python bench/ablation.py rmat14 rmat16 rmat18 rmat20 rmat22 rmat24 uni24

The base is one thread for each edge of an edge list in the order of a graph's rows, relaxed in both directions until
nothing changes (bench/papers/edge_list.cu); levels have 8 bits, so graphs may not be deep. Three optimizations are
switched on and off: vertices in degree order, edges sorted by segment, and reads of the state by the read-only path.
Every result is compared, vertex by vertex, with mgraph's validated one.

The rate is the number of arcs of the graph divided by the time from a source to its levels or distances, as in the
papers, without predecessors, which they do not compute. mgraph's own variants follow: the sweep; the step variant of
the frontier method; and the persistent kernel, for SSSP over plain and over weight-sorted rows.
"""

from __future__ import annotations

import itertools
import pathlib
import statistics
from collections.abc import Iterator
from unittest import mock

import click
import cupy
import numpy as np
import record
from run import source_of

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.api.graph500 import KERNELS, random_roots
from mgraph.cluster.base import Cluster
from mgraph.shard.shard import Shard
from mgraph.shard.weight_sorted_rows import wants_weight_sorted_rows

CODE = (pathlib.Path(__file__).parent / "papers" / "edge_list.cu").read_text()
STATES = {"bfs": ("u8", np.dtype(np.uint8)), "sssp": ("u32", np.dtype(np.uint32))}
# Bytes of state in a segment: one segment for each end of the edges stays in the L2 cache.
SEGMENT_BYTES = 4 << 20
THREADS = 256


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True, metavar="GRAPH...")
@click.option("--sources", type=int, default=8, show_default=True)
@click.option("--commit", help="The commit to record, if this is not a checkout.")
def main(graphs: tuple[str, ...], sources: int, commit: str | None) -> None:
    with mg.connect(num_ranks=1, backend="cuda") as cluster:
        for name, order in itertools.product(graphs, ("natural", "degree")):
            with Graph.from_source(source_of(name, "int"), cluster=cluster, order=order) as g:
                for facts in _measure(g, cluster, random_roots(g, sources, None)):
                    facts = {"bench": "ablation", "graph": name, "gpus": 1, "order": order} | facts
                    print(
                        f"{name:8} {facts['algorithm']:4} {order:8} {facts['variant']:20} {facts['median_ms']:9.3f} ms "
                        f"{facts['arcs_per_s'] / 1e9:8.2f} G arcs/s",
                        flush=True,
                    )
                    record.append("cuda", commit, facts)


def _measure(g: Graph, cluster: Cluster, roots: list[int]) -> Iterator[dict]:
    """Yield a record for every algorithm and variant."""
    (rank,) = cluster._ranks  # in process, so its shard is accessible
    shard = rank.objects[g._key]
    for algorithm in KERNELS:
        expected_results = _expected(g, algorithm, roots)
        for sorted_edges, read_only in itertools.product((False, True), repeat=2):
            edges = _EdgeList(shard, algorithm, sorted_edges, read_only)
            times = [edges.check(source, expected) for source, expected in expected_results]
            names = [name for name, on in (("segments", sorted_edges), ("read-only", read_only)) if on]
            yield _line(g, algorithm, "+".join(names) or "base", times)
        yield _line(g, algorithm, "sweep", _own_times(g, algorithm, "sweep", roots))
        by_steps = (
            "step" if algorithm == "bfs" else "delta_stepping" if wants_weight_sorted_rows(g.info) else "near_far"
        )
        yield _line(g, algorithm, "stepped", _own_times(g, algorithm, by_steps, roots))
        if algorithm == "sssp" and shard.weight_sorted_rows is not None:
            # A search that was prepared before makes no rows by weight again.
            _own_times(g, algorithm, "persistent", roots[:1])
            with mock.patch.object(shard, "weight_sorted_rows", None):
                times = _own_times(g, algorithm, "persistent", roots)
            yield _line(g, algorithm, "plain rows", times)
        yield _line(g, algorithm, "frontier", _own_times(g, algorithm, "frontier", roots))


def _line(g: Graph, algorithm: str, variant: str, times: list[float]) -> dict:
    rate = g.info.num_arcs / (1e-3 * statistics.median(times))
    facts = {"algorithm": algorithm, "variant": variant, "n": g.num_vertices, "m": g.num_edges}
    return facts | {"sources": len(times), **record.spread(times), "arcs_per_s": round(rate), "validated": True}


def _expected(g: Graph, algorithm: str, roots: list[int]) -> list[tuple[int, cupy.ndarray]]:
    """Return for every root its state index and its validated result by state index."""
    found = []
    for root in roots:
        with KERNELS[algorithm](g, root) as result:
            mg.validate(result)
            result_values = result._stored.run(lambda rank, key: rank.objects[key].traversal.distances)[0]
            source = int(cupy.flatnonzero(result_values == 0)[0])
            found.append((source, result_values.copy()))
    return found


def _own_times(g: Graph, algorithm: str, method: str, roots: list[int]) -> list[float]:
    search = KERNELS[algorithm]
    times = []
    search(g, roots[0], method=method, return_predecessors=False).close()
    for root in roots:
        with search(g, root, method=method, return_predecessors=False) as result:
            times.append(1e3 * result.stats.seconds["traverse"])
    return times


class _EdgeList:
    """Hold every undirected edge once, and the kernel that relaxes them."""

    def __init__(self, shard: Shard, algorithm: str, sorted_edges: bool, read_only: bool) -> None:
        state, self.dtype = STATES[algorithm]
        rows = shard.rows
        ends = cupy.searchsorted(rows.indptr, cupy.arange(len(rows.targets)), side="right") - 1
        once = cupy.flatnonzero(ends < rows.targets)
        sources = ends[once].astype(np.uint32)
        targets = rows.targets[once]
        weights = rows.weights[once]
        del ends, once
        if sorted_edges:
            segment = np.uint32(SEGMENT_BYTES // self.dtype.itemsize)
            order = cupy.argsort((targets // segment).astype(np.uint64) << 32 | sources // segment)
            sources = sources[order]
            targets = targets[order]
            weights = weights[order]
        self.edges = sources, targets, weights
        self.num_states = shard.partition.num_states
        self.read_only = read_only
        self.top = np.iinfo(self.dtype).max
        options = (f"-Dstate_t={state}", f"-DREAD_ONLY={int(read_only)}", f"-DWEIGHTED={int(algorithm == 'sssp')}")
        options += (f"-DUNREACHED={self.top}u",)
        self.kernel = cupy.RawKernel(CODE, "relax_edges", options=options)

    def check(self, source: int, expected: cupy.ndarray) -> float:
        """Search from a source, compare with the expected result, and return the milliseconds."""
        self._search(source)
        begin = cupy.cuda.Event()
        end = cupy.cuda.Event()
        begin.record()
        state = self._search(source)
        end.record()
        end.synchronize()
        own = state[: len(expected)]
        reached = own != self.top
        assert bool((reached == (expected != np.iinfo(expected.dtype).max)).all()), (
            "the sets of reached vertices differ"
        )
        assert bool((own[reached] == expected[reached]).all()), "the results differ"
        return cupy.cuda.get_elapsed_time(begin, end)

    def _search(self, source: int) -> cupy.ndarray:
        state = cupy.full(self.num_states, self.top, self.dtype)
        state[source] = 0
        before = cupy.empty_like(state) if self.read_only else state
        improved = cupy.ones(1, np.int32)
        blocks = 2048 // THREADS * cupy.cuda.Device().attributes["MultiProcessorCount"]
        for level in itertools.count():
            if not int(improved[0]):
                return state
            improved.fill(0)
            if self.read_only:
                before[:] = state
            sizes = np.int64(len(self.edges[0])), np.int32(level)
            self.kernel((blocks,), (THREADS,), (*sizes, *self.edges, before, state, improved))


if __name__ == "__main__":
    main()
