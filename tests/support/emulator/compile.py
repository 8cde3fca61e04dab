"""From the text of a CUDA module to a library for this machine's CPU, compiled once and kept.

The cache goes by content (text, emulator, flags, compiler), so it never needs to be emptied. A library is
written under a name of its own and renamed, so that any number of processes may compile at once.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
HEADERS = ("runtime.h", "cuda_model.h", "lock.h", "regions.h", "fibers.h", "grid.h", "checker.h")
CACHE = pathlib.Path(os.environ.get("MGRAPH_EMULATOR_CACHE") or HERE.parents[2] / ".pytest_cache" / "emulator")
COMPILER = os.environ.get("CXX", "g++")

# An uninitialised local is an error; kernels that are watched compile at -O1, where a load is still where the text has
# it. Under the sanitizers they take three times as long to compile at -O1, and little to run at -O0.
COMMON = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-g1", "-I", str(HERE))
KERNEL = ("-Wall", "-Wno-unused", "-Wno-unknown-pragmas", "-Werror=uninitialized", "-Werror=maybe-uninitialized")
WATCHED = (
    "-O1",
    "-fsanitize=thread",
    "--param",
    "tsan-distinguish-volatile=1",
    "--param",
    "tsan-instrument-func-entry-exit=0",
)
SANITIZERS = (
    "-O0",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fsanitize-sections=emu_shared",
    "-DEMU_SANITIZE",
)

KERNEL_NAME = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\s*\([^()]*\)\s*)?(\w+)\s*\(")


class CompileError(Exception):
    """g++ is missing, or refuses a module; the message is the compiler's."""


def build(text: str, *, sanitize: bool = False) -> pathlib.Path:
    """Return the shared library of a module's text."""
    unit = _unit(text)
    path = CACHE / f"{_digest(unit, str(sanitize))}.so"
    if path.exists():
        return path
    runtime = _runtime(sanitize)
    instrument = SANITIZERS if sanitize else WATCHED
    with _scratch() as folder:
        source = folder / "module.cpp"
        module = folder / "module.o"
        library = folder / "module.so"
        source.write_text(unit)
        # The precompiled header is found first; g++ takes it only if made with the same flags.
        model = "-I", str(_model(sanitize).parent), "-Winvalid-pch"
        _run(COMPILER, *model, *COMMON, *KERNEL, *instrument, "-c", str(source), "-o", str(module))
        _refuse_variables_for_all_blocks(module)
        # Not linked as -fsanitize=thread: the runtime takes the place of ThreadSanitizer's library.
        _run(COMPILER, "-shared", *(SANITIZERS if sanitize else ()), str(module), str(runtime), "-o", str(library))
        os.replace(library, path)
    return path


def _refuse_variables_for_all_blocks(module: pathlib.Path) -> None:
    """Refuse variables of functions outside the section of __shared__ memory, and those of templates in any.

    Of templates older g++ makes ordinary variables, and newer g++ those of the section: refused alike, so that a kernel
    that runs on one machine runs on all.
    """
    for symbol, name in re.findall(r" ([bBdD]) (_ZZ\w+)", _run("nm", str(module))):
        shown = _run("c++filt", name).strip()
        function = shown
        while (without := re.sub(r"\([^()]*\)", "", function)) != function:
            function = without
        if "<" in function or symbol in "bB":
            raise CompileError(
                f"{shown} would be one for all blocks: the emulator has no __shared__ memory in templates"
            )


def _unit(text: str) -> str:
    """Return a translation unit: the model, the text in a namespace of its own, a wrapper for each kernel."""
    names = dict.fromkeys(KERNEL_NAME.findall(text))
    visible = 'extern "C" __attribute__((visibility("default"), no_sanitize("thread")))'
    wrappers = "".join(
        f"{visible} void emu_call_{name}(void** args) {{ emu::call(&{name}, args); }}\n"
        f"{visible} const char* emu_signature_{name}() {{ return emu::signature(&{name}); }}\n"
        for name in names
    )
    return f'#include "cuda_model.h"\nnamespace {{\n{text}\n}}\n#line 1 "wrappers"\n{wrappers}'


@functools.cache
def _runtime(sanitize: bool) -> pathlib.Path:
    """Return the object file of the runtime, which every module links."""
    path = CACHE / f"{_digest('runtime', str(sanitize))}.o"
    if not path.exists():
        with _scratch() as folder:
            flags = ("-O1", "-DEMU_SANITIZE") if sanitize else ("-O2",)
            _run(COMPILER, *COMMON, *flags, "-c", str(HERE / "runtime.cpp"), "-o", str(folder / "runtime.o"))
            os.replace(folder / "runtime.o", path)
    return path


@functools.cache
def _model(sanitize: bool) -> pathlib.Path:
    """Return the precompiled header of every module, a third of the time to compile a small one."""
    path = CACHE / f"{_digest('model', str(sanitize))}.model" / "cuda_model.h.gch"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        instrument = SANITIZERS if sanitize else WATCHED
        with _scratch() as folder:
            made = folder / path.name
            # Not as the main file, in which #pragma once is warned of.
            (folder / "model.h").write_text('#include "cuda_model.h"\n')
            _run(COMPILER, *COMMON, *KERNEL, *instrument, "-x", "c++-header", str(folder / "model.h"), "-o", str(made))
            os.replace(made, path)
    return path


@functools.cache
def _emulator_digest() -> str:
    parts = [(HERE / name).read_text() for name in (*HEADERS, "runtime.cpp")]
    flags = (COMMON, KERNEL, WATCHED, SANITIZERS, _run(COMPILER, "--version"))
    return hashlib.sha256("\0".join([*parts, repr(flags)]).encode()).hexdigest()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join([_emulator_digest(), *parts]).encode()).hexdigest()[:32]


def _scratch() -> _Scratch:
    CACHE.mkdir(parents=True, exist_ok=True)
    return _Scratch(prefix="compiling-", dir=CACHE)


class _Scratch(tempfile.TemporaryDirectory):
    def __enter__(self) -> pathlib.Path:
        return pathlib.Path(super().__enter__())


def _run(*command: str) -> str:
    # A sanitizer that this process runs under would slow the compiler down.
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    except FileNotFoundError:
        raise CompileError(f"{command[0]} is not there: the emulator compiles kernels with it (or set CXX)") from None
    if done.returncode:
        raise CompileError(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def source_line(library: pathlib.Path, offset: int) -> str:
    """Return `file:line` of an offset into the library, the caller first where it was inlined."""
    try:
        lines = _run("addr2line", "-i", "-e", str(library), hex(offset)).split()
    except CompileError:
        return f"{library.name}+{offset:#x}"
    frames = [
        pathlib.PurePath(line).name for line in lines if ":" in line and "?" not in line and "cuda_model.h" not in line
    ]
    return " in ".join(dict.fromkeys([*frames[:1], *frames[-1:]])) or f"{library.name}+{offset:#x}"
