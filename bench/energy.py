"""Measure the energy of searches: MTEPS per watt of one GPU's board, over a loop of searches.

    python bench/energy.py rmat20 rmat22 rmat24 rmat26 rmat28 --seconds 10

Each graph is searched from random roots, other ones in every run, on Graph500's clock (docs/benchmarks.md: parents as
user ids in the graph's own order, levels not translated). Every root's result is validated before the loop; in the loop
the number of reached vertices must be the same. The loop goes on for --seconds, so that the counter of energy is exact.

`mteps_per_w` is what the Green Graph500 compares: the harmonic mean of the rates, divided by the mean power while they
are achieved, idle power included. Power is the board's alone, as NVML reads it: by its counter of energy, where the
device has one, beside samples of power. Between two searches the host works and the GPU waits, which lowers the mean:
`edges_per_joule` charges these pauses to the searches, by all edges over all energy, and `busy` is the searches' share
of the time. `idle_w` is the power of the GPU at rest, with the graph in its memory.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import click
import record
from run import source_of

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.api.graph500 import SPECS, ComponentEdges, clock_spec, random_roots
from mgraph.api.traversal import traverse_many
from mgraph.cluster.devices import visible_gpus
from mgraph.edges import EdgeSource

GRAPHS = ("rmat20", "rmat22", "rmat24", "rmat26", "rmat28")
SAMPLE_S = 0.05
# Searches of one call, one after the other: as many as have results of this many bytes in all. The more, the shorter
# are the pauses between them.
BATCH_BYTES = 4 << 30
RESULT_BYTES = 24
# After work the board takes about a second to come to rest.
REST_S = 1.5


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, metavar="[GRAPH]...")
@click.option("--algorithm", "algorithms", type=click.Choice(list(SPECS)), multiple=True, default=tuple(SPECS))
@click.option("--seconds", type=click.FloatRange(min=0.1), default=10.0, show_default=True, help="Of each loop.")
@click.option("--idle-seconds", type=click.FloatRange(min=0.1), default=3.0, show_default=True)
@click.option("--roots", type=click.IntRange(1), default=64, show_default=True)
@click.option("--commit", help="The commit to record, if this is not a checkout.")
def main(
    graphs: tuple[str, ...],
    algorithms: tuple[str, ...],
    seconds: float,
    idle_seconds: float,
    roots: int,
    commit: str | None,
) -> None:
    board = Board.first()
    with mg.connect(num_ranks=1, backend="cuda") as cluster:
        for name in graphs or GRAPHS:
            source = source_of(name, "int" if "sssp" in algorithms else "none")
            with Graph.from_source(source, cluster=cluster) as g:
                time.sleep(REST_S)
                with board.metered() as at_rest:
                    time.sleep(idle_seconds)
                for algorithm in algorithms:
                    facts = {"bench": "energy", "graph": name, "gpus": 1, "algorithm": algorithm}
                    facts |= {"n": g.num_vertices, "m": g.num_edges, "weights": g.info.weight_dtype}
                    facts |= {"idle_w": round(at_rest.watts, 1), "limit_w": board.limit_w}
                    facts |= measure(g, source, algorithm, random_roots(g, roots, None), board, seconds)
                    show(facts)
                    record.append("cuda", commit, facts)


@dataclass
class Reading:
    """The power of a board over some time.

    Attributes
    ----------
    seconds
        The time.
    samples
        Samples of the power, in watts.
    joules
        The energy, None on a device without a counter of it.
    """

    seconds: float = 0.0
    samples: list[float] = field(default_factory=list)
    joules: float | None = None

    @property
    def sampled_w(self) -> float:
        """The mean of the samples."""
        return statistics.fmean(self.samples)

    @property
    def watts(self) -> float:
        """The mean power, by the counter of energy where there is one."""
        return self.sampled_w if self.joules is None else self.joules / self.seconds


class Board:
    """A GPU's board, as NVML reads it."""

    def __init__(self, nvml: Any, handle: Any, sample_s: float = SAMPLE_S) -> None:
        self._nvml = nvml
        self._handle = handle
        self.sample_s = sample_s

    @classmethod
    def first(cls) -> Board:
        """Return the first visible GPU's; refuse a machine without one."""
        gpus = visible_gpus()
        if not gpus:
            raise click.ClickException("no GPU that NVML reads: the energy of searches is measured on one")
        import pynvml

        pynvml.nvmlInit()
        return cls(pynvml, pynvml.nvmlDeviceGetHandleByUUID(gpus[0].uuid))

    @property
    def limit_w(self) -> float:
        """The power to which the board is limited."""
        return float(self._nvml.nvmlDeviceGetEnforcedPowerLimit(self._handle)) / 1e3

    def metered(self) -> Meter:
        """Return a context that measures the board's power until its end."""
        return Meter(self)

    def power_w(self) -> float:
        """Return the power now."""
        return float(self._nvml.nvmlDeviceGetPowerUsage(self._handle)) / 1e3

    def energy_j(self) -> float | None:
        """Return the energy since the driver was loaded, None without a counter."""
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3
        except self._nvml.NVMLError_NotSupported:
            return None


class Meter:
    """Measure a board's power from the begin of a `with` block to its end."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._reading = Reading()

    def __enter__(self) -> Reading:
        self._energy = self._board.energy_j()
        self._began = time.perf_counter()
        self._thread.start()
        return self._reading

    def __exit__(self, *error: object) -> None:
        energy = self._board.energy_j()
        self._reading.seconds = time.perf_counter() - self._began
        self._ended.set()
        self._thread.join()
        if energy is not None and self._energy is not None:
            self._reading.joules = energy - self._energy

    def _sample(self) -> None:
        while True:
            self._reading.samples.append(self._board.power_w())
            if self._ended.wait(self._board.sample_s):
                return


def measure(
    g: Graph, source: EdgeSource, algorithm: str, roots: list[int], board: Board, seconds: float
) -> dict[str, Any]:
    """Validate the search from each root, then search from all again and again; return the figures."""
    specs = [clock_spec(g, algorithm, root, in_graph_order=True) for root in roots]
    counted = ComponentEdges(source)
    edges = []
    reached = []
    for spec in specs:
        with traverse_many(g, [spec], "auto")[0] as found:
            mg.validate(found)
            reached.append(found.stats.num_reached)
            assert found.predecessors is not None
            edges.append(counted.of(found))
    batch = max(1, min(len(roots), BATCH_BYTES // (RESULT_BYTES * g.num_vertices)))
    times: list[tuple[int, float]] = []
    with board.metered() as reading:
        end = time.perf_counter() + seconds
        for first in cycle(range(0, len(roots), batch)):
            with traverse_many(g, specs[first : first + batch], "auto") as results:
                for i, found in enumerate(results, first):
                    times.append((edges[i], found.stats.total_s))
                    if found.stats.num_reached != reached[i]:
                        raise click.ClickException(f"{algorithm} from {roots[i]} reached other vertices than before")
            if time.perf_counter() >= end:
                break
    return {"roots": len(roots), **figures(times, reading), "validated": True}


def figures(searches: Sequence[tuple[int, float]], reading: Reading) -> dict[str, Any]:
    """Return the figures of a loop of searches, of which each has traversed edges in some seconds."""
    rates = [edges / seconds for edges, seconds in searches]
    harmonic = statistics.harmonic_mean(rates)
    joules = reading.watts * reading.seconds
    return {
        "searches": len(searches),
        "seconds": round(reading.seconds, 3),
        "busy": round(sum(seconds for _, seconds in searches) / reading.seconds, 3),
        **record.spread([1e3 * seconds for _, seconds in searches]),
        "teps": round(statistics.median(rates)),
        "harmonic_teps": round(harmonic),
        "watts": round(reading.watts, 1),
        "sampled_w": round(reading.sampled_w, 1),
        "has_counter": reading.joules is not None,
        "mteps_per_w": round(harmonic / 1e6 / reading.watts, 1),
        "edges_per_joule": round(sum(edges for edges, _ in searches) / joules),
    }


def show(facts: dict[str, Any]) -> None:
    """Print a summary line."""
    print(
        f"{facts['graph']:8} {facts['algorithm']:5} {facts['searches']:,} searches in {facts['seconds']:.1f} s, "
        f"{facts['busy']:.0%} busy, median {facts['median_ms']:.3f} ms, harmonic mean "
        f"{facts['harmonic_teps'] / 1e9:.1f} GTEPS, {facts['watts']:.0f} W (sampled {facts['sampled_w']:.0f}, idle "
        f"{facts['idle_w']:.0f}): {facts['mteps_per_w']:,.0f} MTEPS/W, {facts['edges_per_joule'] / 1e6:,.0f} "
        "million edges/J with pauses",
        flush=True,
    )


if __name__ == "__main__":
    main()
