"""Measure the gain of choosing the method of each superstep by the measured rates of the device.

    python bench/cost_model.py rmat20 rmat22 rmat24 uni24 grid4k

It is compared with the rates of an NVIDIA H200, which are used where a device cannot be measured, and with searches
that leave out one method, such as pull. Times are those of the kernel, from the trace of the supersteps, in
milliseconds: medians over the roots. The results of one configuration are validated, and those of all must be equal.
"""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

import click
import record
from run import source_of

import mgraph as mg
from mgraph.algorithms.bfs import persistent as bfs_persistent
from mgraph.algorithms.bfs import persistent_kernels as bfs_kernel
from mgraph.algorithms.common.cost_model import bfs_costs, sssp_costs
from mgraph.algorithms.sssp import persistent as sssp_persistent
from mgraph.algorithms.sssp import persistent_kernels as sssp_kernel
from mgraph.api.graph import Graph
from mgraph.api.graph500 import KERNELS, random_roots
from mgraph.backends.device_model import Rates
from mgraph.backends.rates_file import H200
from mgraph.cluster.base import Rank

Costs = Callable[..., tuple[int, ...]]
# The cost of an excluded choice: larger than all others; times the number of arcs it still fits 64 bits.
EXCLUDED = 1 << 34


def without(costs: Costs, names: tuple[str, ...], *excluded: str) -> Costs:
    """Return a cost function that excludes some choices; values before the named ones stay."""
    assert {*excluded} <= {*names}, f"{excluded} are not all in {names}"

    def changed(rates: Rates, *sizes: float) -> tuple[int, ...]:
        found = costs(rates, *sizes)
        before = len(found) - len(names)
        named = zip(names, found[before:], strict=True)
        return *found[:before], *(EXCLUDED if name in excluded else cost for name, cost in named)

    return changed


CHOICES: dict[str, dict[str, Costs]] = {
    "bfs": {
        "rates": bfs_costs,
        "constants": lambda _, *sizes: bfs_costs(H200, *sizes),
        "rates, no pull": without(bfs_costs, bfs_kernel.COSTS, "opening", "scanning"),
        "rates, no pull, queues": without(bfs_costs, bfs_kernel.COSTS, "opening", "scanning", "proposing"),
    },
    "sssp": {
        "rates": sssp_costs,
        "constants": lambda _, *sizes: sssp_costs(H200, *sizes),
        "rates, no pull": without(sssp_costs, sssp_kernel.COSTS, "pulling"),
        "rates, no queue of far": without(sssp_costs, sssp_kernel.COSTS, "splitting"),
    },
}
PLACES = {"bfs": (bfs_persistent, "bfs_costs"), "sssp": (sssp_persistent, "sssp_costs")}


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True, metavar="GRAPH...")
@click.option("--sources", type=int, default=16, show_default=True)
@click.option("--commit", help="The commit to record, if this is not a checkout.")
def main(graphs: tuple[str, ...], sources: int, commit: str | None) -> None:
    with mg.connect(num_ranks=1, backend="cuda") as cluster:
        for name in graphs:
            with Graph.from_source(source_of(name, "int"), cluster=cluster) as g:
                roots = random_roots(g, sources, None)
                for algorithm, choices in CHOICES.items():
                    validated = [validated_digest(g, algorithm, root) for root in roots]
                    for choice, costs in choices.items():
                        with mock.patch.object(*PLACES[algorithm], costs):
                            g.cluster.run(forget, g._key)
                            times, digests = kernel_times(g, algorithm, roots)
                        if digests != validated:
                            raise SystemExit(f"{algorithm} of {name} by {choice} found different distances")
                        facts = {"bench": "forms", "graph": name, "gpus": 1, "algorithm": algorithm, "part": choice}
                        facts |= {"sources": len(times), **record.spread(times), "validated": True}
                        print(f"{name:8} {algorithm:4} {choice:24} {facts['median_ms']:9.3f} ms", flush=True)
                        record.append("cuda", commit, facts)


def validated_digest(g: Graph, algorithm: str, root: int) -> int:
    """Search from a root, validate, and return the digest of the distances."""
    with KERNELS[algorithm](g, root) as result:
        mg.validate(result)
        return result.distances.digest()


def forget(rank: Rank, graph: str) -> None:
    """Clear the values cached on the shard, costs included."""
    rank.objects[graph].kept.clear()


def kernel_times(g: Graph, algorithm: str, roots: list[int]) -> tuple[list[float], list[int]]:
    """Return for every root the milliseconds and the digest of its search."""
    search = KERNELS[algorithm]
    times = []
    digests = []
    search(g, roots[0], return_predecessors=False).close()
    for root in roots:
        with search(g, root, return_predecessors=False) as result:
            times.append(sum(step["microseconds"] for step in result.stats.supersteps) / 1000)
            digests.append(result.distances.digest())
    return times, digests


if __name__ == "__main__":
    main()
