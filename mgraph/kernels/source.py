"""The text of a CUDA module: what every compiler of .cu files shares."""

from __future__ import annotations

import pathlib

PRELUDE = tuple(pathlib.Path(__file__).with_name(f"{name}.cuh") for name in ("prelude", "ranks", "frontiers", "tiles"))
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
    """Return the whole text of a module: typedefs and numbers, the prelude and the file, with #line for errors.

    A file too long for one reading has its lower parts beside it, as .cuh of its stem, each upon those before it by
    name; a fused loop sees that of its step form too.
    The prelude is text, not an #include: the disk cache of compiled kernels sees only the text.
    """
    types = "".join(
        f"typedef {C_TYPES[meant]} {name};\n" if meant in C_TYPES else f"enum {{ {name} = {meant} }};\n"
        for name, meant in sorted(typedefs.items())
    )
    step_form = source.with_name(f"{source.stem.removesuffix('_fused')}.cuh")
    lower = dict.fromkeys((step_form, *sorted(source.parent.glob(f"{source.stem}.*cuh"))))
    parts = (*PRELUDE, *filter(pathlib.Path.exists, lower), source)
    return "".join(
        (types, *(f'#line 1 "{path.name}"\n{path.read_text()}\n' for path in parts)),
    )
