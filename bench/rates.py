"""What a GPU's memory gives at most: the rates and latencies from which the floors in bench/peers.toml are counted.

    python bench/rates.py

It is the measurement by which searches choose their forms, made anew; `mgraph doctor` shows the one that is kept.
"""

from __future__ import annotations

import statistics
import time

import click
import cupy

from mgraph.backends.base import FusingBackend, make_backend
from mgraph.backends.rates import measure
from mgraph.backends.rates_file import SIZES

LAUNCHES = 50


@click.command(help=__doc__)
def main() -> None:
    run = make_backend("cuda")
    assert isinstance(run, FusingBackend)
    rates = measure(run, SIZES)
    assert rates is not None, "the abort word was not set"
    for what, rate in rates.described().items():
        print(f"{what}: {rate}")
    empty = cupy.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
    word, taken = cupy.zeros(1, cupy.uint32), []
    for _ in range(LAUNCHES):
        started = time.perf_counter()
        empty((1,), (1,), ())
        int(word[0])
        taken.append(time.perf_counter() - started)
    print(f"a launch and a word read back: {1e6 * statistics.median(taken):.0f} us")


if __name__ == "__main__":
    main()
