"""NVRTC without CuPy and without a GPU: text in; log and names of the kernels out."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from cuda.bindings import nvrtc

from mgraph.backends.cuda_source import OPTIONS


@dataclass(frozen=True)
class Built:
    """A compiled text: all messages, and the kernels with their registers per thread.

    Where it failed there are none.
    """

    log: str
    registers: dict[str, int]
    usage: dict[str, dict[str, int]] = field(default_factory=dict)  # registers, spills and shared memory, by kernel
    cubin: bytes = b""


def check_text(text: str) -> str:
    """Return errors and warnings alone, in a twentieth of the time: code for the linker is not optimized."""
    return compile_text(text, "compute_90", "--dlink-time-opt").log


def compile_text(text: str, architecture: str, *more: str) -> Built:
    """Compile for one architecture, such as sm_90."""
    program = _checked(nvrtc.nvrtcCreateProgram(text.encode(), b"module.cu", 0, [], []))
    try:
        # NVRTC does not assemble a cached text again, and then reports no registers.
        flags = f"--gpu-architecture={architecture}", "--ptxas-options=-v", "--no-cache", *more
        options = [option.encode() for option in (*OPTIONS, *flags)]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _read(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).strip()
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            return Built(log or status.name, {})
        entries = re.findall(r"entry function '(\w+)'(.*?Used \d+ registers[^\n]*)", log, re.DOTALL)
        usage = {name: _usage(report) for name, report in entries}
        messages = [line for line in log.splitlines() if not re.match(r"ptxas (info|  )", line)]
        registers = {name: used["registers"] for name, used in usage.items()}
        cubin = _read_bytes(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN) if entries else b""
        return Built("\n".join(messages), registers, usage, cubin)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


@functools.cache
def compiler_build() -> str:
    """Return the lines in which the compiler names its build."""
    program = _checked(nvrtc.nvrtcCreateProgram(b"", b"empty.cu", 0, [], []))
    try:
        _checked(nvrtc.nvrtcCompileProgram(program, 0, []))
        ptx = _read(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return "\n".join(line for line in ptx.splitlines() if line.startswith("//"))


def _usage(report: str) -> dict[str, int]:
    """Return the assembler's report on one kernel."""
    patterns = {
        "registers": r"Used (\d+) registers",
        "spill_stores": r"(\d+) bytes spill stores",
        "spill_loads": r"(\d+) bytes spill loads",
        "shared": r"(\d+) bytes smem",
    }
    found = {name: re.search(pattern, report) for name, pattern in patterns.items()}
    return {name: int(match[1]) if match else 0 for name, match in found.items()}


def _read(program, size_of, read) -> str:
    return _read_bytes(program, size_of, read).rstrip(b"\0").decode()


def _read_bytes(program, size_of, read) -> bytes:
    # One byte more: Python shares bytes objects of length one, and this one is written to.
    buffer = b" " * (_checked(size_of(program)) + 1)
    _checked(read(program, buffer))
    return buffer[:-1]


def _checked(result: tuple):
    status, *values = result
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {status.name}")
    return values[0] if values else None
