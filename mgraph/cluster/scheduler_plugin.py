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
from mgraph.cluster.places import INSTALL_S, TICK_S, Heartbeats, Places
from mgraph.errors import ClusterError, CommAborted, GangLost, RendezvousTimeout

# Beyond a session's deadline: heartbeats are late too where a rank keeps its process from sending them.
SILENCE_S = 5.0


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
        self._calls: dict[str, Call] = {}
        self._call_of: dict[str, Call] = {}

    async def start(self, scheduler: Scheduler) -> None:
        """Install the handlers here and the other plugin on all workers, once for all clients."""
        # Registered before the first await: a second client must find it, and not replace it.
        if PLUGIN in scheduler.plugins:
            return
        scheduler.add_plugin(self, name=PLUGIN)
        self._scheduler = scheduler
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
        }
        self._places.install(scheduler)
        self._heed_in_scaling(scheduler)
        # Dask's own deadline for heartbeats is five minutes, and may be none.
        watch = PeriodicCallback(self._watch, TICK_S * 1000)
        scheduler.periodic_callbacks["mgraph-watch"] = watch
        watch.start()

    # Handlers: a worker or a client asks and waits for the answer.

    async def hello(self, worker: str, host: str, index: int, gpu: str) -> None:
        """Take note of a worker that can be a rank."""
        await self._places.add(Place(host, index, worker, gpu))

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
        self._sessions[session] = Session(session, len(places), backend, open_timeout_s, **rest)
        return {"num_ranks": len(places), "backend": backend}

    @_answer
    async def lease(self, session: str, lease: str, name: str, kept: bool = False) -> dict[str, Any]:
        """Wait for the session's turn on its gang; the answer is all that its tasks need to know.

        A call on what ranks `kept` waits for no new ones: it was lost with the last gang.
        """
        if session not in self._sessions:
            raise ClusterError("this cluster is closed: connect again")
        owner = self._sessions[session]
        if kept and owner.gang is None and owner.loss is not None:
            raise GangLost(*owner.loss)
        call = Call(lease, owner, tuple(rank_key(name, lease, rank) for rank in range(owner.num_ranks)))
        self._calls[lease] = call
        try:
            call.gang = await self._gang_of(owner)
            # The client may have given up, or left, in the meantime.
            if lease not in self._calls:
                raise CommAborted("the call was ended before it began")
            self._call_of |= dict.fromkeys(call.keys, call)
            self._tell(self._leases.ask(lease, call.gang.workers))
            await call.granted
        except BaseException:
            self._remove(call)
            self._forget_keys(call)
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
    async def verdict(self, session: str, gang: str, timeout_s: float) -> None:
        """Raise GangLost if the gang has lost a worker, or loses one within the time."""
        known = self._sessions[session].gangs.get(gang) if session in self._sessions else None
        if known is not None:
            done, _ = await asyncio.wait((known.lost,), timeout=timeout_s)
            if done:
                raise GangLost(*known.lost.result())

    # Stream handlers: a client says and goes on.

    def end(self, client: str, lease: str, cause: str) -> None:
        """End a call that its client has given up."""
        if call := self._calls.get(lease):
            self._break(call, cause)
            self._remove(call)
            self._forget_keys(call)

    def forget(self, client: str, session: str, key: str) -> None:
        """Drop one object on every rank."""
        if (owner := self._sessions.get(session)) and owner.gang:
            self._send(owner.gang.workers, {"op": "mgraph-forget", "session": session, "key": key})

    def close_session(self, client: str, session: str) -> None:
        """Free what a session left on the workers, and the gang that nobody else uses."""
        if (owner := self._sessions.pop(session, None)) is None:
            return
        for call in {*self._calls.values(), *self._call_of.values()}:
            if call.session is owner:
                self._break(call, "the cluster was closed")
                self._remove(call)
                self._forget_keys(call)
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
        elif finish == "no-worker":
            # Granted, and its worker was lost before the task came: pinned, it would wait for ever.
            self._scheduler.loop.add_callback(self._cancel, call, "its worker was lost")
        if finish in ("memory", "erred", "released", "forgotten") and key in call.pending:
            # The first transition of all is from released to waiting: whatever gets here has run or was cancelled.
            if finish == "erred":
                self._break(call, "another rank failed")
            elif finish != "memory":
                self._break(call, "the call was cancelled")
            call.pending.discard(key)
            if not call.pending:
                self._remove(call)

    def remove_worker(self, scheduler: Scheduler, worker: str, *, stimulus_id: str, **kwargs: Any) -> None:
        """End every gang that had this worker, and every call on them."""
        self._remove_place(worker, _cause_of(stimulus_id))

    def valid_workers_downscaling(self, scheduler: Scheduler, workers: list[Any]) -> list[Any]:
        """Keep the members of gangs when idle workers are retired: what lives on them is not known to Dask."""
        members = self._members()
        return [worker for worker in workers if worker.address not in members]

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Free what a client left, however it left."""
        for session in [session for session in self._sessions.values() if session.client == client]:
            self.close_session(client, session.name)

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
        for call in {*self._calls.values(), *self._call_of.values()}:
            for worker in call.gang.workers if call.gang is not None else ():
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
            # Another call of this session may have found one while this one waited.
            if session.gang is None:
                shape = (session.num_ranks, session.backend)
                gang = next((g for g in self._gangs.values() if (len(g.members), g.backend) == shape), None)
                if gang is None:
                    members = tuple(places[: session.num_ranks])
                    gang = Gang(members, settle_backend(session.backend, members))
                    self._gangs[gang.name] = gang
                session.gang = session.gangs[gang.name] = gang
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
        # Those that have ended too: a result that was not fetched yet is lost, and must not be computed again.
        lost = [call for call in {*self._calls.values(), *self._call_of.values()} if call.gang is gang]
        # All are told before any is ended: the end of one would grant the gang that is no more to the next.
        for call in lost:
            call.broken = True
            if not call.granted.done():
                call.granted.set_exception(error)
        for call in lost:
            self._cancel(call, str(error))
            self._remove(call)

    def _cancel(self, call: Call, why: str) -> None:
        """Cancel a call's tasks: one that is pinned to a dead worker would wait for ever."""
        tasks = self._scheduler.tasks
        keys = [key for key in call.keys if key in tasks and tasks[key].who_wants]
        if keys:
            self._scheduler.stimulus_cancel(keys, call.session.client, force=True, reason="gang-lost", msg=why)

    def _forget_keys(self, call: Call) -> None:
        for key in call.keys:
            self._call_of.pop(key, None)

    def _remove(self, call: Call) -> None:
        """End a call's lease; its keys are followed on while their results are on the workers."""
        self._calls.pop(call.lease, None)
        if not call.granted.done():
            call.granted.set_exception(CommAborted("the call was ended before it began"))
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
