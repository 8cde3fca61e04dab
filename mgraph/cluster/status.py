"""Report what a Dask cluster does for mgraph, without a lease and without waiting for one.

The scheduler knows gangs, sessions and leases; workers know the objects of their ranks. Both are asked in their event
loops, which run concurrently with the ranks.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from distributed import Client, Scheduler, Worker

from mgraph.cluster.messages import PLUGIN
from mgraph.errors import ClusterError

# How long a worker may take to answer.
ANSWER_S = 3.0


def cluster_status(client: Client) -> dict[str, Any]:
    """Return the gangs, leases, clients and objects of a cluster; all are lists of facts for JSON.

    Objects are the graphs and results that ranks store, with the bytes of their arrays by rank; None for a rank
    of a worker that does not answer.
    """
    try:
        found = client.run_on_scheduler(scheduler_status)
    except ImportError as error:
        raise ClusterError(f"the scheduler cannot import this version of mgraph ({error}): install it there") from None
    workers = sorted({worker for gang in found["gangs"] for worker in gang["workers"]})
    answers = {w: found for w, found in ask_workers(client, workers, worker_status).items() if isinstance(found, list)}
    sessions = found.pop("sessions")
    objects: dict[tuple[str, str], dict[str, Any]] = {}
    for gang in found["gangs"]:
        size = len(gang["workers"])
        for rank, worker in enumerate(gang["workers"]):
            # A worker may be a rank of several gangs.
            for stored in (row for row in answers.get(worker, ()) if row["gang"] == gang["name"]):
                facts = {name: stored[name] for name in ("key", "kind", "name", "about", "gang")}
                row = {**facts, "client": sessions.get(stored["session"]), "bytes": [None] * size}
                objects.setdefault((stored["session"], stored["key"]), row)["bytes"][rank] = stored["bytes"]
    silent = [worker for worker in workers if worker not in answers]
    return {"scheduler": client.scheduler.address, **found, "objects": list(objects.values()), "silent": silent}


def ask_workers(client: Client, workers: Sequence[str], function: Callable[..., Any]) -> dict[str, Any]:
    """Return what a function returns in the event loop of each worker; of a worker that does not answer the error."""

    async def ask(worker: str) -> Any:
        try:
            async with asyncio.timeout(ANSWER_S):
                answers = await client.run(function, workers=[worker], on_error="return", asynchronous=True)
        except (TimeoutError, OSError) as error:
            return error
        return answers.get(worker)

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*map(ask, workers))

    return dict(zip(workers, client.sync(ask_all), strict=True))


def worker_addresses(dask_scheduler: Scheduler) -> list[str]:
    """Return the addresses of all workers; runs on the scheduler."""
    return list(dask_scheduler.workers)


def scheduler_status(dask_scheduler: Scheduler) -> dict[str, Any]:
    """Return gangs, leases, clients, and the client of each session; runs on the scheduler."""
    plugin = dask_scheduler.plugins.get(PLUGIN)
    return plugin_status(plugin) if plugin is not None else {"gangs": [], "leases": [], "clients": [], "sessions": {}}


def plugin_status(plugin: Any) -> dict[str, Any]:
    """Return what the scheduler's plugin knows."""
    gangs = [
        {"name": gang.name, "backend": gang.backend, "workers": list(gang.workers)} for gang in plugin._gangs.values()
    ]
    leases = []
    for call in plugin._calls.values():
        held = plugin._leases.held(call.lease)
        if held or not call.granted.done():
            facts = {"job": call.keys[0].removesuffix(f"-{call.lease}-0"), "client": call.session.client}
            gang = None if call.gang is None else call.gang.name
            seconds = time.monotonic() - call.requested
            state = "waiting" if not held else "kept" if call.is_kept else "held"
            leases.append({**facts, "gang": gang, "state": state, "seconds": seconds})
    sessions = {session.name: session.client for session in plugin._sessions.values()}
    clients = [
        {"client": client, "sessions": sum(owner == client for owner in sessions.values())}
        for client in dict.fromkeys(sessions.values())
    ]
    return {"gangs": gangs, "leases": leases, "clients": clients, "sessions": sessions}


def worker_status(dask_worker: Worker) -> list[dict[str, Any]]:
    """Return the objects that the ranks of a worker store; runs on the worker."""
    plugin = dask_worker.plugins.get(PLUGIN)
    return stored_objects(plugin) if plugin is not None else []


def stored_objects(plugin: Any) -> list[dict[str, Any]]:
    """Return the objects that a worker's plugin stores, with the bytes of their arrays."""
    seen: set[int] = set()
    found = []
    for (gang, session), objects in list(plugin._objects.items()):
        for key, value in list(objects.items()):
            num_bytes = array_bytes(value, seen)
            found.append({"gang": gang, "session": session, "key": key, **_about(key, value), "bytes": num_bytes})
    return found


def array_bytes(value: Any, seen: set[int]) -> int:
    """Return the bytes of the arrays in an object, without those in `seen`, to which it adds them."""
    return sum(array.nbytes for array in _arrays(value, seen))


def _about(key: str, value: Any) -> dict[str, str]:
    """Return the kind and name in a key such as graph-rmat20-0123, and what the object is."""
    kind, _, rest = key.partition("-")
    info = getattr(value, "info", None)
    if info is not None:
        about = f"{info.num_vertices:,} vertices, {info.num_edges:,} edges"
    else:
        about = ", ".join(getattr(value, "columns", ()))
    return {"kind": kind, "name": rest.rpartition("-")[0], "about": about}


def _arrays(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the arrays in an object, each once: a result may share those of its graph."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, dict):
        value = list(value.values())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(getattr(value, "nbytes", None), int):
        yield value
        return
    for part in value if isinstance(value, (list, tuple)) else ():
        yield from _arrays(part, seen)
