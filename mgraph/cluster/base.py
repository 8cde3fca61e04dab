"""What a cluster is to the layers above: p ranks that run a function together, whoever started them."""

from __future__ import annotations

import math
import numbers
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.errors import ClusterError, CommAborted, GraphClosed, UsageError
from mgraph.formatting import counted
from mgraph.io.checks import as_integer

# How long a failed job waits for the other ranks' errors, to find the one that caused them.
BLAME_S = 2.0


class Objects(dict[str, Any]):
    """What a rank keeps between calls, by key: shards and results, never seen by Dask."""

    def __init__(self) -> None:
        super().__init__()
        self._added: list[str] = []
        self._forgotten: list[str] = []

    def __setitem__(self, key: str, value: Any) -> None:
        self._added.append(key)
        super().__setitem__(key, value)

    def begin_call(self) -> list[str]:
        """Return a list that names what is added from now on, until the next call begins."""
        self._added = []
        return self._added

    def undo(self, added: list[str]) -> None:
        """Drop what a call has added that failed, or that its caller gave up."""
        for key in added:
            self.pop(key, None)

    @contextmanager
    def of_call(self) -> Iterator[None]:
        """Keep what this call adds only if it ends well, and nothing of what is forgotten meanwhile."""
        added, self._forgotten = self.begin_call(), []
        try:
            yield
            # A key that is forgotten behind this line is there, and goes at once.
            self.undo(self._forgotten)
        except BaseException:
            self.undo(added)
            raise

    def forget(self, key: str) -> None:
        """Drop a key, and if a call that is under way adds it later, drop it when that call ends."""
        self._forgotten.append(key)
        self.pop(key, None)

    def __missing__(self, key: str) -> Any:
        raise GraphClosed(f"{key!r} is not on this rank: it was closed, or its gang was lost; build it again")


@dataclass(frozen=True)
class Rank:
    """One of `size` ranks, as a function that runs on it sees itself."""

    index: int
    size: int
    comm: Communicator
    backend: Backend
    objects: Objects


class Hold(Protocol):
    """What forgets a key once; `alive` until then."""

    @property
    def alive(self) -> bool: ...

    def __call__(self) -> object: ...


class Cluster(ABC):
    """p ranks; each call of `run` has all of them to itself.

    Attributes
    ----------
    num_ranks
        How many ranks there are.
    backend
        What kernels run on: cpu, cuda or emulated.
    launcher
        Who started the ranks: in-process, dask, or the name of a Dask cluster class.
    may_narrow
        Whether nobody said how many ranks to use, so that a graph may be put on some of them.
    """

    num_ranks: int
    backend: str
    launcher: str
    may_narrow = False

    @abstractmethod
    def run(self, function: Callable[..., Any], *args: Any, parts: Sequence[Any] | None = None) -> list[Any]:
        """Run `function(rank, *args)` on every rank and return what each returned.

        Parameters
        ----------
        function
            A function of an importable module; the first argument it gets is its `Rank`.
        *args
            The same on every rank.
        parts
            One object a rank, passed between the rank and `args`; large ones go straight to their worker.

        Raises
        ------
        GangLost
            A rank died. The next call opens a new gang.
        Exception
            What the first rank to fail raised; the other ranks were ended.
        """

    def run_on_kept(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Run as `run` does a function that needs what ranks kept: where that was lost, no new ranks are waited for."""
        return self.run(function, *args)

    @abstractmethod
    def run_and_keep(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Run as `run` does, and leave what each rank returns where it is.

        Returns
        -------
        list
            For each rank what Dask's collections can be made from: a future that is done, or a delayed value.
        """

    @abstractmethod
    def narrowed(self, num_ranks: int) -> Cluster:
        """Return the first of the ranks as a cluster of their own, the same one each time; closed with this one.

        A graph is put on all of these: that of all ranks is this cluster only where that holds for it too.
        """

    @abstractmethod
    def forget(self, key: str) -> None:
        """Drop `rank.objects[key]` on every rank; only sends a message, so that a finalizer may call it."""

    def hold(self, owner: object, key: str) -> Hold:
        """Return what forgets the key when it is called, and by itself when the owner is gone."""
        return weakref.finalize(owner, self.forget, key)

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether no call can run any more: the cluster was closed, or the client that it goes through."""

    @abstractmethod
    def close(self) -> None:
        """Free what the ranks hold, and end whatever `connect` started."""

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Cluster: {counted(self.num_ranks, f'{self.backend} rank')}, {self.launcher}>"


def check_process(pid: int, what: str) -> None:
    """Refuse to use in a forked child what another process has made: threads do not come along with a fork."""
    if os.getpid() != pid:
        raise ClusterError(
            f"{what} belongs to process {pid}, and its threads did not come along with the fork to process "
            f"{os.getpid()}: start processes with the spawn method, or connect and build the graph in each"
        )


def check_num_ranks(num_ranks: Any) -> int:
    """Return a number of ranks that was asked for; anything but a positive integer is refused."""
    if as_integer(num_ranks, "num_ranks") < 1:
        raise UsageError(f"num_ranks is {num_ranks}: ask for one or more")
    return int(num_ranks)


def check_deadline(seconds: Any, name: str) -> float:
    """Return a deadline in seconds that was asked for; anything but a positive, finite number is refused."""
    is_number = isinstance(seconds, numbers.Real) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds < math.inf:
        raise UsageError(f"{name} is {seconds!r}: give a positive number of seconds (--{name[:-2].replace('_', '-')})")
    return float(seconds)


def check_parts(parts: Sequence[Any] | None, num_ranks: int) -> None:
    """Refuse parts that are not one a rank."""
    if parts is not None and len(parts) != num_ranks:
        raise UsageError(f"parts has {len(parts)} objects for {num_ranks} ranks: give one for each")


def check_part(num_ranks: int, of: int) -> None:
    """Refuse a number of ranks that is no part of a cluster."""
    if not 1 <= num_ranks <= of:
        raise UsageError(f"num_ranks is {num_ranks}: the cluster has {of}, and a part of it 1 to {of}")


def first_cause(errors: Iterable[BaseException]) -> BaseException | None:
    """Return the first error that another rank's failure does not explain, None if there is none."""
    return next((error for error in errors if not isinstance(error, CommAborted)), None)
