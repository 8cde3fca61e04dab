"""The faults of a soak: each is one function of the cluster that it strikes.

On a `gentle` cluster workers live as long as it does, so that their memory can be compared.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

from faults.soak_cluster import VERB_TIMEOUT_S, SoakCluster


def kill_worker(cluster: SoakCluster) -> None:
    """Kill a worker; its nanny starts another."""
    address, pid = cluster.draw_worker()
    cluster.kill(pid, address)


def stop_worker_briefly(cluster: SoakCluster) -> None:
    """Stop a worker for less than the deadline: calls wait for it."""
    cluster.stop(cluster.draw_worker()[1], cluster.chance.uniform(0.1, 2.0))


def stop_worker_for_long(cluster: SoakCluster) -> None:
    """Stop a worker until deadlines have passed; it may be replaced meanwhile, or go on."""
    cluster.stop(cluster.draw_worker()[1], cluster.chance.uniform(1.2, 4.0) * VERB_TIMEOUT_S)


def kill_client(cluster: SoakCluster) -> None:
    """Kill a client that is not the first, and start another."""
    if client := cluster.draw_client():
        cluster.kill_client(client)
        cluster.start_client()


def stop_client(cluster: SoakCluster) -> None:
    """Stop a client, perhaps for longer than others wait for its lease."""
    client = cluster.draw_client() or cluster.clients[0]
    cluster.stop(client.process.pid, cluster.chance.choice([0.5, 3.0, 20.0]))


def interrupt_client(cluster: SoakCluster) -> None:
    """Interrupt a client, as Ctrl-C does."""
    client = cluster.chance.choice(cluster.clients)
    with contextlib.suppress(ProcessLookupError):
        os.kill(client.process.pid, signal.SIGINT)


def stop_scheduler(cluster: SoakCluster) -> None:
    """Stop the scheduler for a moment: calls that go straight to the ranks do not need it."""
    cluster.stop(cluster.scheduler, cluster.chance.uniform(0.2, 2.0))


def resize(cluster: SoakCluster) -> None:
    """Add a worker, or retire one that no client needs."""
    if cluster.chance.random() < 0.5 or not cluster.can_retire:
        cluster.add_worker()
    else:
        cluster.retire_worker()


def restart(cluster: SoakCluster) -> None:
    """Restart all workers, by Client.restart()."""
    cluster.restart()


# By name: how often beside the others, and what it does.
Faults = dict[str, tuple[int, Callable[[SoakCluster], None]]]
GENTLE: Faults = {
    "worker stopped briefly": (3, stop_worker_briefly),
    "client killed": (4, kill_client),
    "client stopped": (2, stop_client),
    "client interrupted": (5, interrupt_client),
    "scheduler stopped": (2, stop_scheduler),
}
ALL: Faults = GENTLE | {
    "worker killed": (8, kill_worker),
    "worker stopped for long": (2, stop_worker_for_long),
    "workers added or retired": (2, resize),
    "workers restarted": (1, restart),
}
