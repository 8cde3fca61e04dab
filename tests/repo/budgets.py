"""Budgets of size, and rules for docstrings and annotations. `python tests/repo/budgets.py` is part of `make check`.

A budget that hurts is a sign to split along a real seam; if there is none, say so and raise it here.
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys
from collections.abc import Iterator

import contract
import layers

ROOT = pathlib.Path(__file__).parents[2]
FILE_LINES = 500
FUNCTION_LINES = 60
PARAMETERS = 7
KERNEL_PARAMETERS = 14
# What makes a graph or a cluster has options, which users pass by name and editors show, and what has SciPy's
# parameters has one more for the cluster: only positional parameters count, and lines without the docstring, which
# explains every option.
WITH_OPTIONS = (
    "mgraph/api/create.py",
    "mgraph/api/from_memory.py",
    "mgraph/api/pagerank.py",
    "mgraph/cluster/connect.py",
    "mgraph/csgraph/shortest_paths.py",
)
# Functions here have the parameters that NetworkX passes by their places, however many.
NETWORKXS_OWN = ("mgraph/nx_backend/link_analysis.py",)
# Functions with these decorators are compiled by Numba, which infers their return types.
COMPILED = ("kernel", "inline", "persistent")
README_LINES = 140
CUDA_COLUMNS = 100
ROOT_FILES = 8
# A struct or class, with the bases that it has in the package.
CLASS_LINES = 150
# Larger ones from before this budget: the list only shrinks.
LARGE_CLASSES = frozenset(
    (
        "mgraph/algorithms/bfs/persistent_kernels.cu:PersistentBfs",
        "mgraph/algorithms/bfs/persistent_kernels.cuh:BfsState",
        "mgraph/algorithms/bfs/persistent_kernels.steps.cuh:BfsSteps",
        "mgraph/algorithms/bfs/persistent_multi_gpu_kernels.cu:MultiGpuBfs",
        "mgraph/algorithms/bfs/persistent_multi_gpu_kernels.cuh:MultiGpuState",
        "mgraph/algorithms/bfs/persistent_multi_gpu_kernels.push.cuh:MultiGpuPush",
        "mgraph/algorithms/components/afforest.py:_Components",
        "mgraph/algorithms/sssp/persistent_multi_gpu_kernels.cu:MultiGpuSssp",
        "mgraph/algorithms/sssp/persistent_multi_gpu_kernels.pull.cuh:PullPhase",
        "mgraph/algorithms/sssp/persistent_multi_gpu_kernels.settle.cuh:OwnedSlice",
        "mgraph/api/graph.py:Graph",
        "mgraph/backends/cpu.py:CpuBackend",
        "mgraph/backends/cuda.py:CudaBackend",
        "mgraph/backends/host.py:HostBackend",
        "mgraph/cluster/dask.py:DaskCluster",
        "mgraph/cluster/in_process.py:InProcessCluster",
        "mgraph/cluster/rank_threads.py:RankThreads",
        "mgraph/cluster/scheduler_plugin.py:GangPlugin",
        "mgraph/comm/exchange.py:Network",
        "mgraph/comm/links.py:Link",
        "mgraph/comm/nccl.py:NcclCommunicator",
    )
)
# Tools and ignore lists take folders of these names for output.
OUTPUT_FOLDERS = {"build", "dist", "lib", "out"}
STRUCT = re.compile(r"^struct (\w+)(?: : (?:public )?(\w+))?[^;{]*\{", re.MULTILINE)
SUFFIXES = (".py", ".cu", ".cuh", ".sh", ".sbatch", ".c", ".cc", ".cpp", ".h")
TREES = ("mgraph", "tests", "bench", "deploy")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def faults(root: pathlib.Path) -> list[str]:
    """Return every budget that the tree at `root` breaks, one line each."""
    paths = sorted(path for tree in TREES for path in (root / tree).rglob("*") if path.suffix in SUFFIXES)
    texts = {path.relative_to(root).as_posix(): path.read_text() for path in paths}
    explained = {name for path, text in texts.items() if path.endswith(".py") for name in _protocol_methods(text)}
    wrong = [fault for name, text in texts.items() for fault in _file_faults(name, text, explained)]
    wrong += [*_folder_faults(texts), *_class_faults(texts)]
    readme = root / "README.md"
    if readme.exists() and (length := len(readme.read_text().splitlines())) > README_LINES:
        wrong.append(f"README.md: {length} lines, the budget is {README_LINES}")
    return wrong


def _folder_faults(texts: dict[str, str]) -> Iterator[str]:
    """Yield faults of folders: their names, their docstrings, and tests that mirror no folder."""
    folders = {folder.as_posix() for name in texts for folder in pathlib.PurePath(name).parents}
    for folder in sorted(folders):
        if pathlib.PurePath(folder).name in OUTPUT_FOLDERS:
            yield f"{folder}: tools take a folder of this name for output"
    for name, text in texts.items():
        path = pathlib.PurePath(name)
        if path.name == "__init__.py" and path.parts[0] == "mgraph" and not ast.get_docstring(ast.parse(text)):
            yield f"{name}: no docstring says what belongs in the folder"
        if path.parts[0] == "tests" and path.name.startswith("test_") and path.parts[1] not in ("repo", "support"):
            mirrored = "/".join(("mgraph", *path.parts[1:-1]))
            if mirrored not in folders and mirrored != "mgraph":
                yield f"{name}: its folder mirrors none: there is no {mirrored}"
    root = [name for name in texts if name.startswith("mgraph/") and name.count("/") == 1]
    if len(root) > ROOT_FILES:
        yield f"mgraph: {len(root)} files in its root, the budget is {ROOT_FILES}"


def _class_faults(texts: dict[str, str]) -> Iterator[str]:
    """Yield structs and classes of the package that are too long with their bases."""
    found: dict[tuple[str, str], tuple[int, list[str]]] = {}
    for name, text in texts.items():
        if name.startswith("mgraph/"):
            classes = _python_classes(text) if name.endswith(".py") else _cuda_structs(text)
            found |= {(name, own): (length, bases) for own, length, bases in classes}

    def length_of(name: str, own: str) -> int:
        length, bases = found[name, own]
        return length + sum(length_of(*base) for each in bases if (base := base_of(name, each)))

    def base_of(name: str, own: str) -> tuple[str, str] | None:
        """Return the class of this name that is nearest to the file: beside it, or anywhere in the package."""
        folder = name.rpartition("/")[0]
        places = sorted((key for key in found if key[1] == own), key=lambda key: (key[0] != name, folder not in key[0]))
        return places[0] if places else None

    for name, own in found:
        if (length := length_of(name, own)) > CLASS_LINES and f"{name}:{own}" not in LARGE_CLASSES:
            yield f"{name}:{own} has {length} lines with its bases, the budget is {CLASS_LINES}"


def _python_classes(text: str) -> Iterator[tuple[str, int, list[str]]]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
            yield node.name, node.end_lineno - node.lineno + 1, bases


def _cuda_structs(text: str) -> Iterator[tuple[str, int, list[str]]]:
    plain = contract.without_comments(text)
    for match in STRUCT.finditer(plain):
        body = plain[match.start() : contract.closing_brace(plain, match.end())]
        yield match[1], sum(bool(line.strip()) for line in body.splitlines()) + 1, [match[2]] if match[2] else []


def _protocol_methods(text: str) -> Iterator[str]:
    """Yield the methods that protocols explain: the classes that follow one need not say it again."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and "Protocol" in (ast.unparse(base) for base in node.bases):
            yield from (m.name for m in node.body if isinstance(m, Function) and ast.get_docstring(m))


def _file_faults(name: str, text: str, explained: set[str]) -> Iterator[str]:
    if (length := len(text.splitlines())) > FILE_LINES:
        yield f"{name}: {length} lines, the budget is {FILE_LINES}"
    if name.endswith(".py"):
        yield from _python_faults(name, ast.parse(text, name), explained)
    elif name.endswith((".cu", ".cuh")):
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > CUDA_COLUMNS and name.startswith("mgraph/"):
                yield f"{name}:{number}: {len(line)} columns, the budget is {CUDA_COLUMNS}"
        for function in contract.functions(text) + contract.device_functions(text):
            yield from _length_faults(f"{name}:{function.line}: {function.name}", function.length)


def _python_faults(name: str, tree: ast.Module, explained: set[str]) -> Iterator[str]:
    ours = name.startswith("mgraph/")
    if ours and not ast.get_docstring(tree) and tree.body:
        yield f"{name}: no docstring says what the module is for"
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield from _function_faults(name, node)
        if isinstance(node, ast.Assign) and _is_packed(node):
            yield f"{name}:{node.lineno}: several assignments in one: write a line for each"
    if not ours:
        return
    for owner in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))):
        for node in owner.body:
            if isinstance(node, Function) and node.returns is None and not _decorators(node) & {*COMPILED}:
                yield f"{name}:{node.lineno}: {node.name} does not say what it returns"
            if _needs_docstring(node, owner, explained) and not ast.get_docstring(node):
                yield f"{name}:{node.lineno}: public {node.name} has no docstring"


def _is_packed(node: ast.Assign) -> bool:
    """Return whether values are assigned to names one for one, and not swapped or rotated."""
    targets = node.targets[0]
    values = node.value
    if not (isinstance(targets, ast.Tuple) and isinstance(values, ast.Tuple) and len(targets.elts) == len(values.elts)):
        return False
    if any(isinstance(part, ast.Starred) for part in (*targets.elts, *values.elts)):
        return False
    used = {ast.unparse(part) for part in ast.walk(values) if isinstance(part, ast.expr)}
    inner = {part.id for target in targets.elts for part in ast.walk(target) if isinstance(part, ast.Name)} - {"self"}
    return not used & ({ast.unparse(target) for target in targets.elts} | inner)


def _function_faults(name: str, function: Function) -> Iterator[str]:
    where = f"{name}:{function.lineno}: {function.name}"
    text = function.body[0] if name in WITH_OPTIONS and ast.get_docstring(function) else None
    explaining = text.end_lineno - text.lineno + 1 if text else 0
    yield from _length_faults(where, function.end_lineno - function.lineno + 1 - explaining)
    spec = function.args
    by_name = [] if name in WITH_OPTIONS else spec.kwonlyargs
    names = [a.arg for a in (*spec.posonlyargs, *spec.args, *by_name)]
    count = len(names) - (names[:1] in (["self"], ["cls"]))
    decorators = _decorators(function)
    budget = KERNEL_PARAMETERS if decorators & {*COMPILED} else PARAMETERS
    # The parameters of a command are its options, which click passes by name.
    if count > budget and "command" not in decorators and name not in NETWORKXS_OWN:
        yield f"{where} takes {count} parameters, the budget is {budget}"


def _length_faults(where: str, length: int) -> Iterator[str]:
    if length > FUNCTION_LINES:
        yield f"{where} has {length} lines, the budget is {FUNCTION_LINES}"


def _needs_docstring(node: ast.stmt, owner: ast.AST, explained: set[str]) -> bool:
    """Return whether this is public, and neither an override nor a property."""
    if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
        return False
    if not isinstance(owner, ast.ClassDef):
        return "overload" not in _decorators(node)
    inherits = owner.bases or node.name in explained
    return not (owner.name.startswith("_") or inherits or _decorators(node) & {"property", "setter", "overload"})


def _decorators(node: Function) -> set[str]:
    """Return the last names of the decorators: `kernel` of `@pair.kernel(...)`."""
    bare = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    return {d.attr if isinstance(d, ast.Attribute) else d.id for d in bare if isinstance(d, ast.Attribute | ast.Name)}


def main() -> int:
    """Print every fault of this tree; return 1 if there is one."""
    wrong = faults(ROOT) + [f"mgraph/{fault}" for fault in layers.faults(ROOT / "mgraph")]
    print(*wrong, f"budgets and layers: {len(wrong)} faults", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
