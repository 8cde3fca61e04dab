"""Record the machine code of every kernel, and compare it with an earlier record; no GPU is needed.

    export PYTHONPATH=tests/support
    python tests/repo/machine_code.py > before.json
    python tests/repo/machine_code.py before.json        # after a change that must not alter machine code

A record has, by kernel and typedefs, the registers, the bytes spilled and of shared memory, and a hash of the
instructions for one architecture. Names of files and functions and numbers of lines are no part of the instructions, so
that moving and renaming leaves every hash as it was.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import struct
import sys
from collections.abc import Iterator

from kernel_files import SOURCES, typedefs_of
from nvrtc import compile_text

from mgraph.backends.cuda_source import module_text

ARCHITECTURE = "sm_90"


def sections(elf: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each section of a 64-bit ELF file."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    entry_bytes, count, names_index = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * entry_bytes) for i in range(count)]
    names_at = headers[names_index][4]
    for name, kind, _, _, offset, num_bytes, *_ in headers:
        start = names_at + name
        content = b"" if kind == 8 else elf[offset : offset + num_bytes]  # SHT_NOBITS has no content
        yield elf[start : elf.index(b"\0", start)].decode(), content


def record(sources: list[pathlib.Path]) -> dict[str, list[dict[str, int | str]]]:
    """Return registers, spills and hash of the code of each kernel, by kernel and typedefs."""
    found: dict[str, list[dict[str, int | str]]] = {}
    for source in sources:
        for typedefs in typedefs_of(source):
            built = compile_text(module_text(source, typedefs), ARCHITECTURE)
            assert built.log == "", built.log
            key = ",".join(f"{name}={meant}" for name, meant in sorted(typedefs.items()))
            for name, content in sections(built.cubin):
                if not name.startswith(".text."):
                    continue
                kernel = name.removeprefix(".text.")
                usage = built.usage[kernel]
                # Two files may have a kernel of one name; which file it is in may change.
                compiled = {**usage, "code": hashlib.sha256(content).hexdigest()[:16]}
                found.setdefault(f"{kernel} {key}", []).append(compiled)
    return {key: sorted(values, key=str) for key, values in found.items()}


def main() -> int:
    """Print a record, or its differences from a given record."""
    now = record(SOURCES)
    if len(sys.argv) == 1:
        json.dump(now, sys.stdout, indent=0, sort_keys=True)
        return 0
    before = json.loads(pathlib.Path(sys.argv[1]).read_text())
    differing = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    for key in differing:
        print(f"{key}: {before.get(key, 'absent')} -> {now.get(key, 'absent')}")
    print(f"{len(now)} kernels and typedefs, {len(differing)} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
