"""One launch of a kernel pair: its arguments, and the part of its output that is equal on every backend."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from emulator.backend import POISONS, poisoned

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.kernel import Kernel

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Unwritten:
    """An output array that only the kernel writes; bytes have values up to 100, which no pattern has."""

    shape: int
    dtype: Any


@dataclass(frozen=True)
class Case:
    """Arguments by name, with `lo` and `hi`; `normal` removes from the output what may differ."""

    args: dict[str, Any]
    normal: Callable[[Arrays], Arrays] = lambda result: result
    # The index at which the range is cut into two launches.
    cut: int | None = None


@functools.cache
def cpu() -> CpuBackend:
    return CpuBackend(threads=2)


def run(kernel: Kernel, case: Case, backend: Backend, poison: int) -> Arrays:
    """Return every array argument after the launches; unwritten ones have a mask of the written entries."""
    mine = {name: _fresh(value, poison) for name, value in case.args.items()}
    device = {name: backend.to_device(v) if isinstance(v, np.ndarray) else v for name, v in mine.items()}
    lo = device.pop("lo")
    hi = device.pop("hi")
    cut = hi if case.cut is None else min(max(case.cut, lo), hi)
    for first, last in (lo, cut), (cut, hi):
        kernel[backend](first, last, *device.values())
    backend.synchronize()
    arrays = {name: backend.to_host(v) for name, v in device.items() if isinstance(mine[name], np.ndarray)}
    return case.normal(dict(_with_masks(case, arrays, poison)))


def _fresh(value: Any, poison: int) -> Any:
    if isinstance(value, Unwritten):
        return poisoned(value.shape, value.dtype, poison)
    return value.copy() if isinstance(value, np.ndarray) else value


def _with_masks(case: Case, arrays: Arrays, poison: int):
    for name, array in arrays.items():
        if isinstance(case.args[name], Unwritten):
            raw, pattern = (a.view(np.uint8) for a in (array, poisoned(array.shape, array.dtype, poison)))
            written = (raw != pattern).reshape(len(array), array.itemsize).any(axis=1)
            yield f"written {name}", written
            array = np.where(written, array, array.dtype.type(0))
        yield name, array


def check(kernel: Kernel, case: Case, backend: Backend) -> None:
    """Compare a backend with the CPU twin, to the bit, with different patterns in unwritten memory."""
    assert tuple(case.args) == kernel.parameters, "a strategy draws the arguments by name and in order"
    expected = run(kernel, Case(case.args, case.normal), cpu(), POISONS[1])
    for name, array in run(kernel, case, backend, getattr(backend, "poison", POISONS[0])).items():
        np.testing.assert_array_equal(array, expected[name], err_msg=f"{kernel}: {name}", strict=True)


def queues(**counts: tuple[str, ...]) -> Callable[[Arrays], Arrays]:
    """Sort queues, as their order may differ: counters_0=("found",) means counters[0] entries in `found`.

    Entries of parallel arrays stay together. Entries after the end of a queue must be unwritten.
    """

    def normal(result: Arrays) -> Arrays:
        for counter, names in counts.items():
            array, _, place = counter.rpartition("_")
            length = int(result[array][int(place)])
            order = np.lexsort([result[name][:length] for name in names])
            for name in names:
                result[name][:length] = result[name][:length][order]
        return result

    return normal
