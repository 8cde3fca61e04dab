"""Look at a Dask cluster for `mgraph doctor`: versions, workers, devices, deadlines, and who can reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mgraph.cli.process_facts import process_facts
from mgraph.cluster.connect import open_client
from mgraph.cluster.gangs import Place, choose_backend
from mgraph.cluster.status import ask_workers, worker_addresses
from mgraph.config import settings
from mgraph.errors import ClusterError
from mgraph.formatting import counted

if TYPE_CHECKING:
    from mgraph.cli.doctor import Findings

# Packages that must be of one version on client, scheduler and workers.
SAME = ("mgraph", "python", "dask", "distributed")
DEADLINES = ("open", "verb", "scheduler")


def check_cluster(found: Findings, scheduler: str | None, scheduler_file: str | None) -> None:
    """Report what a cluster has; warn where others can reach it."""
    with open_client(scheduler, scheduler_file) as client:
        address = client.scheduler.address
        try:
            of_scheduler = client.run_on_scheduler(process_facts)
            workers = client.run_on_scheduler(worker_addresses)
        except ImportError as error:
            raise ClusterError(f"the scheduler {address} cannot import this version of mgraph ({error})") from None
        answers = ask_workers(client, workers, process_facts)
    encrypted = address.startswith("tls://")
    found.facts["scheduler"] = f"{address}, {'with' if encrypted else 'without'} TLS"
    processes = {f"scheduler {address}": of_scheduler}
    for worker, answer in answers.items():
        if isinstance(answer, dict):
            processes[f"worker {worker}"] = answer
        else:
            found.problems.append(f"worker {worker} does not answer ({answer!r}): it is stopped, or lacks mgraph")
    there = {worker: facts for worker, facts in answers.items() if isinstance(facts, dict)}
    places = [Place(facts["host"], 0, worker, facts["gpu"]) for worker, facts in there.items()]
    found.facts["workers"] = f"{len(workers)} on {counted(len({place.host for place in places}), 'host')}"
    found.facts["gpus"] = str(len({place.gpu for place in places} - {""}))
    if places:
        found.facts["would use"] = f"at most {counted(len(places), choose_backend('auto', places) + ' rank')}"
    else:
        found.problems.append(f"{address} has no worker that answers: start some")
    found.facts["deadlines"] = ", ".join(f"{name} {settings.seconds(f'timeouts.{name}'):g} s" for name in DEADLINES)
    _compare_versions(found, processes)
    _warn_of_open_ports(found, processes, encrypted)


def _compare_versions(found: Findings, processes: dict[str, dict[str, Any]]) -> None:
    """Report versions that differ from those of this process."""
    own = process_facts()["versions"]
    for name, facts in processes.items():
        for package, version in facts["versions"].items():
            if version != own[package]:
                line = f"{name} has {package} {version}, and this process {own[package]}"
                (found.problems if package in SAME else found.warnings).append(line)


def _warn_of_open_ports(found: Findings, processes: dict[str, dict[str, Any]], encrypted: bool) -> None:
    """Warn of ports that other hosts can reach: of Dask's own without TLS, and of others."""
    own: list[str] = []
    others: list[str] = []
    for name, facts in processes.items():
        for port in facts["open"]:
            is_own = port.endswith(":" + name.rpartition(":")[2])
            (own if is_own else others).append(f"{name} listens on {port}")
    found.facts["reachable"] = "from other hosts" if own or others else "from its host alone"
    if own and not encrypted:
        found.warnings.append(f"{_first_of(own)}: who reaches it can run code as its user (docs/security.md)")
    if others:
        found.warnings.append(f"{_first_of(others)}: Dask's HTTP pages have no password")


def _first_of(lines: list[str]) -> str:
    more = len(lines) - 1
    return lines[0] + (f", and {counted(more, 'other port')} {'is' if more == 1 else 'are'} open" if more else "")
