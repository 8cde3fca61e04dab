"""Compute the partitions of lazy edges, all in one graph of tasks, so that shared tasks run once."""

from __future__ import annotations

from typing import Any

import dask
from distributed import Future, wait

from mgraph.cluster.base import Cluster
from mgraph.cluster.dask import DaskCluster
from mgraph.errors import InputError, MgraphError
from mgraph.io.lazy import LazyEdges
from mgraph.io.partitions import PartitionTable, distinct_of, sample_of, sizes_of
from mgraph.io.samples import LABEL_PLACES, places


def compute_partitions(edges: LazyEdges, cluster: Cluster) -> PartitionTable:
    """Compute lazy edges: on the workers of a Dask cluster, where they stay, else in this process.

    In this process they are computed by Dask's scheduler of the caller's choice, the threaded one by default.
    """
    if isinstance(cluster, DaskCluster):
        return _on_workers(edges, cluster)
    try:
        values = list(dask.compute(*edges.partitions))
    except (MgraphError, MemoryError):
        raise
    except Exception as error:
        raise _failed(edges, None, error) from error
    sizes = [sizes_of(value) for value in values]
    samples = [sample_of(value) for value in _some(values)]
    return edges.computed(values, sizes, distinct_of(samples, sizes), [])


def _on_workers(edges: LazyEdges, cluster: DaskCluster) -> PartitionTable:
    client = cluster.client
    futures: list[Future] = client.compute(list(edges.partitions))
    # The sizes fail with their partition.
    sizes: list[Future] = client.map(sizes_of, futures, pure=False)
    # Samples of strings stay on the workers: two numbers come here.
    samples: list[Future] = client.map(sample_of, _some(futures), pure=False)
    distinct: Future = client.submit(distinct_of, samples, sizes, pure=False)
    try:
        # `wait` uses the current client, which need not be this one.
        with client.as_current():
            wait([*sizes, distinct])
        _raise_first(edges, sizes, futures)
        if distinct.status != "finished":
            raise _failed(edges, None, distinct.exception())
        found = client.gather(sizes)
        expected = distinct.result()
        holders = client.who_has(futures)
    except BaseException:
        # Not cancelled: the caller may hold the same partitions, as of a persisted collection.
        for future in [*sizes, *samples, distinct, *futures]:
            future.release()
        raise
    return edges.computed(futures, found, expected, [list(holders.get(future.key, ())) for future in futures])


def _some(partitions: list[Any]) -> list[Any]:
    """Return the partitions whose strings are sampled."""
    return [partitions[k] for k in places(len(partitions) - 1, LABEL_PLACES)] if partitions else []


def _raise_first(edges: LazyEdges, sizes: list[Future], futures: list[Future]) -> None:
    """Raise the error of the first partition that has failed."""
    for k, (size, future) in enumerate(zip(sizes, futures, strict=True)):
        if size.status != "finished":
            error = future.exception() if future.status == "error" else size.exception()
            raise _failed(edges, k, error) from error


def _failed(edges: LazyEdges, k: int | None, error: Any) -> InputError:
    which = "a partition" if k is None else f"partition {k}"
    return InputError(f"{edges.name}: {which} cannot be computed: {type(error).__name__}: {error}")
