"""Let the reference code of Graph500 validate mgraph's searches, on its own graph and roots.

    python bench/conformance/graph500.py ~/graph500 --scale 16 --processes 2

The argument is a checkout of the reference (github.com/graph500/graph500); MPI's compiler and launcher are found by
their names or given. The reference is copied and compiled with graph500/bfs_custom.c and sssp_custom.c, which hand it
mgraph's results in place of searches of its own. It generates the graph with float32 weights in [0, 1), writes it
into files that mgraph reads, chooses 64 roots, and validates the parents of BFS, the parents and distances of shortest
paths, and the numbers of edges, each by its own rules and on rows that it builds for them. Its rates are meaningless
here: they include the hand-over of results.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import click
import numpy as np

import mgraph as mg
from mgraph.formatting import counted

ADAPTER = pathlib.Path(__file__).with_name("graph500")
SOURCES = ("main.c", "utils.c", "validate.c", "csr_reference.c", "bfs_custom.c", "sssp_custom.c", "../aml/aml.c")
GENERATOR = ("graph_generator.c", "make_graph.c", "splittable_mrg.c", "utils.c")
# Without REUSE_CSR_FOR_VALIDATION the validator makes rows of its own from the edges.
FLAGS = ("-O3", "-w", "-Drestrict=__restrict__", "-DGRAPH_GENERATOR_MPI", "-DSSSP", "-I../aml")
KERNELS = {"bfs": "BFS", "sssp": "SSSP"}
ROOTS = 64
# Lines that the reference prints at each search.
STEPS = re.compile(r"Running|Time for|TEPS for|Valida(ting|te time)|\s*$")


@click.command(help=__doc__)
@click.argument("checkout", type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path))
@click.option("--scale", type=click.IntRange(6, 30), default=16, show_default=True)
@click.option("--edge-factor", type=click.IntRange(1), default=16, show_default=True)
@click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="of the reference")
@click.option("--ranks", type=click.IntRange(1), help="of mgraph")
@click.option("--backend", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
@click.option("--mpicc", default="mpicc", show_default=True)
@click.option("--mpiexec", default="mpiexec", show_default=True)
def main(
    checkout: pathlib.Path, scale: int, edge_factor: int, processes: int, ranks: int | None, backend: str, mpicc: str,
    mpiexec: str,
) -> None:  # fmt: skip
    if not (checkout / "src" / "validate.c").is_file():
        raise click.BadParameter(f"{checkout} has no src/validate.c: give a checkout of the reference code")
    if missing := [tool for tool in (mpicc, mpiexec) if shutil.which(tool) is None]:
        raise click.UsageError(f"{missing[0]} was not found: install an MPI, or give --mpicc and --mpiexec")
    with tempfile.TemporaryDirectory() as name, mg.connect(num_ranks=ranks, backend=backend) as cluster:
        folder = pathlib.Path(name)
        program = compiled(checkout, folder, mpicc)
        command = [mpiexec, "-n", str(processes), str(program), str(scale), str(edge_factor)]
        served, printed = serve(command, folder, cluster)
    click.echo("".join(line for line in printed.splitlines(keepends=True) if not STEPS.match(line)))
    validated = {kernel: printed.count(f"Validate time for {name} ") for kernel, name in KERNELS.items()}
    refused = "Validation Error" in printed or "invalid run" in printed or "harmonic_mean_TEPS" not in printed
    # Each kernel also runs once to warm up.
    expected = dict.fromkeys(KERNELS, ROOTS + 1)
    click.echo(
        f"searches by {counted(cluster.num_ranks, f'{cluster.backend} rank')} of mgraph {mg.__version__}: {served}"
    )
    click.echo(f"validated by {processes} processes of the reference: {validated}")
    if refused or served != expected or set(validated.values()) != {ROOTS}:
        sys.exit("the reference code did not accept all results")
    click.echo("the reference code accepts all results")


def compiled(checkout: pathlib.Path, folder: pathlib.Path, mpicc: str) -> pathlib.Path:
    """Compile a copy of the reference with the adapter, and return the program."""
    for part in ("aml", "generator", "src"):
        shutil.copytree(checkout / part, folder / part)
    for file in ADAPTER.glob("*.c"):
        shutil.copy(file, folder / "src")
    files = [*SOURCES, *(f"../generator/{name}" for name in GENERATOR)]
    subprocess.run([mpicc, *FLAGS, "-o", "graph500", *files, "-lm", "-lpthread"], cwd=folder / "src", check=True)
    return folder / "src" / "graph500"


def serve(command: list[str], folder: pathlib.Path, cluster: mg.Cluster) -> tuple[dict[str, int], str]:
    """Run the reference and search from each root that it asks for.

    Returns the number of searches of each kernel, and what the reference printed.
    """
    result = folder / "result"
    # With REUSEFILE the edges stay in the file TMPFILE until the end.
    env = os.environ | {"TMPFILE": str(folder / "edges"), "REUSEFILE": "1", "GRAPH500_RESULT": str(result)}
    served = dict.fromkeys(KERNELS, 0)
    printed = []
    with (
        open(folder / "log", "w+") as log,
        subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as process,
    ):
        g = None
        for line in process.stdout:
            word, *request = line.decode().split() or [""]
            if word != "search":
                printed.append(line.decode())
                continue
            if g is None:
                # The reference has built its rows: all edges are in the file.
                g = mg.read(folder / "edges", format="graph500-12", weight=True, labels=False, cluster=cluster)
            kernel, root = request
            answer(g, kernel, int(root), result)
            served[kernel] += 1
            # If the reference has ended, what it printed says why.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(b"\n")
                process.stdin.flush()
        process.wait()
        log.seek(0)
        return served, log.read() + "".join(printed)


def answer(g: mg.Graph, kernel: str, root: int, path: pathlib.Path) -> None:
    """Search, and write the number of vertices, all parents and, for shortest paths, all distances."""
    with (mg.bfs if kernel == "bfs" else mg.sssp)(g, root) as result, open(path, "wb") as file:
        file.write(np.array([g.num_vertices], np.int64))
        file.write(np.asarray(result.predecessors).astype(np.int64))
        if kernel == "sssp":
            distances = np.asarray(result.distances)
            # The reference marks vertices that are not reached by -1.
            file.write(np.where(np.isinf(distances), np.float32(-1), distances).astype(np.float32))


if __name__ == "__main__":
    main()
