"""Define the command `mgraph ps`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.cli.options import json_option, print_json, print_table, scheduler_options
from mgraph.cluster.connect import open_client
from mgraph.formatting import readable_bytes, readable_seconds


@click.command()
@scheduler_options
@json_option
def ps(scheduler: str | None, scheduler_file: str | None, as_json: bool) -> None:
    """Print the gangs, leases, clients, graphs and results of a cluster.

    Running calls are neither disturbed nor waited for. Bytes are those of arrays, by rank.
    """
    if (scheduler is None) == (scheduler_file is None):
        raise click.UsageError("give --scheduler or --scheduler-file: one of them")
    with open_client(scheduler, scheduler_file) as client:
        from mgraph.cluster.status import cluster_status

        found = cluster_status(client)
    if as_json:
        print_json(found)
    else:
        _print(found)


def _print(found: dict[str, Any]) -> None:
    gangs = [[_short(gang["name"]), gang["backend"], ", ".join(gang["workers"])] for gang in found["gangs"]]
    leases = [
        [lease["job"], lease["state"], readable_seconds(lease["seconds"]), lease["client"], _short(lease["gang"])]
        for lease in found["leases"]
    ]
    stored = [
        [
            f"{each['kind']} {each['name']}".strip(),
            each["about"],
            ", ".join("?" if count is None else readable_bytes(count) for count in each["bytes"]),
            each["client"],
            _short(each["gang"]),
        ]
        for each in found["objects"]
    ]
    clients = [[client["client"], str(client["sessions"])] for client in found["clients"]]
    print_table("gangs", ["gang", "backend", "workers by rank"], gangs)
    print_table("leases, in the order of their requests", ["job", "state", "since", "client", "gang"], leases)
    print_table("graphs and results", ["object", "content", "bytes by rank", "client", "gang"], stored)
    print_table("clients", ["client", "sessions"], clients)
    for worker in found["silent"]:
        click.echo(f"{worker} does not answer: it is stopped, or busy")


def _short(name: str | None) -> str:
    """Return the first digits of a gang's name."""
    return (name or "-")[:8]
