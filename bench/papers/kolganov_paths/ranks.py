"""mgraph's sweeps on a Dask cluster: the many GPUs that the paper names as next.

Edges are in segment-sorted blocks over the ranks, each a worker with its own GPU. Each rank runs the kernel that reads
an edge once for both directions; between sweeps states are reduced to their minimum over the ranks. Searches are calls
of `mg.bfs` and `mg.sssp` with `method="sweep"`, validated, and equal on any number of ranks.

The shares of the time are those of further searches, since timing kernels adds to it: means over the ranks.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import cluster_call
import record
from distributed import Client

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.api.graph500 import KERNELS, random_roots
from mgraph.cluster.devices import visible_gpus
from mgraph.formatting import counted
from papers import rank_times
from papers.kolganov_paths.measure import QUICK_SCALES, SCALES
from papers.trials import ROOT_SEED, Setting, line_of, warm_times

TITLE = "Kolganov: sweeps over edge blocks on the ranks of a Dask cluster"
CPU_RANKS = 2
METHOD = "sweep"
# The kernel that reads the edges.
SWEEPS = {"bfs": "sweep_frontier", "sssp": "sweep_active"}


def measure(setting: Setting) -> Iterator[dict]:
    """Yield a record for each graph, number of ranks and algorithm."""
    backend = setting.backend.name
    most = CPU_RANKS if backend == "cpu" else len(visible_gpus())
    with (
        cluster_call.start(backend, most) as workers,
        Client(workers, set_as_default=False) as client,
        mg.connect(client, num_ranks=most, backend=backend) as cluster,
    ):
        for scale in setting.pick(SCALES, QUICK_SCALES):
            digests: dict[str, list[int]] = {}
            for num_ranks in numbers_of_ranks(most):
                with mg.rmat(scale, cluster=cluster.narrowed(num_ranks), order="degree") as g:
                    roots = random_roots(g, setting.sources, ROOT_SEED)
                    for algorithm in KERNELS:
                        found = validated_digests(g, algorithm, roots)
                        require_same(g, algorithm, found, digests.setdefault(algorithm, found))
                        yield line(g, algorithm, roots)


def numbers_of_ranks(most: int) -> list[int]:
    """Return the powers of two up to a number, and the number."""
    return sorted({most, *(1 << i for i in range(most.bit_length()))})


def validated_digests(g: Graph, algorithm: str, roots: list[int]) -> list[int]:
    """Search from the roots and validate; return the hash of the distances from each."""
    found = []
    for root in roots:
        with KERNELS[algorithm](g, root, method=METHOD) as result:
            mg.validate(result)
            found.append(result.distances.digest())
    return found


def require_same(g: Graph, algorithm: str, found: list[int], expected: list[int]) -> None:
    """End the run if the distances differ from those on fewer ranks."""
    if found != expected:
        ranks = counted(g.num_ranks, "rank")
        raise SystemExit(f"{algorithm} of {g.name} on {ranks}: the distances differ from those on fewer")


def line(g: Graph, algorithm: str, roots: list[int]) -> dict:
    """Return the record of searches from the roots."""
    warm_times(g, algorithm, METHOD, roots[:1])
    milliseconds = warm_times(g, algorithm, METHOD, roots)
    found = line_of(g, algorithm, f"mgraph, {METHOD}", milliseconds, runs_on=g.cluster.backend)
    return found | {"ranks": g.num_ranks, "launcher": g.cluster.launcher} | shares(g, algorithm, roots)


def shares(g: Graph, algorithm: str, roots: list[int]) -> dict:
    """Search again; return the milliseconds of kernels and verbs, and the shares of the time."""
    g.cluster.run(rank_times.begin)
    milliseconds = warm_times(g, algorithm, METHOD, roots)
    by_rank = g.cluster.run(rank_times.end)
    names = dict.fromkeys(name for of_rank in by_rank for name in of_rank)
    parts = {name: statistics.mean(of_rank.get(name, 0.0) for of_rank in by_rank) for name in names}
    reduction = sum(ms for name, ms in parts.items() if name in rank_times.VERBS)
    sweep = parts[SWEEPS[algorithm]]
    split = {"sweep kernel": sweep, "other kernels": sum(parts.values()) - sweep - reduction, "reduction": reduction}
    split["rest"] = sum(milliseconds) - sum(split.values())
    return {
        "timed_ms": record.spread(milliseconds)["median_ms"],
        "parts_ms": {name: round(ms / len(roots), 4) for name, ms in parts.items()},
        "shares": {name: round(ms / sum(milliseconds), 4) for name, ms in split.items()},
    }
