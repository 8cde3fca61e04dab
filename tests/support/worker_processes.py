"""Dask workers in processes of their own, forked from one that has imported what they need.

A worker that starts anew, as Dask's do by default, takes more time to import Dask, Numba and mgraph than most tests
have for all else. Those of `dask worker` and of the command line start anew in tests too, and so do all where there
are GPUs, which a forked process may not share.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import dask
from backends import gpu_count
from distributed import LocalCluster
from distributed.utils import get_mp_context

METHOD = "distributed.worker.multiprocessing-method"
# The process to be forked imports these, from the working directory or as they are installed.
IMPORTED = (
    "dask.array",
    "mgraph.cluster.worker_plugin",
    "mgraph.rank_jobs.build",
    "mgraph.rank_jobs.traversal",
    "tests.support.numba_target",
)


def forking() -> dict[str, str]:
    """Return the settings of Dask by which workers are forked from a process that has imported what they need."""
    if gpu_count():
        return {}
    with dask.config.set({METHOD: "forkserver"}):
        # Dask sets a list of its own at its first call.
        get_mp_context().set_forkserver_preload([*IMPORTED])
    return {METHOD: "forkserver"}


@contextlib.contextmanager
def worker_processes(count: int = 2, **options: Any) -> Iterator[LocalCluster]:
    """Start workers of one thread each, and again those that are lost; `options` are LocalCluster's."""
    # By default LocalCluster does not restart a worker that is missing 15 s after its loss.
    settings = forking() | {"distributed.deploy.lost-worker-timeout": "10 minutes"}
    options = {"dashboard_address": ":0"} | options
    with dask.config.set(settings), LocalCluster(n_workers=count, threads_per_worker=1, **options) as workers:
        yield workers
