"""The command line: `mgraph COMMAND`. Errors end in one line and an exit code of their own.

Exit codes: 0 done, 2 usage, 3 bad input, 4 cluster lost, 5 would not fit in memory, 6 validation failed;
130 when interrupted, 143 when terminated.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

import click

import mgraph
from mgraph.errors import InputError, MgraphError, WouldNotFit

# Command -> the module that has it under this name, and its line in --help. A module is loaded when its
# command is called: all of them take half a second.
COMMANDS = {
    "graph500": ("graph500", "Build an RMAT graph, search it from random roots, validate every answer."),
    "bfs": ("traverse", "Find the hops from a source to every vertex."),
    "sssp": ("traverse", "Find shortest paths from a source to every vertex."),
    "components": ("components", "Find which vertices are connected."),
    "msf": ("msf", "Find a minimum spanning forest."),
    "generate": ("generate", "Write a generated graph to a file."),
    "info": ("info", "Build a graph and tell what it is."),
    "plan": ("plan", "Tell what memory a graph takes, and whether it fits."),
    "doctor": ("doctor", "Tell what is installed, what would be used, and what is wrong."),
}
INTERRUPTED, TERMINATED = 130, 143


class Terminated(KeyboardInterrupt):
    """What the end of a job's time is: as an interrupt, it leaves nothing half-written."""


class Commands(click.Group):
    """Loads a command's module only when it is wanted, and turns errors into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        return getattr(importlib.import_module(f"mgraph.cli.{COMMANDS[name][0]}"), name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BaseException as error:
            if not _came_of(error, KeyboardInterrupt):
                raise
            # Click would print an empty line for it.
            was_terminated = _came_of(error, Terminated)
            how = ("terminated", TERMINATED) if was_terminated else ("interrupted", INTERRUPTED)
            raise click.exceptions.Exit(_say(*how)) from None

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        args = list(sys.argv[1:] if args is None else args) or ["--help"]
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _terminate)
        try:
            # Without its standalone mode Click leaves errors to us, and returns the code of an Exit.
            code = super().main(args, prog_name, standalone_mode=False, **extra)
            sys.stdout.flush()
        except BrokenPipeError:
            # Who read us has had enough, as `head` does.
            _drop_output()
            code = 1
        except click.UsageError as error:
            asked = error.ctx.command_path if error.ctx else self.name
            code = _say(f"{error.format_message().rstrip('.')}: see {asked} --help", error.exit_code)
        except click.ClickException as error:
            code = _say(error.format_message(), error.exit_code)
        except MgraphError as error:
            code = _say(str(error), error.exit_code)
        except OSError as error:
            # Such as a full disk behind our output, or a file that went away after it was looked at.
            _drop_output()
            what = f"{error.filename}: " if error.filename else ""
            code = _say(f"{what}{error.strerror or error}", InputError.exit_code)
        except MemoryError as error:
            code = _say(f"out of memory: {error}: `mgraph plan` tells what a graph takes", WouldNotFit.exit_code)
        sys.exit(code if isinstance(code, int) else 0)


def _terminate(number: int, frame: Any) -> NoReturn:
    raise Terminated


def _came_of(error: BaseException | None, kind: type[KeyboardInterrupt]) -> bool:
    """Return whether an error is an interrupt or came of one, as an ImportError may while a library is loaded."""
    return error is not None and (isinstance(error, kind) or _came_of(error.__context__, kind))


def _say(line: str, code: int) -> int:
    # What other libraries say may have several lines.
    click.echo(f"mgraph: {' '.join(line.splitlines())}", err=True)
    return code


def _drop_output() -> None:
    """Keep Python from flushing into what cannot be written when it ends."""
    # Where a caller has put something in its place there is no file behind it.
    with contextlib.suppress(io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(mgraph.__version__, prog_name="mgraph")
def main() -> None:
    """Search, label and span graphs larger than one GPU, or those of a laptop with none.

    Exit codes: 0 done, 2 usage, 3 bad input, 4 cluster lost, or doctor found something wrong, 5 would not fit in
    memory, 6 validation failed, 130 interrupted, 143 terminated.
    """
