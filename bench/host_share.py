"""What the CPU could add to a stream over the host link, if its cores processed some of the host parts.

    python bench/host_share.py rmat:18 --memory 44MB
    python bench/host_share.py rmat:26 --backend cuda --memory 4.6GiB --record

The graph is built in the layout host. All cores run the kernels of each call over some of its host parts, where these
are: once where no edge changes a state, and once where half of the states, at random, are still to be lowered. `GB/s`
is the rate of both, `share` what the cores would take of a pass if link and cores ended together, in percent; `states`
is what it takes of a pass to copy the states of all vertices, which the cores lower in memory of their own, to the
device. `gain` is the difference: of a pass, in percent, at most and in the middle of a search.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click
import dask
import numpy as np
import record
from host_layout import copy_rate

import mgraph as mg
from mgraph.algorithms.common.reach import GRAIN_BITS, STAMP
from mgraph.algorithms.common.reach_kernels import note_lowered
from mgraph.algorithms.common.streamed_search import LEVEL_SWEEPS, WEIGHT_SWEEPS
from mgraph.algorithms.components.blocks_kernels import link_edges
from mgraph.algorithms.predecessors.sweep_kernels import sweep_nearer
from mgraph.algorithms.spanning_forest.blocks_kernels import find_lightest_ends
from mgraph.algorithms.sssp.sweep_kernels import sweep_distances
from mgraph.api.traversal import state_dtype
from mgraph.backends.cpu import CpuBackend
from mgraph.cluster.base import Rank
from mgraph.shard.host_blocks import HostBlocks
from mgraph.shard.shard import Blocks, Shard
from mgraph.types import LEVEL, unreached_of

# Parts over which kernels are timed.
SAMPLED = 24
COLUMNS = ("call", "settled, GB/s", "searching, GB/s", "share", "share", "states", "gain", "gain")
Visit = Callable[[Blocks], None]


class Cores:
    """The kernels of each call, by all cores of this host, over states in memory of their own."""

    def __init__(self, shard: Shard, blocks: HostBlocks) -> None:
        self.cpu = CpuBackend()
        self.partition = shard.partition
        self.bits = blocks.shape.segment_bits
        self.num_states = blocks.shape.padded(shard.partition.num_states)
        self.layout = shard.partition.stride, shard.partition.multiplier
        self.both_ways = 0 if shard.info.directed else 1
        self.is_open = np.random.default_rng(1).random(self.num_states) < 0.5

    def search(self, dtype: np.dtype, num_sweeps: int, *, is_settled: bool) -> Visit:
        """Return what a search does with a part: sweeps, and parents over its edges."""
        top = unreached_of(dtype)
        states = np.zeros(self.num_states, dtype)
        if not is_settled:
            states[self.is_open] = top
        before = states.copy()
        stamps = np.zeros(self.num_states, STAMP)
        limit = np.array([top], dtype)
        grain_bits = min(GRAIN_BITS, self.bits)
        lowered = np.zeros(self.num_states >> grain_bits, np.uint8)
        latest = np.zeros(len(lowered), STAMP)
        counters = np.zeros(1, np.int64)
        shape = np.array([self.both_ways, grain_bits])
        parents = np.full(self.num_states, np.iinfo(self.partition.dtype).max, self.partition.dtype)
        of_parents = np.array([self.bits, self.both_ways, *self.layout])

        def visit(part: Blocks) -> None:
            weights = None if dtype == LEVEL else part.weights
            where = 0, part.num_units, *part.edges, weights, self.bits
            for _ in range(num_sweeps):
                sweep_distances[self.cpu](*where, shape, limit, before, states, lowered)
                note_lowered[self.cpu](
                    0, len(lowered), grain_bits, 1, states, lowered, before, parents, stamps, latest, counters
                )
            sweep_nearer[self.cpu](*where, of_parents, states, parents)

        return visit

    def components(self, *, is_settled: bool) -> Visit:
        """Return what components do with a part."""
        roots = np.arange(self.partition.num_positions, dtype=self.partition.dtype)
        if is_settled:
            roots[:] = 0

        def visit(part: Blocks) -> None:
            link_edges[self.cpu](0, part.num_units, *part.edges, self.bits, *self.layout, roots)

        return visit

    def forest(self, *, is_settled: bool) -> Visit:
        """Return what the first pass of a forest does with a part, but for its list."""
        best = np.full(self.partition.num_positions, np.iinfo(np.int64).min if is_settled else np.iinfo(np.int64).max)
        parameters = np.array([self.bits, *self.layout, 0])

        def visit(part: Blocks) -> None:
            find_lightest_ends[self.cpu](0, part.num_units, *part.edges, part.weights, parameters, best)

        return visit


def measured(rank: Rank, graph: str) -> dict[str, dict[str, float]]:
    """Return for each call the bytes per second of both states, and those of the states of all vertices."""
    shard: Shard = rank.objects[graph]
    (blocks,) = shard.blocks.values()
    if not isinstance(blocks, HostBlocks) or not blocks.parts or shard.info.weight_dtype is None or shard.info.directed:
        raise click.UsageError("the graph has no weights, is directed, or has no blocks in host memory")
    parts = blocks.parts[:: max(len(blocks.parts) // SAMPLED, 1)]
    cores = Cores(shard, blocks)
    dtype = state_dtype(shard.info)
    positions = shard.partition.dtype.itemsize
    # Whether weights are streamed, the bytes of a vertex, and what is done with a part.
    calls: dict[str, tuple[bool, int, Callable[[bool], Visit]]] = {
        "bfs": (False, LEVEL.itemsize, lambda settled: cores.search(LEVEL, LEVEL_SWEEPS, is_settled=settled)),
        "sssp": (True, dtype.itemsize, lambda settled: cores.search(dtype, WEIGHT_SWEEPS, is_settled=settled)),
        "components": (False, positions, lambda settled: cores.components(is_settled=settled)),
        "forest": (True, 8, lambda settled: cores.forest(is_settled=settled)),
    }
    found = {}
    for name, (weighted, state_bytes, made) in calls.items():
        num_bytes = sum(part.bytes(weighted=weighted).nbytes for part in parts)
        a_pass = sum(part.bytes(weighted=weighted).nbytes for part in blocks.parts)
        found[name] = {"states": state_bytes * shard.partition.num_positions, "pass": a_pass}
        for state in ("settled", "searching"):
            visit = made(state == "settled")
            visit(parts[0].blocks_in(parts[0].memory, blocks.shape))
            began = time.perf_counter()
            for part in parts:
                visit(part.blocks_in(part.memory, blocks.shape))
            found[name][state] = num_bytes / (time.perf_counter() - began)
    return found


def facts_of(call: str, found: dict[str, float], link: float) -> dict[str, Any]:
    """Return what is recorded of a call; shares and gains are of a pass over the link alone."""
    states = found["states"] / found["pass"]
    shares = {state: found[state] / (found[state] + link) for state in ("settled", "searching")}
    facts: dict[str, Any] = {"call": call, "states_percent": round(100 * states, 1)}
    for state, share in shares.items():
        facts |= {f"{state}_gb_per_s": round(found[state] / 1e9, 2), f"{state}_share_percent": round(100 * share, 1)}
        facts[f"{state}_gain_percent"] = round(100 * (share - states), 1)
    return facts


def row_of(facts: dict[str, Any]) -> str:
    """Return a line of the table."""
    both = ("settled", "searching")
    names = [f"{state}_gb_per_s" for state in both] + [f"{state}_share_percent" for state in both]
    names += ["states_percent", *(f"{state}_gain_percent" for state in both)]
    return f"| {' | '.join([facts['call'], *(str(facts[name]) for name in names)])} |"


@click.command(help=__doc__)
@click.argument("graph")
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--memory", required=True, help="The limit of the device, such as 24GiB.")
@click.option("--record", "recorded", is_flag=True, help="Append to bench/results.")
@click.option("--commit", help="The commit to record, if this is not a checkout.")
def main(graph: str, backend: str, memory: str, recorded: bool, commit: str | None) -> None:
    with (
        dask.config.set({"mgraph.device-memory": memory}),
        mg.connect(num_ranks=1, backend=backend) as cluster,
        mg.read(graph, cluster=cluster, layout="host") as g,
    ):
        (link,) = cluster.run(copy_rate)
        (found,) = cluster.run(measured, g._key)
        name = g.name
    of_graph = {"bench": "host_share", "graph": name, "memory": memory, "copy_gb_per_s": round(link / 1e9, 2)}
    click.echo(f"a plain copy: {link / 1e9:.1f} GB/s\n\n| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    for call, rates in found.items():
        facts = facts_of(call, rates, link)
        click.echo(row_of(facts))
        if recorded:
            record.append(backend, commit, of_graph | {"cores": CpuBackend().threads} | facts)


if __name__ == "__main__":
    main()
