"""Find the cluster on which converted graphs are built, and hand on what it refuses."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import networkx as nx

from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import InputError

# By process id: the cluster of one CPU rank that calls without a cluster share. It closes itself at exit.
_own_clusters: dict[int, InProcessCluster] = {}


def find_cluster(given: Any) -> Any:
    """Return the cluster of a call: what it names, what NetworkX is configured with, or the own one."""
    if given is not None:
        return given
    configured = getattr(getattr(nx.config.backends, "mgraph", None), "cluster", None)
    return _own_cluster() if configured is None else configured


def _own_cluster() -> InProcessCluster:
    cluster = _own_clusters.get(os.getpid())
    if cluster is None or cluster.closed:
        cluster = _own_clusters[os.getpid()] = InProcessCluster(1, backend="cpu")
    return cluster


class LeftToNetworkX(NotImplementedError):
    """What mgraph cannot answer as NetworkX does.

    By its protocol NetworkX then asks the next backend, or runs its own function.
    """


@contextlib.contextmanager
def refusals(*further: type[Exception]) -> Iterator[None]:
    """Leave the call to NetworkX if the data are refused, or after a further error."""
    errors: tuple[type[Exception], ...] = (InputError, *further)
    try:
        yield
    except errors as error:
        raise LeftToNetworkX(str(error)) from error
