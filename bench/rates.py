"""Measure rates and latencies of a GPU's memory, for floors.

    python bench/rates.py

This repeats the measurement on which the cost models of searches rely; `mgraph doctor` shows the stored one.
"""

from __future__ import annotations

import statistics
import time

import click
import cupy

from mgraph.backends.base import PersistentBackend
from mgraph.backends.create import make_backend
from mgraph.backends.rates import measure
from mgraph.backends.rates_file import SIZES

LAUNCHES = 50


@click.command(help=__doc__)
def main() -> None:
    backend = make_backend("cuda")
    assert isinstance(backend, PersistentBackend)
    rates = measure(backend, SIZES)
    assert rates is not None, "the measurement was interrupted"
    for name, value in rates.described().items():
        print(f"{name}: {value}")
    empty = cupy.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
    word = cupy.zeros(1, cupy.uint32)
    taken = []
    for _ in range(LAUNCHES):
        started = time.perf_counter()
        empty((1,), (1,), ())
        int(word[0])
        taken.append(time.perf_counter() - started)
    print(f"a launch and a word read back: {1e6 * statistics.median(taken):.0f} us")


if __name__ == "__main__":
    main()
