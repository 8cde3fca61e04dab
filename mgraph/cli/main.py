"""Define the command line, `mgraph COMMAND`.

An error ends in one line and an exit code; the help of main() lists them.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, TextIO

import click

import mgraph
from mgraph.errors import InputError, MgraphError, WouldNotFit

# Command -> the module that defines it, and its line in --help. A module is imported when its command runs: to import
# all takes half a second.
COMMANDS = {
    "graph500": ("graph500", "Build an RMAT graph, search it from random roots, validate every result."),
    "bfs": ("traverse", "Find the number of hops from a source to every vertex."),
    "sssp": ("traverse", "Find shortest paths from a source to every vertex."),
    "path": ("path", "Find a shortest path between two vertices."),
    "distances": ("distances", "Find the distances from many sources to many targets."),
    "k-hop": ("k_hop", "Find the vertices within some hops of a source, and save the graph of them."),
    "components": ("components", "Find connected components."),
    "strong-components": ("strong_components", "Find strongly connected components."),
    "pagerank": ("pagerank", "Find the PageRank of every vertex."),
    "hits": ("hits", "Find hubs and authorities (HITS)."),
    "bipartite": ("bipartite", "Find whether every edge connects two sides, or an odd cycle."),
    "bridges": ("bridges", "Find the edges without which their ends would not be connected."),
    "core-numbers": ("core_numbers", "Find core numbers: the largest k of a k-core with each vertex."),
    "degrees": ("degrees", "Count the arcs of every vertex."),
    "closeness": ("closeness", "Find how near each vertex is to all others."),
    "diameter": ("diameter", "Find how far the two vertices farthest apart are from each other."),
    "msf": ("msf", "Find a minimum spanning forest."),
    "steiner-tree": ("steiner_tree", "Find a tree that connects some vertices."),
    "run": ("run", "Run the algorithms of a job file; what is done already is not run again."),
    "convert": ("convert", "Write the edges of a file in another format."),
    "save": ("save", "Build a graph and save it to a folder, which every command loads."),
    "generate": ("generate", "Write a generated graph to a file."),
    "info": ("info", "Build a graph and print facts about it."),
    "plan": ("plan", "Print the memory that a graph needs, and whether it fits."),
    "ps": ("ps", "Print what a cluster does: gangs, leases, clients, graphs and results with their bytes."),
    "doctor": ("doctor", "Report packages, GPUs, the ranks that would be used, and problems."),
}
INTERRUPTED = 130
# As SIGPIPE ends a process.
CLOSED_PIPE = 141
TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """Raised by SIGTERM; handled like an interrupt, so that no file is left half-written."""


class Commands(click.Group):
    """Import a command's module when it runs.

    Turn errors into one line and an exit code.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        with _deferred_signals():
            _import_numba()
            module = importlib.import_module(f"mgraph.cli.{COMMANDS[name][0]}")
        return getattr(module, name.replace("-", "_"))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _exit_at_closed_pipe():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _exit_at_closed_pipe():
                return super().invoke(ctx)
        except BaseException as error:
            if not _caused_by(error, KeyboardInterrupt):
                raise
            # Click would print an empty line for an interrupt.
            was_terminated = _caused_by(error, Terminated)
            how = ("terminated", TERMINATED) if was_terminated else ("interrupted", INTERRUPTED)
            raise click.exceptions.Exit(_print_error(*how)) from None

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        args = list(sys.argv[1:] if args is None else args) or ["--help"]
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _terminate)
        try:
            # Outside of its standalone mode Click raises errors, and returns the code of an Exit.
            with _printed_warnings():
                code = super().main(args, prog_name, standalone_mode=False, **extra)
            sys.stdout.flush()
        except BrokenPipeError:
            code = CLOSED_PIPE
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else self.name
            code = _print_error(f"{error.format_message().rstrip('.')}: see {command} --help", error.exit_code)
        except click.ClickException as error:
            code = _print_error(error.format_message(), error.exit_code)
        except MgraphError as error:
            code = _print_error(str(error), error.exit_code)
        except OSError as error:
            # For example a full disk behind standard output, or a file deleted after it was checked.
            _discard(sys.stdout)
            what = f"{error.filename}: " if error.filename else ""
            code = _print_error(f"{what}{error.strerror or error}", InputError.exit_code)
        except MemoryError as error:
            code = _print_error(
                f"out of memory: {error}: `mgraph plan` shows what a graph needs", WouldNotFit.exit_code
            )
        if code == CLOSED_PIPE:
            _discard(sys.stdout)
            _discard(sys.stderr)
        sys.exit(code if isinstance(code, int) else 0)


@contextlib.contextmanager
def _deferred_signals() -> Iterator[None]:
    """Defer SIGINT and SIGTERM to the end of a block of imports.

    What a handler raises within an import can be lost, and the command would run to its end: Python ignores exceptions
    in `__del__` and in callbacks of weak references, one of which runs at the end of each import, and modules that try
    other imports may catch all exceptions.

    The signals are blocked in this thread; their handlers stay set. Threads that the block starts inherit this for
    good, so the system leaves the signals to this one. A thread that was there before may get them at once, but a
    process of the command line has none.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        # Sets the mask before it runs the handler of a signal that came earlier, which may raise.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _import_numba() -> None:
    """Import Numba and its types without SciPy and cffi, which no kernel needs.

    Numba imports both before the first kernel, for calls of BLAS and of C: a quarter of a second.
    """
    if "numba" in sys.modules:
        return
    absent = [name for name in ("scipy.linalg", "cffi") if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        importlib.import_module("numba.np.arraymath")
        importlib.import_module("numba.core.typing.cffi_utils")
    finally:
        for name in absent:
            del sys.modules[name]


def _terminate(number: int, frame: Any) -> NoReturn:
    raise Terminated


@contextlib.contextmanager
def _exit_at_closed_pipe() -> Iterator[None]:
    """End quietly where the reader of the output has closed it, as `head` does: Click itself would end with 1."""
    try:
        yield
    except BrokenPipeError:
        raise click.exceptions.Exit(CLOSED_PIPE) from None


class _Warnings(logging.Handler):
    """Print warnings of the library as lines."""

    def emit(self, record: logging.LogRecord) -> None:
        _print_error(record.getMessage(), 0)


@contextlib.contextmanager
def _printed_warnings() -> Iterator[None]:
    handler = _Warnings(logging.WARNING)
    logging.getLogger("mgraph").addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger("mgraph").removeHandler(handler)


def _caused_by(error: BaseException | None, kind: type[KeyboardInterrupt]) -> bool:
    """Return whether an interrupt caused this error, perhaps through a library's ImportError."""
    return error is not None and (isinstance(error, kind) or _caused_by(error.__context__, kind))


def _print_error(line: str, code: int) -> int:
    # Messages of other libraries may have several lines. What reads them may be gone.
    try:
        click.echo(f"mgraph: {' '.join(line.splitlines())}", err=True)
    except BrokenPipeError:
        _discard(sys.stderr)
    return code


def _discard(stream: TextIO) -> None:
    """Redirect a standard stream to the null device, where the last flush succeeds."""
    # A stream that a caller has put in place of it may have no file descriptor.
    with contextlib.suppress(io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(mgraph.__version__, prog_name="mgraph")
def main() -> None:
    """Search graphs on GPUs or CPUs: BFS, shortest paths, components, spanning forests, PageRank.

    Exit codes: 0 done, 2 usage, 3 bad input, 4 cluster lost, or doctor found a problem, 5 would not fit in
    memory, 6 validation failed, 130 interrupted, 141 the reader of the output closed it, 143 terminated.
    """
