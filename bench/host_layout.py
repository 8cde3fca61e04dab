"""The layouts host and split against the compact one: a graph larger than the device's memory, on one that is not.

    python bench/host_layout.py rmat:18 --memory 24MB
    python bench/host_layout.py rmat:27 --backend cuda --record
    python bench/host_layout.py rmat:26 --backend cuda --layout split --memory 9GB
    python bench/host_layout.py rmat:31 --backend cuda --alone
    python bench/host_layout.py rmat:26 --backend cuda --layout managed --memory 4.6GiB --call bfs

The graph is built in the compact layout, in all of the memory, and then in the layout host, or --layout split, with a
limit of --memory (the setting `mgraph.device-memory`; by default half of what the compact layout needs, as planned).
Every call runs on both, once unmeasured; its results in the compact layout are validated, and the others must equal
them to the bit. With --alone there is no compact graph, so that the graph may be larger than the device, without
--memory than all of it: its own results are validated. A call that lacks memory is left out, with the reason.

`passes` are the bytes over the link as a multiple of those in host memory, predecessors included; `GB/s` are bytes over
the link by the whole time of a call. `streaming` is their rate in the supersteps that stream parts, beside a plain
stream of the same parts from pinned memory, measured in the same run. `of model` divides the time by that of the copies
at this rate plus that of the compact layout; `of compact` by the latter alone. In the layout split nothing is streamed:
these columns are empty. So they are with --layout managed, the compact layout in managed memory, on a GPU of which all
but --memory is occupied: the driver moves pages to the device as kernels access them.

All columns are medians over the runs of a call. With --backend cpu each part is copied, and then processed by the cores
of the host: `streaming` is of both.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import click
import dask
import record
from dask.utils import parse_bytes
from managed_memory import occupy, use_managed_memory

import mgraph as mg
from mgraph.api.graph500 import random_roots
from mgraph.api.results import Costs, Result
from mgraph.backends.cpu import available_cores
from mgraph.cli.options import print_trace
from mgraph.cluster.base import Rank
from mgraph.formatting import readable_bytes
from mgraph.generate.spec import parse_spec
from mgraph.planning.memory import plan_graph

COLUMNS = ("call", "ms", "compact ms", "of compact", "passes", "over the link", "GB/s", "streaming", "of model")
PART_BYTES = 48 << 20
NUM_PARTS = 64
Call = Callable[[mg.Graph, int], Result]
CALLS: dict[str, Call] = {
    "bfs": lambda g, root: mg.bfs(g, root),
    "sssp": lambda g, root: mg.sssp(g, root),
    "components": lambda g, _: mg.connected_components(g),
    "forest": lambda g, _: mg.minimum_spanning_forest(g),
}
OF_ROOTS = ("bfs", "sssp")


def copy_rate(rank: Rank) -> float:
    """Return the bytes per second of a plain stream of parts from pinned memory to the device."""
    link = rank.backend.link
    parts = [link.pinned_bytes(PART_BYTES) for _ in range(2)]
    for part in parts:
        part[:] = 1
    staging = link.staging(PART_BYTES)
    for repeats in (2, NUM_PARTS):
        rank.backend.synchronize()
        began = time.perf_counter()
        for _ in staging.stream(parts[k % 2] for k in range(repeats)):
            pass
        rank.backend.synchronize()
    return PART_BYTES * NUM_PARTS / (time.perf_counter() - began)


def host_bytes(rank: Rank, graph: str) -> int:
    """Return the bytes of a rank's part of a graph in host memory."""
    return rank.objects[graph].host_bytes


class Runs:
    """Calls on one graph: the costs of each run, and the digests of its results by call and root."""

    def __init__(self, g: mg.Graph, calls: tuple[str, ...], roots: list[int], *, validates: bool) -> None:
        self.validates = validates
        self.costs: dict[str, list[Costs]] = {}
        self.digests: dict[tuple[str, int], list[int]] = {}
        for name in calls:
            try:
                CALLS[name](g, roots[0]).close()
                for root in roots if name in OF_ROOTS else roots[:1] * 3:
                    self.run(name, g, root)
            except MemoryError as error:
                click.echo(f"{name}: {error}")

    def run(self, name: str, g: mg.Graph, root: int) -> None:
        """Run a call once."""
        with CALLS[name](g, root) as found:
            if (name, root) not in self.digests:
                if self.validates:
                    mg.validate(found)
                self.digests[name, root] = [column.digest() for column in found.columns]
            self.costs.setdefault(name, []).append(found.stats)

    def seconds(self, name: str) -> list[float]:
        """Return the time of each run of a call."""
        return [costs.total_s for costs in self.costs[name]]

    def median_of(self, name: str, measure: Callable[[Costs], float]) -> float:
        """Return the median of what is measured of each run of a call."""
        return statistics.median(map(measure, self.costs[name]))


def compare(valid: Runs, other: Runs) -> None:
    """End the run if a result differs, or could not be validated."""
    for key, digests in other.digests.items():
        if key not in valid.digests:
            raise SystemExit(f"{key}: not validated")
        if digests != valid.digests[key]:
            raise SystemExit(f"{key}: results differ")


def link_bytes(costs: Costs) -> int:
    """Return the bytes over the link, those of all ranks."""
    return sum(costs.link_bytes)


def streaming_rate(costs: Costs) -> float:
    """Return the bytes per second over the link in the supersteps that stream."""
    steps = [step for step in costs.supersteps if step.get("link_bytes")]
    return sum(step["link_bytes"] for step in steps) / sum(step["microseconds"] for step in steps) * 1e6


def facts_of(name: str, runs: Runs, compact: Runs | None, stored: int, rate: float) -> dict[str, Any]:
    """Return what is recorded of a call."""
    facts = {"call": name, **record.spread([1e3 * s for s in runs.seconds(name)])}
    link = int(runs.median_of(name, link_bytes))
    if link:
        facts |= {"link_bytes": link, "passes": round(link / max(stored, 1), 2)}
        facts["link_gb_per_s"] = round(runs.median_of(name, lambda run: link_bytes(run) / run.total_s) / 1e9, 2)
        facts["streaming"] = round(runs.median_of(name, streaming_rate) / rate, 3)
    if compact is not None:
        in_memory = statistics.median(compact.seconds(name))
        of_compact = runs.median_of(name, lambda run: run.total_s / in_memory)
        facts |= {"compact_ms": round(1e3 * in_memory, 3), "of_compact": round(of_compact, 2)}
        if link:
            of_model = runs.median_of(name, lambda run: run.total_s / (link_bytes(run) / rate + in_memory))
            facts["of_model"] = round(of_model, 3)
    return facts


def row_of(facts: dict[str, Any]) -> str:
    """Return a line of the table."""
    cells = [facts["call"], facts["median_ms"], facts.get("compact_ms", "-"), facts.get("of_compact", "-")]
    streamed = readable_bytes(facts["link_bytes"]) if "link_bytes" in facts else "-"
    cells += [facts.get("passes", "-"), streamed]
    cells += [facts.get(name, "-") for name in ("link_gb_per_s", "streaming", "of_model")]
    return f"| {' | '.join(map(str, cells))} |"


@contextlib.contextmanager
def limited_graph(graph: str, connect: dict[str, Any], layout: str, memory: str | None) -> Iterator[mg.Graph]:
    """Yield the graph in a layout, on ranks that have this much memory."""
    is_managed = layout == "managed"
    limits = {"mgraph.device-memory": memory} if memory and not is_managed else {}
    with dask.config.set(limits), mg.connect(**connect) as cluster:
        free = min(cluster.run(use_managed_memory)) if is_managed else 0
        with mg.read(graph, cluster=cluster, layout="compact" if is_managed else layout) as g:
            if is_managed:
                cluster.run(occupy, free - parse_bytes(memory))
            yield g


@click.command(help=__doc__)
@click.argument("graph")
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--workers", "num_ranks", type=click.IntRange(1), default=1, show_default=True)
@click.option("--layout", type=click.Choice(["host", "split", "managed"]), default="host", show_default=True)
@click.option("--memory", help="The limit of each rank, such as 24GiB.")
@click.option("--call", "calls", type=click.Choice(list(CALLS)), multiple=True, default=tuple(CALLS))
@click.option("--roots", "num_roots", type=click.IntRange(1), default=3, show_default=True)
@click.option("--alone", is_flag=True, help="Without the compact layout.")
@click.option("--trace", is_flag=True, help="Print the supersteps of the last run of each call.")
@click.option("--record", "recorded", is_flag=True, help="Append to bench/results.")
@click.option("--commit", help="The commit to record, if this is not a checkout.")
def main(
    graph: str,
    backend: str,
    num_ranks: int,
    layout: str,
    memory: str | None,
    calls: tuple[str, ...],
    num_roots: int,
    alone: bool,
    trace: bool,
    recorded: bool,
    commit: str | None,
) -> None:
    if layout == "managed" and backend != "cuda":
        raise click.UsageError("managed memory is that of a GPU: --backend cuda")
    if memory is None and (layout == "managed" or not alone):
        memory = str(plan_graph(parse_spec(graph), num_ranks, backend, 1 << 60, "compact").needed_bytes // 2)
    connect = {"num_ranks": num_ranks, "backend": backend}
    compact = None
    with mg.connect(**connect) as cluster:
        rate = min(cluster.run(copy_rate))
        if not alone:
            with mg.read(graph, cluster=cluster, layout="compact") as g:
                click.echo(f"{g!r}: {readable_bytes(max(one['bytes'] for one in g.build_stats))} on each rank")
                compact = Runs(g, calls, random_roots(g, num_roots, 1), validates=True)
    with limited_graph(graph, connect, layout, memory) as g:
        stored = sum(g.cluster.run(host_bytes, g._key))
        held = max(one["bytes"] for one in g.build_stats)
        took = max(one["seconds"] for one in g.build_stats)
        limit = f"limited to {memory}" if memory else "not limited"
        kept = f"{readable_bytes(held)} on each device, {limit}, {readable_bytes(stored)} in host memory"
        click.echo(f"{g!r}: {kept}, built in {took:.1f} s")
        runs = Runs(g, calls, random_roots(g, num_roots, 1), validates=alone)
        name = g.name
    if compact is not None:
        compare(compact, runs)
    click.echo(f"a plain copy: {rate / 1e9:.1f} GB/s\n\n| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    found = [facts_of(call, runs, compact, stored, rate) for call in runs.costs]
    for facts in found:
        click.echo(row_of(facts))
    for call in runs.costs if trace else ():
        print_trace(runs.costs[call][-1])
    of_graph = {
        "bench": "host_layout",
        "graph": name,
        "layout": layout,
        "ranks": num_ranks,
        "memory": memory,
        "build_s": round(took, 2),
    }
    of_graph |= {"host_bytes": stored, "device_bytes": held, "copy_gb_per_s": round(rate / 1e9, 2)}
    of_graph["cores"] = available_cores()
    for facts in found if recorded else ():
        record.append(backend, commit, of_graph | facts)


if __name__ == "__main__":
    main()
