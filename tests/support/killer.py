"""Kill a process at a chosen moment of a call."""

from __future__ import annotations

import os
import signal
import threading
import time

from dask_processes import wait_until

# Promised by docs/failures.md. The error reaches the client 0.1 s after the signal, later on a busy machine; a wait for
# the computation of ranks or for the deadline of verbs would last minutes.
PROMPTLY_S = 5.0


class Killer(threading.Thread):
    """Kills a process as soon as `ready` holds, and records the time."""

    def __init__(self, pid: int, ready) -> None:
        super().__init__()
        self.pid = pid
        self.ready = ready
        self.at = 0.0
        self.start()

    def run(self) -> None:
        wait_until(self.ready)
        time.sleep(0.1)
        self.at = time.monotonic()
        os.kill(self.pid, signal.SIGKILL)

    def check_prompt(self) -> None:
        self.join()
        assert time.monotonic() - self.at < PROMPTLY_S


def exist(*paths: str):
    return lambda: all(os.path.exists(path) for path in paths)
