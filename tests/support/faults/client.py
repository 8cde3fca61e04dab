"""A client process that runs phases on request, under faults, and reports the outcomes.

Requests and replies are JSON objects, one a line. `python -m faults.client OPTIONS`, where OPTIONS is a JSON object:
ranks, folder, scale, and scheduler_file if the ranks are on workers.
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

from local_clusters import GPU, local_cluster

import mgraph as mg
from faults import leftovers, planted, stacks  # noqa: F401
from faults.phases import Work, digest
from mgraph.cluster.base import Cluster

# A short phase is repeated for this long, so that a fault can hit it.
REGION_S = 0.06
MAX_REPETITIONS = 50


class Late:
    """The handler of SIGINTs that arrive after the phase."""

    def __init__(self) -> None:
        self.was_called = False

    def __call__(self, number: int, frame: Any) -> None:
        self.was_called = True


def main() -> None:
    """Serve the requests on standard input until it ends."""
    late = Late()
    signal.signal(signal.SIGINT, late)
    options = json.loads(sys.argv[1])
    with connected(options) as (cluster, ways):
        work = Work(ways, cluster, pathlib.Path(options["folder"]), options["scale"])
        work.build()
        client = Client(work, late)
        if known := options.get("known"):
            client.times = known["times"]
            client.digests = known["digests"]
        else:
            client.learn()
        seconds = known["seconds"] if known else client.measure()
        send(ready={"seconds": seconds, "times": client.times, "digests": client.digests})
        for line in sys.stdin:
            send(**client.serve(**json.loads(line)))
        work.close()


def send(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


@contextlib.contextmanager
def connected(options: dict) -> Iterator[tuple[Cluster, dict[str, Callable[[], Cluster]]]]:
    """Yield a cluster, and functions that connect another, by name."""
    ranks = options["ranks"]
    file = options.get("scheduler_file")
    if file is None:
        ways = {
            "in-process": lambda: local_cluster(GPU) if ranks == GPU else mg.connect(num_ranks=ranks, backend="cpu")
        }
        with ways["in-process"]() as cluster:
            yield cluster, ways
        return
    # The cluster owns its client, as in the command line.
    with mg.connect(scheduler_file=file, num_ranks=ranks, backend="cpu") as cluster:
        client = cluster.client
        ways = {
            # With another number of ranks, so that it opens another gang.
            "by client": lambda: mg.connect(client, num_ranks=ranks + 1, backend="cpu"),
            "by file": lambda: mg.connect(scheduler_file=file, num_ranks=ranks + 1, backend="cpu"),
        }
        yield cluster, ways


class Client:
    """Runs phases, and compares their results with those before any fault."""

    def __init__(self, work: Work, late: Late) -> None:
        self.work = work
        self.late = late
        self.digests: dict[str, str] = {}
        self.times: dict[str, int] = {}
        self.begun = 0.0

    def serve(self, do: str, **what: Any) -> dict[str, Any]:
        """Run the method named `do`."""
        return getattr(self, do)(**what)

    def learn(self) -> None:
        """Run every phase without a fault; record its result and its number of repetitions.

        Twice, since the first run includes work that is done only once.
        """
        for _ in range(2):
            for name in self.work.phases():
                self.digests[name], once = self._timed(name, 1)
                self.times[name] = 1 if name == "closing" else max(1, min(MAX_REPETITIONS, round(REGION_S / once)))

    def measure(self) -> dict[str, float]:
        """Return the seconds of each phase with its repetitions."""
        return {name: self._timed(name, self.times[name])[1] for name in self.work.phases()}

    def _timed(self, name: str, times: int) -> tuple[str, float]:
        """Run a phase; return the digest of its result, and the seconds."""
        self.work.prepare(name)
        run = self.work.phases()[name]
        begun = time.monotonic()
        (found,) = {digest(*run()) for _ in range(times)}
        seconds = time.monotonic() - begun
        self.work.finish()
        return found, seconds

    def phase(self, name: str) -> dict[str, Any]:
        """Run a phase with Python's handler of SIGINT; report when it begins."""
        self.work.prepare(name)
        run = self.work.phases()[name]
        times = self.times[name]
        found = {}
        self.late.was_called = False
        send(begins=name)
        self.begun = time.monotonic()
        try:
            # A SIGINT from here to the next `signal.signal` counts for the phase: each call first handles pending ones.
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
        """Run a search and another phase, which must give the same results as before any fault.

        If a worker was `lost`, the graph may be lost too, and is then built again.
        """
        planted.next_call()
        self.work.finish()
        wrong = []
        try:
            if lost:
                self._recover()
            for phase in ("bfs", name):
                if self._timed(phase, 1)[0] != self.digests[phase]:
                    wrong.append(f"{phase} gives another result than before the fault")
        except Exception as error:
            wrong.append(f"the next call fails with {type(error).__name__}: {error}")
            with contextlib.suppress(Exception):
                self.work.close()
                self.work.build()
        return {"wrong": wrong, "late": self.late.was_called}

    def _recover(self) -> None:
        """Build the graph again if it was lost."""
        try:
            self.work.found.distances.digest()
            mg.bfs(self.work.graph, 0).close()
        except mg.MgraphError:
            self.work.close()
            self.work.build()

    def left(self) -> dict[str, Any]:
        """Count the resources of this process."""
        gc.collect()
        return {"left": leftovers.of_process() | leftovers.of_cluster(self.work.cluster)}

    def plant(self, name: str) -> dict[str, Any]:
        """Plant a fault that the harness must find."""
        planted.plant(name, self.work)
        return {"planted": name}


if __name__ == "__main__":
    main()
