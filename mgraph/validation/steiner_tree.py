"""Validate a Steiner tree by rules, on the ranks.

1. Every edge is one of the graph, with its weight (1 where edges count alike), and there once.
2. The edges are one tree.
3. Every terminal is in it.
4. Every leaf is a terminal.

Every rank has all edges of the tree, and looks for them among its arcs. How heavy the tree is, compared with the
lightest one, is not checked: to find that one is hard. It follows from the way in which it is made.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.steiner_tree.terminal_tree import take_joining
from mgraph.comm.base import Communicator
from mgraph.shard.edges_by_user import arcs_of_rows
from mgraph.shard.shard import Shard
from mgraph.types import vertex_dtype
from mgraph.validation.traversal import Violation

ENDS = np.dtype([("source", np.int64), ("target", np.int64)])


def validate_tree(
    shard: Shard, comm: Communicator, columns: list[np.ndarray], terminals: np.ndarray, *, weighted: bool
) -> list[Violation]:
    """Return the rules that a tree violates: the same list on every rank.

    `columns` are sources, targets and weights of this rank's part of the edges.
    """
    sources, targets, weights = (np.concatenate(comm.alltoallv([column] * comm.size)) for column in columns)
    # In one order for any number of ranks, so that they find the same violations.
    order = np.lexsort((targets, sources))
    sources, targets, weights = sources[order], targets[order], weights[order]
    n = shard.info.num_vertices
    is_edge = (sources >= 0) & (sources < targets) & (targets < n)
    if not is_edge.all():
        wrong = sources[~is_edge]
        return [Violation(1, "an end is not a vertex, or not below the other", len(wrong), int(wrong.min()))]
    found = []
    times = _times_in_graph(shard, comm, sources, targets, weights, weighted=weighted)
    if (times != 1).any():
        wrong = sources[times != 1]
        text = "the edge is not in the graph with its weight, or twice in the tree"
        found.append(Violation(1, text, len(wrong), int(wrong.min())))
    vertices, places = np.unique(np.concatenate([sources, targets]), return_inverse=True)
    taken = take_joining(*places.reshape(2, -1), np.arange(len(vertices)))
    if not taken.all():
        found.append(Violation(2, "the edge closes a cycle", int((~taken).sum()), int(sources[~taken].min())))
    elif len(sources) and len(sources) != len(vertices) - 1:
        found.append(Violation(2, "the edges are several trees", len(vertices) - len(sources), int(vertices[0])))
    # A single terminal is a tree without edges.
    outside = terminals[~np.isin(terminals, vertices)] if len(terminals) > 1 or len(sources) else terminals[:0]
    if len(outside):
        found.append(Violation(3, "the terminal is not in the tree", len(outside), int(outside[0])))
    leaves = vertices[np.bincount(places.ravel(), minlength=len(vertices)) == 1]
    others = leaves[~np.isin(leaves, terminals)]
    if len(others):
        found.append(Violation(4, "the leaf is no terminal", len(others), int(others[0])))
    return found


def tree_check_bytes(shard: Shard) -> int:
    """Return the temporary bytes of validate_tree: a mark of each vertex, and a chunk of arcs."""
    return shard.info.num_vertices + 32 * min(shard.backend.limits.chunk_edges, len(shard.rows.targets))


def _times_in_graph(
    shard: Shard, comm: Communicator, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray, *, weighted: bool
) -> np.ndarray:
    """Return how often each edge is in the graph with its weight, or in the tree if that is more often."""
    xp = shard.backend.xp
    n = shard.info.num_vertices
    edges = np.empty(len(sources), ENDS)
    edges["source"] = sources
    edges["target"] = targets
    order = np.argsort(edges)
    edges = edges[order]
    in_tree = xp.zeros(n, bool)
    in_tree[shard.backend.to_device(np.concatenate([sources, targets]))] = True
    times = np.zeros(len(edges), np.int64)
    of_rows = shard.rows.weights if weighted else None
    begin = 0
    for near, far in arcs_of_rows(shard, comm, vertex_dtype(n)):
        arcs = xp.flatnonzero((near < far) & in_tree[near] & in_tree[far])
        of_arcs = xp.ones(len(arcs), np.int64) if of_rows is None else of_rows[begin + arcs]
        begin += len(near)
        ends = np.empty(len(arcs), ENDS)
        ends["source"] = shard.backend.to_host(near[arcs])
        ends["target"] = shard.backend.to_host(far[arcs])
        places = np.minimum(np.searchsorted(edges, ends), len(edges) - 1)
        is_there = edges[places] == ends
        is_there &= weights[order][places] == shard.backend.to_host(of_arcs)
        np.add.at(times, places[is_there], 1)
    comm.allreduce(times, "sum")
    _, inverse, counts = np.unique(edges, return_inverse=True, return_counts=True)
    times *= counts[inverse]
    back = np.empty_like(times)
    back[order] = times
    return back
