"""Check BFS, SSSP, components and PageRank by the rules of LDBC Graphalytics, on its data sets with reference output.

    python bench/conformance/graphalytics.py data/example-directed data/example-undirected data/datagen-7_5-fb

An argument is a path without ending: beside NAME.v, NAME.e and NAME.properties, which has the sources, iterations and
damping, are the reference outputs NAME-BFS, NAME-SSSP, NAME-WCC and NAME-PR, all or some. The rules are those of the
benchmark: levels are equal (the largest int64 where a vertex is not reached); distances differ by at most 0.01 %
(infinity where it is not reached), and so do scores; and two vertices have one component exactly if they have one in
the reference.
"""

from __future__ import annotations

import pathlib
import re
import sys

import click
import numpy as np
import pandas as pd

import mgraph as mg

UNREACHED = np.iinfo(np.int64).max
TOLERANCE = 1e-4


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@click.option("--ranks", type=click.IntRange(1), help="of mgraph")
@click.option("--backend", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
def main(graphs: tuple[pathlib.Path, ...], ranks: int | None, backend: str) -> None:
    checked = wrong = 0
    with mg.connect(num_ranks=ranks, backend=backend) as cluster:
        for path in graphs:
            with mg.read(with_ending(path, ".e"), labels=True, cluster=cluster) as g:
                for kernel, check in CHECKS.items():
                    if not (reference := with_ending(path, f"-{kernel}")).exists():
                        click.echo(f"{path.name} {kernel}: no reference output {reference}")
                        continue
                    differ = check(g, parameters_of(path, kernel), read_reference(reference, kernel))
                    click.echo(f"{path.name} {kernel}: {len(differ)} of {g.num_vertices} vertices differ {differ[:3]}")
                    checked += 1
                    wrong += bool(len(differ))
    if not checked:
        raise click.UsageError("no graph has a reference output beside: nothing was checked")
    sys.exit(f"{wrong} results differ from the reference output" if wrong else 0)


def with_ending(path: pathlib.Path, ending: str) -> pathlib.Path:
    """Return the file with this ending; names of data sets may have dots."""
    return path.with_name(path.name + ending)


def parameters_of(path: pathlib.Path, kernel: str) -> dict[str, str]:
    """Return what the properties give for a kernel, by name."""
    text = with_ending(path, ".properties").read_text()
    found = re.findall(rf"^graph\..*\.{kernel.lower()}\.([\w-]+)\s*=\s*(\S+)", text, re.MULTILINE)
    return dict(found)


def read_reference(path: pathlib.Path, kernel: str) -> pd.Series:
    """Return the reference output by vertex."""
    dtype = float if kernel in ("SSSP", "PR") else np.int64
    table = pd.read_csv(path, sep=" ", names=["vertex", "value"], dtype={"vertex": np.int64, "value": dtype})
    return table.set_index("vertex")["value"]


def compared(result: pd.DataFrame, column: str, reference: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Return a column by vertex and the reference in its order; both must have the same vertices."""
    found = result.set_index("vertex")[column]
    if not found.index.sort_values().equals(reference.index.sort_values()):
        raise click.ClickException("the vertices are not those of the reference output")
    return found, reference.loc[found.index]


def bfs_differs(g: mg.Graph, given: dict[str, str], reference: pd.Series) -> np.ndarray:
    """Return the vertices with another level."""
    with mg.bfs(g, int(given["source-vertex"])) as result:
        found, expected = compared(result.to_pandas(), "distances", reference)
    found = found.astype(np.int64).where(found != -1, UNREACHED)
    return found.index[found != expected].to_numpy()


def sssp_differs(g: mg.Graph, given: dict[str, str], reference: pd.Series) -> np.ndarray:
    """Return the vertices with a distance beyond the tolerance."""
    with mg.sssp(g, int(given["source-vertex"])) as result:
        found, expected = compared(result.to_pandas(), "distances", reference)
    # Equal infinities differ by no number.
    equal = (found == expected) | ((found - expected).abs() <= TOLERANCE * expected) & np.isfinite(expected)
    return found.index[~equal].to_numpy()


def wcc_differs(g: mg.Graph, given: dict[str, str], reference: pd.Series) -> np.ndarray:
    """Return the vertices of components that are split or joined."""
    with mg.connected_components(g) as result:
        found, expected = compared(result.to_pandas(), "labels", reference)
    # One to one: every component has one component of the other.
    others = expected.groupby(found).transform("nunique")
    ours = found.groupby(expected).transform("nunique")
    return found.index[(others > 1) | (ours > 1)].to_numpy()


def pr_differs(g: mg.Graph, given: dict[str, str], reference: pd.Series) -> np.ndarray:
    """Return the vertices with a score beyond the tolerance."""
    how = {"tolerance": None, "max_iterations": int(given["num-iterations"]), "weighted": False}
    with mg.pagerank(g, float(given["damping-factor"]), **how) as result:
        found, expected = compared(result.to_pandas(), "scores", reference)
    return found.index[(found - expected).abs() > TOLERANCE * expected].to_numpy()


CHECKS = {"BFS": bfs_differs, "SSSP": sssp_differs, "WCC": wcc_differs, "PR": pr_differs}

if __name__ == "__main__":
    main()
