"""The interface of a cluster: p ranks that run a function together, wherever they run."""

from __future__ import annotations

import math
import numbers
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from mgraph.backends.base import Backend
from mgraph.backends.progress import Phase
from mgraph.comm.base import Communicator
from mgraph.config import settings
from mgraph.errors import ClusterError, CommAborted, GraphClosed, UsageError, refuse_pickle
from mgraph.formatting import counted
from mgraph.io.checks import as_integer

# How long a failed job waits for the errors of the other ranks, to find the one that caused the failure.
ERROR_WAIT_S = 2.0

# Forgotten keys that a rank notes, of calls that were given up before they began. At one more it drops the others: if
# the call of one of them still came, its object would stay until the rank's process ends.
MAX_FORGOTTEN = 1024

# What a call may do if it loses a rank, and with it its graph.
ON_LOSS = ("error", "rebuild")


class Objects(dict[str, Any]):
    """The objects that a rank stores between calls, by key: shards and results, unknown to Dask."""

    def __init__(self) -> None:
        super().__init__()
        # The keys that the running call has added: each call begins with a list of its own.
        self.added: list[str] = []
        # Keys that were forgotten while they were not here: a message about a key may overtake the call that adds it.
        self._forgotten: dict[str, None] = {}

    def __setitem__(self, key: str, value: Any) -> None:
        self.added.append(key)
        super().__setitem__(key, value)

    def undo(self, added: list[str]) -> None:
        """Drop the objects that a failed or abandoned call has added."""
        for key in added:
            self.pop(key, None)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep the objects that a call adds only if it succeeds, without those forgotten before or meanwhile."""
        self.added = []
        added = self.added
        try:
            yield
            # A key that is forgotten after this line is stored already, and `forget` drops it at once.
            self.undo([key for key in added if key in self._forgotten])
        except BaseException:
            self.undo(added)
            raise

    def forget(self, key: str) -> Any:
        """Drop a key, and return its object; if a call adds it later, drop it when that call ends.

        Keys are unique, so that a note that stays drops nothing else.
        """
        if len(self._forgotten) >= MAX_FORGOTTEN:
            self._forgotten = {}
        # Race: noted before it is dropped, for a call that adds it between the two.
        self._forgotten[key] = None
        found = self.pop(key, None)
        if found is not None:
            self._forgotten.pop(key, None)
        return found

    def __missing__(self, key: str) -> Any:
        raise _missing(key)


def _missing(key: str) -> GraphClosed:
    """Return the error; a frame that raised it by name would be in a cycle with it, which keeps the call's objects."""
    error = GraphClosed(f"{key!r} is not on this rank: it was closed, or its gang was lost; build it again")
    error.key = key
    return error


@dataclass(frozen=True)
class Rank:
    """One of `size` ranks: the first argument of every function that runs on it."""

    index: int
    size: int
    comm: Communicator
    backend: Backend
    objects: Objects


Parts = Sequence[Any] | Callable[[Sequence[str]], Sequence[Any]]


class Holds(ABC):
    """Keys of the ranks of one cluster that are forgotten when their owners are collected.

    A finalizer in Python could lose an interrupt and leave the key behind. So no Python code runs when an owner is
    collected: the interpreter calls `put` of a queue with the dead weak reference, and another thread forgets the key.

    Attributes
    ----------
    items
        What the thread that forgets keys gets: an OwnerGone, or what its subclass puts there.
    by_key
        The references to living owners.
    """

    def __init__(self) -> None:
        self.items: SimpleQueue[Any] = SimpleQueue()
        self.by_key: dict[str, OwnerGone] = {}

    @abstractmethod
    def forget(self, key: str) -> None:
        """Drop the objects of all ranks under a key."""

    def forget_all_collected(self) -> None:
        """Forget the keys of all owners that were collected: the next call may need their memory.

        Not those in the queue: from Python 3.13 on it gives an item to the waiting thread, which may not have run yet.
        """
        for reference in list(self.by_key.values()):
            if reference() is None:
                self.forget_collected(reference)

    def forget_collected(self, gone: OwnerGone) -> None:
        """Forget the key of an owner that was collected, unless the key was forgotten before."""
        if self.by_key.pop(gone.key, None) is not None:
            self.forget(gone.key)


class OwnerGone(weakref.ref):
    """A weak reference to the owner of a key; queued when the owner is collected."""

    __slots__ = ("key",)
    key: str


class KeyHold:
    """Forgets a key when it is called, or when its owner is collected."""

    def __init__(self, owner: object, holds: Holds, key: str) -> None:
        self._holds = holds
        self._key = key
        reference = OwnerGone(owner, holds.items.put)
        reference.key = key
        # Held here, since a weak reference that is collected before its referent calls nothing.
        holds.by_key[key] = reference

    @property
    def alive(self) -> bool:
        """Whether the key has not been forgotten."""
        return self._key in self._holds.by_key

    def __call__(self) -> None:
        # In this order: after an interrupt between the two lines, the end of the owner still frees the key.
        self._holds.forget(self._key)
        self._holds.by_key.pop(self._key, None)


class Cluster(ABC):
    """p ranks; each call of `run` uses all of them exclusively.

    Attributes
    ----------
    num_ranks
        How many ranks there are.
    backend
        The device of kernels: cpu, cuda or emulated.
    launcher
        How the ranks were started: in-process, dask, or the name of a Dask cluster class.
    on_loss
        What a call does if it loses a rank, and with it the graph: error or rebuild.
    """

    num_ranks: int
    backend: str
    launcher: str
    on_loss = "error"  # or rebuild: whether graphs are built again after a loss of ranks
    _may_narrow = False  # whether the user left the number of ranks open, so that a graph may use fewer than all
    __reduce__ = refuse_pickle("call mg.connect in the other process")

    @abstractmethod
    def run(self, function: Callable[..., Any], *args: Any, parts: Parts | None = None) -> list[Any]:
        """Run `function(rank, *args)` on every rank; return the results in order of rank.

        Parameters
        ----------
        function
            A function of an importable module; its first argument is the `Rank`.
        *args
            Passed to every rank.
        parts
            One object a rank, passed between the rank and `args`; large ones are sent directly to their worker. On a
            Dask cluster also a function that returns them for the addresses of the ranks' workers; futures in them
            are replaced by their values.

        Raises
        ------
        GangLost
            A rank died. The next call opens a new gang.
        Exception
            The error of the first rank that failed; the calls of the other ranks were ended.
        """

    def run_on_stored(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Run a function that needs stored objects; if they were lost, fail without waiting for new ranks."""
        return self.run(function, *args)

    def read(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Run a function that only reads stored objects, without verbs: perhaps not in the ranks' own threads."""
        return self.run_on_stored(function, *args)

    @abstractmethod
    def run_and_store(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Run a function and leave each rank's result on its worker.

        Returns
        -------
        list
            For each rank a finished future or a delayed value, from which Dask collections can be made.
        """

    @abstractmethod
    def narrowed(self, num_ranks: int) -> Cluster:
        """Return a cluster of the first `num_ranks` ranks, the same object each time; closed with this one.

        A graph on the returned cluster uses all of its ranks. So for all ranks this cluster itself is returned only
        if it may not use fewer.
        """

    def remaining(self) -> Cluster:
        """Return the ranks to work on after a loss: as many as here once lost ones are replaced, else those left."""
        return self

    @abstractmethod
    def forget(self, key: str) -> None:
        """Drop `rank.objects[key]` on every rank, without waiting: finalizers call it."""

    @abstractmethod
    def hold(self, owner: object, key: str) -> KeyHold:
        """Return a handle that forgets the key when it is called, or when the owner is collected."""

    @abstractmethod
    def watch(self) -> Callable[[], Phase | None]:
        """Return a function that returns what rank 0 does from now on, None while that is unknown; it never waits."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether no call can run any more, because the cluster or its client was closed."""

    @abstractmethod
    def close(self) -> None:
        """Free the objects of all ranks, and stop what `connect` started."""

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Cluster: {counted(self.num_ranks, f'{self.backend} rank')}, {self.launcher}>"


def check_process(pid: int, what: str) -> None:
    """Refuse to use an object in a forked child: the threads of its process do not exist there."""
    if os.getpid() != pid:
        raise in_forked_child(pid, what)


def in_forked_child(pid: int, what: str) -> ClusterError:
    """Return the error of an object that a forked child uses."""
    return ClusterError(
        f"{what} belongs to process {pid}, and its threads do not exist in the forked process {os.getpid()}: "
        "start processes with the spawn method, or connect and build the graph in each"
    )


def check_num_ranks(num_ranks: Any) -> int:
    """Return the requested number of ranks; refuse anything but a positive integer."""
    if as_integer(num_ranks, "num_ranks") < 1:
        raise UsageError(f"num_ranks is {num_ranks}: give one or more")
    return int(num_ranks)


def check_deadline(seconds: Any, name: str) -> float:
    """Return the requested deadline in seconds; refuse anything but a positive, finite number."""
    is_number = isinstance(seconds, numbers.Real) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds < math.inf:
        raise UsageError(f"{name} is {seconds!r}: give a positive number of seconds (--{name[:-2].replace('_', '-')})")
    return float(seconds)


def deadline(seconds: float | None, name: str) -> float:
    """Return the deadline that the user gives, or that of the settings."""
    if seconds is None:
        return settings.seconds(f"timeouts.{name.removesuffix('_timeout_s')}")
    return check_deadline(seconds, name)


def loss_choice(given: Any) -> str:
    """Return what the user gives as `on_loss`, or the setting."""
    if given is None:
        return settings.choice("on-loss", *ON_LOSS)
    if given not in ON_LOSS:
        raise UsageError(f"on_loss {given!r} is not one of {', '.join(ON_LOSS)}")
    return given


def check_parts(parts: Parts | None, num_ranks: int) -> None:
    """Refuse a number of parts that differs from the number of ranks."""
    if parts is not None and not callable(parts) and len(parts) != num_ranks:
        raise UsageError(f"parts has {len(parts)} objects for {num_ranks} ranks: give one for each")


def check_part(num_ranks: int, of: int) -> None:
    """Refuse a number of ranks outside 1 to that of the cluster."""
    if not 1 <= num_ranks <= of:
        raise UsageError(f"num_ranks is {num_ranks}: the cluster has {of}, and a part of it 1 to {of}")


def first_cause(errors: Iterable[BaseException]) -> BaseException | None:
    """Return the first error that is not the consequence of another rank's failure, or None."""
    return next((error for error in errors if not isinstance(error, CommAborted)), None)
