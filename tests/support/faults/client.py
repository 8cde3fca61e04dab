"""A client in a process of its own: does phases on request, under faults, and reports the outcomes.

One JSON object a line, both ways. `python -m faults.client OPTIONS`, where OPTIONS is a JSON object: ranks, folder,
scale, and scheduler_file where the ranks are on workers.
"""

from __future__ import annotations

import contextlib
import gc
import json
import pathlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import mgraph as mg
from faults import leftovers, planted, stacks  # noqa: F401
from faults.phases import Work, digest
from mgraph.cluster.base import Cluster

# A phase is done again and again for so long, so that a moment can be hit.
REGION_S = 0.06
MOST_TIMES = 50


class Late:
    """Takes the SIGINTs that come when the phase is over."""

    def __init__(self) -> None:
        self.came = False

    def __call__(self, number: int, frame: Any) -> None:
        self.came = True


def main() -> None:
    """Answer the requests on standard input until it ends."""
    late = Late()
    signal.signal(signal.SIGINT, late)
    options = json.loads(sys.argv[1])
    with connected(options) as (cluster, ways):
        work = Work(ways, cluster, pathlib.Path(options["folder"]), options["scale"])
        work.build()
        client = Client(work, late)
        if known := options.get("known"):
            client.times, client.digests = known["times"], known["digests"]
        else:
            client.learn()
        seconds = known["seconds"] if known else client.measure()
        send(ready={"seconds": seconds, "times": client.times, "digests": client.digests})
        for line in sys.stdin:
            send(**client.answer(**json.loads(line)))
        work.close()


def send(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


@contextlib.contextmanager
def connected(options: dict) -> Iterator[tuple[Cluster, dict[str, Callable[[], Cluster]]]]:
    """Yield a cluster, and the ways to connect another."""
    ranks, file = options["ranks"], options.get("scheduler_file")
    if file is None:
        ways = {"in-process": lambda: mg.connect(num_ranks=ranks, backend="cpu")}
        with ways["in-process"]() as cluster:
            yield cluster, ways
        return
    # Its client is closed with it, as that of the command line.
    with mg.connect(scheduler_file=file, num_ranks=ranks, backend="cpu") as cluster:
        client = cluster.client
        ways = {
            # Of another number of ranks, so that it opens a gang of its own.
            "by client": lambda: mg.connect(client, num_ranks=ranks + 1, backend="cpu"),
            "by file": lambda: mg.connect(scheduler_file=file, num_ranks=ranks + 1, backend="cpu"),
        }
        yield cluster, ways


class Client:
    """Does phases, and knows what their answers are."""

    def __init__(self, work: Work, late: Late) -> None:
        self.work, self.late = work, late
        self.digests: dict[str, str] = {}
        self.times: dict[str, int] = {}
        self.begun = 0.0

    def answer(self, do: str, **what: Any) -> dict[str, Any]:
        """Do one of the things below."""
        return getattr(self, do)(**what)

    def learn(self) -> None:
        """Do every phase without a fault, to know its answer and how often to do it: what is made once is made now."""
        for _ in range(2):
            for name in self.work.phases():
                self.digests[name], once = self._timed(name, 1)
                self.times[name] = 1 if name == "closing" else max(1, min(MOST_TIMES, round(REGION_S / once)))

    def measure(self) -> dict[str, float]:
        """Return how long each phase takes as often as it is done."""
        return {name: self._timed(name, self.times[name])[1] for name in self.work.phases()}

    def _timed(self, name: str, times: int) -> tuple[str, float]:
        """Do a phase; return its answer and the seconds."""
        self.work.prepare(name)
        run, begun = self.work.phases()[name], time.monotonic()
        (found,) = {digest(*run()) for _ in range(times)}
        seconds = time.monotonic() - begun
        self.work.finish()
        return found, seconds

    def phase(self, name: str) -> dict[str, Any]:
        """Do a phase with the default disposition of SIGINT; say when it begins."""
        self.work.prepare(name)
        run, times, found = self.work.phases()[name], self.times[name], {}
        self.late.came = False
        send(begins=name)
        self.begun = time.monotonic()
        try:
            # From here to the same call below a SIGINT is the phase's: each looks first for one that came.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            planted.foreign()
            wrong = {digest(*run()) for _ in range(times)} - {self.digests[name]}
            signal.signal(signal.SIGINT, self.late)
            planted.wrong(wrong)
            found = {"outcome": "wrong" if wrong else "answered"}
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, self.late)
            found = {"outcome": "interrupted"}
        except BaseException as error:
            signal.signal(signal.SIGINT, self.late)
            named = isinstance(error, mg.MgraphError)
            found = {"outcome": "named" if named else "foreign", "error": f"{type(error).__name__}: {error}"}
        return found | {"seconds": time.monotonic() - self.begun, "at": time.time()}

    def check(self, name: str, lost: bool) -> dict[str, Any]:
        """Do a search and another phase, which must give what they gave before any fault.

        Where a worker was `lost`, the graph may be; it is built again then.
        """
        planted.next_call()
        self.work.finish()
        wrong = []
        try:
            if lost:
                self._recover()
            for phase in ("bfs", name):
                if self._timed(phase, 1)[0] != self.digests[phase]:
                    wrong.append(f"{phase} gives another answer than before the fault")
        except Exception as error:
            wrong.append(f"the next call fails with {type(error).__name__}: {error}")
            with contextlib.suppress(Exception):
                self.work.close()
                self.work.build()
        return {"wrong": wrong, "late": self.late.came}

    def _recover(self) -> None:
        """Build the graph again if it was lost."""
        try:
            self.work.found.distances.digest()
            mg.bfs(self.work.graph, 0).close()
        except mg.MgraphError:
            self.work.close()
            self.work.build()

    def left(self) -> dict[str, Any]:
        """Count what this process has."""
        gc.collect()
        return {"left": leftovers.of_process() | leftovers.of_cluster(self.work.cluster)}

    def plant(self, name: str) -> dict[str, Any]:
        """Let something go wrong from now on: what the harness must find."""
        planted.plant(name, self.work)
        return {"planted": name}


if __name__ == "__main__":
    main()
