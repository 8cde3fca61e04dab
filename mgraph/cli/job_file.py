"""Read a job file: TOML whose keys are the options of the commands, checked before any work.

A table is turned into the arguments of its command, which Click parses: a job accepts what the command accepts.
"""

from __future__ import annotations

import contextlib
import pathlib
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from mgraph.cli.algorithm_command import CommandSpec, Options, order_option
from mgraph.cli.bipartite import BIPARTITE_COMMAND, bipartite
from mgraph.cli.bridges import BRIDGES_COMMAND, bridges
from mgraph.cli.closeness import CLOSENESS_COMMAND, closeness
from mgraph.cli.components import COMPONENTS_COMMAND, components
from mgraph.cli.core_numbers import CORE_NUMBERS_COMMAND, core_numbers
from mgraph.cli.degrees import DEGREES_COMMAND, degrees
from mgraph.cli.diameter import DIAMETER_COMMAND, diameter
from mgraph.cli.distances import DISTANCES_COMMAND, distances
from mgraph.cli.hits import HITS_COMMAND, hits
from mgraph.cli.k_hop import K_HOP_COMMAND, k_hop
from mgraph.cli.msf import MSF_COMMAND, msf
from mgraph.cli.options import BUILD_OPTIONS, cluster_options, input_options, layout_option
from mgraph.cli.pagerank import PAGERANK_COMMAND, pagerank
from mgraph.cli.path import PATH_COMMAND, path
from mgraph.cli.plan import Bytes
from mgraph.cli.steiner_tree import STEINER_TREE_COMMAND, steiner_tree
from mgraph.cli.strong_components import STRONG_COMPONENTS_COMMAND, strong_components
from mgraph.cli.traverse import BFS_COMMAND, SSSP_COMMAND, bfs, sssp
from mgraph.errors import InputError, UsageError

COMMANDS: dict[str, tuple[click.Command, CommandSpec]] = {
    "bfs": (bfs, BFS_COMMAND),
    "sssp": (sssp, SSSP_COMMAND),
    "path": (path, PATH_COMMAND),
    "distances": (distances, DISTANCES_COMMAND),
    "k-hop": (k_hop, K_HOP_COMMAND),
    "components": (components, COMPONENTS_COMMAND),
    "strong-components": (strong_components, STRONG_COMPONENTS_COMMAND),
    "core-numbers": (core_numbers, CORE_NUMBERS_COMMAND),
    "degrees": (degrees, DEGREES_COMMAND),
    "closeness": (closeness, CLOSENESS_COMMAND),
    "diameter": (diameter, DIAMETER_COMMAND),
    "bipartite": (bipartite, BIPARTITE_COMMAND),
    "bridges": (bridges, BRIDGES_COMMAND),
    "msf": (msf, MSF_COMMAND),
    "steiner-tree": (steiner_tree, STEINER_TREE_COMMAND),
    "pagerank": (pagerank, PAGERANK_COMMAND),
    "hits": (hits, HITS_COMMAND),
}
# Tables of the whole job -> the parameters that they have, of the command below.
TABLES = {
    "graph": ("input", *BUILD_OPTIONS),
    "cluster": ("scheduler", "scheduler_file", "num_ranks", "backend"),
    "limits": ("memory", "open_timeout_s", "verb_timeout_s", "on_loss"),
}
TOP = ("manifest", *TABLES, "run")
# Options of commands that a run does not have: those of the tables, how the command prints, and files that may change
# while the keys of a run that is done stay the same.
NOT_OF_RUNS = {name for names in TABLES.values() for name in names} | {"overwrite", "trace", "as_json"}
NOT_OF_RUNS |= {"sources_file", "targets_file"}

Place = tuple[str | int, ...]


@click.command("job")
@input_options
@order_option
@layout_option
@cluster_options
@click.option("--memory", type=Bytes())
def tables(**options: Any) -> None:
    """Declare the parameters of TABLES; it is parsed and never run."""


@dataclass(frozen=True)
class JobFile:
    """The text of a job file, and its tables."""

    path: pathlib.Path
    text: str
    table: dict[str, Any]

    @contextlib.contextmanager
    def at(self, *place: str | int) -> Iterator[None]:
        """Make errors of usage name the line and the key of this place."""
        try:
            yield
        except click.BadParameter as error:
            key = () if error.param is None else (key_of(error.param),)
            raise self.fault((*place, *key), (error.message or "it is missing").rstrip(".")) from None
        except click.UsageError as error:
            raise self.fault(place, error.format_message().rstrip(".")) from None
        except UsageError as error:
            raise self.fault(place, str(error)) from None

    def fault(self, place: Place, message: str) -> UsageError:
        """Return an error that names the line and the key of a place; of a missing key the line of its table."""
        lines = [line_of(self.text, place[:length]) for length in range(len(place), 0, -1)]
        line = next((str(line) for line in lines if line), "1")
        name = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
        return UsageError(f"{self.path}:{line}: {name}: {message}" if name else f"{self.path}: {message}")


@dataclass(frozen=True)
class Run:
    """One algorithm of a job: its number and table in the file, its command, and the options as of that."""

    number: int
    table: dict[str, Any]
    spec: CommandSpec
    options: Options

    @property
    def place(self) -> Place:
        return ("run", self.number)


@dataclass(frozen=True)
class Job:
    """A job: its file, the context in which Click has parsed its graph, the options of TABLES, and its runs."""

    file: JobFile
    context: click.Context
    options: Options
    runs: list[Run]

    @property
    def manifest(self) -> pathlib.Path:
        return pathlib.Path(self.file.table.get("manifest", self.file.path.with_suffix(".manifest.json")))


def read_job(path: str) -> Job:
    """Read a job file; refuse what is not in its schema."""
    try:
        text = pathlib.Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    file = JobFile(pathlib.Path(path), text, table)
    _check_top(file)
    contexts = {}
    options: Options = {}
    for name, names in TABLES.items():
        words = _words(file, (name,), table.get(name, {}), _keys(tables, names))
        with file.at(name):
            contexts[name] = tables.make_context(name, [*words, "--", _input_of(file)])
        options |= {option: contexts[name].params[option] for option in names}
    runs = [_run(file, options, k) for k in range(len(table["run"]))]
    return Job(file, contexts["graph"], options, runs)


def _check_top(file: JobFile) -> None:
    """Refuse unknown tables, missing ones, and keys where tables should be."""
    for key, value in file.table.items():
        if key not in TOP:
            raise file.fault((key,), f"there is no such key: {', '.join(TOP)} are allowed")
        if key == "run" and not (isinstance(value, list) and all(isinstance(run, dict) for run in value)):
            raise file.fault((key,), "it must be a table for each run, [[run]]")
        if key in TABLES and not isinstance(value, dict):
            raise file.fault((key,), f"it must be a table, [{key}]")
        if key == "manifest" and not (isinstance(value, str) and value):
            raise file.fault((key,), 'it must name a file, as manifest = "job.json"')
    for key, header in (("graph", "[graph]"), ("run", "[[run]]")):
        if not file.table.get(key):
            raise file.fault((), f"a job needs a table {header}")


def _input_of(file: JobFile) -> str:
    """Return the input of the graph."""
    given = file.table["graph"].get("input")
    if not isinstance(given, str) or not given:
        raise file.fault(("graph", "input"), 'it must name the input, as input = "edges.parquet" or input = "rmat:20"')
    if given == "-":
        raise file.fault(("graph", "input"), "standard input cannot be read again: name a file")
    return given


def _run(file: JobFile, shared: Options, k: int) -> Run:
    """Check one run; return it with all options of its command."""
    place = ("run", k)
    table = file.table["run"][k]
    name = table.get("algorithm")
    if not isinstance(name, str) or name not in COMMANDS:
        raise file.fault((*place, "algorithm"), f"it must be one of {', '.join(COMMANDS)}")
    command, spec = COMMANDS[name]
    names = [str(option.name) for option in command.params if option.name not in NOT_OF_RUNS]
    words = _words(file, place, table, {"algorithm": None, **_keys(command, names)})
    with file.at(*place):
        own = command.make_context(name, [*words, "--", shared["input"]]).params
    if "layout" not in own and shared["layout"] != "rows":
        raise file.fault(("graph", "layout"), f"{name} needs rows")
    options = {option: own[option] for option in names} | shared | {"as_json": False, "trace": False}
    return Run(k, table, spec, options)


def _keys(command: click.Command, names: Sequence[str]) -> dict[str, click.Parameter | None]:
    """Return the parameters of these names by their keys."""
    return {key_of(parameter): parameter for parameter in command.params if parameter.name in names}


def _words(file: JobFile, place: Place, table: dict[str, Any], keys: dict[str, click.Parameter | None]) -> list[str]:
    """Return the options of a table as arguments of a command; refuse other keys than these."""
    words = []
    for key, value in table.items():
        if key not in keys:
            raise file.fault((*place, key), f"there is no such key: {', '.join(keys)} are allowed")
        option = keys[key]
        if isinstance(option, click.Option):
            words += _words_of(file, (*place, key), option, value)
    return words


def _words_of(file: JobFile, place: Place, option: click.Option, value: Any) -> list[str]:
    """Return a value as arguments; refuse one of a type that the option does not have."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise file.fault(place, f"{value!r} is neither true nor false")
        return (option.opts if value else option.secondary_opts)[:1]
    values = value if option.multiple and isinstance(value, list) else [value]
    if any(isinstance(each, bool) or not isinstance(each, (str, int, float)) for each in values):
        raise file.fault(place, f"{value!r} is no text or number" + (", nor a list of them" if option.multiple else ""))
    return [f"{option.opts[0]}={each}" for each in values]


def key_of(parameter: click.Parameter) -> str:
    """Return the key of a parameter: its option without dashes."""
    return parameter.opts[0].lstrip("-")


def line_of(text: str, place: Place) -> int:
    """Return the line at which a key begins, 0 if there is none.

    tomllib gives no lines. A text that is cut between two statements can be parsed; cut inside a value of several lines
    it cannot. So the key begins after the longest text that can be parsed without it.
    """
    lines = text.split("\n")
    begin = 0
    for end in range(1, len(lines) + 1):
        try:
            found: Any = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        if _has(found, place):
            return begin + 1
        begin = end
    return 0


def _has(found: Any, place: Place) -> bool:
    """Return whether there is a value at a place."""
    for part in place:
        if not (part in found if isinstance(found, dict) else isinstance(part, int) and part < len(found)):
            return False
        found = found[part]
    return True
