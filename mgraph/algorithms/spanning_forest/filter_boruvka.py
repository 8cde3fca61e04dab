"""Find minimum spanning forests by Boruvka's rounds, light edges first.

    every vertex but hubs takes its lightest edge, found in its row
    list the light edges between trees, and join these
    list the other edges between trees, and join these: where one tree has most vertices, from the rows outside it

    join: on every rank, by itself, trees are joined over its list in rounds; the edges taken are a forest of the list
        every rank gathers the forests of all ranks, and joins trees over these

Edges are ordered by (weight, lower position, higher position), so that the result is one set of edges for any number of
ranks. A heaviest edge of a cycle is in no such forest, wherever the cycle is: so a rank may drop edges outside its own
forest, and the bytes gathered are proportional to the number of trees. After the light edges one tree has most
vertices, hubs among them: few arcs are outside. On a GPU all rounds of a rank by itself take one launch
(persistent.py). A call with checkpoints may keep its state between these steps (kept_forest.py). Taking light edges
first and filtering the rest is Osipov, Sanders and Singler's (2009).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.spanning_forest.boruvka import WorkList, boruvka, join_and_renumber
from mgraph.algorithms.spanning_forest.kept_forest import candidates_of, forest_of, keep_forest
from mgraph.algorithms.spanning_forest.kernels import TOP, lightest_arcs, remove_cycles, take_edges
from mgraph.algorithms.spanning_forest.local_edges import (
    ALL,
    MIN_KEY,
    Bound,
    OwnEdges,
    forest_weights,
    name_bits,
)
from mgraph.algorithms.spanning_forest.persistent import boruvka_persistent, join_vertices_persistent
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.base import PersistentBackend
from mgraph.backends.compile_clock import CLOCK
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_states, translated
from mgraph.types import Array

# Light edges: this many for each tree that the vertices' own lightest edges leave, and at least one in SHARE.
# Then most trees are joined to one, and few of the other edges leave it.
LIGHT = 2
SHARE = 256
# Of an edge that all ranks gather: columns, their order, ends, a key, and what a round makes of these.
GATHERED_BYTES = 80
# Rows outside the largest tree are few if they have at most one in FEW_OUTSIDE of the arcs.
FEW_OUTSIDE = 4
# Vertices of this many arcs, hubs, take no edge: others' lead to them.
HUB = 2048


def msf(shard: Shard, comm: Communicator, trace: Trace, maximum: bool = False, *, is_persistent: bool = False) -> Array:
    """Return this rank's arcs of the lightest spanning forest, or of the heaviest; each edge is on one rank."""
    weights, lowest = forest_weights(shard, comm, maximum)
    forest = _Forest(shard, comm, trace, OwnEdges(shard, weights), is_persistent)
    found = trace.checkpoints.found
    if found is None:
        began = CLOCK.now()
        forest.take_lightest_arcs(lowest)
        # A state is made by some passes over the vertices, as this step is.
        trace.checkpoints.expect(1, began)
        forest.keep(shard.backend.xp.empty(0, np.int64), MIN_KEY)
    else:
        forest.labels, forest.num_trees, taken = forest_of(found, comm, forest.own)
        forest.taken.append(taken)
    if found is None or found.bound == MIN_KEY:
        bound = forest.join_light()
    else:
        bound = int(found.bound)
        forest.join_candidates(candidates_of(found, forest.own), bound)
    if bound != TOP:
        forest.keep(shard.backend.xp.empty(0, np.int64), bound)
        forest.join_heavy()
    return shard.backend.xp.concatenate(forest.taken)


class _Forest:
    """The trees so far, the same on every rank except for their numbers, and the steps that join them.

    Attributes
    ----------
    labels, num_trees
        The tree of every state, and how many there are.
    taken
        This rank's arcs that are in the forest, in pieces.
    """

    labels: Array
    num_trees: int

    def __init__(self, shard: Shard, comm: Communicator, trace: Trace, own: OwnEdges, is_persistent: bool) -> None:
        self.shard = shard
        self.comm = comm
        self.trace = trace
        self.backend = shard.backend
        self.own = own
        self.taken: list[Array] = []
        self.persistent: PersistentBackend | None = None
        if is_persistent:
            assert isinstance(self.backend, PersistentBackend), "the variant applies to no other"
            self.persistent = self.backend

    def take_lightest_arcs(self, lowest: int) -> None:
        """Add the lightest edge of every vertex but hubs to the forest."""
        xp = self.backend.xp
        rows = self.shard.rows
        num_owned = self.shard.num_owned
        base = self.own.base
        own = xp.empty(num_owned, self.shard.partition.dtype)
        arcs = xp.empty(num_owned, np.int64)
        lightest_arcs[self.backend](
            0, num_owned, rows.indptr, rows.targets, self.own.weights, base, HUB, lowest, own, arcs
        )  # fmt: skip
        if self.comm.size == 1 and self.persistent is not None:
            taken, self.labels, self.num_trees = join_vertices_persistent(self.persistent, own, arcs)
            self.taken.append(taken)
            self.trace.superstep("rows", num_owned, len(rows.targets))
            return
        above = gather_states(self.shard, self.comm, own)
        remove_cycles[self.backend](0, len(above), above)
        joined, _ = join_and_renumber(self.backend, above)
        self.labels = joined.labels
        self.num_trees = joined.num_trees
        # Every own vertex but the roots takes an edge.
        roots = joined.numbers[base : base + num_owned + 1] if self.comm.size > 1 else joined.numbers
        taken = xp.empty(num_owned, np.int64)
        own = above[base : base + num_owned]
        take_edges[self.backend](0, num_owned, own, arcs, roots, base, -1, taken)
        self.trace.superstep("rows", self.shard.partition.num_positions, len(rows.targets))
        num_roots = self.num_trees if self.comm.size == 1 else int(roots[-1] - roots[0])
        self.taken.append(taken[: num_owned - num_roots])

    def keep(self, candidates: Array, bound: int) -> None:
        """Keep the state if it is due, with the arcs of candidates below a weight; collective."""
        if self.trace.checkpoints.are_due(self.comm):
            taken = self.backend.xp.concatenate(self.taken)
            keep_forest(self.trace, self.own, self.labels, taken, candidates, bound)

    def join_light(self) -> int:
        """Join trees over the light edges; return a weight below which all edges are done, TOP if all are."""
        sample = self.own.sample(self.labels)
        light = max(LIGHT * self.num_trees // self.comm.size, sample.num_edges // SHARE)
        few = sample.num_edges <= 2 * light
        last = ALL if few else sample.bound(light)
        if self.comm.size > 1:
            # The least bound of all ranks.
            weight = int(self.comm.allreduce(np.array([last.weight]), "min")[0])
            position = last.position if last.weight == weight else TOP
            last = Bound(weight, int(self.comm.allreduce(np.array([position]), "min")[0]))
        if last.weight == TOP:
            last = ALL  # also of the edges of this weight
        work = self.own.up_to(self.labels, last, sample.capacity(last))
        self.join(work, None, last.weight, "light", self.own.num_arcs)
        return last.weight

    def join_candidates(self, arcs: Array, bound: int) -> None:
        """Join trees over the candidates of a checkpoint."""
        arcs = self.own.in_order(arcs)
        self.join(self.own.work_list(arcs, self.labels), arcs, bound, "light", 0)

    def join_heavy(self) -> None:
        """Join trees over the other edges, listed from outside the largest tree where few arcs are outside."""
        outside = self.own.rows_outside(self.labels)
        num_outside, num_arcs = self.comm.sum(outside.num_arcs, self.own.num_arcs)
        if num_outside * FEW_OUTSIDE > num_arcs:
            del outside
            work = self.own.up_to(self.labels, ALL, self.own.sample(self.labels).capacity(ALL))
            self.join(work, None, TOP, "heavy", self.own.num_arcs)
            return
        capacity = max(LIGHT * self.num_trees, self.own.num_arcs // SHARE)
        arcs = self.own.in_order(self.own.outside(self.labels, outside, capacity))
        self.join(self.own.work_list(arcs, self.labels), arcs, TOP, "outside", outside.num_arcs)

    def join(self, work: WorkList, arcs: Array | None, bound: int, step: str, scanned: int) -> None:
        """Join trees over this rank's list, then over the forests of all ranks' lists.

        Parameters
        ----------
        arcs
            The arc of each edge by its name; None if names are arcs.
        bound
            No edge below this weight that is not in a list is needed.
        step, scanned
            What the superstep is called, and how many arcs were scanned for the list.
        """
        is_last = bound == TOP or self.comm.size > 1
        listed = len(work)
        taken, tree_of, num_trees = self._join_list(work, is_last)
        taken = taken if arcs is None else arcs[taken]
        self.trace.superstep(step, self.num_trees, scanned, listed=listed)
        if self.comm.size > 1:
            self.keep(taken, bound)
            taken, tree_of, num_trees = self._join_all(taken, bound == TOP)
        self.taken.append(taken)
        if bound != TOP and tree_of is not None:
            self.labels = translated(self.backend, self.labels, tree_of)
            self.num_trees = num_trees

    def _join_list(self, work: WorkList, is_last: bool) -> tuple[Array, Array | None, int]:
        """Join trees over a list, in one launch where possible: as boruvka()."""
        # A launch numbers trees in any order. A state that is kept has the numbers of all ranks.
        if self.persistent is not None and len(work) and not self.trace.checkpoints.is_on:
            return boruvka_persistent(self.persistent, work, self.num_trees, is_last)
        return boruvka(self.backend, work, self.num_trees)

    def _join_all(self, arcs: Array, is_last: bool) -> tuple[Array, Array | None, int]:
        """Join trees over the forests of all ranks' lists: as boruvka(), but for this rank's arcs."""
        work, places = self.own.gather(self.comm, arcs, self.labels)
        listed = len(work)
        taken, tree_of, num_trees = self._join_list(work, is_last)
        self.trace.superstep("merge", self.num_trees, 0, listed=listed)
        places = places[taken]
        return arcs[places[(places >= 0) & (places < len(arcs))]], tree_of, num_trees


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
    wide = 2 * edges >= 1 << name_bits(sizes.weight)
    ranks = sizes.partition.num_ranks
    # A list may be longer than the light edges, by the error of a sample; a round makes another of it.
    listed = min(edges, 5 * max(LIGHT * trees // ranks, edges // SHARE) // 2)
    lists = 2 * listed * (2 * vertex + (16 if wide else 8)) + (8 * edges if sizes.weight == 8 else 0)
    # Of a vertex: its lightest arc, that if taken, its place and its arcs' among those outside, and its parent.
    vertices = (4 * 8 + vertex) * owned + 3 * vertex * states + trees * (3 * 8 + 4 * vertex)
    if ranks > 1:
        # Every rank has the forests of all ranks' lists: of all edges where these are few, else of the light ones.
        gathered = ranks * edges if ranks * edges <= 2 * LIGHT * trees else LIGHT * trees
        lists = max(lists, GATHERED_BYTES * gathered)
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
