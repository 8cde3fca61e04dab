"""The scheduler's side of the cluster: forms gangs, grants leases to calls, and handles the loss of workers.

A *session* is one Cluster of one client. It is bound to a gang at its first call, and to a new gang after the loss of
the old one. A *call* is one `run`: the client sends one message, which requests a lease. If the ranks run as tasks, the
lease ends without a message, when `transition` sees the last of them finish. If the client sends the call to the ranks
itself, it keeps the lease for its next calls, and returns it soon after the last one, or when it is asked: by the reply
to the request with which it watches the lease.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from typing import Any

from distributed import Scheduler, SchedulerPlugin
from distributed.core import error_message
from distributed.protocol import pickle
from tornado.ioloop import PeriodicCallback

from mgraph.cluster.gangs import Call, Gang, Place, Session, choose_backend
from mgraph.cluster.leases import Leases
from mgraph.cluster.messages import PLUGIN, rank_key
from mgraph.cluster.metrics import of_scheduler, publish_metrics
from mgraph.cluster.pauses import RESUME_S, Pauses
from mgraph.cluster.places import INSTALL_S, TICK_S, Heartbeats, Places
from mgraph.errors import ClusterError, CommAborted, GangLost, RendezvousTimeout
from mgraph.formatting import counted

# Added to a session's deadline: a rank that holds the GIL delays the heartbeats of its process.
SILENCE_S = 5.0
# A client sends a heartbeat every 5 s; one that is silent for longer is stopped, and does not return its lease.
CLIENT_SILENCE_S = 15.0

ENDED = "the call was ended before it began"


def _return_errors(handler: Callable) -> Callable:
    """Return errors of a handler to its caller instead of logging them on the scheduler."""

    @functools.wraps(handler)
    async def wrapped(self: GangPlugin, **message: Any) -> Any:
        try:
            return await handler(self, **message)
        except Exception as error:
            return error_message(error, status="uncaught-error")

    return wrapped


class GangPlugin(SchedulerPlugin):
    """Forms gangs, grants leases, and ends the calls of a gang that loses a worker."""

    name = PLUGIN
    idempotent = True

    def __init__(self) -> None:
        self._scheduler: Scheduler
        self._places = Places()
        self._heartbeats = Heartbeats()
        self._client_heartbeats = Heartbeats()
        self._leases = Leases()
        self._gangs: dict[str, Gang] = {}
        self._sessions: dict[str, Session] = {}
        # By lease, until the client has released its results or ended the call: it may request the cause of a failure.
        self._calls: dict[str, Call] = {}
        # By key, until the scheduler forgets the task.
        self._call_of: dict[str, Call] = {}
        self._pauses = Pauses(self._call_of, self._fail_task, self._ask_holders)

    async def start(self, scheduler: Scheduler) -> None:
        """Install the handlers here and the worker plugin on all workers, once for all clients."""
        # Registered before the first await, so that a second client finds this plugin and does not replace it.
        if PLUGIN in scheduler.plugins:
            return
        scheduler.add_plugin(self, name=PLUGIN)
        self._scheduler = scheduler
        self._pauses.scheduler = scheduler
        scheduler.handlers |= {
            "mgraph_register_worker": self.register_worker,
            "mgraph_open": self.open,
            "mgraph_count_present": self._places.count_present,
            "mgraph_lease": self.lease,
            "mgraph_rendezvous": self.rendezvous,
            "mgraph_waits_for": self.waits_for,
            "mgraph_watch_lease": self.watch_lease,
            "mgraph_failure_cause": self.failure_cause,
            "mgraph_phase": self.phase,
        }
        scheduler.stream_handlers |= {
            "mgraph-abort": self.abort,
            "mgraph-end": self.end,
            "mgraph-return": self.return_lease,
            "mgraph-forget": self.forget,
            "mgraph-close": self.close_session,
            "mgraph-paused": self._pauses.end_waiting,
        }
        self._places.install(scheduler)
        self._extend_adaptive_target(scheduler)
        publish_metrics(self, of_scheduler)
        # Dask's own deadline for heartbeats is five minutes by default, and can be disabled.
        watch = PeriodicCallback(self._watch, TICK_S * 1000)
        scheduler.periodic_callbacks["mgraph-watch"] = watch
        watch.start()

    # Handlers of requests: a worker or a client waits for the reply.

    async def register_worker(self, worker: str, host: str, index: int, gpu: str, process: str = "") -> None:
        """Register a worker that can be a rank."""
        # The worker may have been removed before its message arrived.
        if worker in self._scheduler.workers:
            await self._places.add(Place(host, index, worker, gpu, process))

    @_return_errors
    async def open(
        self, session: str, num_ranks: int | None, backend: str, open_timeout_s: float, **rest: Any
    ) -> dict[str, Any]:
        """Open a session: determine its number of ranks and its backend."""
        await self._places.finish_install(open_timeout_s if num_ranks is None else min(open_timeout_s, INSTALL_S))
        if num_ranks is None:
            self._places.require_all()
        places = await self._places.wait_for(num_ranks or 1, open_timeout_s)
        places = places[: num_ranks or len(places)]
        backend = choose_backend(backend, places)
        if rest["client"] not in self._scheduler.clients:
            raise ClusterError("the client left while its session was opened")
        self._sessions[session] = Session(session, len(places), backend, open_timeout_s, **rest)
        return {"num_ranks": len(places), "backend": backend}

    @_return_errors
    async def lease(self, session: str, lease: str, name: str, on_stored: bool, gather: bool) -> dict[str, Any]:
        """Wait until a call holds a lease on its session's gang; return its ticket.

        With `on_stored` the call needs objects that the ranks store.
        """
        if session not in self._sessions:
            raise ClusterError("this cluster is closed: connect again")
        owner = self._sessions[session]
        # The stored objects were lost with the previous gang, so that a new gang would be of no use.
        if on_stored and owner.gang is None and owner.loss is not None:
            raise GangLost(*owner.loss)
        keys = tuple(rank_key(name, lease, rank) for rank in range(owner.num_ranks))
        call = Call(lease, owner, keys, job=name, gather=gather)
        self._calls[lease] = call
        try:
            call.gang = await self._find_gang(owner)
            # The client may have ended the call, or disconnected, in the meantime.
            if not call.granted.done():
                self._call_of |= dict.fromkeys(call.keys, call)
                self._resolve_granted(self._leases.request(lease, call.gang.workers))
                self._ask_for_wanted()
            await call.granted
            await self._pauses.refuse(call.gang.workers)
            if call.aborted:
                raise self._loss_of(call) or CommAborted(ENDED)
        except BaseException:
            self._forget_call(call)
            raise
        return {"ticket": pickle.dumps(call.ticket())}

    @_return_errors
    async def rendezvous(self, gang: str, epoch: int, rank: int, address: str, timeout_s: float) -> list[str]:
        """Wait until every rank of the gang has reported ready; return their addresses."""
        found = self._gangs.get(gang)
        if found is None or found.epoch != epoch:
            raise CommAborted("the gang was ended before it opened")
        ready = found.ready
        all_ready = found.all_ready
        size = len(found.members)
        ready[rank] = address
        if len(ready) == size and not all_ready.done():
            all_ready.set_result(None)
        try:
            await asyncio.wait_for(asyncio.shield(all_ready), timeout_s)
        except TimeoutError:
            missing = ", ".join(f"rank {r} on {w}" for r, w in enumerate(found.workers) if r not in ready)
            raise RendezvousTimeout(
                f"{missing} did not report ready within {timeout_s:g} s: busy with other tasks, or stuck"
            ) from None
        return [ready[r] for r in range(size)]

    async def waits_for(self, lease: str) -> str:
        """Describe what a call waits for, or without one the opening of a session; nothing if it only computes."""
        call = self._calls.get(lease)
        if call is None or call.gang is None:
            return "" if lease and call is None else self._places.describe_wait()
        if call.granted.done():
            return call.gang.describe_wait(lambda worker: self._heartbeats.silent_s(worker) > SILENCE_S)
        before = [other for other in self._leases.before(lease) if other in self._calls]
        jobs = ", ".join(f"{self._calls[other].job} of {self._calls[other].session.client}" for other in before)
        return f"the end of {counted(len(before), 'call')} on its ranks: {jobs}" if before else "its turn"

    @_return_errors
    async def watch_lease(self, lease: str, until_ended: bool) -> None:
        """Wait until others ask for a lease that a client keeps, or until it ends; raise GangLost on a loss."""
        call = self._calls.get(lease)
        if call is None or call.gang is None:
            return
        call.is_kept = True
        awaited = call.ended if until_ended else call.asked
        await asyncio.wait((awaited, call.gang.lost), return_when=asyncio.FIRST_COMPLETED)
        if loss := self._loss_of(call):
            raise loss

    @_return_errors
    async def failure_cause(self, lease: str, timeout_s: float) -> None:
        """Raise GangLost if the call's gang has lost a worker, or loses one within the timeout."""
        call = self._calls.get(lease)
        if call is not None and call.gang is not None:
            await asyncio.wait((call.gang.lost,), timeout=timeout_s)
            if loss := self._loss_of(call):
                raise loss

    @_return_errors
    async def phase(self, session: str) -> tuple | None:
        """Ask rank 0 of a session what it does: a client shows it."""
        owner = self._sessions.get(session)
        if owner is None or owner.gang is None:
            return None
        return await self._scheduler.rpc(owner.gang.workers[0]).mgraph_phase(gang=owner.gang.name, session=session)

    # Handlers of stream messages: the client does not wait.

    def abort(self, client: str, lease: str, cause: str) -> None:
        """Abort the other ranks of a direct call that failed on one; its client waits for their errors."""
        if call := self._calls.get(lease):
            self._abort_call(call, cause)

    def return_lease(self, client: str, lease: str) -> None:
        """End a lease that its client kept, and that no call uses."""
        if call := self._calls.get(lease):
            self._forget_call(call)

    def end(self, client: str, lease: str, cause: str) -> None:
        """End a call that failed, or that its client has abandoned."""
        if call := self._calls.get(lease):
            self._abort_call(call, cause)
            self._forget_call(call)
            # A client that learns of a restart after it submitted the tasks does not release them.
            if client in self._scheduler.clients:
                self._scheduler.client_releases_keys(call.keys, client)

    def forget(self, client: str, session: str, key: str) -> None:
        """Drop one object on every rank."""
        if (owner := self._sessions.get(session)) and owner.gang:
            self._send(owner.gang.workers, {"op": "mgraph-forget", "session": session, "key": key})

    def close_session(self, client: str, session: str) -> None:
        """Free a session's objects on the workers, and its gang if no other session uses it."""
        if (owner := self._sessions.pop(session, None)) is None:
            return
        # Waiting calls first: if the call that holds the lease ended first, the next one would be granted it.
        for call in sorted(
            (call for call in self._calls.values() if call.session is owner),
            key=lambda call: self._leases.held(call.lease),
        ):
            self._abort_call(call, "the cluster was closed")
            self._end_lease(call)
        if gang := owner.gang:
            self._send(gang.workers, {"op": "mgraph-free", "session": session})
            if all(other.gang is not gang for other in self._sessions.values()):
                del self._gangs[gang.name]
                self._send(gang.workers, {"op": "mgraph-drop", "gang": gang.name, "cause": "the cluster was closed"})

    # Hooks that the scheduler calls.

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        """Track the tasks of calls: the last to finish ends the lease, and one that fails aborts the others."""
        if (call := self._call_of.get(key)) is None:
            return
        if finish == "forgotten":
            del self._call_of[key]
            call.remembered.discard(key)
        elif finish == "no-worker" or (finish == "processing" and call.is_lost):
            # Pinned to a lost worker the task waits for ever; a paused one may resume. Deferred: inside a transition.
            paused = call.gang is not None and self._pauses.is_paused(call.gang.workers[call.keys.index(key)])
            self._scheduler.loop.call_later(RESUME_S if paused else 0, self._fail_stranded, call, key)
        if finish in ("memory", "erred", "released", "forgotten") and key in call.pending:
            # A task's first transition ends in "waiting", so that these states mean that it ran or was cancelled.
            if finish == "erred":
                self._abort_call(call, "another rank failed")
            elif finish != "memory":
                self._abort_call(call, "the call was cancelled")
            call.pending.discard(key)
            call.failed |= finish != "memory"
            if not call.pending:
                self._end_lease(call)
        if call.is_over:
            self._calls.pop(call.lease, None)

    def log_event(self, topic: str, msg: Any) -> None:
        """Pass on the events of workers that are paused, or ended for their memory use."""
        self._pauses.on_event(topic, msg)

    def remove_worker(self, scheduler: Scheduler, worker: str, *, stimulus_id: str, **kwargs: Any) -> None:
        """End every gang with this worker, and the calls on them."""
        self._remove_place(worker, self._pauses.cause_of_end(worker) or _describe_removal(stimulus_id))

    def valid_workers_downscaling(self, scheduler: Scheduler, workers: list[Any]) -> list[Any]:
        """Exclude the workers of gangs from retirement: Dask does not know the objects that they store."""
        in_gangs = self._gang_workers()
        return [worker for worker in workers if worker.address not in in_gangs]

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Close the sessions and calls of a client that disconnected."""
        for session in [session for session in self._sessions.values() if session.client == client]:
            self.close_session(client, session.name)
        for call in [call for call in self._calls.values() if call.session.client == client]:
            self._forget_call(call)

    def _extend_adaptive_target(self, scheduler: Scheduler) -> None:
        """Make an adaptive cluster count the workers that sessions use or wait for."""
        target_of_tasks = scheduler.adaptive_target

        def adaptive_target(target_duration: Any = None) -> int:
            return max(target_of_tasks(target_duration), len(self._gang_workers()), self._places.num_needed)

        scheduler.adaptive_target = scheduler.handlers["adaptive_target"] = adaptive_target

    def _gang_workers(self) -> set[str]:
        return {worker for gang in self._gangs.values() for worker in gang.workers}

    async def _watch(self) -> None:
        """Remove silent workers and clients that block a call: a stopped process would block it for ever."""
        if self._calls:
            # Dask does not see direct calls, and would close an idle scheduler if it is so configured.
            self._scheduler.idle_since = None
        self._end_leases_of_silent_clients()
        self._heartbeats.update({worker: state.last_seen for worker, state in self._scheduler.workers.items()})
        silent = {}
        for call in self._calls.values():
            # A finished call that leaves its results on the workers waits for none of them.
            for worker in call.gang.workers if call.gang is not None and (call.pending or call.gather) else ():
                silent_s = self._heartbeats.silent_s(worker)
                if silent_s > call.session.verb_timeout_s + SILENCE_S and worker in self._scheduler.workers:
                    silent[worker] = silent_s
        for worker, silent_s in silent.items():
            self._remove_place(worker, f"it sent no heartbeat for {silent_s:.0f} s: its process is stopped, or hangs")
        if silent:
            # As Dask does after its own deadline; a nanny then kills the process and starts another.
            await self._scheduler.restart_workers(
                list(silent), wait_for_workers=False, on_error="return", stimulus_id=f"mgraph-silent-{time.time()}"
            )

    def _end_leases_of_silent_clients(self) -> None:
        self._client_heartbeats.update({name: state.last_seen for name, state in self._scheduler.clients.items()})
        for call in list(self._calls.values()):
            silent_s = self._client_heartbeats.silent_s(call.session.client)
            if call.is_kept and call.asked.done() and silent_s > CLIENT_SILENCE_S:
                self.end(call.session.client, call.lease, "its client is stopped, or hangs, and others wait")

    def _remove_place(self, worker: str, cause: str) -> None:
        self._places.remove(worker)
        for gang in [gang for gang in self._gangs.values() if worker in gang.workers]:
            self._lose_gang(gang, gang.workers.index(worker), worker, cause)

    async def _find_gang(self, session: Session) -> Gang:
        """Return the session's gang: its present one, another session's of the same shape, or a new one."""
        if session.gang is None:
            places = await self._places.wait_for(session.num_ranks, session.open_timeout_s)
            if session.name not in self._sessions:
                raise ClusterError("this cluster was closed: connect again")
            # Another call of this session may have set it during the wait.
            if session.gang is None:
                shape = (session.num_ranks, session.backend, session.verb_timeout_s)
                gangs = self._gangs.values()
                gang = next((g for g in gangs if (len(g.members), g.backend, g.verb_timeout_s) == shape), None)
                if gang is None:
                    members = tuple(places[: session.num_ranks])
                    gang = Gang(members, choose_backend(session.backend, members), session.verb_timeout_s)
                    self._gangs[gang.name] = gang
                    self._send(gang.workers, {"op": "mgraph-add-gang", "gang": gang.name})
                session.gang = gang
        return session.gang

    def _abort_call(self, call: Call, cause: str) -> None:
        """Abort the communicator of a running call; the gang's next call opens a new one."""
        if call.aborted or not self._leases.held(call.lease) or call.gang is None:
            return
        call.aborted = True
        gang = call.gang
        epoch = call.gang.epoch
        if not gang.all_ready.done():
            gang.all_ready.set_exception(CommAborted(cause))
            gang.all_ready.exception()
        gang.epoch = epoch + 1
        gang.ready = {}
        gang.all_ready = asyncio.Future()
        self._send(gang.workers, {"op": "mgraph-abort", "gang": gang.name, "epoch": epoch, "cause": cause})

    def _lose_gang(self, gang: Gang, rank: int, worker: str, cause: str) -> None:
        """End a gang after the loss of a worker, with the calls that hold it or wait for it."""
        del self._gangs[gang.name]
        gang.lost.set_result((rank, worker, cause))
        error = GangLost(rank, worker, cause)
        if not gang.all_ready.done():
            gang.all_ready.set_exception(error)
            gang.all_ready.exception()
        self._send(gang.workers, {"op": "mgraph-drop", "gang": gang.name, "cause": str(error)})
        for session in self._sessions.values():
            if session.gang is gang:
                session.gang = None
                session.loss = (rank, worker, cause)
        # Finished calls too: Dask must not recompute their lost results.
        lost = [call for call in self._calls.values() if call.gang is gang]
        # Reject all waiting calls before ending any lease, which would grant the lost gang to the next of them.
        for call in lost:
            call.aborted = True
            if not call.granted.done():
                call.granted.set_exception(error)
        for call in lost:
            for key in call.keys:
                self._fail_task(key, error)
            self._end_lease(call)

    def _fail_stranded(self, call: Call, key: str) -> None:
        """Fail a task if its worker was lost or accepts no tasks."""
        assert call.gang is not None
        worker = call.gang.workers[call.keys.index(key)]
        state = self._scheduler.workers.get(worker)
        if loss := self._loss_of(call):
            self._fail_task(key, loss)
        elif state is None:
            self._fail_task(key, GangLost(call.keys.index(key), worker, "after its cluster was closed"))
        elif (task := self._scheduler.tasks.get(key)) and task.state == "no-worker":
            refused = ClusterError(f"{worker} accepts no tasks now: its status in Dask is {state.status.name}")
            self._fail_task(key, self._pauses.error(worker) if self._pauses.is_paused(worker) else refused)

    def _loss_of(self, call: Call) -> GangLost | None:
        return GangLost(*call.gang.lost.result()) if call.gang is not None and call.gang.lost.done() else None

    def _fail_task(self, key: str, error: Exception) -> None:
        """End a task, and the tasks that depend on it, with an error."""
        task = self._scheduler.tasks.get(key)
        if task is None or task.state not in ("processing", "no-worker", "queued"):
            return
        # With the worker's address, Dask frees the task there when no client needs its error any more.
        worker = {"worker": task.processing_on.address} if task.state == "processing" else {}
        details = {"exception": pickle.dumps(error), "exception_text": repr(error), "traceback_text": ""}
        stimulus = f"mgraph-fail-{time.time()}"
        recommendations = self._scheduler.transition(key, "erred", stimulus_id=stimulus, cause=key, **details, **worker)
        self._scheduler.transitions(recommendations, stimulus)

    def _forget_call(self, call: Call) -> None:
        """Drop a call that its client will not mention again; tasks that still exist stay tracked."""
        self._calls.pop(call.lease, None)
        self._end_lease(call)
        for key in call.keys:
            if key not in self._scheduler.tasks:
                self._call_of.pop(key, None)

    def _end_lease(self, call: Call) -> None:
        """End a call's lease, which may grant the ranks to the next call."""
        if not call.granted.done():
            call.granted.set_exception(CommAborted(ENDED))
            call.granted.exception()
        for future in (call.asked, call.ended):
            if not future.done():
                future.set_result(None)
        self._resolve_granted(self._leases.end(call.lease))
        self._ask_for_wanted()

    def _resolve_granted(self, leases: list[str]) -> None:
        for lease in leases:
            granted = self._calls[lease].granted
            if not granted.done():
                granted.set_result(None)

    def _ask_for_wanted(self) -> None:
        """Ask the holders of leases that others wait for to return them."""
        for lease in self._leases.wanted():
            self._ask(self._calls[lease])

    def _ask_holders(self, worker: str) -> None:
        """Ask the holders of all leases on a worker to return them."""
        for call in self._calls.values():
            if call.gang is not None and worker in call.gang.workers:
                self._ask(call)

    def _ask(self, call: Call) -> None:
        if not call.asked.done():
            call.asked.set_result(None)

    def _send(self, workers: list[str] | tuple[str, ...], message: dict[str, Any]) -> None:
        for worker in workers:
            if worker in self._scheduler.stream_comms:
                self._scheduler.worker_send(worker, message)


def _describe_removal(stimulus_id: str) -> str:
    """Describe why the scheduler removed a worker."""
    if stimulus_id.startswith("handle-worker-cleanup"):
        return "its connection to the scheduler broke: the process ended or was killed"
    return f"the scheduler removed it: {stimulus_id.rstrip('0123456789.').rstrip('-')}"
