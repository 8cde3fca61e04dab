"""Counts the resources of processes: whatever there is more of after a fault than before it was left behind.

This module alone accesses the private attributes of plugins and clusters.
"""

from __future__ import annotations

import os
import pathlib
import re
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

import psutil

# Pools of Dask and Python that start threads on demand, and connections that Dask caches.
LAZY_THREADS = ("TCP-Executor", "Dask-Offload", "Dask-Default-Threads", "asyncio", "ThreadPoolExecutor", "Profile")
NO_SLACK: dict[str, int] = {}
DASK_SLACK = {"sockets": 6}
# An environment variable of every process that a campaign starts.
MARK = "MGRAPH_FAULTS_RUN"


def of_process() -> dict[str, int]:
    """Count the threads, descriptors and children of this process."""
    names = (re.sub(r"[-_]*\d[\d_-]*", "", thread.name) for thread in threading.enumerate())
    threads = Counter(f"threads {name}" for name in names if not name.startswith(LAZY_THREADS))
    return dict(threads) | descriptors() | {"children": len(psutil.Process().children())}


def descriptors() -> dict[str, int]:
    """Count the open descriptors of this process, by kind."""
    kinds: Counter[str] = Counter()
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
        if target.startswith("/dev/nvidia"):  # the driver keeps its devices open
            continue
        if target.startswith("/memfd:mgraph"):  # memory shared with another rank of this host
            kinds["descriptors segments"] += 1
            continue
        kind = re.match(r"(socket|pipe|anon_inode):\[?(\w*)", target)
        # Files by suffix, or by name without digits: the names of temporary files and of workers are random.
        name = target.rpartition("/")[2]
        use = "(deleted)" if name.endswith(" (deleted)") else pathlib.PurePath(name).suffix or re.sub(r"\d+", "#", name)
        named = f"files {use}"
        kinds["descriptors " + (f"{kind[2] if kind[1] == 'anon_inode' else kind[1]}s" if kind else named)] += 1
    return dict(kinds)


def of_cluster(cluster: Any) -> dict[str, int]:
    """Count the records of a cluster in its client's process."""
    if cluster.launcher == "in-process":
        held = sum(len(objects) for objects in cluster._objects)
        threads = getattr(cluster, "_threads", None)
        calls = len(cluster._leases._leases) if threads is None else int(threads.running is not None)
        return {"objects": held, "calls": calls, "parts": len(cluster._narrowed)}
    return {"futures": len(cluster.client.futures), "parts": len(cluster._narrowed)}


def of_scheduler(dask_scheduler: Any) -> dict[str, int]:
    """Count the records of the scheduler and its plugin."""
    plugin = dask_scheduler.plugins["mgraph"]
    return of_process() | {
        "leases": len(plugin._leases._leases),
        "calls": len(plugin._calls),
        "keys of calls": len(plugin._call_of),
        "gangs": len(plugin._gangs),
        "sessions": len(plugin._sessions),
        "places of dead workers": len(plugin._places._places.keys() - dask_scheduler.workers.keys()),
        "tasks": len(dask_scheduler.tasks),
        "clients": len(dask_scheduler.clients),
        "handlers' tasks": sum(not task.done() for task in _tasks_of(dask_scheduler)),
    }


def places(dask_scheduler: Any) -> dict[str, int]:
    """Return the pid of every worker that can be a rank, by its address."""
    plugin = dask_scheduler.plugins.get("mgraph")
    known = dask_scheduler.workers if plugin is None else plugin._places._places
    return {address: worker.pid for address, worker in dask_scheduler.workers.items() if address in known}


def members(dask_scheduler: Any) -> list[str]:
    """Return the workers of all gangs."""
    return sorted({worker for gang in dask_scheduler.plugins["mgraph"]._gangs.values() for worker in gang.workers})


def _tasks_of(server: Any) -> list[Any]:
    """Return the running coroutines of mgraph."""
    import asyncio

    return [task for task in asyncio.all_tasks(server.loop.asyncio_loop) if "mgraph" in repr(task.get_coro())]


def of_worker(dask_worker: Any) -> dict[str, int]:
    """Count the records of a worker and its plugin."""
    plugin = dask_worker.plugins["mgraph"]
    return of_process() | {
        "objects": sum(len(objects) for objects in plugin._objects.values()),
        "gangs with objects": len(plugin._objects),
        "networks": len(plugin._networks),
        "tasks": len(dask_worker.state.tasks),
        "data": len(dask_worker.data),
    }


def of_workers(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Combine the counts of workers: the maximum of threads, descriptors and children, the sum of all else."""
    found: Counter[str] = Counter()
    for count in counts.values():
        for name, number in count.items():
            takes_maximum = name.startswith(("threads", "descriptors", "children"))
            found[name] = max(found[name], number) if takes_maximum else found[name] + number
    return dict(found)


def of_folders(scratch: pathlib.Path, out: pathlib.Path | None = None) -> dict[str, int]:
    """Count mgraph's files in the folder of temporary files, and hidden files beside the outputs."""
    ours = [path for path in scratch.iterdir() if path.name.startswith(("mgraph", ".mgraph"))]
    hidden = [] if out is None else [path for path in out.iterdir() if path.name.startswith(".")]
    return {"temporary files": len(ours), "files beside the output": len(hidden)}


def marked(mark: str) -> list[int]:
    """Return the pids of processes with this mark in their environment."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:  # the process ended meanwhile
            continue
    return found


class SharedMemory:
    """The files in /dev/shm that marked processes were seen to map; other processes use /dev/shm too."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._seen: set[str] = set()

    def left(self) -> int:
        """Count the files that still exist, mapped or not."""
        for pid in marked(self._mark):
            try:
                maps = pathlib.Path(f"/proc/{pid}/maps").read_text(errors="replace")
            except OSError:
                continue
            # Without semaphores: multiprocessing has its own process to remove them.
            self._seen |= set(re.findall(r"/dev/shm/(?!sem\.)(\S+)", maps))
        return len(self._seen & set(os.listdir("/dev/shm")))


def grown(before: Mapping[str, int], after: Mapping[str, int], slack: Mapping[str, int] = NO_SLACK) -> dict[str, str]:
    """Return the counts that have grown by more than their slack."""
    return {
        name: f"{before.get(name, 0)} -> {number}"
        for name, number in after.items()
        if number > before.get(name, 0) + slack.get(name.rpartition(" ")[2], 0)
    }
