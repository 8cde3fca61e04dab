"""Let the verifiers of the GAP benchmark check mgraph's searches and components.

    python bench/conformance/gap.py ~/gapbs rmat:16 uniform:2^16:16 grid:256x256 roads.gr

The first argument is a checkout of GAP (github.com/sbeamer/gapbs), the others are graphs: files or specs. Each is
written as GAP's .sg and .wsg, which GAP reads; gap/verify.cc hands mgraph's parents, distances and components to
the verifiers in GAP's own bfs.cc, sssp.cc and cc.cc. GAP's weights and distances have 32 bits.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile

import click
import numpy as np

import mgraph as mg
from mgraph.api.graph500 import random_roots
from mgraph.generate.spec import is_spec

VERIFY = pathlib.Path(__file__).parent / "gap" / "verify.cc"
KERNELS = ("bfs", "sssp", "cc")
# GAP's distance of a vertex that was not reached.
UNREACHED = np.iinfo(np.int32).max // 2


@click.command(help=__doc__)
@click.argument("checkout", type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path))
@click.argument("graphs", nargs=-1, required=True)
@click.option("--roots", "num_roots", type=click.IntRange(1), default=16, show_default=True)
@click.option("--root-seed", type=int, help="by default every run draws other roots")
@click.option("--ranks", type=click.IntRange(1), help="of mgraph")
@click.option("--backend", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
@click.option("--compiler", default="c++", show_default=True)
def main(
    checkout: pathlib.Path, graphs: tuple[str, ...], num_roots: int, root_seed: int | None, ranks: int | None,
    backend: str, compiler: str,
) -> None:  # fmt: skip
    if not (checkout / "src" / "bfs.cc").is_file():
        raise click.BadParameter(f"{checkout} has no src/bfs.cc: give a checkout of the GAP benchmark")
    if shutil.which(compiler) is None:
        raise click.UsageError(f"{compiler} was not found: install a C++ compiler, or give --compiler")
    refused = 0
    with tempfile.TemporaryDirectory() as name, mg.connect(num_ranks=ranks, backend=backend) as cluster:
        folder = pathlib.Path(name)
        programs = {kernel: compiled(checkout, folder, compiler, kernel) for kernel in KERNELS}
        for number, graph in enumerate(graphs):
            with mg.read(graph, cluster=cluster) as g:
                weighted = g.info.weight_dtype is not None
                checks = [("cc", 0, components(g))]
                for root in random_roots(g, num_roots, root_seed):
                    checks.append(("bfs", root, parents(g, root)))
                    if weighted:
                        checks.append(("sssp", root, distances(g, root)))
            files = written(graph, folder / str(number), weighted)
            verdicts: dict[str, list[bool]] = {kernel: [] for kernel in KERNELS}
            for kernel, root, result in checks:
                command = [programs[kernel], "-f", files[kernel], "-r", str(root)]
                done = subprocess.run(command, input=result.tobytes(), stdout=subprocess.PIPE)
                if done.returncode:
                    click.echo(done.stdout)
                verdicts[kernel].append(done.returncode == 0)
            counts = ", ".join(f"{kernel} {sum(oks)} of {len(oks)}" for kernel, oks in verdicts.items())
            click.echo(f"{g.name}: accepted {counts}")
            refused += sum(not ok for oks in verdicts.values() for ok in oks)
    sys.exit(f"GAP's verifiers refused {refused} results" if refused else 0)


def compiled(checkout: pathlib.Path, folder: pathlib.Path, compiler: str, kernel: str) -> pathlib.Path:
    """Compile GAP's verifier of a kernel, and return the program."""
    program = folder / kernel
    include = checkout / "src"
    flags = ["-std=c++11", "-O2", "-w", "-fopenmp", f"-D{kernel.upper()}", f"-I{include}"]
    subprocess.run([compiler, *flags, "-o", program, VERIFY], check=True)
    return program


def written(graph: str, folder: pathlib.Path, weighted: bool) -> dict[str, pathlib.Path]:
    """Write the graph in GAP's formats into a new folder, and return the file of each kernel."""
    folder.mkdir()
    plain = folder / "graph.sg"
    without = [f"{graph},weights=none"] if is_spec(graph) else [graph, "--weight", "none"]
    convert([*without, plain])
    files = {"bfs": plain, "cc": plain}
    if weighted:
        files["sssp"] = folder / "graph.wsg"
        convert([graph, files["sssp"]])
    return files


def convert(words: list) -> None:
    """Run `mgraph convert`."""
    subprocess.run([sys.executable, "-m", "mgraph", "convert", *words], check=True)


def parents(g: mg.Graph, root: int) -> np.ndarray:
    """Return the parents of a BFS, as GAP has them."""
    with mg.bfs(g, root) as result:
        return np.asarray(result.predecessors).astype(np.int32)


def distances(g: mg.Graph, root: int) -> np.ndarray:
    """Return shortest distances, as GAP has them."""
    with mg.sssp(g, root) as result:
        found = np.asarray(result.distances)
        return np.where(found == -1, UNREACHED, found).astype(np.int32)


def components(g: mg.Graph) -> np.ndarray:
    """Return the label of each vertex's component."""
    with mg.connected_components(g) as result:
        return np.asarray(result.labels).astype(np.int32)


if __name__ == "__main__":
    main()
