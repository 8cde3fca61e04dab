"""What a GPU's memory gives at most: the rates and latencies from which the floors in bench/peers.toml are counted.

python bench/rates.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import click
import cupy
import numpy as np

CODE = r"""
extern "C" __global__ void load_at_random(const unsigned* table, unsigned mask, long long each, unsigned* out) {
  unsigned at = (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u, sum = 0;
#pragma unroll 8
  for (long long i = 0; i < each; i++) at = at * 1664525u + 1013904223u, sum += table[(at >> 3 ^ at << 7) & mask];
  if (sum == 1) *out = sum;
}
extern "C" __global__ void min_at_random(unsigned* table, unsigned mask, long long each, unsigned* out) {
  unsigned at = (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u;
#pragma unroll 8
  for (long long i = 0; i < each; i++) {
    at = at * 1664525u + 1013904223u;
    atomicMin(table + ((at >> 3 ^ at << 7) & mask), at);
  }
}
extern "C" __global__ void chase_loads(const unsigned* next, unsigned mask, long long each, unsigned* out) {
  unsigned at = 0;
  for (long long i = 0; i < each; i++) at = __ldcg(next + at);
  *out = at;
}
extern "C" __global__ void chase_atomics(unsigned* next, unsigned mask, long long each, unsigned* out) {
  unsigned at = 0;
  for (long long i = 0; i < each; i++) at = atomicMin(next + at, ~0u);
  *out = at;
}
"""
SIZES_MIB = (1, 16, 32, 64, 128, 1024)
EACH = 512  # accesses of a thread
LINE = 32  # words of a chain's step: of a cache line of its own


@click.command(help=__doc__)
def main() -> None:
    module = cupy.RawModule(code=CODE)
    threads = 2048 * cupy.cuda.Device().attributes["MultiProcessorCount"]
    out = cupy.empty(1, np.uint32)
    source = cupy.zeros(1 << 28, np.uint32)
    rate = 2 * source.nbytes / _seconds(cupy.copyto, cupy.empty_like(source), source)
    print(f"stream, read and write: {rate / 1e12:.2f} TB/s")
    for kind in ("load_at_random", "min_at_random"):
        kernel = module.get_function(kind)
        rates = []
        for size in SIZES_MIB:
            words = size << 18
            args = (source[:words], np.uint32(words - 1), np.int64(EACH), out)
            rates.append(threads * EACH / _seconds(kernel, (threads // 256,), (256,), args) / 1e9)
        print(f"{kind} of {SIZES_MIB} MiB: {', '.join(f'{rate:.0f}' for rate in rates)} G/s")
    steps = 1 << 14
    chain = cupy.zeros(steps * LINE, np.uint32)
    order = cupy.random.permutation(steps).astype(np.uint32) * np.uint32(LINE)
    chain[order] = cupy.roll(order, -1)
    for kind in ("chase_loads", "chase_atomics"):
        kernel = module.get_function(kind)
        args = (chain, np.uint32(0), np.int64(steps), out)
        print(f"{kind}: {_seconds(kernel, (1,), (1,), args) / steps * 1e9:.0f} ns each, in the cache")
    empty = cupy.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
    taken = []
    for _ in range(50):
        started = time.perf_counter()
        empty((1,), (1,), ())
        int(out[0])
        taken.append(time.perf_counter() - started)
    print(f"a launch and a word read back: {1e6 * statistics.median(taken):.0f} us")


def _seconds(launch: Callable[..., object], *args: object) -> float:
    """Return the median of what a launch takes on the device."""
    launch(*args)
    taken = []
    for _ in range(5):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        launch(*args)
        end.record()
        end.synchronize()
        taken.append(1e-3 * cupy.cuda.get_elapsed_time(begin, end))
    return statistics.median(taken)


if __name__ == "__main__":
    main()
