"""The budgets of size, and what public names must carry. `python tests/repo/budgets.py` is part of `make check`.

A budget that hurts is a sign to split along a real seam; if there is none, say so and raise it here.
"""

from __future__ import annotations

import ast
import pathlib
import sys
from collections.abc import Iterator

import contract
import layers

ROOT = pathlib.Path(__file__).parents[1]
FILE_LINES = 500
FUNCTION_LINES = 60
PARAMETERS = 7
KERNEL_PARAMETERS = 14
# Functions under these decorators are compiled by Numba, which infers what they return.
COMPILED = ("kernel", "inline")
README_LINES = 120
SUFFIXES = (".py", ".cu", ".cuh", ".sh", ".sbatch", ".cpp", ".h")
TREES = ("mgraph", "tests", "bench", "deploy")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def faults(root: pathlib.Path) -> list[str]:
    """Return every budget that the tree at `root` breaks, one line each."""
    paths = sorted(path for tree in TREES for path in (root / tree).rglob("*") if path.suffix in SUFFIXES)
    texts = {path.relative_to(root).as_posix(): path.read_text() for path in paths}
    explained = {name for path, text in texts.items() if path.endswith(".py") for name in _protocol_methods(text)}
    wrong = [fault for name, text in texts.items() for fault in _file_faults(name, text, explained)]
    readme = root / "README.md"
    if readme.exists() and (length := len(readme.read_text().splitlines())) > README_LINES:
        wrong.append(f"README.md: {length} lines, the budget is {README_LINES}")
    return wrong


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
        for function in contract.functions(text) + contract.device_functions(text):
            yield from _length_faults(f"{name}:{function.line}: {function.name}", function.length)


def _python_faults(name: str, tree: ast.Module, explained: set[str]) -> Iterator[str]:
    ours = name.startswith("mgraph/")
    if ours and not ast.get_docstring(tree) and tree.body:
        yield f"{name}: no docstring says what the module is for"
    for function in (node for node in ast.walk(tree) if isinstance(node, Function)):
        yield from _function_faults(name, function)
    if not ours:
        return
    for owner in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))):
        for node in owner.body:
            if isinstance(node, Function) and node.returns is None and not _decorators(node) & {*COMPILED}:
                yield f"{name}:{node.lineno}: {node.name} does not say what it returns"
            if _needs_docstring(node, owner, explained) and not ast.get_docstring(node):
                yield f"{name}:{node.lineno}: public {node.name} has no docstring"


def _function_faults(name: str, function: Function) -> Iterator[str]:
    where = f"{name}:{function.lineno}: {function.name}"
    yield from _length_faults(where, function.end_lineno - function.lineno + 1)
    spec = function.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    count = len(names) - (names[:1] in (["self"], ["cls"]))
    decorators = _decorators(function)
    compiled = name.startswith("mgraph/kernels/") or decorators & {*COMPILED}
    budget = KERNEL_PARAMETERS if compiled else PARAMETERS
    # The parameters of a command are its options: click passes them, nobody counts them in a call.
    if count > budget and "command" not in decorators:
        yield f"{where} takes {count} parameters, the budget is {budget}"


def _length_faults(where: str, length: int) -> Iterator[str]:
    if length > FUNCTION_LINES:
        yield f"{where} has {length} lines, the budget is {FUNCTION_LINES}"


def _needs_docstring(node: ast.stmt, owner: ast.AST, explained: set[str]) -> bool:
    """Return whether users meet this: not what is private, inherits its meaning, or is a property of one line."""
    if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
        return False
    if not isinstance(owner, ast.ClassDef):
        return True
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
