"""The registers that the assembler allocates to every kernel, recorded by module, dtypes and architecture.

    PYTHONPATH=tests/support python tests/repo/registers.py        # after a change to a kernel

It writes registers.jsonl, which is not edited by hand. Assembling takes minutes and is deterministic, so that
test_contract.py assembles only what the record lacks, and everything in `make test-all`. A record is valid for a text
without its comments, the options, and the build of the compiler. (machine_code.py compares the instructions themselves,
before and after a change that must not alter them.)
"""

from __future__ import annotations

import concurrent.futures
import functools
import hashlib
import itertools
import json
import os
import pathlib
import re
from collections.abc import Iterator

from kernel_files import SOURCES, source_of, stem_of, typedefs_of
from nvrtc import Built, compile_text, compiler_build

from mgraph.backends.cuda_source import OPTIONS, module_text
from mgraph.backends.kernel import TYPEDEFS

RECORD = pathlib.Path(__file__).with_suffix(".jsonl")
ARCHITECTURES = ("sm_75", "sm_90", "sm_100")
# Their distances are always levels.
OF_LEVELS = (
    "algorithms/bfs/persistent_kernels",
    "algorithms/bfs/persistent_multi_gpu_kernels",
    "algorithms/bfs/sweep_kernels",
)
ALSO_OF_LEVELS = ("algorithms/components/kernels", "shard/user_ids_kernels", "validation/traversal_kernels")
# Minima of 16 bits are inline PTX on devices that have it, and compare-and-swap loops elsewhere.
OF_16_BITS = ("algorithms/sssp/persistent_multi_gpu_kernels",)
MINIMA = TYPEDEFS | {"dist_t": "uint16", "weight_t": "uint8"}


def typedefs_assembled(stem: str, architecture: str) -> Iterator[dict[str, str]]:
    """Yield the typedefs that a module is assembled with: the default ones, and on one architecture the widest."""
    if stem not in OF_LEVELS:
        yield TYPEDEFS
        if architecture == "sm_90" and (widest := typedefs_of(source_of(stem))[0]) != TYPEDEFS:
            yield widest
    if stem in OF_16_BITS:
        yield MINIMA
    if stem in OF_LEVELS + ALSO_OF_LEVELS:
        for (level, ranks), vertex in itertools.product((("uint8", "2"), ("int32", "8")), ("uint32", "int64")):
            yield TYPEDEFS | {"dist_t": level, "out_t": "int32", "vertex_t": vertex, "id_t": vertex, "RANKS": ranks}


def modules() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield file, architecture and typedefs of all that is assembled."""
    for stem, architecture in itertools.product(map(stem_of, SOURCES), ARCHITECTURES):
        for typedefs in typedefs_assembled(stem, architecture):
            yield stem, architecture, typedefs


def differing(typedefs: dict[str, str]) -> dict[str, str]:
    """Return the typedefs that are not the default ones."""
    return {name: meant for name, meant in typedefs.items() if TYPEDEFS[name] != meant}


def recorded(text: str, architecture: str) -> dict[str, int] | None:
    """Return the recorded registers of a module by kernel, None if they are not recorded."""
    return _record().get(key(text, architecture))


def assemble(text: str, architecture: str) -> Built:
    """Return the recorded result of the assembler, or assemble."""
    known = recorded(text, architecture)
    return Built("", known) if known else compile_text(text, architecture)


def key(text: str, architecture: str) -> str:
    """Return the key of a module in the record; comments are no part of it."""
    lines = (line.strip() for line in re.sub(r"//.*", "", text).splitlines())
    code = [line for line in lines if line and not line.startswith("#line")]
    return hashlib.sha256("\n".join([compiler_build(), *OPTIONS, architecture, *code]).encode()).hexdigest()[:32]


@functools.cache
def _record() -> dict[str, dict[str, int]]:
    return {line["key"]: line["registers"] for line in map(json.loads, RECORD.read_text().splitlines())}


def _line(module: tuple[str, str, dict[str, str]]) -> str:
    stem, architecture, typedefs = module
    text = module_text(source_of(stem), typedefs)
    built = assemble(text, architecture)
    assert built.log == "", built.log
    line = {"module": stem, "architecture": architecture, "typedefs": differing(typedefs)}
    return json.dumps(line | {"registers": built.registers, "key": key(text, architecture)})


def main() -> None:
    """Bring the record up to date."""
    RECORD.touch()
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        lines = list(pool.map(_line, modules()))
    RECORD.write_text("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    main()
