"""connect(): chooses the cluster to work on."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from mgraph.cluster.base import Cluster, check_num_ranks, deadline, loss_choice
from mgraph.cluster.devices import cuda_is_installed, visible_gpus
from mgraph.cluster.in_process import InProcessCluster
from mgraph.config import settings
from mgraph.errors import ClusterError, UsageError
from mgraph.signals import run_uninterrupted

if TYPE_CHECKING:
    from distributed import Client

# A cluster that is started here is not reachable from other hosts. Dask's own default for HTTP is all interfaces.
LOOPBACK = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}


def connect(
    client: Client | None = None,
    *,
    scheduler: str | None = None,
    scheduler_file: str | None = None,
    num_ranks: int | None = None,
    backend: str = "auto",
    open_timeout_s: float | None = None,
    verb_timeout_s: float | None = None,
    on_loss: str | None = None,
) -> Cluster:
    """Return the cluster to work on: the first of these that exists.

    1. the given client, scheduler address or scheduler file;
    2. the current default client of `distributed`;
    3. a LocalCUDACluster, if two or more GPUs are visible and dask-cuda is installed;
    4. this process: its one GPU, or the CPU with all its cores.

    Parameters
    ----------
    client
        A client that is not asynchronous; the caller closes it.
    scheduler, scheduler_file
        The address of a running scheduler, or the file that contains it.
    num_ranks
        How many ranks to use, for every graph. None: all workers or GPUs, one rank in this process; each graph then
        uses as many of them as hold it, and more only if that is faster (`Graph.placement`).
    backend
        auto, cpu or cuda.
    open_timeout_s, verb_timeout_s
        How long to wait for enough workers, and for all ranks to open their network (those of this process are ready
        at once); how long a rank waits for the others in one operation, which must be longer than any rank computes
        between two. None means the settings `mgraph.timeouts.open` and `mgraph.timeouts.verb`: 60 s and 300 s.
    on_loss
        What a call does if a worker dies, and with it the graph: `error`, or `rebuild` it from its generator, files or
        saved graph, and answer. None means the setting `mgraph.on-loss`: error. Ranks of this process are never lost.

    Returns
    -------
    Cluster
        Closed by `close()`, or at the end of a `with` block, and its graphs with it.

    Raises
    ------
    UsageError, ClusterError
        If there is no such GPU or backend; if no scheduler answers, or too few workers are there in time.

    Examples
    --------
    >>> with mg.connect(num_ranks=2, backend="cpu") as ranks, mg.rmat(6, cluster=ranks) as g:
    ...     g.num_ranks
    2
    """
    _check_choice(backend, client, scheduler, scheduler_file)
    num_ranks = None if num_ranks is None else check_num_ranks(num_ranks)
    given = {"open_timeout_s": open_timeout_s, "verb_timeout_s": verb_timeout_s}
    how: dict[str, Any] = {name: deadline(seconds, name) for name, seconds in given.items()}
    how["on_loss"] = loss_choice(on_loss)
    if scheduler is not None or scheduler_file is not None:
        return _on_scheduler(num_ranks, backend, how, scheduler, scheduler_file)
    if client is None:
        client = _default_client()
    if client is not None:
        return _of_client(client, num_ranks, backend, how)
    return _on_this_host(num_ranks, backend, how)


def _check_choice(backend: str, *clusters: object) -> None:
    """Refuse an unknown backend, and more than one cluster."""
    if backend not in ("auto", "cpu", "cuda"):
        raise UsageError(f"backend {backend!r} is not one of auto, cpu, cuda")
    if sum(given is not None for given in clusters) > 1:
        raise UsageError("give one of client, scheduler and scheduler_file (--scheduler, --scheduler-file)")


def _of_client(client: Any, num_ranks: int | None, backend: str, how: dict[str, Any]) -> Cluster:
    from distributed import Client

    from mgraph.cluster.dask import DaskCluster

    if isinstance(client, str):
        raise UsageError(f"{client!r} is no client: give an address as scheduler={client!r}")
    if not isinstance(client, Client):
        raise UsageError(f"{client!r} is not a cluster: give what connect() returns, or a distributed.Client")
    return DaskCluster(client, num_ranks, backend=backend, **how)


def _on_this_host(num_ranks: int | None, backend: str, how: dict[str, Any]) -> Cluster:
    gpus = len(visible_gpus()) if backend != "cpu" and cuda_is_installed() else 0
    if gpus >= 2 and num_ranks != 1 and importlib.util.find_spec("dask_cuda") is not None:
        if num_ranks is not None and num_ranks > gpus:
            raise UsageError(
                f"num_ranks is {num_ranks} and {gpus} GPUs are visible: use one rank a GPU or fewer (--workers)"
            )
        return _on_local_gpus(num_ranks, how)
    if backend == "cuda" and gpus == 0:
        raise UsageError("backend 'cuda' wants a GPU and CuPy: none is seen here")
    backend = "cuda" if gpus else "cpu"
    return InProcessCluster(num_ranks or 1, backend=backend, timeout_s=how["verb_timeout_s"])


def _default_client() -> Client | None:
    """Return the current client, without importing distributed if it was not imported before."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except (ValueError, AttributeError):
        # There is none, or distributed is still being imported.
        return None


@contextmanager
def open_client(address: str | None, scheduler_file: str | None) -> Iterator[Client]:
    """Yield a client of the scheduler at an address, or at that in a file; close it afterwards."""
    client = _make_client(address, scheduler_file)
    try:
        yield client
    finally:
        run_uninterrupted(client.close)


def _make_client(address: str | None, scheduler_file: str | None) -> Client:
    from distributed import Client

    from mgraph.cluster.scheduler_address import check_address, read_scheduler_file, require_scheduler

    checked = check_address(address if address is not None else read_scheduler_file(str(scheduler_file)))
    require_scheduler(checked)
    try:
        timeout_s = settings.seconds("timeouts.scheduler")
        return run_uninterrupted(lambda: Client(checked, timeout=timeout_s, set_as_default=False), Client.close)
    except (OSError, ValueError) as error:
        raise ClusterError(f"no scheduler answers at {checked} ({error})") from error


def _on_scheduler(
    num_ranks: int | None, backend: str, how: dict[str, Any], address: str | None, scheduler_file: str | None
) -> Cluster:
    from mgraph.cluster.dask import DaskCluster

    with ExitStack() as owned:
        client = _make_client(address, scheduler_file)
        # No context manager, whose end would run, and wait for a thread, while the interpreter ends.
        owned.callback(run_uninterrupted, client.close)
        cluster = DaskCluster(client, num_ranks, backend=backend, **how)
        cluster._owned = owned.pop_all()
    return cluster


def _on_local_gpus(num_ranks: int | None, how: dict[str, Any]) -> Cluster:
    from dask_cuda import LocalCUDACluster
    from distributed import Client

    from mgraph.cluster.dask import DaskCluster

    with ExitStack() as owned:
        # __enter__ waits until the workers have started.
        start = functools.partial(LocalCUDACluster, n_workers=num_ranks, **LOOPBACK)
        workers = run_uninterrupted(lambda: start().__enter__(), lambda started: started.close())
        owned.callback(run_uninterrupted, workers.close)
        client = run_uninterrupted(lambda: Client(workers, set_as_default=False), Client.close)
        owned.callback(run_uninterrupted, client.close)
        cluster = DaskCluster(client, num_ranks, backend="cuda", **how)
        cluster._owned = owned.pop_all()
    return cluster
