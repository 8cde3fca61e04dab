"""When the CPU searches a GPU's graph sooner than the GPU: where frontiers stay narrow for many levels.

A persistent launch takes 0.65 us for a level of one vertex, and 1.3 us for a round of shortest paths; a core has then
searched some 60 vertices. So the time of a search on the GPU is compared with that of the same on the host, as its
vertices and arcs predict it. The rate is that of the shape, not of the root: it is known after one search.
"""

from __future__ import annotations

from mgraph.algorithms.variant import Setting
from mgraph.backends.base import PersistentBackend
from mgraph.shard.shard import Shard

# Nanoseconds of one core for a vertex and for an arc: on an EPYC, by `bench/shapes.py` on paths, grids and cliques.
NS_PER_VERTEX = {"bfs": 15.0, "sssp": 120.0}
NS_PER_ARC = {"bfs": 2.0, "sssp": 5.0}
# And for the call, with copies of the result to the GPU.
NS_PER_CALL = 200_000


def note_time(shard: Shard, algorithm: str, nanoseconds: int, num_reached: int) -> bool:
    """Note whether the host is faster than a search of the GPU was, which took so long to reach so many vertices."""
    assert isinstance(shard.backend, PersistentBackend), "no other is compared"
    of_vertex = NS_PER_VERTEX[algorithm] + NS_PER_ARC[algorithm] * shard.info.mean_degree
    is_faster = shard.backend.is_beside_host and nanoseconds > NS_PER_CALL + of_vertex * num_reached
    shard.faster_on_host[algorithm] = is_faster
    return is_faster


def searches_on_host(algorithm: str, setting: Setting) -> bool:
    """Return whether an algorithm runs on the host beside one GPU: when asked for, or known to be faster."""
    beside_one_gpu = setting.layout == "rows" and setting.has_persistent_kernels and setting.num_ranks == 1
    return beside_one_gpu and (setting.method == "host" or algorithm in setting.faster_on_host)
