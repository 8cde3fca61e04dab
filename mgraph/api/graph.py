"""Define Graph and Stored: handles on shards, and on results, that are stored on the ranks."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import sys
import uuid
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mgraph.api.html import html_of_graph
from mgraph.api.labels import Run, Vertices, names_of, vertices_of_labels
from mgraph.api.progress_bar import shown
from mgraph.api.rebuild import Recipe, build_surviving, run_and_rebuild
from mgraph.cluster.base import Cluster
from mgraph.cluster.connect import connect
from mgraph.cluster.in_process import InProcessCluster
from mgraph.cluster.log import call_scope, log_of
from mgraph.edges import EdgeSource, EdgeTable
from mgraph.errors import GraphClosed, MgraphError, UsageError, WouldNotFit, refuse_pickle
from mgraph.formatting import counted, readable_seconds
from mgraph.ingest.build import LAYOUTS, Layout
from mgraph.ingest.order import Order
from mgraph.io.checks import as_flag, as_integer, check_vertices
from mgraph.io.parts import parts_of
from mgraph.planning.admission import refuse_what_cannot_fit
from mgraph.planning.placement import Placement, place_graph
from mgraph.rank_jobs.build import build_graph, build_graph_of_parts, free_bytes, free_memory
from mgraph.rank_jobs.reverse import reverse_graph
from mgraph.rank_jobs.store import discard_save, finish_save, save_part
from mgraph.shard.shard import GraphInfo
from mgraph.store.manifest import StoredGraph, folder_of, manifest_text

if TYPE_CHECKING:
    from distributed import Client

    from mgraph.api.columns import Column
    from mgraph.api.edges import Edges

# By process id: the cluster made for graphs that were built without one. They share it and keep it alive.
_shared_clusters: weakref.WeakValueDictionary[int, Cluster] = weakref.WeakValueDictionary()


class Graph:
    """Hold an immutable graph that is stored on the ranks of a cluster.

    `rmat`, `uniform`, `grid`, `ssca2`, `read`, `load`, `from_edges` and other functions return one, and so does
    `Graph.from_source` for any edge source. The memory on the ranks is freed by `close()`, at the end of a `with`
    block, or when the last reference to the handle is gone.

    Attributes
    ----------
    name
        The name of the graph in stats and benchmarks.
    info
        Facts found by the build: sizes, weights, vertex order, dropped self-loops and parallel edges.
    build_stats
        One record of the build for each rank: seconds, bytes of the shard, label_bytes in host memory, peak_bytes
        during the build (on the CPU, of the whole process), and whether the shard was loaded from a saved graph.
    placement
        How many of the cluster's ranks store the graph, and why not all.
    """

    __reduce__ = refuse_pickle("save it with g.save(folder), and load it there with mg.load(folder)")
    _repr_html_ = html_of_graph

    def __init__(
        self, cluster: Cluster, key: str, name: str, info: GraphInfo, build_stats: list[dict], placement: Placement
    ) -> None:
        self.name = name
        self.info = info
        self.build_stats = build_stats
        self.placement = placement
        self._shards = Shards(cluster, key)
        # From which the graph is built again after a loss of its ranks, if it may be.
        self._recipe: Recipe | None = None

    @classmethod
    def from_source(
        cls,
        source: EdgeSource | EdgeTable | StoredGraph,
        *,
        cluster: Cluster | Client | None = None,
        order: Order = "auto",
        num_chunks: int | None = None,
        layout: Layout = "rows",
    ) -> Graph:
        """Build a graph from an edge source or a table of edges.

        Parameters
        ----------
        source
            A generator or a reader. Every piece of a table is read once, by one rank.
        cluster
            The result of `connect`, or a `distributed.Client`; by default the result of `connect()`. If the number of
            ranks was not specified, the graph uses enough of them to hold it, and more only if that is faster.
        order
            The vertex order: `degree`, `natural` or `auto`.
        num_chunks
            The number of chunks in which the input is read. More chunks need less memory.
        layout
            `rows`; `split`, rows of which those that the device cannot hold are in host memory; `compact`, for sweeps
            only, in about half of the memory; `host`, which keeps in host memory what of that the device cannot hold;
            or `auto`, the first of these that fits (`split` on GPUs, for graphs with hubs or few arcs a vertex).
            `Graph.info.layout` is the one that was chosen.

        Raises
        ------
        InputError, WouldNotFit
            If the data is wrong; if the graph needs more memory than there is.
        """
        if layout not in LAYOUTS:
            raise UsageError(f"layout {layout!r} is not one of {', '.join(LAYOUTS)}")
        if num_chunks is not None and as_integer(num_chunks, "num_chunks") < 1:
            raise UsageError(f"num_chunks is {num_chunks}: give 1 or more, or None")
        recipe = Recipe(source, order, num_chunks, layout)
        whole = find_cluster(cluster)
        if whole.on_loss == "rebuild":
            recipe.keep()
        with call_scope():
            return build_surviving(whole, recipe, functools.partial(cls._build_on_enough, recipe))

    @classmethod
    def _build_on_enough(cls, recipe: Recipe, whole: Cluster) -> Graph:
        """Build the graph on as many ranks of a cluster as it needs."""
        chosen, placement = choose_ranks(recipe.source, whole, recipe.layout)
        try:
            return cls._build(recipe, chosen, placement)
        except WouldNotFit:
            if chosen is whole:
                raise
        # The graph needs more memory than its size suggested.
        log_of(None, "build_graph").info("%s did not fit on %s: all ranks are tried", recipe.source.name, placement)
        return cls._build(recipe, whole, Placement(whole.num_ranks, whole.num_ranks))

    @classmethod
    def _build(cls, recipe: Recipe, cluster: Cluster, placement: Placement) -> Graph:
        source = recipe.source
        how = recipe.order, recipe.num_chunks, recipe.layout
        where = cluster.num_ranks, cluster.backend
        refuse_what_cannot_fit(source, *where, recipe.layout, lambda: cluster.run(free_memory), recipe.num_chunks)
        key = f"graph-{source.name}-{uuid.uuid4().hex}"
        try:
            # Edges in memory: send each rank of another process only its own part.
            parts = None if isinstance(cluster, InProcessCluster) else parts_of(source, cluster.num_ranks)
            with shown(making(source), cluster):
                if parts is not None:
                    by_rank = cluster.run(build_graph_of_parts, key, *how, parts=parts)
                else:
                    by_rank = cluster.run(build_graph, source, key, *how)
            # Temporary copies of the input are read by the build only.
            getattr(source, "release", lambda: None)()
            infos, stats = map(list, zip(*by_rank, strict=True))
            built = cls(cluster, key, source.name, infos[0], stats, placement)
            built._recipe = None if recipe.files is None else recipe
            log_of(None, "build_graph").info(
                "built %r in %s", built, readable_seconds(max(s["seconds"] for s in stats))
            )
            return built
        except BaseException as error:
            cluster.forget(key)
            if isinstance(error, MemoryError) and not isinstance(error, WouldNotFit):
                raise _out_of_memory(f"building {source.name}", error) from error
            raise

    @property
    def num_vertices(self) -> int:
        """Number of vertices, isolated ones included; user ids are 0 .. num_vertices - 1."""
        return self.info.num_vertices

    @property
    def num_edges(self) -> int:
        """Number of undirected edges (of arcs, if directed), without self-loops and parallel edges."""
        return self.info.num_edges

    @property
    def edges(self) -> Edges:
        """The edges, back out of the ranks: `to_numpy`, `to_pandas`, `to_dask_dataframe`, `write`.

        >>> mg.from_edges([1, 0], [2, 1]).edges.to_numpy()
        (array([0, 1]), array([1, 2]))
        """
        from mgraph.api.edges import Edges

        return Edges(self)

    @property
    def labels(self) -> Column:
        """The label of each id, in rising order: a column, which stays on the ranks until it is read.

        Without labels, a vertex is called by its id.
        """
        from mgraph.api.edges import labels_column

        return labels_column(self)

    def ids_of(self, labels: Iterable[int] | Iterable[str]) -> np.ndarray:
        """Return the ids of some labels; refuse a label that no vertex has.

        >>> mg.from_edges(["b"], ["a"]).ids_of(["b"])
        array([1])
        """
        return np.array(as_vertices(self.info, self._ask, labels, "label").ids, np.int64)

    def labels_of(self, ids: Iterable[int]) -> np.ndarray:
        """Return the labels of some ids, as integers or str.

        >>> mg.from_edges(["b"], ["a"]).labels_of([1])
        array(['b'], dtype=object)
        """
        vertices = check_vertices(self.num_vertices, ids, "id")
        return names_of(self.info, self._ask, vertices)

    @property
    def cluster(self) -> Cluster:
        """The ranks that store the graph."""
        return self._shards.cluster

    @property
    def _key(self) -> str:
        return self._shards.key

    @property
    def num_ranks(self) -> int:
        """Number of ranks that store the graph."""
        return self.cluster.num_ranks

    @property
    def closed(self) -> bool:
        """Whether the graph, its cluster or the cluster's client was closed."""
        return not self._shards.close.alive or self.cluster.closed

    def close(self) -> None:
        """Free the graph's memory on the ranks; existing results remain."""
        self._shards.close()

    def reversed(self) -> Graph:
        """Return the graph with every arc turned round: a search of it follows arcs backward.

        Both graphs share their rows, so that the second one takes no memory beyond the in-rows, which searches of a
        directed graph need anyway; either may be closed first. An undirected graph is its own reverse.

        >>> g = mg.from_edges([0, 1], [1, 2], directed=True)
        >>> with g.reversed() as turned:
        ...     mg.bfs(turned, 2).distances.to_numpy().tolist()
        [2, 1, 0]
        """
        from mgraph.api.derived import derived_graph

        self._require_rows("reversed")
        return derived_graph(self, f"{self.name}-reversed", reverse_graph)

    def save(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Save the graph to a folder, which `mg.load` reads on any number of ranks.

        Every rank writes its part, so that all of them must see the folder. It is there whole or not at all; a saved
        graph that is there already is replaced with `overwrite` alone. `docs/store.md` specifies the files.

        >>> with mg.rmat(6) as g:
        ...     g.save("saved")
        """
        folder = folder_of(path)
        token = secrets.token_hex(4)
        replace = as_flag(overwrite, "overwrite")
        try:
            saved = self._run(save_part, (), folder, token, replace)
            parts, facts = zip(*saved, strict=True)
            manifest = manifest_text(self.name, self.info, facts[0], list(parts))
            self.cluster.run(finish_save, folder, token, self._key, manifest, replace)
        except BaseException:
            with contextlib.suppress(MgraphError):
                self.cluster.run(discard_save, folder, token)
            raise

    def _ask(self, job: Callable[..., Any], *args: Any) -> list[Any]:
        """Run a job that stores nothing."""
        return self._run(job, (), *args)

    def _run(self, job: Callable[..., Any], stored: Sequence[Stored], *args: Any, doing: str = "") -> list[Any]:
        """Run a job that stores its results on the ranks as `stored`, and show it as `doing`.

        Free these if it fails.
        """
        try:
            with shown(f"{doing or words_of(job)} of {self.name}", self.cluster):
                if self._recipe is not None:
                    return run_and_rebuild(self, self._recipe, stored, job, args)
                return self.cluster.run_on_stored(job, self._key, *args)
        except BaseException as error:
            for result in stored:
                result.close()
            if isinstance(error, GraphClosed):
                raise GraphClosed(
                    f"the graph {self.name} is not on its ranks any more: it was closed, or one of them was lost; "
                    "build it again"
                ) from error
            if isinstance(error, MemoryError) and not isinstance(error, WouldNotFit):
                raise _out_of_memory(f"{job.__name__} on {self.name}", error) from error
            raise

    def _replace(self, again: Graph) -> None:
        """Take over the shards of the same graph, built again."""
        self.info = again.info
        self.build_stats = again.build_stats
        self.placement = again.placement
        # Last: after an interrupt before this line the next call builds the graph once more.
        self._shards = again._shards

    def _require_open(self) -> None:
        """Raise GraphClosed if the graph was closed.

        A closed cluster raises its own error in run().
        """
        if not self._shards.close.alive:
            raise GraphClosed(f"the graph {self.name} was closed: build it again")

    def _require_rows(self, what: str) -> None:
        """Raise UsageError if the graph has no rows; `what` needs them."""
        if not self.info.has_rows:
            has = "the compact layout" if self.info.layout == "compact" else f"the layout {self.info.layout}"
            raise UsageError(
                f"{what} needs rows, and {self.name} has {has}: "
                "build it with layout='rows' (--layout rows on the command line)"
            )

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return f"<Graph {self.name}: closed>"
        info = self.info
        edges = counted(info.num_edges, "arc" if info.directed else "edge")
        weights = f"{info.weight_dtype} weights" if info.weight_dtype else "no weights"
        among = f"{self.num_ranks} of " if self.placement.is_part else ""
        ranks = among + counted(self.placement.of, f"{self.cluster.backend} rank")
        vertices = counted(info.num_vertices, "vertex") + (f" with {info.labels} labels" if info.labels else "")
        return (
            f"<Graph {self.name}: {vertices}, {edges}, "
            f"{weights}, {info.order} order, {f'{info.layout}, ' * (info.layout != 'rows')}{ranks}>"
        )


class Shards:
    """Own what the ranks store of one graph: freed on `close()` or with the last reference."""

    def __init__(self, cluster: Cluster, key: str) -> None:
        self.cluster = cluster
        self.key = key
        self.close = cluster.hold(self, key)


class Stored:
    """Own what the ranks store of one result.

    Free it on `close()` or with the last reference.

    It exists before the call that stores something under its key, so that an interrupt after that call frees it.

    Columns refer to this and not to their result: a cycle of references would delay the release of memory until the
    garbage collector runs.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.key = f"result-{os.urandom(16).hex()}"
        self.cluster = graph.cluster
        self.close = self.cluster.hold(self, self.key)

    @property
    def closed(self) -> bool:
        return not self.close.alive or self.cluster.closed

    def move_to(self, cluster: Cluster) -> None:
        """Prepare to be stored on another cluster, on which the graph was built again."""
        if cluster is not self.cluster:
            self.cluster = cluster
            self.close = cluster.hold(self, self.key)

    def run(self, job: Any, *args: Any) -> list:
        """Run a job on what the ranks store of this result."""
        return self._call(self.cluster.run_on_stored, job, args)

    def read(self, job: Any, *args: Any) -> list:
        """Run a job that only reads what the ranks store, each for itself."""
        return self._call(self.cluster.read, job, args)

    def _call(self, run: Callable[..., list], job: Any, args: Sequence[Any]) -> list:
        self.require_open()
        try:
            with shown(f"{words_of(job)} of {self.graph.name}", self.cluster):
                return run(job, self.key, *args)
        except GraphClosed as error:
            raise GraphClosed(
                f"this result about {self.graph.name}, or the graph, is not on its ranks any more: it was closed, or "
                "one of them was lost; build the graph and compute the result again"
            ) from error

    def require_open(self) -> None:
        """Raise GraphClosed if the result was closed.

        A closed cluster raises its own error in run().
        """
        if not self.close.alive:
            raise GraphClosed("this result was closed: compute it again")


def _out_of_memory(what: str, error: MemoryError) -> WouldNotFit:
    """Return the error for work that ran out of memory despite its plan."""
    why = str(error) or "an allocation failed"
    return WouldNotFit(
        f"{what} needs more memory than there is ({why}): "
        "`mgraph plan` shows how much it needs, and how many ranks would be enough"
    )


def require_graph(g: Any) -> None:
    """Raise an error unless `g` is an open graph."""
    if not isinstance(g, Graph):
        raise UsageError(f"{g!r:.80} is not a graph: make one with mg.read, mg.from_edges, mg.rmat, ...")
    g._require_open()


def as_vertices(info: GraphInfo, run: Run, given: Iterable[Any], what: str) -> Vertices:
    """Return arguments that must be vertices; those of a graph with labels are labels.

    `what` is the name of one of them in an error.
    """
    if info.labels:
        return vertices_of_labels(info, run, given, what)
    ids = check_vertices(info.num_vertices, given, what)
    return Vertices(ids, ids)


def words_of(job: Callable[..., Any]) -> str:
    """Return in words what a job does, by its name."""
    return job.__name__.replace("_", " ")


def making(edges: EdgeSource | EdgeTable | StoredGraph) -> str:
    """Return in words what makes a graph: it is built, or a saved one is loaded."""
    return f"{'loading' if isinstance(edges, StoredGraph) else 'building'} {edges.name}"


def choose_ranks(
    source: EdgeSource | EdgeTable | StoredGraph, cluster: Any, layout: str = "rows"
) -> tuple[Cluster, Placement]:
    """Choose ranks for a graph: all, or the fewer that are faster if the user gave no number."""
    whole = find_cluster(cluster)
    if not whole._may_narrow or whole.num_ranks == 1:
        return whole, Placement(whole.num_ranks, whole.num_ranks)
    first = whole.narrowed(1)  # keep a reference: it may be the one returned
    (memory,) = first.run(free_bytes)
    placement = place_graph(source, whole.num_ranks, whole.backend, memory, layout)
    return whole.narrowed(placement.num_ranks) if placement.is_part else whole, placement


def find_cluster(given: Any) -> Cluster:
    """Return the cluster to build on.

    Graphs built without one share one cluster while any of them is alive.
    """
    if isinstance(given, Cluster):
        return given
    # The user closes a client, so its cluster must not become the shared one of later graphs.
    if given is not None or _has_default_client():
        return connect(given)
    cluster = _shared_clusters.get(os.getpid())
    if cluster is None:
        cluster = _shared_clusters[os.getpid()] = connect()
    return cluster


def _has_default_client() -> bool:
    """Return whether a current Dask client exists, which `connect` prefers."""
    distributed = sys.modules.get("distributed")
    try:
        return distributed is not None and distributed.default_client() is not None
    except ValueError:
        return False
