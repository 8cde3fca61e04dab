"""The text of a CUDA module: what every compiler of .cu files shares."""

from __future__ import annotations

import importlib
import pathlib
import re
from collections.abc import Iterator

from mgraph.backends.shared_names import Names, Offsets

PACKAGE = pathlib.Path(__file__).parents[1]
# Where an included file is searched if it is not beside the file that includes it.
DEVICE = PACKAGE / "backends" / "device"
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
            found = beside if beside.exists() else DEVICE / include[1]
            yield from _shared_names(found) if found.suffix == ".py" else _with_includes(found, included)
        yield f'#line {number + 1} "{path.name}"\n'


def _shared_names(path: pathlib.Path) -> Iterator[str]:
    """Yield what a Python file of kernels shares with their CUDA text."""
    module = importlib.import_module(".".join(("mgraph", *path.relative_to(PACKAGE).with_suffix("").parts)))
    yield f'#line 1 "{path.name}"\n'
    yield from (shared.c_text() for shared in vars(module).values() if isinstance(shared, (Names, Offsets)))
