"""Stacks of all threads on SIGUSR1, in a file of the process: what a hang shows of itself.

Workers and schedulers of Dask load this module by --preload.
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
    """Write the stacks into a file named after this process, whenever it gets SIGUSR1."""
    # Kept open for as long as the process lives: faulthandler holds the descriptor alone.
    global _file
    _file = open(pathlib.Path(os.environ[FOLDER], str(os.getpid())), "w")  # noqa: SIM115
    faulthandler.register(signal.SIGUSR1, _file, all_threads=True)


def collect(folder: pathlib.Path, pids: Iterable[int]) -> str:
    """Return the stacks of those of these processes that registered in this folder."""
    paths = [folder / str(pid) for pid in pids if (folder / str(pid)).exists()]
    for path in paths:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(path.name), signal.SIGUSR1)
    time.sleep(1.0)
    return "\n".join(f"== process {path.name}\n{path.read_text()}" for path in paths)


if os.environ.get(FOLDER):
    register()
