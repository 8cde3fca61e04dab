"""Compare the two sorts of edges into blocks, on one rank that has the graph in rows.

    python bench/edge_blocks.py rmat20 --backend cpu

- `from rows`: the counting sort of `mgraph/shard/edge_blocks.py`. Rows are in order of starts, and any part of them can
  be listed again: each window is sorted by itself, a piece at a time.
- `by keys`: the sort of a compact build (`mgraph/ingest/fill.py`), fed with the same edges from the same rows. It reads
  all edges once for each pass, since its input may come in any order.

The blocks are equal. The lines have seconds, and on the CPU the most memory beside the blocks, in bytes an edge.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator

import click
import numpy as np
from run import source_of

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.cluster.base import Rank
from mgraph.ingest.fill import Filler, count_buckets, keys_of
from mgraph.ingest.keys import KeyLayout, key_layout, plan_passes
from mgraph.ingest.plan import COMPACT_PARTS
from mgraph.shard.batches import MIN_BATCH_ARCS, block_batch
from mgraph.shard.block_headers import choose_shape
from mgraph.shard.edge_blocks import _Share, build_blocks
from mgraph.shard.shard import Blocks, Shard
from mgraph.types import Array

STATE_BYTES = 4


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True, metavar="GRAPH...")
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), required=True)
@click.option("--runs", type=int, default=3, show_default=True)
def main(graphs: tuple[str, ...], backend: str, runs: int) -> None:
    with mg.connect(num_ranks=1, backend=backend) as cluster:
        for name in graphs:
            with Graph.from_source(source_of(name, "int"), cluster=cluster) as g:
                (lines,) = cluster.run(measure, g._key, runs)
            print(f"{name}:")
            for part, (seconds, extra) in lines.items():
                print(f"  {part:10} {seconds:8.3f} s {extra:6.1f} bytes an edge beside the blocks")


def measure(rank: Rank, key: str, runs: int) -> dict[str, tuple[float, float]]:
    """Return the seconds and the extra bytes an edge of both sorts; their blocks must be equal."""
    shard: Shard = rank.objects[key]
    shape = choose_shape(rank.backend, STATE_BYTES)
    sorts = {
        "from rows": lambda: build_blocks(shard, rank.comm, shape),
        "by keys": lambda: blocks_by_keys(shard, rank),
    }
    found: dict[str, Blocks] = {}
    lines = {}
    for part, sort in sorts.items():
        found[part] = sort()  # compiles kernels
        seconds = min(timed(rank, sort) for _ in range(runs))
        tracemalloc.start()
        del found[part]
        blocks = found[part] = sort()
        held, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        lines[part] = seconds, (peak - held) / blocks.num_edges
    rows, keys = ((*b.edges, b.weights) for b in found.values())
    for one, other in zip(rows, keys, strict=True):
        assert np.array_equal(rank.backend.to_host(one), rank.backend.to_host(other))
    return lines


def timed(rank: Rank, sort: Callable[[], Blocks]) -> float:
    """Return the seconds of one sort."""
    begun = time.perf_counter()
    sort()
    rank.backend.synchronize()
    return time.perf_counter() - begun


class _Keys:
    """The keys of a rank's edges, listed from the rows a piece at a time, at every iteration again."""

    def __init__(self, shard: Shard, rank: Rank, layout: KeyLayout) -> None:
        self.shard = shard
        self.layout = layout
        self.share = _Share(shard, rank.comm)

    def __iter__(self) -> Iterator[tuple[Array, Array | None]]:
        size = block_batch(self.share.num_edges, self.shard.backend.limits)
        for columns in self.share.starting_in(0, self.shard.partition.num_states, size):
            weights = columns[2] if len(columns) > 2 else None
            yield keys_of(self.shard.backend, self.layout, *columns[:2]), weights


def blocks_by_keys(shard: Shard, rank: Rank) -> Blocks:
    """Sort the edges as a compact build does, with a buffer of at least an eighth of them."""
    backend = rank.backend
    num_states = shard.partition.num_states
    num_edges = shard.info.num_edges
    layout = key_layout(choose_shape(backend, STATE_BYTES), num_states, range(num_states), num_edges)
    edges = _Keys(shard, rank, layout)
    ends = count_buckets(backend, layout, edges)
    batch = max(num_edges // COMPACT_PARTS, MIN_BATCH_ARCS)
    buffer = num_edges // 8
    while (passes := plan_passes(ends, buffer, batch)) is None:
        buffer *= 2
    weights = shard.rows.weights
    filler = Filler(backend, layout, ends, None if weights is None else weights.dtype, passes, batch)
    for todo in passes:
        filler.fill(todo, edges)
    return filler.finish()


if __name__ == "__main__":
    main()
