"""Layers of imports: which part may import which, where heavy libraries may be imported, no cycles.

The source text is parsed, so that code which never runs is checked too. Imports under `if TYPE_CHECKING:` do not
run and do not count. An import inside a function counts for the layers, but closes no cycle.
"""

from __future__ import annotations

import ast
import graphlib
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass

# One line for each layer, lowest first. Modules of one set are one part and may import each other; a part
# imports from parts of lower lines, never from another part of its own line.
LAYERS: tuple[tuple[frozenset[str], ...], ...] = tuple(
    tuple(frozenset(part.split()) for part in line)
    for line in (
        ("types", "errors", "formatting", "signals"),
        ("config",),
        ("partition", "backends", "comm", "edges"),
        ("labels",),
        ("generate", "io"),
        ("shard",),
        ("ingest",),
        ("algorithms", "store"),
        ("validation",),
        ("planning",),
        ("cluster",),
        ("rank_jobs",),
        ("api",),
        ("cli", "nx_backend", "csgraph"),
        ("__main__",),
    )
)
ROOT = "mgraph"
HEIGHT = {name: height for height, line in enumerate(LAYERS) for part in line for name in part}
PART = {name: part for line in LAYERS for part in line for name in part}


@dataclass(frozen=True)
class Place:
    """Where a library may be imported: under one of the paths, perhaps inside functions only."""

    library: str
    paths: tuple[str, ...]
    in_functions: bool = False

    def allows(self, path: str, found: Import) -> bool:
        """Return whether the import found in `path` is one of these."""
        inside = any(path == p or (p.endswith("/") and path.startswith(p)) for p in self.paths)
        named = found.name == self.library or found.name.startswith(f"{self.library}.")
        return inside and named and (found.in_function or not self.in_functions)


PLACES = (
    Place("distributed", ("cluster/",)),
    Place("dask", ("cluster/",)),
    Place(
        "dask",
        ("config/", "api/graph.py", "api/columns.py", "api/tables_on_ranks.py", "io/"),
        in_functions=True,
    ),
    Place("prometheus_client", ("cluster/metrics.py",), in_functions=True),
    Place("dask_cuda", ("cluster/",), in_functions=True),
    Place("cupy", ("backends/", "comm/nccl.py", "cli/doctor.py")),
    Place("nccl", ("comm/nccl.py", "cli/doctor.py")),
    Place("networkx", ("nx_backend/",)),
    Place("scipy", ("csgraph/",)),
    # Its module imports CuPy, so other modules import it in functions that run only with a GPU.
    Place("mgraph.backends.cuda", ("backends/", "cli/doctor.py"), in_functions=True),
    Place("mgraph.backends.copies", ("backends/cuda.py",)),
    Place("mgraph.backends.cuda_ipc", ("backends/cuda.py",)),
    Place("mgraph.backends.cuda_host_link", ("backends/cuda.py",)),
    Place("mgraph.backends.cuda_split_memory", ("backends/cuda_host_link.py",)),
)
# Libraries that `import mgraph` must not load.
HEAVY = ("cupy", "dask", "distributed", "numba", "scipy")


@dataclass(frozen=True)
class Import:
    """One import: the imported module (or a name in it), and its line."""

    name: str
    line: int
    in_function: bool


def imports(tree: ast.AST, *, in_function: bool = False) -> Iterator[Import]:
    """Yield the imports of a module that run."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, in_function)
        elif isinstance(node, ast.ImportFrom):
            # A relative import reads as ".name": faults() refuses it, since layers are named in full.
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                yield Import(f"{module}.{alias.name}", node.lineno, in_function)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from imports(ast.Module(node.orelse, []), in_function=in_function)
        else:
            inner = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports(node, in_function=inner)


def faults(package: pathlib.Path) -> list[str]:
    """Return the faults of the imports below `package`, one line each."""
    found = {path.relative_to(package).as_posix(): _imports_of(path) for path in sorted(package.rglob("*.py"))}
    wrong = [f"{path}:{i.line}: {fault}" for path, there in found.items() for i in there if (fault := _fault(path, i))]
    return wrong + _cycles(found)


def _imports_of(path: pathlib.Path) -> list[Import]:
    return list(imports(ast.parse(path.read_text(), str(path))))


def _fault(path: str, found: Import) -> str | None:
    """Return the faults of one import in the file at `path`."""
    name = found.name
    if name.startswith("."):
        return "relative import: write the name in full"
    places = [p for p in PLACES if name == p.library or name.startswith(f"{p.library}.")]
    # A submodule counts as its library: any place that names a parent applies.
    if places and not any(p.allows(path, found) for p in places):
        top = max(places, key=lambda p: len(p.library))
        where = " or ".join(
            p + (" (in functions)" if place.in_functions else "") for place in places for p in place.paths
        )
        return f"{top.library} may be imported in {where} only"
    if name.split(".")[0] != ROOT or path == "__init__.py":
        return None
    here = path.split("/")[0].removesuffix(".py")
    there = name.removeprefix(ROOT).lstrip(".").split(".")[0]
    if here not in HEIGHT:
        return f"{here} is in no layer: add it to LAYERS in tests/repo/layers.py"
    if there in ("", "__version__") and HEIGHT[here] >= HEIGHT["cli"]:
        return None  # the command line is above the public names and may use them
    if there in PART[here]:
        return None
    if there not in HEIGHT:
        return f"{name} is in no layer"
    if HEIGHT[there] >= HEIGHT[here]:
        return (
            f"{here} (layer {HEIGHT[here]}) imports {there} (layer {HEIGHT[there]}): only lower layers may be imported"
        )
    return None


def _cycles(found: dict[str, list[Import]]) -> list[str]:
    """Return the first cycle of imports among the modules, if there is one."""
    modules = {_module(path): path for path in found}
    graph = {
        module: {
            target
            for i in found[path]
            if not i.in_function and (target := _known(i.name, modules)) not in (None, module)
        }
        for module, path in modules.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return ["import cycle: " + " <- ".join(error.args[1])]
    return []


def _module(path: str) -> str:
    return ".".join([ROOT, *path.removesuffix(".py").removesuffix("__init__").strip("/").split("/")]).rstrip(".")


def _known(name: str, modules: dict[str, str]) -> str | None:
    """Return the module that an import loads: `name`, or the one that holds the object."""
    return name if name in modules else parent if (parent := name.rpartition(".")[0]) in modules else None
