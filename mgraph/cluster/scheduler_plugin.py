"""The scheduler's side of the cluster: which workers form a gang, whose turn it is, and who was lost.

A *session* is one Cluster of one client. It is bound to a gang at its first call and to a new one when
that is lost. A *call* is one `run`: it asks for a lease by the one message that a client sends, and ends
it by itself when the last of its tasks has left the workers, seen through `transition`.
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

from mgraph.cluster.gangs import Call, Gang, Place, Session, settle_backend
from mgraph.cluster.leases import Leases
from mgraph.cluster.messages import PLUGIN, rank_key
from mgraph.cluster.pauses import RESUME_S, Pauses
from mgraph.cluster.places import INSTALL_S, TICK_S, Heartbeats, Places
from mgraph.errors import ClusterError, CommAborted, GangLost, RendezvousTimeout

# Beyond a session's deadline: heartbeats are late too where a rank keeps its process from sending them.
SILENCE_S = 5.0

ENDED = "the call was ended before it began"


def _answer(handler: Callable) -> Callable:
    """Send an error to the caller without writing it to the scheduler's log: it is the caller's to show."""

    @functools.wraps(handler)
    async def answered(self: GangPlugin, **message: Any) -> Any:
        try:
            return await handler(self, **message)
        except Exception as error:
            return error_message(error, status="uncaught-error")

    return answered


class GangPlugin(SchedulerPlugin):
    """Forms gangs, grants leases, and tells the survivors when a worker is lost."""

    name = PLUGIN
    idempotent = True

    def __init__(self) -> None:
        self._scheduler: Scheduler
        self._places = Places()
        self._heartbeats = Heartbeats()
        self._leases = Leases()
        self._gangs: dict[str, Gang] = {}
        self._sessions: dict[str, Session] = {}
        # By lease, until the client has its results or says that it gave up; it may ask why a call failed.
        self._calls: dict[str, Call] = {}
        # By key, as long as the scheduler knows the task.
        self._call_of: dict[str, Call] = {}
        self._pauses = Pauses(self._call_of, self._fail)

    async def start(self, scheduler: Scheduler) -> None:
        """Install the handlers here and the other plugin on all workers, once for all clients."""
        # Registered before the first await: a second client must find it, and not replace it.
        if PLUGIN in scheduler.plugins:
            return
        scheduler.add_plugin(self, name=PLUGIN)
        self._scheduler = scheduler
        self._pauses.scheduler = scheduler
        scheduler.handlers |= {
            "mgraph_hello": self.hello,
            "mgraph_open": self.open,
            "mgraph_lease": self.lease,
            "mgraph_meet": self.meet,
            "mgraph_verdict": self.verdict,
        }
        scheduler.stream_handlers |= {
            "mgraph-end": self.end,
            "mgraph-forget": self.forget,
            "mgraph-close": self.close_session,
            "mgraph-paused": self._pauses.end_waiting,
        }
        self._places.install(scheduler)
        self._heed_in_scaling(scheduler)
        # Dask's own deadline for heartbeats is five minutes, and may be none.
        watch = PeriodicCallback(self._watch, TICK_S * 1000)
        scheduler.periodic_callbacks["mgraph-watch"] = watch
        watch.start()

    # Handlers: a worker or a client asks and waits for the answer.

    async def hello(self, worker: str, host: str, index: int, gpu: str, process: str = "") -> None:
        """Take note of a worker that can be a rank."""
        # It may have been removed while its message was on the way.
        if worker in self._scheduler.workers:
            await self._places.add(Place(host, index, worker, gpu, process))

    @_answer
    async def open(
        self, session: str, num_ranks: int | None, backend: str, open_timeout_s: float, **rest: Any
    ) -> dict[str, Any]:
        """Start a session: settle how many ranks it has and what they run on."""
        await self._places.settle(open_timeout_s if num_ranks is None else min(open_timeout_s, INSTALL_S))
        if num_ranks is None:
            self._places.require_all()
        places = await self._places.wait_for(num_ranks or 1, open_timeout_s)
        places = places[: num_ranks or len(places)]
        backend = settle_backend(backend, places)
        if rest["client"] not in self._scheduler.clients:
            raise ClusterError("the client left while its session was opened")
        self._sessions[session] = Session(session, len(places), backend, open_timeout_s, **rest)
        return {"num_ranks": len(places), "backend": backend}

    @_answer
    async def lease(self, session: str, lease: str, name: str, kept: bool, gather: bool) -> dict[str, Any]:
        """Wait for the session's turn on its gang; the answer is all that its tasks need to know."""
        if session not in self._sessions:
            raise ClusterError("this cluster is closed: connect again")
        owner = self._sessions[session]
        # What ranks kept was lost with the last gang: no new one is waited for.
        if kept and owner.gang is None and owner.loss is not None:
            raise GangLost(*owner.loss)
        keys = tuple(rank_key(name, lease, rank) for rank in range(owner.num_ranks))
        call = Call(lease, owner, keys, gather=gather)
        self._calls[lease] = call
        try:
            call.gang = await self._gang_of(owner)
            # The client may have given up, or left, in the meantime.
            if not call.granted.done():
                self._call_of |= dict.fromkeys(call.keys, call)
                self._tell(self._leases.ask(lease, call.gang.workers))
            await call.granted
            await self._pauses.refuse(call.gang.workers)
            if call.broken:
                raise self._loss_of(call) or CommAborted(ENDED)
        except BaseException:
            self._forget_call(call)
            raise
        return {"ticket": pickle.dumps(call.ticket())}

    @_answer
    async def meet(self, gang: str, epoch: int, rank: int, address: str, timeout_s: float) -> list[str]:
        """Wait until every rank of the gang has reported ready; return their addresses."""
        found = self._gangs.get(gang)
        if found is None or found.epoch != epoch:
            raise CommAborted("the gang was ended before it opened")
        ready, met, size = found.ready, found.met, len(found.members)
        ready[rank] = address
        if len(ready) == size and not met.done():
            met.set_result(None)
        try:
            await asyncio.wait_for(asyncio.shield(met), timeout_s)
        except TimeoutError:
            missing = ", ".join(f"rank {r} on {w}" for r, w in enumerate(found.workers) if r not in ready)
            raise RendezvousTimeout(
                f"{missing} did not report ready within {timeout_s:g} s: busy with other tasks, or stuck"
            ) from None
        return [ready[r] for r in range(size)]

    @_answer
    async def verdict(self, lease: str, timeout_s: float) -> None:
        """Raise GangLost if the call's gang has lost a worker, or loses one within the time."""
        call = self._calls.get(lease)
        if call is not None and call.gang is not None:
            await asyncio.wait((call.gang.lost,), timeout=timeout_s)
            if loss := self._loss_of(call):
                raise loss

    # Stream handlers: a client says and goes on.

    def end(self, client: str, lease: str, cause: str) -> None:
        """End a call that failed, or that its client has given up."""
        if call := self._calls.get(lease):
            self._break(call, cause)
            self._forget_call(call)

    def forget(self, client: str, session: str, key: str) -> None:
        """Drop one object on every rank."""
        if (owner := self._sessions.get(session)) and owner.gang:
            self._send(owner.gang.workers, {"op": "mgraph-forget", "session": session, "key": key})

    def close_session(self, client: str, session: str) -> None:
        """Free what a session left on the workers, and the gang that nobody else uses."""
        if (owner := self._sessions.pop(session, None)) is None:
            return
        # First those that wait: the end of one that holds the ranks would grant them.
        for call in sorted(
            (call for call in self._calls.values() if call.session is owner),
            key=lambda call: self._leases.held(call.lease),
        ):
            self._break(call, "the cluster was closed")
            self._end_lease(call)
        if gang := owner.gang:
            self._send(gang.workers, {"op": "mgraph-free", "session": session})
            if all(other.gang is not gang for other in self._sessions.values()):
                del self._gangs[gang.name]
                self._send(gang.workers, {"op": "mgraph-drop", "gang": gang.name, "cause": "the cluster was closed"})

    # Hooks: the scheduler tells what happened.

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        """Follow the tasks of calls: the last to end ends the lease, and one that fails ends the others."""
        if (call := self._call_of.get(key)) is None:
            return
        if finish == "forgotten":
            del self._call_of[key]
            call.remembered.discard(key)
        elif finish == "no-worker" or (finish == "processing" and call.is_lost):
            # Pinned to a worker that was lost it would wait for ever; one that is paused may resume soon.
            # Not now: the scheduler is in the midst of it.
            paused = call.gang is not None and self._pauses.is_paused(call.gang.workers[call.keys.index(key)])
            self._scheduler.loop.call_later(RESUME_S if paused else 0, self._fail_stranded, call, key)
        if finish in ("memory", "erred", "released", "forgotten") and key in call.pending:
            # The first transition of all is from released to waiting: whatever gets here has run or was cancelled.
            if finish == "erred":
                self._break(call, "another rank failed")
            elif finish != "memory":
                self._break(call, "the call was cancelled")
            call.pending.discard(key)
            call.failed |= finish != "memory"
            if not call.pending:
                self._end_lease(call)
        if call.is_over:
            self._calls.pop(call.lease, None)

    def log_event(self, topic: str, msg: Any) -> None:
        """Hear of workers that are paused, or ended for the memory they use."""
        self._pauses.on_event(topic, msg)

    def remove_worker(self, scheduler: Scheduler, worker: str, *, stimulus_id: str, **kwargs: Any) -> None:
        """End every gang that had this worker, and every call on them."""
        self._remove_place(worker, self._pauses.cause_of_end(worker) or _cause_of(stimulus_id))

    def valid_workers_downscaling(self, scheduler: Scheduler, workers: list[Any]) -> list[Any]:
        """Keep the members of gangs when idle workers are retired: what lives on them is not known to Dask."""
        members = self._members()
        return [worker for worker in workers if worker.address not in members]

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Free what a client left, however it left."""
        for session in [session for session in self._sessions.values() if session.client == client]:
            self.close_session(client, session.name)
        for call in [call for call in self._calls.values() if call.session.client == client]:
            self._forget_call(call)

    # What the above are made of.

    def _heed_in_scaling(self, scheduler: Scheduler) -> None:
        """Let an adaptive cluster keep and start the workers that sessions have and wait for."""
        of_tasks = scheduler.adaptive_target

        def adaptive_target(target_duration: Any = None) -> int:
            return max(of_tasks(target_duration), len(self._members()), self._places.waited_for)

        scheduler.adaptive_target = scheduler.handlers["adaptive_target"] = adaptive_target

    def _members(self) -> set[str]:
        return {worker for gang in self._gangs.values() for worker in gang.workers}

    async def _watch(self) -> None:
        """Give up a worker that holds up a call and is silent: stopped, it would do so for ever."""
        self._heartbeats.look({worker: state.last_seen for worker, state in self._scheduler.workers.items()})
        silent = {}
        for call in self._calls.values():
            # Results that are kept on the workers hold up no call.
            for worker in call.gang.workers if call.gang is not None and (call.pending or call.gather) else ():
                silent_s = self._heartbeats.silent_s(worker)
                if silent_s > call.session.verb_timeout_s + SILENCE_S and worker in self._scheduler.workers:
                    silent[worker] = silent_s
        for worker, silent_s in silent.items():
            self._remove_place(worker, f"it was not heard of for {silent_s:.0f} s: its process is stopped, or hangs")
        if silent:
            # As Dask does past its own deadline; a nanny kills the process and starts another.
            await self._scheduler.restart_workers(
                list(silent), wait_for_workers=False, on_error="return", stimulus_id=f"mgraph-silent-{time.time()}"
            )

    def _remove_place(self, worker: str, cause: str) -> None:
        self._places.remove(worker)
        for gang in [gang for gang in self._gangs.values() if worker in gang.workers]:
            self._lose(gang, gang.workers.index(worker), worker, cause)

    async def _gang_of(self, session: Session) -> Gang:
        """Return the session's gang: the one it has, another session's of the same form, or a new one."""
        if session.gang is None:
            places = await self._places.wait_for(session.num_ranks, session.open_timeout_s)
            if session.name not in self._sessions:
                raise ClusterError("this cluster was closed: connect again")
            # Another call of this session may have found one while this one waited.
            if session.gang is None:
                shape = (session.num_ranks, session.backend)
                gang = next((g for g in self._gangs.values() if (len(g.members), g.backend) == shape), None)
                if gang is None:
                    members = tuple(places[: session.num_ranks])
                    gang = Gang(members, settle_backend(session.backend, members))
                    self._gangs[gang.name] = gang
                    self._send(gang.workers, {"op": "mgraph-form", "gang": gang.name})
                session.gang = gang
        return session.gang

    def _break(self, call: Call, cause: str) -> None:
        """Take all ranks of a held call out of their verbs; the next call opens the gang's communicator again."""
        if call.broken or not self._leases.held(call.lease) or call.gang is None:
            return
        call.broken = True
        gang, epoch = call.gang, call.gang.epoch
        if not gang.met.done():
            gang.met.set_exception(CommAborted(cause))
            gang.met.exception()
        gang.epoch, gang.ready, gang.met = epoch + 1, {}, asyncio.Future()
        self._send(gang.workers, {"op": "mgraph-abort", "gang": gang.name, "epoch": epoch, "cause": cause})

    def _lose(self, gang: Gang, rank: int, worker: str, cause: str) -> None:
        """End a gang: its survivors, the calls that hold it and those that wait for it."""
        del self._gangs[gang.name]
        gang.lost.set_result((rank, worker, cause))
        error = GangLost(rank, worker, cause)
        if not gang.met.done():
            gang.met.set_exception(error)
            gang.met.exception()
        self._send(gang.workers, {"op": "mgraph-drop", "gang": gang.name, "cause": str(error)})
        for session in self._sessions.values():
            if session.gang is gang:
                session.gang, session.loss = None, (rank, worker, cause)
        # Those that have ended too: a result that was lost must not be computed again.
        lost = [call for call in self._calls.values() if call.gang is gang]
        # All are told before any is ended: the end of one would grant the gang that is no more to the next.
        for call in lost:
            call.broken = True
            if not call.granted.done():
                call.granted.set_exception(error)
        for call in lost:
            for key in call.keys:
                self._fail(key, error)
            self._end_lease(call)

    def _fail_stranded(self, call: Call, key: str) -> None:
        """Fail a task that would wait for a worker that was lost, or that takes no work."""
        assert call.gang is not None
        worker = call.gang.workers[call.keys.index(key)]
        there = self._scheduler.workers.get(worker)
        if loss := self._loss_of(call):
            self._fail(key, loss)
        elif there is None:
            self._fail(key, GangLost(call.keys.index(key), worker, "after its cluster was closed"))
        elif (task := self._scheduler.tasks.get(key)) and task.state == "no-worker":
            why = ClusterError(f"{worker} takes no work now: Dask has it {there.status.name}")
            self._fail(key, self._pauses.error(worker) if self._pauses.is_paused(worker) else why)

    def _loss_of(self, call: Call) -> GangLost | None:
        return GangLost(*call.gang.lost.result()) if call.gang is not None and call.gang.lost.done() else None

    def _fail(self, key: str, error: Exception) -> None:
        """End a task, and with it all that depend on it, with an error."""
        task = self._scheduler.tasks.get(key)
        if task is None or task.state not in ("processing", "no-worker", "queued"):
            return
        # Where it runs it is let go when nobody wants its error any more.
        where = {"worker": task.processing_on.address} if task.state == "processing" else {}
        told = {"exception": pickle.dumps(error), "exception_text": repr(error), "traceback_text": ""}
        stimulus = f"mgraph-fail-{time.time()}"
        follow = self._scheduler.transition(key, "erred", stimulus_id=stimulus, cause=key, **told, **where)
        self._scheduler.transitions(follow, stimulus)

    def _forget_call(self, call: Call) -> None:
        """End a call of which its client will not speak again; its tasks that are still there are followed on."""
        self._calls.pop(call.lease, None)
        self._end_lease(call)
        for key in call.keys:
            if key not in self._scheduler.tasks:
                self._call_of.pop(key, None)

    def _end_lease(self, call: Call) -> None:
        """Give the ranks to the next call."""
        if not call.granted.done():
            call.granted.set_exception(CommAborted(ENDED))
            call.granted.exception()
        self._tell(self._leases.end(call.lease))

    def _tell(self, leases: list[str]) -> None:
        for lease in leases:
            granted = self._calls[lease].granted
            if not granted.done():
                granted.set_result(None)

    def _send(self, workers: list[str] | tuple[str, ...], message: dict[str, Any]) -> None:
        for worker in workers:
            if worker in self._scheduler.stream_comms:
                self._scheduler.worker_send(worker, message)


def _cause_of(stimulus_id: str) -> str:
    """Say in words why the scheduler removed a worker."""
    if stimulus_id.startswith("handle-worker-cleanup"):
        return "its connection to the scheduler broke: the process ended or was killed"
    return f"the scheduler removed it: {stimulus_id.rstrip('0123456789.').rstrip('-')}"
