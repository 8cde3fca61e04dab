"""The contract between the twins of a kernel: a parser of .cu text, and rules that two twins must satisfy.

A .cu file is read with regular expressions, not by a C++ parser: kernels are plain functions, and one
that cannot be read here is a fault of its own (its name is missing).
"""

from __future__ import annotations

import ast
import inspect
import pathlib
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SCALARS = ("i64", "double")
FORBIDDEN = {
    r"^\s*#\s*include\s*<": "#include <...>: NVRTC finds no system headers; include files of ours, in quotes",
    r"\b(?:asm|__asm__)\b": "inline PTX: what it needs comes from prelude.cuh",
    r"\bextern\s+__shared__": "bare `extern __shared__`: dynamic_shared<T>() gives it",
    r"\]\s*\([^()]*\bauto\b": "generic lambda: NVRTC 13.0 takes it for a function of the host",
}
KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\([^()]*\)\s*)?(\w+)\s*\(([^()]*)\)\s*\{'
)
DEVICE = re.compile(r"\b__device__\b[^;{}]*?(\w+)\s*\([^;{}]*\{")
PARAMETER = re.compile(
    r"(?P<const>const\s+)?(?P<type>\w+(?:\s+\w+)*?)\s*(?P<star>\*?)\s*(?:__restrict__\s+)?(?P<name>\w+)"
)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a CUDA function."""

    name: str
    type: str
    is_array: bool
    is_const: bool

    @property
    def is_output(self) -> bool:
        """An array that the kernel may write; in-out arrays are outputs."""
        return self.is_array and not self.is_const


@dataclass(frozen=True)
class Function:
    """A `extern "C" __global__` function as its text has it."""

    name: str
    parameters: tuple[Parameter, ...]
    line: int
    length: int  # lines of code: comments, of which every race has one, are not counted


def without_comments(text: str) -> str:
    """Return the text with comments blanked, every line in its place."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)


def functions(text: str) -> list[Function]:
    """Return the kernels of a .cu text, in order."""
    text = without_comments(text)
    return [
        Function(match[1], tuple(_parameter(p) for p in match[2].split(",") if p.strip()), *_extent(text, match))
        for match in KERNEL.finditer(text)
    ]


def device_functions(text: str) -> list[Function]:
    """Return the __device__ functions and methods of a CUDA text that have a body; their parameters are not read."""
    text = without_comments(text)
    return [Function(match[1], (), *_extent(text, match)) for match in DEVICE.finditer(text)]


def _extent(text: str, head: re.Match) -> tuple[int, int]:
    """Return the line where a function begins, and how many lines of code it has."""
    lines = text[head.start() : closing_brace(text, head.end()) + 1].splitlines()
    return text.count("\n", 0, head.start()) + 1, sum(bool(line.strip()) for line in lines)


def _parameter(text: str) -> Parameter:
    match = PARAMETER.fullmatch(text.strip())
    if match is None:
        return Parameter(" ".join(text.split()), "unreadable", is_array=False, is_const=False)
    return Parameter(match["name"], match["type"], bool(match["star"]), bool(match["const"]))


def closing_brace(text: str, start: int) -> int:
    """Return where the body that was opened before `start` ends."""
    depth = 1
    for match in re.finditer(r"[{}]", text[start:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return start + match.start()
    return len(text)


def forbidden(text: str) -> list[str]:
    """Return the faults of a .cu text, or of its lower half."""
    plain = without_comments(text)
    return [fault for pattern, fault in FORBIDDEN.items() if re.search(pattern, plain, re.MULTILINE)]


def text_faults(text: str) -> list[str]:
    """Return the faults of a .cu text and of its kernels' parameters."""
    plain = without_comments(text)
    wrong = forbidden(text)
    read = functions(text)
    if len(read) != (count := len(re.findall(r"\b__global__\b", plain))):
        wrong.append(f'{count} functions are __global__, {len(read)} read as extern "C" __global__ void name(...)')
    return wrong + [f"{f.name}: {fault}" for f in read for fault in _parameter_faults(f)]


def _parameter_faults(function: Function) -> Iterator[str]:
    parameters = function.parameters
    if [(p.type, p.name) for p in parameters[:2]] != [("i64", "lo"), ("i64", "hi")]:
        yield "the first two parameters are not `i64 lo, i64 hi`"
    first_output = next((k for k, p in enumerate(parameters) if p.is_output), len(parameters))
    if first_output == len(parameters):
        yield "no array is written: the last parameters are outputs"
    for p in parameters[first_output:]:
        if not p.is_output:
            yield f"{p.name} is an input after the output {parameters[first_output].name}"
    for p in parameters:
        if not p.is_array and p.type not in SCALARS:
            yield f"scalar {p.name} is {p.type}: scalars are {' or '.join(SCALARS)}"


def twin_faults(kernel: Any, function: Function) -> list[str]:
    """Return where a Python kernel and a CUDA function of its name differ."""
    ours = tuple(kernel.parameters)
    theirs = tuple(p.name for p in function.parameters)
    if ours != theirs:
        return [f"the Python twin takes ({', '.join(ours)}), the CUDA twin ({', '.join(theirs)})"]
    # A persistent kernel has a name and parameters in Python, no body.
    return [*_type_faults(kernel, function), *([] if kernel.cooperative else _use_faults(kernel, function))]


def _type_faults(kernel: Any, function: Function) -> Iterator[str]:
    for typedef, index in kernel.types.items():
        p = function.parameters[index]
        if not p.is_array or p.type != typedef:
            yield f"{typedef} is taken from {p.name}, which is not a pointer to it"


def _use_faults(kernel: Any, function: Function) -> Iterator[str]:
    use = uses(kernel.cpu.py_func)
    for p in function.parameters:
        if p.name in use.indexed and not p.is_array:
            yield f"{p.name} is an array in Python, a scalar in CUDA"
        if p.name in use.counted and p.is_array:
            yield f"{p.name} is a number in Python, an array in CUDA"
        if p.name in use.written and not p.is_output:
            yield f"{p.name} is written in Python, const in CUDA"
        if p.is_output and p.name not in use.written | use.passed:
            yield f"{p.name} is an output in CUDA, never written in Python"


@dataclass(frozen=True)
class Use:
    """How a Python kernel uses the names in its body."""

    indexed: set[str]
    counted: set[str]
    written: set[str]
    passed: set[str]


def uses(function: Any) -> Use:
    """Return which names the function indexes, counts with, writes into, or hands on whole."""
    use = Use(set(), set(), set(), set())
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            use.indexed.add(node.value.id)
            if isinstance(node.ctx, ast.Store):
                use.written.add(node.value.id)
        elif isinstance(node, ast.BinOp):
            use.counted.update(_names(node.left, node.right))
        elif isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            if called == "range":
                use.counted.update(_names(*node.args))
            elif called.startswith("atomic_"):
                use.indexed.update(_names(node.args[0]))
                use.written.update(_names(node.args[0]))
            else:
                use.passed.update(_names(*node.args))
    return use


def _names(*nodes: ast.expr) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def stem_faults(source: pathlib.Path, kernels: dict[str, Any]) -> list[str]:
    """Return the faults of a .cu file and of the kernels that the Python file of its stem defines."""
    if not source.exists():
        return [f"{', '.join(kernels)}: no CUDA twin, {source.name} is missing"]
    text = source.read_text()
    theirs = {f.name: f for f in functions(text)}
    wrong = text_faults(text)
    wrong += [f"{name}: no Python twin" for name in theirs.keys() - kernels.keys()]
    wrong += [f"{name}: no CUDA twin" for name in kernels.keys() - theirs.keys()]
    both = sorted(kernels.keys() & theirs.keys())
    return wrong + [f"{name}: {fault}" for name in both for fault in twin_faults(kernels[name], theirs[name])]
