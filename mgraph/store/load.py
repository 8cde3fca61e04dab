"""Read this rank's shard of a saved graph."""

from __future__ import annotations

from collections.abc import Callable

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.errors import UsageError
from mgraph.ingest.host_plan import InUse
from mgraph.ingest.survey import Survey
from mgraph.shard.shard import Shard
from mgraph.store.blocks import load_blocks
from mgraph.store.labels import load_labels
from mgraph.store.manifest import StoredGraph
from mgraph.store.rows import load_rows


def load_shard(
    store: StoredGraph, backend: Backend, comm: Communicator, layout: str, in_use_bytes: Callable[[Survey, str], InUse]
) -> Shard:
    """Read this rank's shard; every rank calls it.

    Parameters
    ----------
    layout
        One of `StoredGraph.layouts`, or `auto`: rows or blocks, as saved, in the first layout of these that fits.
    in_use_bytes
        The bytes of what runs on a graph in a layout.
    """
    if store.info.has_rows:
        shard = load_rows(store, backend, comm, layout, in_use_bytes)
    else:
        shard = load_blocks(store, backend, comm, layout, in_use_bytes)
    shard.labels = load_labels(store, backend, comm)
    return shard


def require_as_saved(store: StoredGraph, order: str, num_chunks: int | None, layout: str) -> None:
    """Refuse choices of a build that a load cannot make: `rows` is the default of builds, and no choice."""
    given = {"order": order not in ("auto", store.info.order), "num_chunks": num_chunks is not None}
    given["layout"] = layout not in ("rows", "auto", store.held_in(layout))
    for option, differs in given.items():
        if differs:
            raise UsageError(
                f"{option} applies to a build, and {store.path} is a saved graph, in {store.info.order} order and the "
                f"layout {store.info.layout}: build it again from its edges"
            )
