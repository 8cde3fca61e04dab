"""What a device's memory gives, measured in a few launches of some milliseconds: what searches decide by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mgraph.backends.kernel import fused
from mgraph.backends.shared_names import Names

if TYPE_CHECKING:
    from mgraph.backends.base import FusingBackend

# Of the table: what fits every device's cache, about what it holds, and what is far beyond.
SIZES_MIB = (1, 16, 32, 64, 128, 1024)
# As in the CUDA file: accesses of a thread at random, lines that one visits in turn, meetings of all blocks; what the
# host is told, in nanoseconds but for the first two, before the loads at random by size, and the atomics.
EACH, STEPS, MEETINGS = 64, 2048, 64
REPORT = Names("Report", "done threads stream meeting load_wait atomic_wait")
# The first launch finds clocks and caches asleep; of the others the fastest was disturbed least.
LAUNCHES = 5
# Above it a time, or a size, is none; the time of an access is multiplied by arcs, in 64 bits.
MOST, MOST_ACCESS = 1 << 40, 1 << 24
FEMTO = 1_000_000  # of them are a nanosecond


@dataclass(frozen=True)
class Rates:
    """What one access takes when the whole device does nothing else, in femtoseconds.

    Attributes
    ----------
    sizes
        Bytes of the tables, rising.
    loads, atomics
        A load of a word, and an atomic minimum, at a random place of a table of each size.
    stream
        Reading and writing a KiB, in order: 1024 bytes in all.
    meeting
        A meeting of all blocks of a launch.
    load_wait, atomic_wait
        A load, or an atomic, in the cache that all share, for a thread that waits for it.
    """

    sizes: tuple[int, ...]
    loads: tuple[int, ...]
    atomics: tuple[int, ...]
    stream: int
    meeting: int
    load_wait: int
    atomic_wait: int

    def load(self, table_bytes: float) -> float:
        """Return what a load at a random place of a table of so many bytes takes."""
        return float(np.interp(np.log2(max(table_bytes, 1)), np.log2(self.sizes), self.loads))

    def atomic(self, table_bytes: float) -> float:
        """Return what an atomic at a random place of a table of so many bytes takes."""
        return float(np.interp(np.log2(max(table_bytes, 1)), np.log2(self.sizes), self.atomics))

    def told(self) -> dict[str, str]:
        """Return what a reader wants to know: rates a second, and waits."""
        sizes = ", ".join(str(size >> 20) for size in self.sizes)

        def a_second(each: tuple[int, ...]) -> str:
            return f"{', '.join(str(round(FEMTO / one)) for one in each)} G/s on {sizes} MiB"

        return {
            "stream, read and write": f"{1.024 * FEMTO / self.stream:.2f} TB/s",
            "loads at random": a_second(self.loads),
            "atomics at random": a_second(self.atomics),
            "a load, an atomic, waited for": f"{self.load_wait // FEMTO} ns, {self.atomic_wait // FEMTO} ns in cache",
            "a meeting of all blocks": f"{self.meeting / FEMTO / 1000:.2f} us",
        }

    def is_sound(self) -> bool:
        """Return whether this can be decided by: whole numbers above 0, one for each size, which rise."""
        words = *self.sizes, *self.loads, *self.atomics, self.stream, self.meeting, self.load_wait, self.atomic_wait
        whole = all(type(word) is int and 0 < word < MOST for word in words)
        whole = whole and max(*self.loads, *self.atomics, 0) < MOST_ACCESS
        rise = sorted(set(self.sizes)) == list(self.sizes)
        return whole and rise and 0 < len(self.sizes) == len(self.loads) == len(self.atomics)

    def is_undisturbed(self) -> bool:
        """Return whether a larger table is no faster, as it may seem where others use the device meanwhile."""
        return self.loads[0] <= self.loads[-1] and self.atomics[0] <= self.atomics[-1]


@fused(block=512)
def measure_rates(lo, hi, abort, sizes, num_sizes, table, arrived, report) -> None:
    """Measure with lo..hi threads on a `table` of as many words as the last of `sizes`, which are powers of two.

    They rise, and the last is 2^16 or more.
    """


def measure(run: FusingBackend, sizes_bytes: tuple[int, ...], launches: int = LAUNCHES) -> Rates | None:
    """Measure the device; None where it was told to stop."""
    words = np.array(sizes_bytes, np.int64) // 4
    table, sizes, arrived = run.xp.empty(int(words[-1]), np.uint32), run.to_device(words), run.xp.zeros(1, np.int64)
    report, on_host = run.host_words(len(REPORT) + 2 * len(words))
    told = []
    for _ in range(launches):
        on_host[:] = 0
        measure_rates[run](0, 1 << 30, run.abort_word, sizes, len(words), table, arrived, report)
        run.synchronize()
        told.append(on_host[: len(REPORT) + 2 * len(words)].tolist())
    if not all(done for done, *_ in told):
        return None
    _, threads, stream, meeting, load_wait, atomic_wait, *at_random = (
        min(column) for column in zip(*told, strict=True)
    )
    each = tuple(FEMTO * nanoseconds // (threads * EACH) for nanoseconds in at_random)
    return Rates(
        sizes_bytes,
        each[: len(words)],
        each[len(words) :],
        stream=FEMTO * 1024 * stream // sizes_bytes[-1],
        meeting=FEMTO * meeting // MEETINGS,
        load_wait=FEMTO * load_wait // STEPS,
        atomic_wait=FEMTO * atomic_wait // STEPS,
    )
