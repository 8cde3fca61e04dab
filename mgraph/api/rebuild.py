"""Build a graph again after a loss of its ranks, from the recipe that it keeps, and repeat the call."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mgraph.cluster.base import Cluster
from mgraph.cluster.log import call_scope, log_of
from mgraph.edges import EdgeSource, EdgeTable, is_table
from mgraph.errors import GangLost, GraphClosed, InputError, UsageError
from mgraph.io.identities import changed_file, identities
from mgraph.planning.placement import Placement
from mgraph.signals import run_locked
from mgraph.store.manifest import StoredGraph

if TYPE_CHECKING:
    from mgraph.api.graph import Graph, Shards, Stored

_Call = TypeVar("_Call", bound=Callable[..., Any])

# How often one call builds its graph again: a graph that ends its workers by its own size would do so for ever.
MAX_REBUILDS = 3


@dataclass
class Recipe:
    """What a graph is built from, and how; with the identities of its files, it can be built again.

    Attributes
    ----------
    files
        None if the graph is not to be built again.
    lock
        Held while the graph is built again: calls of other threads wait for it.
    num_rebuilds
        How often the graph was built again, in all its calls.
    """

    source: EdgeSource | EdgeTable | StoredGraph
    order: str
    num_chunks: int | None
    layout: str
    files: dict[Any, Any] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    num_rebuilds: int = 0

    def keep(self) -> None:
        """Note the identities of the files; refuse what can be read only once."""
        self.files = identities(self.source)
        if is_table(self.source) and not self.files:
            raise in_memory(self.source.name)

    def require_unchanged(self) -> None:
        """Raise InputError if a file is not what it was when the graph was built."""
        if (file := changed_file(self.files or {})) is not None:
            raise InputError(f"{self.source.name} cannot be built again: {file} has changed since it was read")


def in_memory(name: str) -> UsageError:
    """Return the error of edges that no file or generator has, on a cluster that builds lost graphs again."""
    return UsageError(
        f"{name} is in memory and cannot be built again after a loss of ranks, as on_loss='rebuild' asks: save it by "
        "way of a cluster with on_loss='error', g.save(folder), and load it here, mg.load(folder)"
    )


def run_and_rebuild(
    g: Graph, recipe: Recipe, stored: Sequence[Stored], job: Callable[..., Any], args: tuple
) -> list[Any]:
    """Run a job on a graph; after a loss of ranks build the graph again, and repeat the job: one call in logs."""
    with call_scope():
        return _run_and_rebuild(g, recipe, stored, job, args)


def _run_and_rebuild(
    g: Graph, recipe: Recipe, stored: Sequence[Stored], job: Callable[..., Any], args: tuple
) -> list[Any]:
    shards = g._shards
    cause = ""
    for rebuilds_left in reversed(range(MAX_REBUILDS + 1)):
        try:
            if cause:
                shards = run_locked(recipe.lock, functools.partial(_rebuilt, g, recipe, shards, cause))
            for result in stored:
                result.move_to(shards.cluster)
            return shards.cluster.run_on_stored(job, shards.key, *args)
        except (GangLost, GraphClosed) as error:
            is_lost = isinstance(error, GangLost) or error.key == shards.key
            if not rebuilds_left or not is_lost or not shards.close.alive:
                raise
            cause = _cause(error)
    raise AssertionError


def repeated_after_loss(call: _Call) -> _Call:
    """Begin a call of several jobs again if a loss of ranks takes what one job has stored there for the next.

    Jobs build the graph again by themselves. A call during which that happened MAX_REBUILDS times is not begun again,
    however such calls are nested.
    """

    @functools.wraps(call)
    def run(g: Graph, *args: Any, **options: Any) -> Any:
        recipe = getattr(g, "_recipe", None)
        before = 0 if recipe is None else recipe.num_rebuilds
        for repeats_left in reversed(range(MAX_REBUILDS + 1)):
            try:
                return call(g, *args, **options)
            except (GangLost, GraphClosed):
                if recipe is None or not g._shards.close.alive:
                    raise
                if not repeats_left or recipe.num_rebuilds - before >= MAX_REBUILDS:
                    raise
        raise AssertionError

    return cast(_Call, run)


def build_surviving(cluster: Cluster, recipe: Recipe, build: Callable[[Cluster], Graph]) -> Graph:
    """Build a graph; if ranks are lost meanwhile, build it on those that are left, if it may be built again."""
    for rebuilds_left in reversed(range(MAX_REBUILDS + 1)):
        try:
            return build(cluster)
        except GangLost as error:
            if recipe.files is None or not rebuilds_left:
                raise
            _log(_cause(error), recipe)
        cluster = cluster.remaining()
    raise AssertionError


def _rebuilt(g: Graph, recipe: Recipe, lost: Shards, cause: str) -> Shards:
    """Build a graph again on the ranks that are left, unless another thread has done so; return its shards."""
    if g._shards is not lost:
        return g._shards
    _log(cause, recipe)
    recipe.num_rebuilds += 1
    recipe.require_unchanged()
    lost.cluster.forget(lost.key)
    cluster = lost.cluster.remaining()
    placement = g.placement
    if cluster.num_ranks != lost.cluster.num_ranks:
        placement = Placement(cluster.num_ranks, placement.of, "the ranks that were left after a loss")
    again = type(g)._build(recipe, cluster, placement)
    if again.info.for_any_ranks != g.info.for_any_ranks:
        raise InputError(f"{g.name} was built again as another graph: its input has changed since")
    if not lost.close.alive:
        raise GraphClosed(f"the graph {g.name} was closed: build it again")
    g._replace(again)
    return again._shards


def _cause(error: GangLost | GraphClosed) -> str:
    if isinstance(error, GangLost):
        return f"rank {error.rank} on {error.worker} was lost ({error.cause})"
    return "a rank was lost in an earlier call"


def _log(cause: str, recipe: Recipe) -> None:
    log_of(None, "build_graph").warning("%s; on_loss='rebuild': %s is built again", cause, recipe.source.name)
