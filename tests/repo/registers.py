"""The registers of every kernel as the assembler allots them, recorded by module, dtypes and architecture.

    PYTHONPATH=tests/support python tests/repo/registers.py        # after a change to a kernel

Assembling takes minutes, and gives the same for the same text: what the record has is not assembled again, except by
`make test-all`. A text that differs in more than comments, other options or another build of the compiler is assembled
whether or not it is recorded; the record shows in a change what it costs in registers.
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
from nvrtc import Built, compile_text, header

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


def assemble(text: str, architecture: str, *, anew: bool = False) -> Built:
    """Return what the compiler makes of a text, from the record where that has it, unless `anew`."""
    known = _recorded().get(key(text, architecture))
    return Built("", known) if known and not anew else compile_text(text, architecture)


def key(text: str, architecture: str) -> str:
    """Return the key of a module in the record; comments are no part of it."""
    lines = (line.strip() for line in re.sub(r"//.*", "", text).splitlines())
    code = [line for line in lines if line and not line.startswith("#line")]
    return hashlib.sha256("\n".join([header(), *OPTIONS, architecture, *code]).encode()).hexdigest()[:32]


@functools.cache
def _recorded() -> dict[str, dict[str, int]]:
    return {line["key"]: line["registers"] for line in map(json.loads, RECORD.read_text().splitlines())}


def _line(module: tuple[str, str, dict[str, str]]) -> str:
    stem, architecture, typedefs = module
    text = module_text(source_of(stem), typedefs)
    built = assemble(text, architecture)
    assert built.log == "", built.log
    differing = {name: meant for name, meant in typedefs.items() if TYPEDEFS[name] != meant}
    line = {"module": stem, "architecture": architecture, "typedefs": differing, "registers": built.registers}
    return json.dumps(line | {"key": key(text, architecture)})


def main() -> None:
    """Bring the record up to date."""
    RECORD.touch()
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        lines = list(pool.map(_line, modules()))
    RECORD.write_text("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    main()
