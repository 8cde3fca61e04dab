"""Levels from many roots on one GPU: 256 roots a search beside 64, in GTEPS of all roots.

    python bench/multi_source_gpu.py rmat:20 rmat:22
    python bench/multi_source_gpu.py rmat:22 --vary steps=4,pull_blocks=4 --vary grid=10

The levels of every root are compared with those of its own search by mg.bfs; a difference ends the run. Then it prints
the least and the median milliseconds of all roots, with the edges that are reached from them, as Graph500 counts them,
in the least time; and the supersteps of one search. --vary measures the 256 also with other sizes of their kernels
(those of SIZES), with other `threads` for a long row, or with `grid` blocks a multiprocessor for the short ones.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import record

import mgraph as mg
from mgraph.algorithms.bfs.multi_source import BATCH_ROOTS, MAX_ROOTS, MultiSourceLevels, bfs_together
from mgraph.algorithms.bfs.multi_source_bitmaps import BitmapLevels, bfs_bitmaps
from mgraph.algorithms.bfs.multi_source_bitmaps_kernels import SIZES, pull_bitmaps, pull_bitmaps_long
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.run_variant import prepare, search
from mgraph.algorithms.variant import TraversalSpec, require_variant
from mgraph.algorithms.variants import MULTI_SOURCE
from mgraph.api.graph500 import random_roots
from mgraph.cluster.base import Rank
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import positions_of
from mgraph.types import LEVEL, unreached_of

Found = MultiSourceLevels | BitmapLevels
SEED = 3
NAMES = ("block_row", "tile", "steps", "block_steps", "max_rounds", "pull_blocks", "threads", "grid")


def as_sizes(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> list[dict[str, int]]:
    """Return the sizes of each --vary by name."""
    varied = []
    for one in given:
        pairs = [pair.partition("=") for pair in one.split(",")]
        if wrong := [name for name, _, value in pairs if name not in NAMES or not value.isdecimal()]:
            raise click.BadParameter(f"{wrong[0]}: give NAME=NUMBER, with a name of {', '.join(NAMES)}")
        varied.append({name: int(value) for name, _, value in pairs})
    return varied


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True)
@click.option("--roots", type=click.IntRange(1), default=1024, show_default=True)
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), default="cuda", show_default=True)
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True)
@click.option("--vary", multiple=True, callback=as_sizes, help="NAME=NUMBER,...: sizes to measure also.")
@click.option("--record", "is_recorded", is_flag=True, help="Append to bench/results.")
@click.option("--commit", help="The commit to record, if this is not a checkout.")
def main(
    graphs: tuple[str, ...],
    roots: int,
    backend: str,
    repeats: int,
    vary: list[dict[str, int]],
    is_recorded: bool,
    commit: str | None,
) -> None:
    for name in graphs:
        with mg.connect(num_ranks=1, backend=backend) as cluster, mg.read(name, cluster=cluster) as g:
            users = random_roots(g, roots, SEED)
            ways: list[tuple[int, dict[str, int]]] = [(MAX_ROOTS, {}), (BATCH_ROOTS, {})]
            for width, sizes in ways + [(BATCH_ROOTS, sizes) for sizes in vary]:
                facts, steps = g._run(measured, (), users, width, sizes, repeats)[0]
                varied = "".join(f", {size} {value}" for size, value in sizes.items())
                times = "{min_ms:.2f} ms, median {median_ms:.2f} ms, {gteps:.0f} GTEPS".format(**facts)
                click.echo(f"{g.name}, {width} roots a search{varied}: {times}")
                for step in () if sizes else steps:
                    click.echo("  {method} front {frontier:,} arcs {arcs:,} {microseconds} us".format(**step))
                if is_recorded:
                    head = {"bench": "multi_source_gpu", "graph": g.name, "arcs": g.info.num_arcs, "roots": len(users)}
                    record.append(backend, commit, head | {"width": width, "sizes": sizes, "validated": True} | facts)


def measured(
    rank: Rank, graph: str, users: list[int], width: int, sizes: dict[str, int], repeats: int
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Return the times and the rate of the levels from all roots, and the supersteps of one search."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    require_variant(MULTI_SOURCE, shard, rank.comm, LEVEL)
    positions = positions_of(shard, rank.comm, users)
    batches = [positions[first : first + width] for first in range(0, len(positions), width)]
    loop: Callable[..., Found] = bfs_bitmaps if width == BATCH_ROOTS else bfs_together

    def searched(batch: list[int]) -> tuple[Found, Trace]:
        trace = Trace(rank.backend, rank.comm, shows=False)
        return loop(shard, rank.comm, batch, trace), trace

    with resized(rank.backend, sizes):
        edges = sum(
            compared(rank, shard, user, found.levels(shard, root))
            for first, found in ((width * i, searched(batch)[0]) for i, batch in enumerate(batches))
            for root, user in enumerate(users[first : first + width])
        )
        milliseconds = [timed(rank, searched, batches) for _ in range(repeats)]
        _, trace = searched(batches[0])
    return record.spread(milliseconds) | {"gteps": round(edges / min(milliseconds) / 1e6, 1)}, trace.supersteps


def compared(rank: Rank, shard: Shard, user: int, levels: Any) -> float:
    """Compare the levels of a root with those of its own search; return the edges that are reached."""
    spec = TraversalSpec("bfs", "auto", (user,), LEVEL, predecessors=False)
    trace = Trace(rank.backend, rank.comm, shows=False)
    own = search(prepare(shard, rank.comm, spec), shard, rank.comm, spec, trace).distances
    is_reached = own != unreached_of(own.dtype)
    if not bool((levels == rank.backend.xp.where(is_reached, own.astype(LEVEL), unreached_of(LEVEL))).all()):
        raise ValueError(f"the levels from {user} differ from those of its own search")
    return float(shard.degrees[is_reached].sum()) / 2


def timed(rank: Rank, searched: Callable, batches: list[list[int]]) -> float:
    """Return the milliseconds of all batches."""
    rank.backend.synchronize()
    began = time.perf_counter()
    for batch in batches:
        searched(batch)
    rank.backend.synchronize()
    return 1e3 * (time.perf_counter() - began)


@contextmanager
def resized(backend: Any, sizes: dict[str, int]) -> Iterator[None]:
    """Compile the kernels of 256 roots with other sizes."""
    kernel = pull_bitmaps_long
    before = dict(vars(SIZES)), kernel.block, kernel.lanes
    vars(SIZES).update({name: value for name, value in sizes.items() if name in before[0]})
    if "threads" in sizes:
        kernel.block = kernel.lanes = sizes["threads"]
    if "grid" in sizes:
        usual = backend.grid
        most = sizes["grid"] * backend.multiprocessors
        # Before the method of its class.
        vars(backend)["grid"] = lambda of, items: (
            min(-(-items * of.lanes // of.block), most) if of is pull_bitmaps else usual(of, items)
        )
    forget_kernels()
    try:
        yield
    finally:
        vars(backend).pop("grid", None)
        vars(SIZES).update(before[0])
        kernel.block, kernel.lanes = before[1:]
        forget_kernels()


def forget_kernels() -> None:
    """Let the next launch read the kernels' text again."""
    if cuda := sys.modules.get("mgraph.backends.cuda"):
        cuda._module.cache_clear()
        cuda._function.cache_clear()


if __name__ == "__main__":
    main()
