"""Validate bridges by rules, and by a forest of another search, on the ranks that store them.

1. Each is an edge of the forest, once: a bridge is in every forest that spans its component.
2. No edge of the graph leads past it, out of the vertices below it in the forest.
3. Past every other edge of the forest there is one.

Rules 2 and 3 are told by sums: every edge outside the forest has a random word, which is added at one end and taken
away at the other. Below an edge of the forest the words of those that do not lead past it cancel; where some do, their
sum is 0 with a probability of 2^-64. The search is validated by rules of its own.
"""

from __future__ import annotations

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.shard.edges_by_user import arcs_of_rows
from mgraph.shard.shard import Shard
from mgraph.types import Array, none_of
from mgraph.validation.bridges_kernels import add_up, add_words
from mgraph.validation.traversal import Offenders, Violation, count_offenders


def validate_bridges(
    shard: Shard, comm: Communicator, sources: Array, targets: Array, levels: Array, parents: Array
) -> list[Violation]:
    """Return the rules that this rank's bridges, and its range of user ids, violate: the same list on every rank.

    `levels` and `parents` are those of a search, by user id; without a parent that is the top of the dtype.
    """
    backend = shard.backend
    xp = backend.xp
    n = shard.info.num_vertices
    lo, hi = shard.user_range
    none = none_of(parents.dtype)
    in_forest = Offenders(1, "a bridge is no edge of a forest, or there twice")
    passed = Offenders(2, "an edge leads past the bridge to this vertex")
    missing = Offenders(3, "no edge leads past the one to this vertex, which is no bridge")
    below = xp.where(parents[targets] == sources, targets, sources)
    is_edge = (parents[below] == sources + targets - below) & (sources < targets)
    in_forest.add(sources[~is_edge])
    claims = xp.bincount(below[is_edge], minlength=n).astype(np.int64)
    words = xp.zeros(n, np.int64)
    for near, far in arcs_of_rows(shard, comm, parents.dtype):
        add_words[backend](0, len(near), near, far, parents, words)
    if comm.size > 1:
        comm.allreduce(claims, "sum")
        comm.allreduce(words, "sum")
    sums = backend.to_host(words)
    add_up(np.argsort(-backend.to_host(levels), kind="stable"), backend.to_host(parents), none, sums)
    users = xp.arange(lo, hi)
    is_passed = backend.to_device(sums[lo:hi]) != 0
    in_forest.add(users[claims[lo:hi] > 1])
    passed.add(users[(claims[lo:hi] > 0) & is_passed])
    missing.add(users[(claims[lo:hi] == 0) & ~is_passed & (parents[lo:hi] != none)])
    return count_offenders(comm, [in_forest, passed, missing])


def bridges_check_bytes(shard: Shard, chunk: int) -> int:
    """Return the temporary bytes of validate_bridges: tables of all vertices, and some arcs."""
    return 48 * shard.info.num_vertices + 32 * min(chunk, len(shard.rows.targets))
