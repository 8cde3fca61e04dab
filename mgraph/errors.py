"""All errors that mgraph raises; each message states the cause and the next step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


class MgraphError(Exception):
    """Base of all errors of mgraph; `exit_code` is what the command line ends with."""

    exit_code = 1

    def __reduce__(self) -> tuple:
        # By default unpickling fails for classes with two built-in bases, or with other parameters of __init__ than
        # `args`; Dask would then deliver another error.
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(kind: type[MgraphError], args: tuple) -> MgraphError:
    """Create an error from its `args` without calling its __init__; pickle adds the attributes."""
    return BaseException.__new__(kind, *args)


class UsageError(MgraphError, ValueError):
    """An argument is not one of the values it can have."""

    exit_code = 2


class NotConverged(UsageError):
    """An iteration has not come to its tolerance in the iterations that it may make."""


class InputError(MgraphError, ValueError):
    """The data is wrong: an id out of range, a weight that is not a number, a truncated file."""

    exit_code = 3


class UnknownFormat(InputError):
    """The file is of no format that mgraph reads."""


class ClusterError(MgraphError, RuntimeError):
    """The cluster cannot run the work, or was lost while running it."""

    exit_code = 4


class RendezvousTimeout(ClusterError):
    """Some ranks did not report ready before the deadline; the message names them."""


class CommTimeout(ClusterError):
    """A verb of the communicator passed its deadline."""


class CommAborted(ClusterError):
    """The communicator was aborted, by this rank or after another rank's failure."""


class CommMismatch(CommAborted):
    """The ranks called different verbs, or one verb with different shapes, dtypes or operations."""


class GangLost(ClusterError):
    """A rank died; its parts of all graphs are lost."""

    def __init__(self, rank: int, worker: str, cause: str) -> None:
        super().__init__(
            f"rank {rank} on {worker} was lost ({cause}); its part of every graph is gone: build the graph again"
        )
        self.rank = rank
        self.worker = worker
        self.cause = cause


class GraphClosed(MgraphError, RuntimeError):
    """The graph or result was closed, or its gang was lost; its memory is freed."""

    exit_code = 4
    # Of the object that a rank does not have, if a rank says so.
    key = ""


class WouldNotFit(MgraphError, MemoryError):
    """The plan needs more memory than there is; refused before anything is allocated."""

    exit_code = 5


class ValidationFailed(MgraphError, AssertionError):
    """A result violates a rule; the message gives the rule's number and the first violation."""

    exit_code = 6


def refuse_pickle(instead: str) -> Callable[[object], NoReturn]:
    """Return the `__reduce__` of a handle to data on the ranks of a cluster."""

    def __reduce__(self: object) -> NoReturn:
        raise TypeError(f"{self!r} is on its ranks and cannot be pickled: {instead}")

    return __reduce__
