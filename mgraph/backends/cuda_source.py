"""The text of a CUDA module, the same for every compiler of .cu files: CuPy, the emulator, NVRTC in tests."""

from __future__ import annotations

import importlib
import pathlib
import re
from collections.abc import Iterator

from mgraph.backends.shared_names import Shared

PACKAGE = pathlib.Path(__file__).parents[1]
# Where an included file is searched if it is not beside the file that includes it.
DEVICE = PACKAGE / "backends" / "device"
PRELUDE = "prelude.cuh"
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"\s*')
# Options for every compiler of this text.
OPTIONS = ("--std=c++17",)
C_TYPES = {
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "int32": "int",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}


def module_text(source: pathlib.Path, typedefs: dict[str, str]) -> str:
    """Return the text of a module: typedefs and constants, then the file with its includes inlined.

    CuPy's disk cache of compiled kernels hashes this text and no header: so includes are resolved here, each file once.
    """
    types = "".join(
        f"typedef {C_TYPES[value]} {name};\n" if value in C_TYPES else f"enum {{ {name} = {value} }};\n"
        for name, value in sorted(typedefs.items())
    )
    return types + "".join(_with_includes(source, {source.name}))


def _with_includes(path: pathlib.Path, included: set[str]) -> Iterator[str]:
    """Yield a file's text with includes inlined, and #line so that errors name file and line."""
    yield f'#line 1 "{path.name}"\n'
    for number, line in enumerate(path.read_text().splitlines(), 1):
        include = INCLUDE.fullmatch(line)
        if include is None:
            yield f"{line}\n"
            continue
        if include[1] not in included:
            included.add(include[1])
            beside = path.with_name(include[1])
            found = beside if beside.exists() else DEVICE / include[1]
            if found.suffix != ".py":
                yield from _with_includes(found, included)
            else:
                # The C side of shared names is written in the prelude's types.
                if PRELUDE not in included:
                    included.add(PRELUDE)
                    yield from _with_includes(DEVICE / PRELUDE, included)
                yield from _shared_names(found)
        yield f'#line {number + 1} "{path.name}"\n'


def _shared_names(path: pathlib.Path) -> Iterator[str]:
    """Yield the constants that a Python file of kernels shares with their CUDA text."""
    module = importlib.import_module(".".join(("mgraph", *path.relative_to(PACKAGE).with_suffix("").parts)))
    yield f'#line 1 "{path.name}"\n'
    yield from (shared.c_text() for shared in vars(module).values() if isinstance(shared, Shared))
