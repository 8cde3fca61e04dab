"""Writes the stacks of all threads to a file of the process on SIGUSR1, to diagnose hangs.

Dask's workers and schedulers load this module by --preload.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pathlib
import signal
import time
from collections.abc import Iterable

FOLDER = "MGRAPH_FAULTS_STACKS"


def register() -> None:
    """Write the stacks into a file named after this process, on each SIGUSR1."""
    # A global keeps the file open: faulthandler stores only the descriptor.
    global _file
    _file = open(pathlib.Path(os.environ[FOLDER], str(os.getpid())), "w")  # noqa: SIM115
    faulthandler.register(signal.SIGUSR1, _file, all_threads=True)


def collect(folder: pathlib.Path, pids: Iterable[int]) -> str:
    """Return the stacks of the processes that have registered in a folder."""
    paths = [folder / str(pid) for pid in pids if (folder / str(pid)).exists()]
    for path in paths:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(path.name), signal.SIGUSR1)
    time.sleep(1.0)
    return "\n".join(f"== process {path.name}\n{path.read_text()}" for path in paths)


if os.environ.get(FOLDER):
    register()
