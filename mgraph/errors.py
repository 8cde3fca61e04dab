"""Every error a user can meet; the message says what is wrong and what to do about it."""

from __future__ import annotations


class MgraphError(Exception):
    """Base of all errors of mgraph; `exit_code` is what the command line ends with."""

    exit_code = 1

    def __reduce__(self) -> tuple:
        # Python's own way fails for some classes in what Dask makes of it: two built-in bases, or an __init__ with
        # other parameters than the message.
        return _remade, (type(self), self.args), self.__dict__


def _remade(kind: type[MgraphError], args: tuple) -> MgraphError:
    """Make an error of that class from its `args`, without its __init__; pickle adds the attributes."""
    return BaseException.__new__(kind, *args)


class UsageError(MgraphError, ValueError):
    """An argument is not one of the values it can have."""

    exit_code = 2


class InputError(MgraphError, ValueError):
    """The data is wrong: an id out of range, a weight that is not a number, a truncated file."""

    exit_code = 3


class UnknownFormat(InputError):
    """The file is of no format that mgraph reads."""


class ClusterError(MgraphError, RuntimeError):
    """The cluster cannot do the work, or was lost while doing it."""

    exit_code = 4


class RendezvousTimeout(ClusterError):
    """Some ranks did not report ready before the deadline; the message names them."""


class CommTimeout(ClusterError):
    """A verb of the communicator passed its deadline."""


class CommAborted(ClusterError):
    """The communicator was aborted, by this rank or because of another."""


class CommMismatch(CommAborted):
    """The ranks called different verbs, or one verb with different shapes, dtypes or operations."""


class GangLost(ClusterError):
    """A rank died; the graphs that lived on it are gone."""

    def __init__(self, rank: int, worker: str, cause: str) -> None:
        super().__init__(
            f"rank {rank} on {worker} was lost ({cause}); its part of every graph is gone: build the graph again"
        )
        self.rank, self.worker, self.cause = rank, worker, cause


class GraphClosed(MgraphError, RuntimeError):
    """The graph or result was closed, or its gang was lost, and its memory is freed."""

    exit_code = 4


class WouldNotFit(MgraphError, MemoryError):
    """The plan needs more memory than there is; refused before anything is allocated."""

    exit_code = 5


class ValidationFailed(MgraphError, AssertionError):
    """A result breaks a rule; the message numbers the rule and shows the first offender."""

    exit_code = 6
