"""The client's side of ranks on the workers of a Dask cluster.

A warm call is one message to each worker (`client_session.py`). Ranks exchange data only through the communicator of
their gang, never through Dask.
"""

from __future__ import annotations

import _thread
import os
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from distributed import Client
from distributed.client import ClosedClientError
from distributed.protocol import pickle

from mgraph.backends.progress import Phase
from mgraph.cluster.base import (
    Cluster,
    Holds,
    KeyHold,
    Parts,
    check_num_ranks,
    check_part,
    check_parts,
    check_process,
    deadline,
    loss_choice,
)
from mgraph.cluster.client_lease import require_connection, unreachable
from mgraph.cluster.client_session import ClientSession
from mgraph.cluster.log import call_scope, log_of, logged_failure
from mgraph.cluster.scheduler_plugin import GangPlugin
from mgraph.cluster.watch import Watch
from mgraph.errors import ClusterError, UsageError
from mgraph.signals import run_uninterrupted


class DaskCluster(Cluster):
    """Ranks on workers.

    Parameters
    ----------
    client
        A client of the cluster; it stays open when this is closed.
    num_ranks
        How many workers to use; all present ones if None.
    backend
        auto (cuda if each worker has its own GPU), cpu or cuda.
    open_timeout_s
        How long to wait for enough workers, and for all ranks to report ready when a gang opens.
    verb_timeout_s
        Deadline of a verb of the communicator: longer than any rank computes between two verbs. Deadlines that are
        None are those of the settings.
    on_loss
        error or rebuild; None is that of the settings.
    """

    def __init__(
        self,
        client: Client,
        num_ranks: int | None = None,
        *,
        backend: str = "auto",
        open_timeout_s: float | None = None,
        verb_timeout_s: float | None = None,
        on_loss: str | None = None,
    ) -> None:
        if client.asynchronous:
            raise UsageError("an asynchronous client cannot be used: give a Client made without asynchronous=True")
        if num_ranks is not None:
            num_ranks = check_num_ranks(num_ranks)
        deadlines = {"open_timeout_s": open_timeout_s, "verb_timeout_s": verb_timeout_s}
        self._timeouts = {name: deadline(seconds, name) for name, seconds in deadlines.items()}
        self.on_loss = loss_choice(on_loss)
        self.client = client
        self._require_client()
        # Started by `connect` for this cluster, and stopped by close().
        self._owned = ExitStack()
        self.launcher = type(client.cluster).__name__ if client.cluster is not None else "dask"
        self._session = ClientSession(client)
        self._pid = os.getpid()
        _install(client)
        self._holds = _SessionHolds(self._session)
        # Sends messages alone: the objects of ranks are freed even without close().
        self._finalizer = weakref.finalize(self, self._holds.end)
        self._finalizer.atexit = False
        # After an interrupt the session is closed when it has opened: a close sent earlier could overtake the opening.
        reply = run_uninterrupted(
            lambda: self._sync(self._session.open, num_ranks=num_ranks, backend=backend, **self._timeouts),
            undo=lambda _: self._finalizer(),
        )
        self.num_ranks = reply["num_ranks"]
        self.backend = reply["backend"]
        self._may_narrow = num_ranks is None
        # Weak references to parts. A part refers to this cluster, so that what `connect` started outlives the part.
        self._narrowed: weakref.WeakValueDictionary[int, DaskCluster] = weakref.WeakValueDictionary()
        self._whole: DaskCluster | None = None

    def run(self, function: Callable[..., Any], *args: Any, parts: Parts | None = None) -> list[Any]:
        check_parts(parts, self.num_ranks)
        return self._call(function, args, parts=parts)

    def run_on_stored(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self._call(function, args, on_stored=True)

    def run_and_store(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self._call(function, args, gather=False, on_stored=True)

    def narrowed(self, num_ranks: int) -> Cluster:
        check_process(self._pid, "this cluster")
        check_part(num_ranks, self.num_ranks)
        if num_ranks == self.num_ranks and not self._may_narrow:
            return self
        found = self._narrowed.get(num_ranks)
        if found is None or not found._finalizer.alive:
            found = DaskCluster(self.client, num_ranks, backend=self.backend, **self._timeouts, on_loss=self.on_loss)
            found._whole = self
            self._narrowed[num_ranks] = found
        return found

    def remaining(self) -> Cluster:
        timeout_s = self._timeouts["open_timeout_s"]
        present = self._sync(self._session.count_present, self.num_ranks, timeout_s)
        if not present:
            raise ClusterError(f"no worker is left after {timeout_s:g} s: start more")
        return self if present == self.num_ranks else self.narrowed(present)

    def forget(self, key: str) -> None:
        self._session.forget(key)

    def hold(self, owner: object, key: str) -> KeyHold:
        return KeyHold(owner, self._holds, key)

    def watch(self) -> Callable[[], Phase | None]:
        return Watch(self.client, self._session.name)

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive or self._client_is_closed()

    def close(self) -> None:
        if os.getpid() != self._pid:
            # A forked child: the connection to the scheduler belongs to the parent, as does all that `connect` started.
            return
        for part in list(self._narrowed.values()):
            part.close()
        self._finalizer()
        self._owned.close()

    def _call(self, function: Callable[..., Any], args: tuple, **how: Any) -> list[Any]:
        check_process(self._pid, "this cluster")
        if not self._finalizer.alive:
            raise ClusterError("this cluster is closed: connect again")
        self._holds.forget_all_collected()
        job = getattr(function, "__name__", "rank")
        error = None
        try:
            with call_scope() as call, logged_failure(log_of(None, job)):
                result, error = self._sync(self._session.run, job, pickle.dumps((function, args, call)), **how)
                # Raised here and not inside `_sync`, which takes an OSError for a lost connection to the scheduler.
                if error is not None:
                    raise error
                return result
        finally:
            # The error's traceback refers to this frame: without `del`, the cycle would wait for the garbage collector.
            del error

    def _client_is_closed(self) -> bool:
        return self.client.status in ("closing", "closed")

    def _require_client(self) -> None:
        if self._client_is_closed():
            raise ClusterError("the client of this cluster was closed: connect again")
        require_connection(self.client)

    def _sync(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        self._require_client()
        try:
            return self.client.sync(function, *args, **kwargs)
        except (OSError, ClosedClientError) as error:
            raise unreachable(error) from error


class _SessionHolds(Holds):
    """The holds of a session, with a thread that forgets keys as their owners are collected."""

    def __init__(self, session: ClientSession) -> None:
        super().__init__()
        self._session = session
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError as error:
            raise ClusterError(f"no thread can start that forgets results ({error}): end other threads") from error

    def forget(self, key: str) -> None:
        self._session.forget(key)

    def end(self) -> None:
        """End the thread, and free the objects of all ranks."""
        self.items.put(None)
        self._session.close()

    def _run(self) -> None:
        while (gone := self.items.get()) is not None:
            self.forget_collected(gone)
            del gone


def _install(client: Client) -> None:
    """Register the plugins, once for all clients, and for workers that join later."""
    try:
        client.register_plugin(GangPlugin())
    except ImportError as error:
        raise ClusterError(
            f"the scheduler {client.scheduler.address} cannot import mgraph ({error}): "
            "install the same version of dask-mgraph there"
        ) from None
