"""What memory accesses of a device cost: the numbers by which searches choose between kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Upper bounds of a plausible time or size, and of the time of one access: kernels multiply an access by the number of
# arcs in 64 bits.
MAX_WORD = 1 << 40
MAX_ACCESS = 1 << 24
FEMTO = 1_000_000  # femtoseconds of a nanosecond


@dataclass(frozen=True)
class Rates:
    """Average time of one access on an otherwise idle device, in femtoseconds.

    Attributes
    ----------
    sizes
        Bytes of the tables measured, rising.
    loads, atomics
        A load of a word, and an atomic minimum, at a random place of a table of each size.
    stream
        Reading and writing a KiB sequentially: 1024 bytes in all.
    grid_barrier
        A barrier of all blocks of a launch.
    load_wait, atomic_wait
        Latency of a load, or of an atomic, in the cache that all multiprocessors share.
    """

    sizes: tuple[int, ...]
    loads: tuple[int, ...]
    atomics: tuple[int, ...]
    stream: int
    grid_barrier: int
    load_wait: int
    atomic_wait: int

    def load(self, table_bytes: float) -> float:
        """Return the time of a load at a random place of a table of this size."""
        return float(np.interp(np.log2(max(table_bytes, 1)), np.log2(self.sizes), self.loads))

    def atomic(self, table_bytes: float) -> float:
        """Return the time of an atomic at a random place of a table of this size."""
        return float(np.interp(np.log2(max(table_bytes, 1)), np.log2(self.sizes), self.atomics))

    def described(self) -> dict[str, str]:
        """Return the rates in words for a report: accesses a second, and latencies."""
        sizes = ", ".join(str(size >> 20) for size in self.sizes)

        def a_second(times: tuple[int, ...]) -> str:
            return f"{', '.join(str(round(FEMTO / time)) for time in times)} G/s on {sizes} MiB"

        return {
            "stream, read and write": f"{1.024 * FEMTO / self.stream:.2f} TB/s",
            "loads at random": a_second(self.loads),
            "atomics at random": a_second(self.atomics),
            "latency of a load, an atomic": f"{self.load_wait // FEMTO} ns, {self.atomic_wait // FEMTO} ns in cache",
            "a barrier of all blocks": f"{self.grid_barrier / FEMTO / 1000:.2f} us",
        }

    def is_sound(self) -> bool:
        """Return whether the rates are plausible: positive whole numbers, one for each size, sizes rising."""
        words = *self.sizes, *self.loads, *self.atomics, self.stream, self.grid_barrier
        words += self.load_wait, self.atomic_wait
        whole = all(type(word) is int and 0 < word < MAX_WORD for word in words)
        whole = whole and max(*self.loads, *self.atomics, 0) < MAX_ACCESS
        rise = sorted(set(self.sizes)) == list(self.sizes)
        return whole and rise and 0 < len(self.sizes) == len(self.loads) == len(self.atomics)

    def is_undisturbed(self) -> bool:
        """Return whether a larger table is no faster: it may be where other processes use the device meanwhile."""
        return self.loads[0] <= self.loads[-1] and self.atomics[0] <= self.atomics[-1]
