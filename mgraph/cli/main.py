"""The command line: `mgraph COMMAND`. Errors end in one line and an exit code of their own.

Exit codes: 0 done, 2 usage, 3 bad input, 4 cluster lost, 5 would not fit in memory, 6 validation failed.
"""

from __future__ import annotations

import importlib
import sys

import click

import mgraph
from mgraph.errors import MgraphError

# Command -> the module that has it under this name; loaded when it is called, so that --help is quick.
COMMANDS = {
    "graph500": "mgraph.cli.graph500",
    "bfs": "mgraph.cli.traverse",
    "sssp": "mgraph.cli.traverse",
    "generate": "mgraph.cli.generate",
    "info": "mgraph.cli.info",
    "plan": "mgraph.cli.plan",
    "doctor": "mgraph.cli.doctor",
}


class Commands(click.Group):
    """Loads a command's module only when it is wanted, and turns mgraph's errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return getattr(importlib.import_module(COMMANDS[name]), name) if name in COMMANDS else None

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except MgraphError as error:
            click.echo(f"mgraph: {error}", err=True)
            sys.exit(error.exit_code)


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(mgraph.__version__, prog_name="mgraph")
def main() -> None:
    """Breadth-first search and shortest paths on graphs larger than one GPU, or on a laptop with none."""
