"""The text of a CUDA module: what every compiler of .cu files shares."""

from __future__ import annotations

import importlib
import pathlib
import re
from collections.abc import Iterator

from mgraph.backends.shared_names import Shared

# Where an included file is looked for if it is not beside the file that includes it.
FOLDER = pathlib.Path(__file__).parent
PRELUDE = "prelude.cuh"
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"\s*')
# What every compiler of this text is told.
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
    """Return the whole text of a module: typedefs and numbers, then the file with its includes in place.

    The disk cache of compiled kernels hashes this text and no header: so includes are resolved here, each file once.
    """
    types = "".join(
        f"typedef {C_TYPES[meant]} {name};\n" if meant in C_TYPES else f"enum {{ {name} = {meant} }};\n"
        for name, meant in sorted(typedefs.items())
    )
    return types + "".join(_with_includes(source, {source.name}))


def _with_includes(path: pathlib.Path, included: set[str]) -> Iterator[str]:
    """Yield a file's text, with #line so that errors name the file and the line."""
    yield f'#line 1 "{path.name}"\n'
    for number, line in enumerate(path.read_text().splitlines(), 1):
        include = INCLUDE.fullmatch(line)
        if include is None:
            yield f"{line}\n"
            continue
        if include[1] not in included:
            included.add(include[1])
            beside = path.with_name(include[1])
            found = beside if beside.exists() else FOLDER / include[1]
            if found.suffix != ".py":
                yield from _with_includes(found, included)
            else:
                # The C side of shared names is written in the prelude's types.
                if PRELUDE not in included:
                    included.add(PRELUDE)
                    yield from _with_includes(FOLDER / PRELUDE, included)
                yield from _shared_names(found)
        yield f'#line {number + 1} "{path.name}"\n'


def _shared_names(path: pathlib.Path) -> Iterator[str]:
    """Yield what a Python file of kernels shares with their CUDA text."""
    module = importlib.import_module(f"{__package__}.{path.stem}")
    yield f'#line 1 "{path.name}"\n'
    yield from (shared.c_text() for shared in vars(module).values() if isinstance(shared, Shared))
