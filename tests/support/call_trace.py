"""The functions of the package that a call goes through, in each thread that works on it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import Any

import mgraph
from mgraph.cluster.base import Rank

PACKAGE = os.path.dirname(mgraph.__file__) + os.sep


@dataclass(frozen=True)
class Launch:
    """A launch by a backend.

    Attributes
    ----------
    stack
        The functions of the package on the stack, outermost first.
    num_calls
        How many of the trace's calls came first, the launch included.
    """

    stack: list[str]
    num_calls: int


@dataclass
class CallTrace:
    """The calls of one thread while it is traced.

    Attributes
    ----------
    calls
        `folder/file.py name`, in the order of their first calls.
    launches
        The launches by a backend.
    """

    calls: list[str] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)

    def start(self) -> None:
        sys.setprofile(self._record)

    def stop(self) -> CallTrace:
        sys.setprofile(None)
        return self

    @property
    def files(self) -> set[str]:
        return {call.split()[0] for call in self.calls}

    def _record(self, frame: Any, event: str, _arg: Any) -> None:
        if event != "call" or (name := _name(frame)) is None:
            return
        if name not in self.calls:
            self.calls.append(name)
        if frame.f_code.co_name in ("launch", "prepared"):
            self.launches.append(Launch(_stack(frame), len(self.calls)))


def _name(frame: Any) -> str | None:
    path = frame.f_code.co_filename
    if not path.startswith(PACKAGE):
        return None
    return f"{path.removeprefix(PACKAGE)} {frame.f_code.co_qualname.replace('.<locals>', '')}"


def _stack(frame: Any) -> list[str]:
    names = []
    while frame is not None:
        if (name := _name(frame)) is not None:
            names.append(name)
        frame = frame.f_back
    return names[::-1]


# Of the thread in which a rank runs its jobs: the same thread for every call.
_traces: dict[int, CallTrace] = {}


def start_on_rank(rank: Rank) -> None:
    """Start to trace this rank's thread."""
    _traces[rank.index] = CallTrace()
    _traces[rank.index].start()


def stop_on_rank(rank: Rank) -> CallTrace:
    """Return the calls of this rank's thread since."""
    return _traces.pop(rank.index).stop()
