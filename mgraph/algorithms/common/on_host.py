"""When the CPU searches a GPU's graph sooner than the GPU: where frontiers stay narrow for many levels.

A persistent launch takes 0.65 us for a level of one vertex, and 1.3 us for a round of shortest paths; a core has then
searched some 60 vertices. So the time of the first search of the GPU, for each vertex that it reached, is compared with
what the host should take at best. A search of the host that becomes wide is given up. One that is done is compared with
what the GPU should have taken to reach as far, by its time for each level, or unit of distance, and all arcs. In both
cases the GPU has the graph from then on.
"""

from __future__ import annotations

from mgraph.algorithms.variant import Setting
from mgraph.backends.base import PersistentBackend
from mgraph.shard.shard import Shard

# Nanoseconds of one core for a vertex and for an arc, at best: paths and cliques beside one H100.
NS_PER_VERTEX = {"bfs": 12.0, "sssp": 15.0}
NS_PER_ARC = {"bfs": 1.0, "sssp": 5.0}
# And for the call, with copies of the result to the GPU. A shorter search on the GPU shows nothing.
NS_PER_CALL = 200_000
# Of the GPU, for an arc beside the levels or rounds: some 10 G arcs a second.
GPU_NS_PER_ARC = 0.1
# The host is slower if it takes so many times the GPU's time.
SLOWER = 1.1


def note_gpu_time(shard: Shard, algorithm: str, nanoseconds: int, num_reached: int, farthest: float) -> bool:
    """Note how long a search of the GPU took to reach so many vertices, and distances up to `farthest`.

    Return whether the host should be faster.
    """
    assert isinstance(shard.backend, PersistentBackend), "no other is compared"
    if algorithm not in shard.faster_on_host and nanoseconds > NS_PER_CALL:
        of_vertex = NS_PER_VERTEX[algorithm] + NS_PER_ARC[algorithm] * shard.info.mean_degree
        is_faster = shard.backend.is_beside_host and nanoseconds > NS_PER_CALL + of_vertex * num_reached
        shard.faster_on_host[algorithm] = is_faster
        shard.gpu_ns_per_distance[algorithm] = nanoseconds / max(farthest, 1)
    return shard.faster_on_host.get(algorithm, False)


def note_host_time(shard: Shard, algorithm: str, seconds: float, num_reached: int, farthest: float) -> None:
    """Note how long a search of the host took: the GPU has the graph again if it should have been faster.

    A search that reached few of the vertices says nothing of the graph.
    """
    per_distance = shard.gpu_ns_per_distance.get(algorithm)
    if per_distance is None or 2 * num_reached < shard.num_owned:
        return
    of_gpu = per_distance * farthest + GPU_NS_PER_ARC * shard.info.num_arcs
    if 1e9 * seconds > NS_PER_CALL + SLOWER * of_gpu:
        shard.faster_on_host[algorithm] = False


def searches_on_host(algorithm: str, setting: Setting) -> bool:
    """Return whether an algorithm runs on the host beside one GPU: when asked for, or known to be faster."""
    beside_one_gpu = setting.layout == "rows" and setting.has_persistent_kernels and setting.num_ranks == 1
    return beside_one_gpu and (setting.method == "host" or algorithm in setting.faster_on_host)
