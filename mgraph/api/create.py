"""Make a graph: generate it, or read a file; `mgraph/api/from_memory.py` makes those of what is in memory."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any

from mgraph.api.graph import Graph
from mgraph.edges import EdgeSource, EdgeTable
from mgraph.errors import UsageError
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.generate.spec import is_spec, parse_spec
from mgraph.generate.ssca2 import Ssca2
from mgraph.generate.uniform import FixedOutDegree, Uniform
from mgraph.io.formats import read_source
from mgraph.store.manifest import is_store, open_store


def rmat(
    scale: int,
    edge_factor: int = 16,
    seed: int = 1,
    *,
    cluster: Any = None,
    order: str = "auto",
    layout: str = "rows",
    **options: Any,
) -> Graph:
    """Make a Graph500 graph of 2**scale vertices and edge_factor * 2**scale edges.

    Options are `weights` ("int", "float32", "float64" or None), `max_weight` and `scramble`.
    """
    return Graph.from_source(Rmat(scale, edge_factor, seed, **options), cluster=cluster, order=order, layout=layout)


def uniform(
    num_vertices: int,
    degree: float = 16,
    seed: int = 1,
    *,
    cluster: Any = None,
    order: str = "auto",
    layout: str = "rows",
    **options: Any,
) -> Graph:
    """Make a graph of this mean degree with edges between random vertices."""
    return Graph.from_source(
        Uniform(num_vertices, degree, seed, **options), cluster=cluster, order=order, layout=layout
    )


def fixed_out_degree(
    num_vertices: int,
    out_degree: int,
    seed: int = 1,
    *,
    cluster: Any = None,
    order: str = "auto",
    layout: str = "rows",
    **options: Any,
) -> Graph:
    """Make a directed graph: each vertex has out_degree arcs to random targets."""
    return Graph.from_source(
        FixedOutDegree(num_vertices, out_degree, seed, **options), cluster=cluster, order=order, layout=layout
    )


def grid(
    rows: int,
    columns: int,
    drop: float = 0.1,
    seed: int = 1,
    *,
    cluster: Any = None,
    order: str = "auto",
    layout: str = "rows",
    **options: Any,
) -> Graph:
    """Make a road-like grid; `drop` is the share of its edges that is removed."""
    return Graph.from_source(Grid(rows, columns, drop, seed, **options), cluster=cluster, order=order, layout=layout)


def ssca2(scale: int, *, cluster: Any = None, order: str = "auto", layout: str = "rows", **options: Any) -> Graph:
    """Make a graph of 2**scale vertices in cliques, with rarer edges between them."""
    return Graph.from_source(Ssca2(scale, **options), cluster=cluster, order=order, layout=layout)


def read(
    path: str | PathLike | Iterable[str | PathLike],
    *,
    cluster: Any = None,
    order: str = "auto",
    layout: str = "rows",
    num_chunks: int | None = None,
    **options: Any,
) -> Graph:
    """Read a graph from files, or from a spec such as `rmat:20`.

    `path` is a file, a list of files, a folder, a pattern such as `part-*.csv`, or a URL; docs/formats.md lists the
    formats. Every rank must be able to read the files. A compressed file is decompressed once in each process that has
    a rank, to an unnamed temporary file in the folder TMPDIR, and freed after the build.

    Options are those of `mgraph.io.formats.read_source`: `source`, `target` and `weight` (columns), `labels` and `base`
    (what ids are), `directed`, `num_vertices`, `format`, `sep`. Ids that are strings, negative or have large gaps are
    labels: sources, targets and results are then in labels, and `Graph.info.labels` says so.
    """
    edges: EdgeSource | EdgeTable
    if is_spec(str(path)):
        if given := [name for name, value in options.items() if value is not None]:
            raise UsageError(f"{given[0]} applies to files, and {path} is generated")
        edges = parse_spec(str(path))
    elif isinstance(path, (str, PathLike)) and is_store(path):
        raise UsageError(f"{path} is a saved graph: mg.load reads it")
    else:
        edges = read_source(path, **options)
    return Graph.from_source(edges, cluster=cluster, order=order, layout=layout, num_chunks=num_chunks)


def load(path: str | PathLike, *, name: str | None = None, cluster: Any = None) -> Graph:
    """Load a graph that `Graph.save` has written, on any number of ranks.

    Every rank must be able to read the folder. The graph has the order and the layout in which it was saved; `name`
    gives it another name.
    """
    return Graph.from_source(open_store(path, name), cluster=cluster)
