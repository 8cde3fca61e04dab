"""Graph: what a user holds. A handle on shards that live on the ranks, and the ways to make one."""

from __future__ import annotations

import os
import sys
import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mgraph.cluster.base import Cluster
from mgraph.cluster.connect import connect
from mgraph.cluster.in_process import InProcessCluster
from mgraph.edges import EdgeSource
from mgraph.errors import GraphClosed, UsageError, WouldNotFit
from mgraph.formatting import counted
from mgraph.ingest.build import LAYOUTS
from mgraph.io.arrays import ArrayEdges, CsrEdges
from mgraph.io.checks import as_integer
from mgraph.io.parts import in_parts
from mgraph.planning.admission import refuse_what_cannot_fit
from mgraph.planning.placement import ARCS_A_RANK, Placement, place_graph
from mgraph.rank_jobs.jobs import build_graph, build_graph_of_parts, free_bytes, free_memory
from mgraph.shard.shard import GraphInfo

if TYPE_CHECKING:
    from mgraph.api.results import Kept

# Clusters that were made because none was given, shared by the graphs that keep them alive.
_shared_clusters: weakref.WeakValueDictionary[int, Cluster] = weakref.WeakValueDictionary()


class Graph:
    """A graph on the ranks of a cluster, immutable.

    Made by `rmat`, `uniform`, `grid`, `ssca2`, `read`, `from_edges`, `from_csr`, `from_scipy`, or from
    any edge source by `Graph.from_source`. `close()`, the end of a `with` block or the end of the
    handle's life frees the memory on the ranks.

    Attributes
    ----------
    name
        What the graph is called in stats and benchmarks.
    info
        What was found while it was built: sizes, weights, order, dropped loops and parallel edges.
    build_stats
        Of the build, by rank: seconds, bytes that stay, peak_bytes that it took (on the CPU, of the process).
    cluster, placement
        The ranks that hold it, and in words how many of those there are, and why not all.
    """

    def __init__(
        self, cluster: Cluster, key: str, name: str, info: GraphInfo, build_stats: list[dict], placement: Placement
    ) -> None:
        self.cluster, self.key, self.name, self.info, self.build_stats = cluster, key, name, info, build_stats
        self.placement = placement
        self._finalizer = cluster.hold(self, key)

    @classmethod
    def from_source(
        cls,
        source: EdgeSource,
        *,
        cluster: Any = None,
        order: str = "auto",
        num_chunks: int | None = None,
        layout: str = "rows",
    ) -> Graph:
        """Build a graph from an edge source.

        Parameters
        ----------
        source
            A generator or a reader.
        cluster
            What `connect` returned, or a `distributed.Client`; by default what `connect()` finds. Where nobody said
            how many of several GPUs to use, the graph is put on as many as make it faster, and as many as hold it.
        order
            `degree`, `natural` or `auto`.
        num_chunks
            In how many parts the input is read; more take less memory.
        layout
            `rows`; `compact`, about half of the memory, for sweeps alone; or `auto`, compact where rows would
            not fit. `Graph.info.layout` tells which it is.
        """
        if layout not in LAYOUTS:
            raise UsageError(f"layout {layout!r} is not one of {', '.join(LAYOUTS)}")
        if num_chunks is not None and as_integer(num_chunks, "num_chunks") < 1:
            raise UsageError(f"num_chunks is {num_chunks}: give 1 or more, or None")
        whole = _cluster(cluster)
        chosen, placement = choose_ranks(source, whole, layout)
        try:
            return cls._build(source, chosen, order, num_chunks, layout, placement)
        except WouldNotFit:
            if chosen is whole:
                raise
        # It takes more than its size told.
        return cls._build(source, whole, order, num_chunks, layout, Placement(whole.num_ranks, whole.num_ranks))

    @classmethod
    def _build(
        cls,
        source: EdgeSource,
        cluster: Cluster,
        order: str,
        num_chunks: int | None,
        layout: str,
        placement: Placement,
    ) -> Graph:
        refuse_what_cannot_fit(source, cluster.num_ranks, cluster.backend, layout, lambda: cluster.run(free_memory))
        key = f"graph-{uuid.uuid4().hex}"
        try:
            if isinstance(source, (ArrayEdges, CsrEdges)) and not isinstance(cluster, InProcessCluster):
                # Arrays of this process: each rank is sent its own part of them alone.
                parts = in_parts(source, cluster.num_ranks)
                answers = cluster.run(build_graph_of_parts, key, order, num_chunks, layout, parts=parts)
            else:
                answers = cluster.run(build_graph, source, key, order, num_chunks, layout)
            # Copies of packed files, of which a build is all that reads them.
            getattr(source, "release", lambda: None)()
            infos, stats = map(list, zip(*answers, strict=True))
            return cls(cluster, key, source.name, infos[0], stats, placement)
        except BaseException as error:
            cluster.forget(key)
            if isinstance(error, MemoryError) and not isinstance(error, WouldNotFit):
                raise _out_of_memory(f"building {source.name}", error) from error
            raise

    @property
    def num_vertices(self) -> int:
        """Vertices, with or without edges; their ids are 0 .. num_vertices - 1."""
        return self.info.num_vertices

    @property
    def num_edges(self) -> int:
        """Undirected edges, or arcs of a directed graph, without loops and parallel ones."""
        return self.info.num_edges

    @property
    def num_ranks(self) -> int:
        """Ranks that hold the graph."""
        return self.cluster.num_ranks

    @property
    def closed(self) -> bool:
        """Whether its memory was freed: it was closed, or its cluster or the client of that was."""
        return not self._finalizer.alive or self.cluster.closed

    def close(self) -> None:
        """Free the graph's memory on the ranks; results already found stay."""
        self._finalizer()

    def answer(self, job: Callable[..., Any], kept: Sequence[Kept], *args: Any) -> list[Any]:
        """Run a job of this graph whose answers stay on the ranks as `kept`; whatever fails leaves none there."""
        try:
            return self.cluster.run_on_kept(job, self.key, *args)
        except BaseException as error:
            for one in kept:
                one.close()
            if isinstance(error, GraphClosed):
                raise GraphClosed(
                    f"the graph {self.name} is not on its ranks any more: it was closed, or one of them was lost; "
                    "build it again"
                ) from error
            if isinstance(error, MemoryError) and not isinstance(error, WouldNotFit):
                raise _out_of_memory(f"{job.__name__} on {self.name}", error) from error
            raise

    def require_open(self) -> None:
        """Raise GraphClosed if it was closed by itself; a closed cluster says so when it is asked to run."""
        if not self._finalizer.alive:
            raise GraphClosed(f"the graph {self.name} was closed: build it again")

    def require_rows(self, what: str) -> None:
        """Raise UsageError if the graph has no rows, which `what` needs."""
        if self.info.layout == "compact":
            raise UsageError(
                f"{what} needs rows, and {self.name} has the compact layout: "
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
        return (
            f"<Graph {self.name}: {counted(info.num_vertices, 'vertex')}, {edges}, "
            f"{weights}, {info.order} order, {'compact, ' * (info.layout == 'compact')}{ranks}>"
        )


def _out_of_memory(what: str, error: MemoryError) -> WouldNotFit:
    """Return the error of work whose memory ran out behind a plan that found room for it."""
    why = str(error) or "an allocation failed"
    return WouldNotFit(
        f"{what} takes more memory than there is ({why}): "
        "`mgraph plan` tells what it takes, and how many ranks would do"
    )


def require_graph(g: Any) -> None:
    """Raise an error unless `g` is a graph that was not closed."""
    if not isinstance(g, Graph):
        raise UsageError(f"{g!r:.80} is not a graph: make one with mg.read, mg.from_edges, mg.rmat, ...")
    g.require_open()


def choose_ranks(source: EdgeSource, cluster: Any, layout: str = "rows") -> tuple[Cluster, Placement]:
    """Return the ranks to put a graph on: all of the cluster, or as many as make it faster where nobody said."""
    whole = _cluster(cluster)
    if not whole.may_narrow or whole.num_ranks == 1 or whole.backend not in ARCS_A_RANK:
        return whole, Placement(whole.num_ranks, whole.num_ranks)
    first = whole.narrowed(1)  # held, as it may be the one that is returned
    (memory,) = first.run(free_bytes)
    placement = place_graph(source, whole.num_ranks, whole.backend, memory, layout)
    return whole.narrowed(placement.num_ranks) if placement.is_part else whole, placement


def _cluster(given: Any) -> Cluster:
    """Return the cluster to build on; one that is made because none is given is shared while any graph holds it."""
    if isinstance(given, Cluster):
        return given
    # A client is its owner's to close: no later graph may find its cluster among the shared ones.
    if given is not None or _has_default_client():
        return connect(given)
    cluster = _shared_clusters.get(os.getpid())
    if cluster is None:
        cluster = _shared_clusters[os.getpid()] = connect()
    return cluster


def _has_default_client() -> bool:
    """Return whether there is a current Dask client, which `connect` prefers to what is shared."""
    distributed = sys.modules.get("distributed")
    try:
        return distributed is not None and distributed.default_client() is not None
    except ValueError:
        return False
