"""Run mgraph as a platform of LDBC Graphalytics: its scripts load-graph, execute-job and unload-graph are commands.

    python bench/conformance/graphalytics_driver.py load-graph --graph-name example-directed
        --input-vertex-path data/example-directed.v --input-edge-path data/example-directed.e
        --output-path /tmp/loaded --directed true --weighted true
    python bench/conformance/graphalytics_driver.py execute-job --job-id 1 --algorithm bfs --source-vertex 1
        --input-path /tmp/loaded --output-path /tmp/answers
    python bench/conformance/graphalytics_driver.py unload-graph --graph-name example-directed --output-path /tmp/loaded

Options are those that the benchmark's harness passes to the scripts of a platform (bin/sh/NAME.sh, which call these
commands with "$@"). A job writes a line with vertex and value for each vertex, and prints when processing began and
ended, from a graph in memory to the result on the ranks, in milliseconds since 1970. Algorithms are bfs, sssp, wcc and
pr; docs/validation.md says why cdlp and lcc are not among them.
"""

from __future__ import annotations

import pathlib
import shutil
import time
from typing import Any

import click
import numpy as np

import mgraph as mg
from mgraph.api.results import Result

UNREACHED = np.iinfo(np.int64).max
ALGORITHMS = ("bfs", "sssp", "wcc", "pr")
FOLDER = click.Path(file_okay=False, path_type=pathlib.Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=pathlib.Path)


@click.group(help=__doc__)
def main() -> None:
    pass


@main.command("load-graph")
@click.option("--graph-name", required=True)
@click.option("--input-vertex-path", type=FILE, required=True)
@click.option("--input-edge-path", type=FILE, required=True)
@click.option("--output-path", type=FOLDER, required=True)
@click.option("--directed", type=bool, required=True)
@click.option("--weighted", type=bool, required=True)
def load_graph(
    graph_name: str,
    input_vertex_path: pathlib.Path,
    input_edge_path: pathlib.Path,
    output_path: pathlib.Path,
    directed: bool,
    weighted: bool,
) -> None:
    if input_vertex_path.with_suffix("") != input_edge_path.with_suffix(""):
        raise click.UsageError(f"{input_vertex_path} and {input_edge_path} are not of one name: NAME.v and NAME.e")
    with mg.connect() as cluster:
        how: dict[str, Any] = {"labels": True, "directed": directed, "cluster": cluster}
        with mg.read(input_edge_path, weight=None if weighted else False, **how) as g:
            g.save(output_path)
            click.echo(f"{graph_name}: {g.num_vertices} vertices, {g.num_edges} edges")


@main.command("execute-job")
@click.option("--job-id", default="")
@click.option("--log-path", type=FOLDER)
@click.option("--algorithm", type=click.Choice(ALGORITHMS, case_sensitive=False), required=True)
@click.option("--source-vertex", type=int)
@click.option("--max-iteration", type=click.IntRange(1))
@click.option("--damping-factor", type=float)
@click.option("--input-path", type=FOLDER, required=True)
@click.option("--output-path", type=click.Path(path_type=pathlib.Path), required=True)
@click.option("--num-machines", type=int)
@click.option("--num-threads", type=int)
@click.option("--directed", type=bool)
@click.option("--num-vertices", type=int)
def execute_job(algorithm: str, input_path: pathlib.Path, output_path: pathlib.Path, **options: Any) -> None:
    needed = {"bfs": ("source_vertex",), "sssp": ("source_vertex",), "pr": ("max_iteration", "damping_factor")}
    for name in needed.get(algorithm, ()):
        if options[name] is None:
            raise click.UsageError(f"{algorithm} needs --{name.replace('_', '-')}")
    with mg.connect() as cluster, mg.load(input_path, cluster=cluster) as g:
        click.echo(f"Processing starts at: {time.time_ns() // 1_000_000}")
        found = run(g, algorithm, options)
        click.echo(f"Processing ends at: {time.time_ns() // 1_000_000}")
        with found:
            write(found, algorithm, output_path)


@main.command("unload-graph")
@click.option("--graph-name", required=True)
@click.option("--output-path", type=FOLDER, required=True)
def unload_graph(graph_name: str, output_path: pathlib.Path) -> None:
    shutil.rmtree(output_path)


def run(g: mg.Graph, algorithm: str, options: dict[str, Any]) -> Result:
    """Return the result of an algorithm."""
    if algorithm == "wcc":
        return mg.connected_components(g)
    if algorithm == "pr":
        how = {"tolerance": None, "max_iterations": options["max_iteration"], "weighted": False}
        return mg.pagerank(g, options["damping_factor"], **how)
    return (mg.bfs if algorithm == "bfs" else mg.sssp)(g, options["source_vertex"])


def write(found: Result, algorithm: str, path: pathlib.Path) -> None:
    """Write a line with vertex and value for each vertex."""
    column = {"wcc": "labels", "pr": "scores"}.get(algorithm, "distances")
    table = found.to_pandas()[["vertex", column]]
    if algorithm == "bfs":
        table[column] = table[column].astype(np.int64).where(table[column] != -1, UNREACHED)
    elif algorithm in ("sssp", "pr"):
        table[column] = table[column].map("{:.15e}".format).replace("inf", "Infinity")
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, sep=" ", header=False, index=False)


if __name__ == "__main__":
    main()
