"""The soak: random jobs of several clients on random clusters, under random faults, for as long as one likes.

`python -m faults.soak --minutes 10 --seed 7` lives through one cluster after another. Each has a number of workers,
clients and faults that the seed draws; every answer is compared with an oracle. Now and then the faults pause: then the
next calls must succeed, and nothing may be left behind. It ends with a table, and with 1 if there was any problem.
"""

from __future__ import annotations

import contextlib
import logging
import pathlib
import random
import sys
import tempfile
import time

import click

import mgraph as mg
from faults.log import append_line
from faults.processes import Died, Hung, Run, monitored
from faults.soak_client import Jobs
from faults.soak_cluster import SoakCluster
from faults.soak_faults import ALL, GENTLE
from faults.soak_tally import Tally

ENOUGH_PROBLEMS = 5
# The time of a cluster, and of faults between two pauses.
CLUSTER_S = (60.0, 150.0)
FAULTS_S = (12.0, 25.0)
BETWEEN_FAULTS_S = (0.3, 3.5)
# In a shorter rest of the time no further cluster is started.
SHORTEST_S = 30.0
# From a SIGKILL to a line that is printed, or from a call to its end, on a machine that does other things too.
DEADLINE_S = 120.0


class Progress:
    """Says on standard error where the soak is: a line that is replaced on a terminal, one every ten seconds else."""

    def __init__(self, minutes: float, tally: Tally) -> None:
        self._seconds = 60 * minutes
        self._tally = tally
        self._begun = time.monotonic()
        self._next = 0.0
        self._num_shown = 0

    @property
    def left_s(self) -> float:
        return self._seconds - self.now_s

    @property
    def now_s(self) -> float:
        return time.monotonic() - self._begun

    def show(self, where: str) -> None:
        """Show what is known, if the last line is old enough, and new problems at once."""
        for problem in self._tally.problems[self._num_shown :]:
            print(f"\n{self.now_s:5.0f} s, {where}: {problem}", file=sys.stderr, flush=True)
        self._num_shown = len(self._tally.problems)
        if self.now_s < self._next:
            return
        line = f"{self.now_s:5.0f} of {self._seconds:.0f} s, {where}: {self._tally.line()}"
        is_terminal = sys.stderr.isatty()
        self._next = self.now_s + (1.0 if is_terminal else 10.0)
        print(f"\r\x1b[K{line}" if is_terminal else line, end="" if is_terminal else "\n", file=sys.stderr, flush=True)


def compile_kernels(folder: pathlib.Path) -> None:
    """Compile the kernels of all jobs into the cache: in each process at once they would take longer than deadlines."""
    for num_ranks in (1, 2):
        with mg.connect(num_ranks=num_ranks, backend="cpu") as ranks:
            Jobs(ranks, random.Random(), folder / "out.npz").run_all()


def soak(minutes: float, seed: int, most_workers: int, most_clients: int, folder: pathlib.Path) -> Tally:
    """Run clusters until the time is over, or enough problems are found."""
    tally = Tally()
    progress = Progress(minutes, tally)
    while progress.left_s > 0 and len(tally.problems) < ENOUGH_PROBLEMS:
        chance = random.Random(f"{seed} {tally.num_clusters}")
        tally.num_clusters += 1
        seconds = min(chance.uniform(*CLUSTER_S), progress.left_s)
        if progress.left_s - seconds < SHORTEST_S:
            seconds = progress.left_s
        made = folder / f"cluster-{tally.num_clusters}"
        (made / "out").mkdir(parents=True)
        run = Run(made, deadline_s=DEADLINE_S)
        try:
            live_through(run, chance, seconds, (most_workers, most_clients), tally, progress)
        except (Hung, Died) as error:
            tally.problems.append(f"{type(error).__name__}: {error}")
        if left := run.end():
            tally.problems.append(f"{len(left)} processes were still there at the end of a cluster")
    return tally


def live_through(
    run: Run, chance: random.Random, seconds: float, most: tuple[int, int], tally: Tally, progress: Progress
) -> None:
    """Start a cluster and its clients, inject faults until its time is over, and end it."""
    num_workers = chance.randint(1, most[0])
    num_clients = chance.randint(1, most[1])
    faults = GENTLE if chance.random() < 1 / 3 else ALL
    ends_by_kill = chance.random() < 0.5
    with (
        monitored(run, num_workers) as monitor,
        contextlib.closing(SoakCluster(run, monitor, chance, tally)) as cluster,
    ):
        for _ in range(num_clients):
            cluster.start_client()
        where = f"cluster {tally.num_clusters} of {num_workers} workers, {num_clients} clients"
        cluster.watch(2.0, lambda: progress.show(where))
        cluster.pause()
        until = progress.now_s + seconds
        while progress.now_s < until and len(tally.problems) < ENOUGH_PROBLEMS:
            faults_until = progress.now_s + chance.uniform(*FAULTS_S)
            while progress.now_s < min(faults_until, until):
                (name,) = chance.choices(list(faults), [weight for weight, _ in faults.values()])
                _, inject = faults[name]
                inject(cluster)
                tally.faults[name] += 1
                cluster.watch(chance.uniform(*BETWEEN_FAULTS_S), lambda: progress.show(where))
            cluster.pause()
        if ends_by_kill:
            cluster.kill_scheduler()
            tally.faults["scheduler killed"] += 1
        cluster.end(has_scheduler=not ends_by_kill)


@click.command(context_settings={"show_default": True})
@click.option("--minutes", type=click.FloatRange(0.1), default=10.0, help="how long faults are injected")
@click.option("--seed", type=int, help="draws clusters, clients, jobs and faults; at random if there is none")
@click.option("--workers", type=click.IntRange(1), default=4, help="the most workers of a cluster")
@click.option("--clients", type=click.IntRange(1), default=3, help="the most clients of a cluster")
@click.option("--record", type=click.Path(dir_okay=False), help="append the report to this file, as a line of JSON")
def main(minutes: float, seed: int | None, workers: int, clients: int, record: str | None) -> None:
    """Run random jobs under random faults, compare every answer with an oracle, and report."""
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    # Of the client that watches: that its scheduler is gone is no news.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    print(f"soak of {minutes:g} minutes, drawn by --seed {seed}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        compile_kernels(pathlib.Path(folder))
        begun = time.monotonic()
        tally = soak(minutes, seed, workers, clients, pathlib.Path(folder))
    print(file=sys.stderr)
    tally.print_table()
    if record:
        options = {"minutes": minutes, "seed": seed, "workers": workers, "clients": clients}
        took = {"seconds": round(time.monotonic() - begun, 1)}
        append_line(record, {"bench": "soak", **options, **took, **tally.facts()})
    sys.exit(bool(tally.problems))


if __name__ == "__main__":
    main()
