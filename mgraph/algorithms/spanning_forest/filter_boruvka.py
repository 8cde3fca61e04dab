"""Find minimum spanning forests by Boruvka's rounds, light edges first.

    take every vertex's lightest edge, found in its row
    on every rank, by itself:
        list the lightest of its edges; they join trees in rounds until none leaves a tree
        drop all other edges inside a tree, most of them by a bit of each end: whether it is in the
        largest tree; the rest joins trees in rounds again
        now the edges taken are a forest of this rank's edges: no edge outside it can be in the result
    over all ranks:
        their forests join trees in rounds, the lightest edge of each tree being that of all ranks

Edges are ordered by (weight, lower position, higher position), so that the result is one set of edges for any number of
ranks. A heaviest edge of a cycle is in no such forest, wherever the cycle is: so a rank may drop edges outside its own
forest, and the bytes exchanged are proportional to the number of trees. On a GPU all rounds of a rank by itself take
one launch (persistent.py). A call with checkpoints may keep its state between these steps (kept_forest.py). Taking
light edges first and filtering the rest is Osipov, Sanders and Singler's (2009).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.spanning_forest.boruvka import Round, WorkList, agree_on_best, boruvka, join_and_renumber
from mgraph.algorithms.spanning_forest.kept_forest import candidates_of, forest_of, keep_forest
from mgraph.algorithms.spanning_forest.kernels import (
    EDGE_MASK,
    TOP,
    lightest_arcs,
    lightest_arcs_of_hubs,
    remove_cycles,
    take_edges,
)
from mgraph.algorithms.spanning_forest.local_edges import MIN_KEY, OwnEdges, forest_weights, order_keys
from mgraph.algorithms.spanning_forest.persistent import boruvka_persistent, join_vertices_persistent
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.base import PersistentBackend
from mgraph.backends.compile_clock import CLOCK
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard, long_rows
from mgraph.shard.user_ids import gather_states, translated
from mgraph.types import Array

# Light edges: this many for each tree that the vertices' own lightest edges leave, and at least one in SHARE.
# Then most trees are joined to one, and few of the other edges leave it.
LIGHT = 2
SHARE = 64
# Rows of this many arcs are processed by a whole block.
LIGHTEST_BLOCK_ROW = 2048
# Rows that may be long are dealt to blocks this many at a time, a thread each, or fewer if that makes fewer runs.
RUN = 256
RUNS = 4096
# Two positions below this fit one word.
PACKED_POSITIONS = 1 << 31


def msf(shard: Shard, comm: Communicator, trace: Trace, maximum: bool = False, *, is_persistent: bool = False) -> Array:
    """Return this rank's arcs of the lightest spanning forest, or of the heaviest; each edge is on one rank."""
    forest = _Forest(shard, comm, trace, forest_weights(shard, comm, maximum), is_persistent)
    found = trace.checkpoints.found
    if found is None:
        began = CLOCK.now()
        forest.take_lightest_arcs()
        # A state is made by some passes over the vertices, as this step is.
        trace.checkpoints.expect(1, began)
        own = OwnEdges(shard, forest.weights)
    else:
        own = OwnEdges(shard, forest.weights)
        forest.labels, forest.num_trees, forest.taken = forest_of(found, comm, own)
    forest.keep(own, shard.backend.xp.empty(0, np.int64), MIN_KEY)
    edges = forest.shrink(own)
    if comm.size > 1:
        edges = forest.merge(own, edges)
    return shard.backend.xp.concatenate([forest.taken, own.arcs(edges)[1]])


class _Forest:
    """The trees after the first round, the same on every rank, and the steps that join them.

    Attributes
    ----------
    labels, num_trees
        The tree of every state, and how many there are.
    taken
        This rank's arcs that are in the forest.
    """

    labels: Array
    num_trees: int
    taken: Array

    def __init__(self, shard: Shard, comm: Communicator, trace: Trace, weights: Array, is_persistent: bool) -> None:
        self.shard = shard
        self.comm = comm
        self.trace = trace
        self.backend = shard.backend
        self.weights = weights
        self.persistent: PersistentBackend | None = None
        if is_persistent:
            assert isinstance(self.backend, PersistentBackend), "the variant applies to no other"
            self.persistent = self.backend

    def take_lightest_arcs(self) -> None:
        """Add every vertex's lightest edge to the forest."""
        xp = self.backend.xp
        backend = self.backend
        rows = self.shard.rows
        num_owned = self.shard.num_owned
        base = self.comm.rank * self.shard.partition.stride
        own = xp.empty(num_owned, self.shard.partition.dtype)
        arcs = xp.empty(num_owned, np.int64)
        of_rows = (rows.indptr, rows.targets, self.weights)
        lightest_arcs[backend](0, num_owned, *of_rows, base, LIGHTEST_BLOCK_ROW, own, arcs)
        hubs = long_rows(self.shard, LIGHTEST_BLOCK_ROW - 1)
        runs = max(-(-hubs // RUN), min(hubs, RUNS))
        lightest_arcs_of_hubs[backend](0, runs, hubs, runs, *of_rows, LIGHTEST_BLOCK_ROW, own, arcs)
        if self.comm.size == 1 and self.persistent is not None:
            self.taken, self.labels, self.num_trees = join_vertices_persistent(self.persistent, own, arcs)
            self.trace.superstep("rows", num_owned, len(rows.targets))
            return
        above = gather_states(self.shard, self.comm, own)
        remove_cycles[backend](0, len(above), above)
        joined, _ = join_and_renumber(backend, above)
        self.labels = joined.labels
        self.num_trees = joined.num_trees
        # Every own vertex but the roots takes an edge.
        roots = joined.numbers[base : base + num_owned + 1] if self.comm.size > 1 else joined.numbers
        taken = xp.empty(num_owned, np.int64)
        own = above[base : base + num_owned]
        take_edges[backend](0, num_owned, own, arcs, roots, base, -1, taken)
        self.trace.superstep("rows", self.shard.partition.num_positions, len(rows.targets))
        num_roots = self.num_trees if self.comm.size == 1 else int(roots[-1] - roots[0])
        self.taken = taken[: num_owned - num_roots]

    def keep(self, own: OwnEdges, edges: Array, bound: int, taken: Array | None = None) -> None:
        """Keep the state if it is due, with these candidates, and further edges taken."""
        if self.trace.checkpoints.are_due(self.comm):
            arcs = self.taken if taken is None else self.backend.xp.concatenate([self.taken, own.arcs(taken)[1]])
            keep_forest(self.trace, own, self.labels, arcs, edges, bound)

    def shrink(self, own: OwnEdges) -> Array:
        """Return those of this rank's edges that are in their forest, light ones first."""
        light, max_key = self.list_light(own)
        num_light = len(light)
        taken, tree_of, num_trees = self.join(light, self.num_trees, last=max_key == TOP)
        self.keep(own, taken, own.first_weight_after(max_key))
        if max_key == TOP:
            self.trace.superstep("shrink", self.num_trees, own.num_edges, light=num_light, heavy=0)
            return taken
        labels = self.labels if tree_of is None else translated(self.backend, self.labels, tree_of)
        # Few edges are left; a scan of all finds them: most have both ends in one tree.
        heavy = own.between(labels, max_key + 1, TOP, own.sample(labels).capacity(), own.giant(labels))
        num_heavy = len(heavy)
        rest, _, _ = self.join(heavy, num_trees, last=True)
        self.trace.superstep("shrink", self.num_trees, own.num_edges, light=num_light, heavy=num_heavy)
        return self.backend.xp.concatenate([taken, rest])

    def list_light(self, own: OwnEdges) -> tuple[WorkList, int]:
        """List light edges between trees, or those of a checkpoint; with the largest key of these, TOP if all are."""
        found = self.trace.checkpoints.found
        if found is not None and found.bound != MIN_KEY:
            edges = candidates_of(found, own)
            return own.work_list(*own.arcs(edges), edges, self.labels), own.last_key_before(int(found.bound))
        sample = own.sample(self.labels)
        light = max(LIGHT * self.num_trees, sample.num_edges // SHARE)
        if sample.num_edges <= 2 * light:
            return own.between(self.labels, MIN_KEY, TOP, sample.capacity()), TOP
        rank = light // sample.weight
        max_key = int(np.partition(sample.keys, rank)[rank])
        return own.between(self.labels, MIN_KEY, max_key, sample.capacity(rank + 1)), max_key

    def join(self, work: WorkList, num_trees: int, last: bool = False) -> tuple[Array, Array | None, int]:
        """Join trees over edges of this rank, in one launch where possible: as boruvka()."""
        if self.persistent is not None and len(work):
            return boruvka_persistent(self.persistent, work, num_trees, last)
        return boruvka(self.backend, work, num_trees)

    def merge(self, own: OwnEdges, edges: Array) -> Array:
        """Return those of the edges that are in the forest of all ranks' edges."""
        xp = self.backend.xp
        partition = self.shard.partition
        edges = xp.sort(edges)
        rows, arcs = own.arcs(edges)
        positions = xp.stack([own.base + rows, self.shard.rows.targets[arcs].astype(np.int64)], axis=1)
        positions = partition.position(positions)
        weights = order_keys(xp, self.weights[arcs])
        # The total order again, in words: the names of edges are local to a rank.
        columns = [weights, positions[:, 0], positions[:, 1]]
        if partition.num_positions <= PACKED_POSITIONS:
            columns[1:] = [positions[:, 0] << 32 | positions[:, 1]]
        names = xp.arange(len(edges))
        work = own.work_list(rows, arcs, names, self.labels)
        checkpoints = self.trace.checkpoints

        def agree(best: Array, above: Array) -> tuple[Array, Array]:
            edges = best if own.wide else best & EDGE_MASK
            return agree_on_best(self.backend, self.comm, columns, edges, best != TOP, above)

        def more(length: int) -> bool:
            return self.comm.any(length > 0)

        def note(done: Round) -> None:
            self.trace.superstep("merge", done.num_trees, done.num_edges)
            if checkpoints.is_on:
                self.labels = translated(self.backend, self.labels, done.labels)
                rest = done.rest.keys & EDGE_MASK if done.rest.edges is None else done.rest.edges
                self.keep(own, edges[rest], TOP, edges[done.taken[done.taken != TOP]])

        self.keep(own, edges, TOP)

        taken = boruvka(self.backend, work, self.num_trees, agree, more, note)[0]
        return edges[taken[taken != TOP]]


def forest_bytes(sizes: GraphSizes) -> int:
    """Return the bytes of a spanning forest: the larger of its rounds and its edges in user ids.

    The vertices' own lightest edges are assumed to leave a tree for every four of them: on average each tree has more.
    A weight that fits 32 bits only as a float, or not at all, is tried in a copy.
    """
    owned = sizes.owned
    states = sizes.states
    vertex = sizes.vertex
    edges = sizes.edges
    trees = states // 4
    wide = sizes.weight == 8 or edges >= EDGE_MASK
    # A list may be longer than the light edges, by the error of a sample; a round makes another of it.
    listed = min(edges, 5 * max(LIGHT * trees, edges // SHARE) // 2)
    lists = 2 * listed * (2 * vertex + (16 if wide else 8)) + (8 * edges if sizes.weight == 8 else 0)
    # Of a vertex: its lightest arc, that if taken, where its edges start, the edge of the forest, and its parent.
    vertices = (4 * 8 + vertex) * owned + 3 * vertex * states + trees * (3 * 8 + 4 * vertex)
    # Of an edge: three columns, before and after they are sorted, and their order; user ids of all states.
    columns = 8 * 8 * owned + (sizes.id_bytes * states if sizes.partition.cyclic else 0)
    return max(vertices + lists, columns)


PERSISTENT = Variant(
    "spanning_forest.persistent",
    when="on rows, on GPUs, all rounds of a GPU by itself in one launch",
    applies=lambda conditions: conditions.has_rows and conditions.has_persistent_kernels,
    bytes=forest_bytes,
    loop=partial(msf, is_persistent=True),
    keeps_checkpoints=True,
)
VARIANT = Variant(
    "spanning_forest.boruvka",
    when="on rows, on any ranks, a launch for each step",
    applies=lambda conditions: conditions.has_rows,
    bytes=forest_bytes,
    loop=msf,
    keeps_checkpoints=True,
)
