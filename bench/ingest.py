"""Measure how long a graph takes from a file in the page cache, or from arrays, until it is built.

    python bench/ingest.py                      16 M edges on the CPU
    python bench/ingest.py --backend cuda       67 M edges on a GPU

Beside each way the same run has pyarrow, and with --pandas pandas, read the same file alone; on the CPU a text is also
parsed without a build. Every graph is checked: all ways give the same edges and degrees. Times are medians, in seconds,
also of all cores together, which other processes on the machine change little; memory is the peak of a build, on the
host beyond what was in use before.
"""

from __future__ import annotations

import json
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import record

import mgraph as mg
from mgraph.backends.cpu import CpuBackend, available_cores
from mgraph.cluster.base import Cluster, Rank
from mgraph.comm.threads import open_threads
from mgraph.generate.rmat import Rmat
from mgraph.ingest.read import read_table
from mgraph.io.formats import read_source
from mgraph.shard.shard import degrees

SCALES = {"cpu": 20, "cuda": 22}
# Odd numbers that spread user ids and degrees over 64 bits.
SPREAD_IDS = np.uint64(0x9E3779B97F4A7C15)
SPREAD_DEGREES = np.uint64(0xC2B2AE3D27D4EB4F)

# What builds the graph, and by the name of its times what else reads the same input.
Way = tuple[Callable[[], mg.Graph], dict[str, Callable[[], Any]]]


class Skipped(Exception):
    """A way that this machine or version does not have; the message says why."""


@click.command(help=__doc__)
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--scale", type=int, help="The scale of the RMAT graph; by default 20 on the CPU, 22 on a GPU.")
@click.option("--repeat", type=click.IntRange(1), default=5, show_default=True)
@click.option("--only", multiple=True, help="A way to measure; may be repeated. All by default.")
@click.option("--pandas", "with_pandas", is_flag=True, help="Read text with pandas too.")
@click.option("--folder", type=click.Path(path_type=pathlib.Path), help="Where files are written; by default TMPDIR.")
@click.option("--commit", "commit_name", help="The commit that is measured; by default that of this checkout.")
@click.option("--record/--no-record", "recorded", default=True, help="Append to bench/results.")
def main(
    backend: str,
    scale: int | None,
    repeat: int,
    only: tuple[str, ...],
    with_pandas: bool,
    folder: pathlib.Path | None,
    commit_name: str | None,
    recorded: bool,
) -> None:
    source = Rmat(scale or SCALES[backend])
    facts = {"bench": "ingest", "graph": source.name, "backend": backend, "gpus": int(backend == "cuda")}
    pyarrow.set_cpu_count(available_cores())
    with (
        tempfile.TemporaryDirectory(dir=folder) as place,
        mg.connect(num_ranks=1, backend=backend) as cluster,
    ):
        edges = write_files(source, pathlib.Path(place))
        expected = None
        for name, make in ways(pathlib.Path(place), edges, cluster).items():
            if only and name not in only:
                continue
            try:
                found, digest = measure(*make(), repeat)
                if with_pandas and name in PANDAS:
                    found["pandas_s"] = round(seconds_of(lambda name=name: PANDAS[name](pathlib.Path(place)))[0], 4)
            except Skipped as reason:
                click.echo(f"{name:21} skipped: {reason}")
                continue
            expected = expected or digest
            if digest != expected:
                raise SystemExit(f"{name}: another graph, {digest} and not {expected}")
            line = facts | {"way": name, "m": digest[0], "cores": available_cores(), "validated": True} | found
            click.echo(json.dumps({key: line[key] for key in ("way", *found)}))
            if recorded:
                record.append(backend, commit_name, line)


def write_files(source: Rmat, folder: pathlib.Path) -> dict[str, np.ndarray]:
    """Write the edges in all formats; return them as arrays of int64, with weights of float32."""
    chunk = source.chunk(0, 1, CpuBackend())
    columns = {"source": chunk.sources, "target": chunk.targets, "weight": chunk.weights}
    table = pyarrow.table(columns)
    plain = pyarrow.csv.WriteOptions(include_header=False, delimiter=" ")
    pyarrow.csv.write_csv(table.select(["source", "target"]), folder / "two.el", plain)
    pyarrow.csv.write_csv(table, folder / "three.wel", plain)
    # A column before the ends that is not read, and floats with six digits.
    floats = np.round(np.random.default_rng(1).random(len(chunk)), 6)
    named = {"kind": np.zeros(len(chunk), np.uint8), **columns, "weight": floats}
    pyarrow.csv.write_csv(pyarrow.table(named), folder / "named.csv")
    pyarrow.parquet.write_table(table, folder / "edges.parquet")
    return columns | {name: columns[name].astype(np.int64) for name in ("source", "target")}


def ways(folder: pathlib.Path, edges: dict[str, np.ndarray], cluster: Cluster) -> dict[str, Callable[[], Way]]:
    """Return each way in with what else reads the same; a way is made only when it is measured."""
    at = {"cluster": cluster}
    ends = edges["source"], edges["target"]
    n = int(max(map(np.max, ends))) + 1

    def text(name: str, columns: list[str], **options: Any) -> Callable[[], Way]:
        read = pyarrow.csv.ReadOptions(column_names=columns if name != "named.csv" else None)
        split = pyarrow.csv.ParseOptions(delimiter="," if name.endswith(".csv") else " ")
        path = folder / name
        others = {"pyarrow": lambda: pyarrow.csv.read_csv(path, read_options=read, parse_options=split)}
        if cluster.backend == "cpu":
            others["parsed"] = lambda: read_table(
                read_source(path, num_vertices=n, **options), CpuBackend(), open_threads(1)[0]
            )
        return lambda: (lambda: mg.read(path, num_vertices=n, **options, **at), others)

    parquet = folder / "edges.parquet"
    return {
        "text, 2 columns": text("two.el", ["source", "target"]),
        "text, 3 columns": text("three.wel", ["source", "target", "weight"]),
        "CSV, header": text("named.csv", []),
        "Parquet": lambda: (
            lambda: mg.read(parquet, num_vertices=n, **at),
            {"pyarrow": lambda: pyarrow.parquet.read_table(parquet)},
        ),
        "from_edges": lambda: (lambda: mg.from_edges(*ends, num_vertices=n, **at), {}),
        # The goal for Parquet: to read a file takes at most this, of the same columns, and pyarrow's read_table.
        "from_edges, 3 columns": lambda: (
            lambda: mg.from_edges(*ends, edges["weight"], num_vertices=n, **at),
            {},
        ),
        "CuPy": lambda: on_device(ends, n, cluster),
        "load": lambda: saved(folder / "two.el", folder / "saved", n, cluster),
    }


def on_device(ends: tuple[np.ndarray, np.ndarray], num_vertices: int, cluster: Cluster) -> Way:
    """Return the way of arrays on the GPU."""
    if cluster.backend != "cuda":
        raise Skipped("there is no GPU")
    import cupy

    sources, targets = (cupy.asarray(ids) for ids in ends)
    return lambda: mg.from_edges(sources, targets, num_vertices=num_vertices, cluster=cluster), {}


def saved(path: pathlib.Path, folder: pathlib.Path, num_vertices: int, cluster: Cluster) -> Way:
    """Return the way of a saved graph."""
    load = getattr(mg, "load", None)
    if load is None:
        raise Skipped("this version cannot save graphs")
    with mg.read(path, num_vertices=num_vertices, cluster=cluster) as g:
        g.save(folder)  # type: ignore[attr-defined]
    return lambda: load(folder, cluster=cluster), {}


def read_by_pandas(name: str, **options: Any) -> Callable[[pathlib.Path], Any]:
    """Return a function that reads a file of the folder."""

    def read(folder: pathlib.Path) -> Any:
        import pandas

        return pandas.read_csv(folder / name, **options)

    return read


PANDAS = {
    "text, 2 columns": read_by_pandas("two.el", sep=" ", header=None),
    "text, 3 columns": read_by_pandas("three.wel", sep=" ", header=None),
    "CSV, header": read_by_pandas("named.csv"),
}


def measure(
    build: Callable[[], mg.Graph], others: dict[str, Callable[[], Any]], repeat: int
) -> tuple[dict[str, Any], tuple]:
    """Return times and peaks of builds, alternating with the other readers; and what identifies the graph."""
    times = []
    of_others: dict[str, list] = {name: [] for name in others}
    digest = ()
    peaks: dict[str, int] = {}
    build().close()  # compiles
    for turn in range(repeat):
        with host_peak() as peak:
            made: list[mg.Graph] = []
            times.append(seconds_of(lambda made=made: made.append(build())))
            peaks["host_peak_bytes"] = max(peak(), peaks.get("host_peak_bytes", 0))
        with made.pop() as g:
            peaks["device_peak_bytes"] = max(stats["peak_bytes"] for stats in g.build_stats)
            if not turn:
                digest = digest_of(g)
        for name, other in others.items():
            of_others[name].append(seconds_of(other))
    walls, cores = zip(*times, strict=True)
    found = {"built_s": statistics.median(walls), "best_s": min(walls), "cpu_s": statistics.median(cores)}
    for name, measured in of_others.items():
        walls, cores = zip(*measured, strict=True)
        found |= {f"{name}_s": statistics.median(walls), f"{name}_cpu_s": statistics.median(cores)}
    return {name: round(seconds, 4) for name, seconds in found.items()} | peaks, digest


def host_peak() -> Any:
    """Return a context that yields the peak of this process's host memory, less what is in use now."""
    return CpuBackend(1).high_water()


def seconds_of(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds of a call, and those of all cores together."""
    started = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - started[0], time.process_time() - started[1]


def digest_of(g: mg.Graph) -> tuple[int, int]:
    """Return the number of edges, and a sum over all vertices of user id and degree."""
    parts = g.cluster.run(degree_digest, g._key)
    return g.num_edges, sum(parts) % (1 << 64)


def degree_digest(rank: Rank, key: str) -> int:
    """Return this rank's part of the digest of degrees."""
    shard = rank.objects[key]
    found = rank.backend.to_host(degrees(shard.rows)).astype(np.uint64)
    if shard.user_of_local is None:
        ids = np.arange(len(found), dtype=np.uint64) + np.uint64(shard.partition.offset(rank.index))
    else:
        ids = rank.backend.to_host(shard.user_of_local).astype(np.uint64)
    mixed = (ids * SPREAD_IDS) ^ ((found + np.uint64(1)) * SPREAD_DEGREES)
    return int((mixed ^ (mixed >> np.uint64(29)))[found > 0].sum(dtype=np.uint64))


if __name__ == "__main__":
    main()
