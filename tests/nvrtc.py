"""NVRTC without CuPy and without a GPU: text in; log and names of the kernels out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cuda.bindings import nvrtc

from mgraph.kernels.source import OPTIONS


@dataclass(frozen=True)
class Built:
    """What became of a text: every message, and the kernels in the code with their registers a thread.

    Where it failed there are none.
    """

    log: str
    registers: dict[str, int]


def compile_text(text: str, architecture: str) -> Built:
    """Compile for one architecture, such as sm_90."""
    program = _checked(nvrtc.nvrtcCreateProgram(text.encode(), b"module.cu", 0, [], []))
    try:
        options = [option.encode() for option in (*OPTIONS, f"--gpu-architecture={architecture}", "--ptxas-options=-v")]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _read(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).strip()
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            return Built(log or status.name, {})
        used = re.findall(r"entry function '(\w+)'.*?Used (\d+) registers", log, re.DOTALL)
        told = [line for line in log.splitlines() if not re.match(r"ptxas (info|  )", line)]
        return Built("\n".join(told), {name: int(registers) for name, registers in used})
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _read(program, size_of, read) -> str:
    # One more than it takes: Python shares bytes of length one, and this one is written to.
    buffer = b" " * (_checked(size_of(program)) + 1)
    _checked(read(program, buffer))
    return buffer[:-1].rstrip(b"\0").decode()


def _checked(answer: tuple):
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {status.name}")
    return values[0] if values else None
