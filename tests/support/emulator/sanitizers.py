"""Kernels under AddressSanitizer and UndefinedBehaviorSanitizer, which need a process of their own.

They see what the emulator's own checks cannot: an array in shared memory or on a thread's stack that runs over
into its neighbour, shifts too far, signed overflow, misaligned words. A fault ends the process.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from emulator.compile import COMPILER

SUPPORT = pathlib.Path(__file__).parents[1]
ROOT = SUPPORT.parents[1]


def environment() -> dict[str, str]:
    """Return the environment in which modules are compiled with sanitizers, and Python can load them."""
    # C++ exceptions cross the sanitizer's library: libstdc++ must be there when it starts.
    libraries = (_run(COMPILER, f"-print-file-name={name}") for name in ("libasan.so", "libstdc++.so.6"))
    # Options of this pytest session, such as several processes, do not apply to the inner one.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return ours | {
        "LD_PRELOAD": " ".join(libraries),
        # Python leaks by design; a fiber's frames are on no stack that the sanitizer made.
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "MGRAPH_EMULATOR_SANITIZE": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), str(SUPPORT), os.environ.get("PYTHONPATH")))),
    }


def run_python(*arguments: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run Python under the sanitizers."""
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
