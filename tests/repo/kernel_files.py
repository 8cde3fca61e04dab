"""The kernel files of the package: every .cu, the Python file beside it, and typedefs to compile it with."""

from __future__ import annotations

import functools
import importlib
import pathlib
import re

import contract

import mgraph
from mgraph.backends.kernel import TYPEDEFS, Kernel

PACKAGE = pathlib.Path(mgraph.__file__).parent
TESTS = pathlib.Path(__file__).parents[1]
SOURCES = sorted(PACKAGE.rglob("*.cu"))
INCLUDED = sorted(PACKAGE.rglob("*.cuh"))
# The dtypes that a module is compiled for beside the defaults: wide floats, integer distances, wide ids, wide user
# ids only, and all.
VARIANTS = (
    {},
    {"dist_t": "float64", "weight_t": "float64", "out_t": "float64"},
    {"dist_t": "int64", "weight_t": "int64"},
    {"dist_t": "int32", "weight_t": "uint8"},
    {"dist_t": "uint16", "weight_t": "uint8"},
    {"id_t": "int64"},
    {"vertex_t": "int64", "id_t": "int64"},
    {"vertex_t": "int64", "id_t": "int64", "dist_t": "float64", "weight_t": "float64", "out_t": "float64"},
)


def stem_of(path: pathlib.Path) -> str:
    """Return the name of a kernel file: its path in the package, without suffix."""
    return path.relative_to(PACKAGE).with_suffix("").as_posix()


def source_of(stem: str) -> pathlib.Path:
    """Return the .cu file of a stem."""
    return PACKAGE / f"{stem}.cu"


@functools.cache
def stems() -> dict[str, dict[str, Kernel]]:
    """Return the kernels of every stem that has a .cu file, or a Python file with kernels, by their names."""
    python = (stem_of(path) for path in PACKAGE.rglob("*.py") if re.search(r"^@kernel\(", path.read_text(), re.M))
    return {stem: _kernels_of(stem) for stem in sorted({*python, *map(stem_of, SOURCES)})}


def _kernels_of(stem: str) -> dict[str, Kernel]:
    if not (PACKAGE / f"{stem}.py").exists():
        return {}
    module = importlib.import_module("mgraph." + stem.replace("/", "."))
    own = (value for value in vars(module).values() if isinstance(value, Kernel) and value.source == source_of(stem))
    return {kernel.name: kernel for kernel in own}


def persistent_stems() -> list[str]:
    """Return the stems of persistent kernels, which are tested against the step kernels of their algorithm."""
    return [stem_of(source) for source in SOURCES if source.name.startswith("persistent")]


def loop_test(stem: str) -> pathlib.Path:
    """Return the test file of the loop that launches these kernels."""
    folder, _, name = stem.rpartition("/")
    return TESTS / folder / f"test_{name.removesuffix('_kernels')}.py"


def typedefs_of(source: pathlib.Path) -> list[dict[str, str]]:
    """Return the typedefs to compile a file with: those variants that it can tell apart."""
    used = [name for name in TYPEDEFS if re.search(rf"\b{name}\b", text_of(stem_of(source)))]
    told_apart = {
        tuple((TYPEDEFS | variant)[name] for name in used): TYPEDEFS | variant for variant in reversed(VARIANTS)
    }
    return list(told_apart.values())


def text_of(stem: str) -> str:
    """Return the CUDA text of a stem without comments, included files of the same stem with it."""
    path = PACKAGE / stem
    return "".join(
        contract.without_comments(file.read_text()) for file in sorted(path.parent.glob(f"{path.name}.*cu*"))
    )
