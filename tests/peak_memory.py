"""Build an RMAT graph and print what it took: `python peak_memory.py SCALE NUM_CHUNKS WEIGHTS`.

The high-water mark of a process (VmHWM) counts whole pages that were touched. It is reset after the imports
and after a small build, which compiles the kernels; MALLOC_MMAP_THRESHOLD_ makes freed arrays leave at once.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys

from mgraph.build import build as builder
from mgraph.comm.threads import open_threads
from mgraph.generate.rmat import Rmat
from mgraph.kernels.backend import CpuBackend


def status(key: str) -> int:
    """Return a number of bytes from /proc/self/status."""
    with open("/proc/self/status") as file:
        return int(re.search(rf"^{key}:\s+(\d+) kB", file.read(), re.MULTILINE)[1]) * 1024


def main(scale: int, num_chunks: int, weights: str | None) -> None:
    plans = []
    plan_build = builder.plan_build

    def plan(*args):
        plans.append(plan_build(*args))
        return plans[-1]

    builder.plan_build = plan
    backend, (comm,) = CpuBackend(2), open_threads(1)
    builder.build(Rmat(10, weights=weights), backend, comm, num_chunks=num_chunks)
    # What the small build and the compiler have freed is no longer theirs: it must not look like this process's.
    ctypes.CDLL(None).malloc_trim(0)
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    shard = builder.build(Rmat(scale, weights=weights), backend, comm, num_chunks=num_chunks)
    peak = status("VmHWM") - before
    print(json.dumps({"peak": peak, "planned": plans[-1].peak_bytes, "shard": shard.nbytes}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), None if sys.argv[3] == "none" else sys.argv[3])
