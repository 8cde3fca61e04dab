"""Faults planted in the client's process, to test that the harness finds them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

_planted: dict[str, Any] = {}


def plant(name: str, work: Any) -> None:
    """Plant a fault that takes effect at the next call."""
    _planted[name] = work


def wrong(results: set[str]) -> None:
    """Add a wrong result, if planted."""
    if _planted.pop("wrong result", None):
        results.add("wrong")


def foreign() -> None:
    """Raise an error that is not mgraph's, if planted."""
    if _planted.pop("foreign error", None):
        raise ValueError("planted")


def next_call() -> None:
    """Leave something behind, or hang, if planted."""
    for name in list(_planted):
        if name in LEAVES:
            LEAVES[name](_planted.pop(name))


def _leave_object(work: Any) -> None:
    work.cluster._objects[0]["planted"] = bytearray(10)


def _leave_thread(work: Any) -> None:
    threading.Thread(target=threading.Event().wait, name="mgraph-planted", daemon=True).start()


def _leave_descriptor(work: Any) -> None:
    os.open(os.devnull, os.O_RDONLY)


def _leave_child(work: Any) -> None:
    _kept.append(subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE))


def _leave_spool(work: Any) -> None:
    tempfile.mkdtemp(prefix="mgraph-")


def _leave_beside(work: Any) -> None:
    pathlib.Path(work.folder, "out", ".mgraph-0123").write_text("")


def _damage_output(work: Any) -> None:
    path = pathlib.Path(work.folder, "out", "answer.csv")
    path.write_text(path.read_text()[:10])


def _damage_graph(work: Any) -> None:
    work.found.close()
    work.graph.close()


_kept: list[Any] = []
LEAVES = {
    "object": _leave_object,
    "thread": _leave_thread,
    "descriptor": _leave_descriptor,
    "child": _leave_child,
    "spool": _leave_spool,
    "beside": _leave_beside,
    "output": _damage_output,
    "graph": _damage_graph,
    "hang": lambda work: time.sleep(1000),
}
