"""When the CPU searches a GPU's graph sooner than the GPU: where frontiers stay narrow for many levels.

A persistent launch takes 0.65 us for a level of one vertex, and 1.3 us for a round of shortest paths; a core has then
searched some 60 vertices. So the first search of a graph is a trial of the GPU: its time for each vertex reached is
compared with what the host should take at best. Where the host should be faster to reach as much, or would be in the
second half of the trial and the whole graph is small (a dense part in front of a long path), its first search decides:

    it becomes wide: given up once its wide part is as long as some trials, and the GPU has the graph
    it reaches most vertices: compared with what the GPU should have taken to reach as far, by its time for each level,
        or unit of distance, and by all arcs
"""

from __future__ import annotations

import math

import numpy as np

from mgraph.algorithms.variant import Conditions
from mgraph.backends.base import PersistentBackend
from mgraph.shard.shard import Shard

# Nanoseconds of one core for a vertex and for an arc, at best: paths and cliques on the host of one H100.
NS_PER_VERTEX = {"bfs": 12.0, "sssp": 15.0}
NS_PER_ARC = {"bfs": 1.0, "sssp": 5.0}
# And for the call, with copies of the result to the GPU. A shorter search on the GPU shows nothing.
NS_PER_CALL = 200_000
# To copy an arc to the host, once a graph.
COPY_NS_PER_ARC = 0.5
# Of the GPU, for an arc in addition to the levels or rounds: some 10 G arcs a second.
GPU_NS_PER_ARC = 0.1
# From this multiple of the GPU's time on, the host counts as slower.
SLOWER = 1.1
# The host gives up once the wide levels of a search take this many times the GPU's trial: a dense part in front of a
# long path is worth that.
WIDE_TRIALS = 8


def try_gpu(
    shard: Shard, algorithm: str, nanoseconds: np.ndarray, frontiers: np.ndarray, num_reached: int, farthest: float
) -> bool:
    """Record a trial of the GPU: its supersteps' times and frontiers, what it reached, and its greatest distance.

    A whole search of the GPU is a trial too: its narrow part may be longer than a shorter trial shows. Return whether
    the host should be faster. Once the GPU's times have left a search to the host, that search decides, not this.
    """
    assert isinstance(shard.backend, PersistentBackend), "no other is compared"
    took = int(nanoseconds.sum())
    if algorithm not in shard.max_wide_arcs and took > NS_PER_CALL:
        of_arc = NS_PER_ARC[algorithm]
        of_vertex = NS_PER_VERTEX[algorithm] + of_arc * shard.info.mean_degree
        half = len(frontiers) // 2
        becomes_narrow = int(nanoseconds[half:].sum()) > of_vertex * int(frontiers[half:].sum())
        is_small = (COPY_NS_PER_ARC + of_arc) * shard.info.num_arcs <= WIDE_TRIALS * took
        should_be_faster = took > NS_PER_CALL + of_vertex * num_reached or (becomes_narrow and is_small)
        is_faster = shard.backend.competes_with_host and should_be_faster
        shard.faster_on_host[algorithm] = is_faster
        if is_faster:
            shard.trial_ns_per_distance[algorithm] = took / max(farthest, 1)
            shard.max_wide_arcs[algorithm] = int(WIDE_TRIALS * took / of_arc)
    return shard.faster_on_host.get(algorithm, False)


def is_undecided(shard: Shard, algorithm: str) -> bool:
    """Return whether a whole search of the host is to decide it."""
    return algorithm in shard.trial_ns_per_distance


def decide(shard: Shard, algorithm: str, seconds: float, num_reached: int, farthest: float) -> None:
    """Decide by how long the host took; a search that reached few of the vertices says nothing of the graph."""
    if 2 * num_reached < shard.num_owned:
        return
    of_gpu = shard.trial_ns_per_distance.pop(algorithm) * farthest + GPU_NS_PER_ARC * shard.info.num_arcs
    shard.faster_on_host[algorithm] = 1e9 * seconds <= NS_PER_CALL + SLOWER * of_gpu


def max_wide_arcs(shard: Shard, algorithm: str) -> float:
    """Return after how many arcs of wide levels a search of the host is given up; never where it was requested."""
    return shard.max_wide_arcs[algorithm] if shard.faster_on_host.get(algorithm) else math.inf


def give_up(shard: Shard, algorithm: str) -> None:
    """Leave the graph to the GPU: a search of the host has become wide."""
    shard.faster_on_host[algorithm] = False
    shard.trial_ns_per_distance.pop(algorithm, None)


def searches_on_host(algorithm: str, conditions: Conditions) -> bool:
    """Return whether an algorithm runs on the host beside one GPU: when requested, or known to be faster."""
    beside_one_gpu = conditions.has_rows and conditions.has_persistent_kernels and conditions.num_ranks == 1
    return beside_one_gpu and (conditions.method == "host" or algorithm in conditions.faster_on_host)
