"""Multi-source BFS on one GPU: variants of the kernels of bfs_bitmaps beside bfs_wide, 256 roots a search.

Prints for each variant the seconds of all roots, in GTEPS, and for some of them the microseconds of each kernel of one
search by level. A hash over the levels of every root, found by each variant, is compared with that of bfs_wide.

    python bench/multi_source_variants.py rmat:22 --roots 1024
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import mgraph as mg
from mgraph.algorithms.bfs import multi_source_bitmaps
from mgraph.algorithms.bfs import multi_source_bitmaps_kernels as bitmaps_kernels
from mgraph.algorithms.bfs.multi_source import BATCH_ROOTS
from mgraph.algorithms.bfs.multi_source_bitmaps import bfs_bitmaps
from mgraph.algorithms.bfs.multi_source_wide import WideLevels, bfs_wide
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.variant import require_variant
from mgraph.algorithms.variants import MULTI_SOURCE
from mgraph.backends.kernel import Kernel
from mgraph.cluster.base import Rank
from mgraph.shard.shard import Shard
from mgraph.types import LEVEL, unreached_of

REPEATS = 5
# Of the kernels' text (sizes), of the host's loop, the threads of a block that gathers a long row, and how many blocks
# a multiprocessor has of those that gather short ones.
VARIANTS: list[tuple[str, dict[str, int]]] = [
    ("base", {}),
    ("tests never", {"TEST_SHARE": 1 << 40}),
    ("tests always", {"TEST_SHARE": 0}),
    ("push second", {"PUSH_COST": 2}),
    ("always pull", {"PUSH_COST": 1 << 40}),
    ("steps 1", {"steps": 1}),
    ("steps 4", {"steps": 4}),
    ("steps 4, blocks 4", {"steps": 4, "pull_blocks": 4}),
    ("blocks 4", {"pull_blocks": 4}),
    ("blocks 6", {"pull_blocks": 6}),
    ("resident", {"grid": 5}),
    ("resident, steps 4, blocks 4", {"grid": 4, "steps": 4, "pull_blocks": 4}),
    ("resident, rows 512", {"grid": 5, "block_row": 512}),
    ("twice resident", {"grid": 10}),
    ("grid 40", {"grid": 40}),
    ("rounds 1", {"max_rounds": 1}),
    ("rounds 16", {"max_rounds": 16}),
    ("tile 4", {"tile": 4}),
    ("tile 16", {"tile": 16}),
    ("tile 16, steps 1", {"tile": 16, "steps": 1}),
    ("tile 32, steps 1", {"tile": 32, "steps": 1}),
    ("rows 256", {"block_row": 256}),
    ("rows 256, threads 128", {"block_row": 256, "threads": 128}),
    ("rows 512", {"block_row": 512}),
    ("rows 512, threads 128", {"block_row": 512, "threads": 128}),
    ("rows 2048", {"block_row": 2048}),
    ("threads 512", {"threads": 512}),
    ("threads 128", {"threads": 128}),
    ("block steps 2", {"block_steps": 2}),
    ("block steps 8", {"block_steps": 8}),
]
DETAILED = ("base", "push second", "always pull")


def main() -> int:
    """Measure the graphs that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", help="specs, such as rmat:22")
    parser.add_argument("--roots", type=int, default=1024)
    parser.add_argument("--backend", default="cuda")
    given = parser.parse_args()
    faults = 0
    with mg.connect(num_ranks=1, backend=given.backend) as cluster:
        for spec in given.graphs:
            with mg.read(spec, cluster=cluster) as g:
                faults += g._run(measured, (), given.roots)[0]
    return 1 if faults else 0


def measured(rank: Rank, graph: str, count: int) -> int:
    """Print a line for each variant, and a table for some; return how many failed."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    require_variant(MULTI_SOURCE, shard, rank.comm, LEVEL)
    roots = np.random.default_rng(3).choice(shard.partition.num_positions, count, replace=False).tolist()
    batches = [roots[k : k + BATCH_ROOTS] for k in range(0, count, BATCH_ROOTS)]

    def searching(loop: Callable) -> Callable[[list[int]], WideLevels]:
        return lambda some: loop(shard, rank.comm, some, Trace(rank.backend, rank.comm, shows=False))

    wide = searching(bfs_wide)
    edges = median_edges(shard, wide(batches[0]))
    wanted = hashed(shard, wide, batches)
    report("wide", rank, wide, batches, edges)
    details(shard, "wide", wide, batches[0])
    search = searching(bfs_bitmaps)
    faults = 0
    for name, sizes in VARIANTS:
        with varied(shard, sizes):
            try:
                found: Any = hashed(shard, search, batches)
            except Exception as error:  # such as registers that a launch lacks: the others are measured
                found = error
            if found != wanted:
                say(f"{name}: {found if isinstance(found, Exception) else 'LEVELS DIFFER'}")
                faults += 1
                continue
            report(name, rank, search, batches, edges)
            if name in DETAILED:
                details(shard, name, search, batches[0])
    report("wide", rank, wide, batches, edges)
    return faults


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def report(name: str, rank: Rank, search: Callable, batches: list[list[int]], edges: float) -> None:
    """Print the best and the median time of all batches."""
    seconds = timed(rank, search, batches)
    rates = [sum(map(len, batches)) * edges / s / 1e9 for s in (min(seconds), float(np.median(seconds)))]
    say(
        f"{name:24} best {1e3 * min(seconds):6.2f} ms {rates[0]:5.0f} GTEPS, "
        f"median {1e3 * float(np.median(seconds)):6.2f} ms {rates[1]:5.0f} GTEPS"
    )


def timed(rank: Rank, search: Callable, batches: list[list[int]]) -> list[float]:
    """Return the seconds of all batches, several times, when all is warm."""
    seconds = []
    for _ in range(REPEATS):
        rank.backend.synchronize()
        began = time.perf_counter()
        for batch in batches:
            search(batch)
        rank.backend.synchronize()
        seconds.append(time.perf_counter() - began)
    return seconds


def median_edges(shard: Shard, found: WideLevels) -> float:
    """Return the edges of the input, in the component of a typical root, as Graph500 counts them."""
    degrees = shard.backend.to_host(shard.degrees)
    unreached = unreached_of(LEVEL)
    reached = [shard.backend.to_host(found.levels(shard, root)) != unreached for root in (0, 5, 17)]
    return float(np.median([(degrees * one).sum() for one in reached])) / 2


def hashed(shard: Shard, search: Callable, batches: list[list[int]]) -> list[int]:
    """Return a hash of the levels of every root of all batches."""
    xp = shard.backend.xp
    # Any levels that differ at one vertex differ in their sum with odd factors, which is taken modulo 2**64.
    factors = xp.arange(shard.num_owned, dtype=np.int64) * np.int64(0x1E3779B97F4A7C15) | np.int64(1)
    sums: list[Any] = []
    for batch in batches:
        found = search(batch)
        sums.extend((found.levels(shard, root).astype(np.int64) * factors).sum() for root in range(len(batch)))
    return shard.backend.to_host(xp.stack(sums)).tolist()


@contextmanager
def varied(shard: Shard, sizes: dict[str, int]) -> Iterator[None]:
    """Compile the kernels with other sizes, and let the loop choose by them."""
    kernels = bitmaps_kernels.pull_bitmaps_long
    before = dict(vars(bitmaps_kernels.SIZES)), kernels.block, vars(multi_source_bitmaps).copy()
    names = {name: value for name, value in sizes.items() if name.isupper()}
    threads = sizes.get("threads", kernels.block)
    vars(bitmaps_kernels.SIZES).update({k: v for k, v in sizes.items() if k in before[0]})
    kernels.block = kernels.lanes = threads
    vars(multi_source_bitmaps).update(names)
    forget_kernels()
    backend: Any = shard.backend
    if backend.name == "cuda" and "grid" in sizes:
        usual = backend.grid
        most = sizes["grid"] * backend.multiprocessors
        # Before the method of its class.
        vars(backend)["grid"] = lambda kernel, items: (
            min(-(-items * 32 // kernel.block), most)
            if kernel is bitmaps_kernels.pull_bitmaps
            else usual(kernel, items)
        )
    try:
        yield
    finally:
        vars(backend).pop("grid", None)
        vars(bitmaps_kernels.SIZES).update(before[0])
        kernels.block = kernels.lanes = before[1]
        vars(multi_source_bitmaps).update({name: before[2][name] for name in names})
        forget_kernels()


def forget_kernels() -> None:
    """Let the next launch read the kernels' text again."""
    if "mgraph.backends.cuda" in sys.modules:
        cuda = sys.modules["mgraph.backends.cuda"]
        cuda._module.cache_clear()
        cuda._function.cache_clear()


def details(shard: Shard, name: str, search: Callable, batch: list[int]) -> None:
    """Print the microseconds of each kernel of a search, by events, and of what is between kernels."""
    backend = shard.backend
    if backend.name != "cuda":
        return
    launch = backend.launch
    marks: list[tuple[str, Any, Any]] = []

    def noted(kernel: Kernel, args: tuple) -> None:
        begin, end = (backend.xp.cuda.Event() for _ in range(2))
        begin.record()
        launch(kernel, args)
        end.record()
        marks.append((f"{kernel.name}[{args[1] - args[0]:,}]", begin, end))

    search(batch)
    backend.synchronize()
    began = backend.xp.cuda.Event()
    vars(backend)["launch"] = noted  # before the method of its class
    try:
        began.record()
        search(batch)
    finally:
        del vars(backend)["launch"]
    ended = backend.xp.cuda.Event()
    ended.record()
    ended.synchronize()
    elapsed = backend.xp.cuda.get_elapsed_time
    say(f"  {name}: {1e3 * elapsed(began, ended):.0f} us in all; before each kernel, and the kernel:")
    last = began
    for kernel, begin, end in marks:
        say(f"    {1e3 * elapsed(last, begin):6.0f} {1e3 * elapsed(begin, end):6.0f}  {kernel}")
        last = end


if __name__ == "__main__":
    sys.exit(main())
