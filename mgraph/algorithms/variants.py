"""The table of variants: which loop runs, when, what it needs, what it takes.

Of an algorithm the first variant that applies runs. Each is the `VARIANT` at the end of the file that has the loop.
Ranks, the memory plan, benchmarks and the documentation read this table: `python -m mgraph.algorithms.variants >
docs/variants.md` writes it down.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from mgraph.algorithms.bfs.host import VARIANT as BFS_HOST
from mgraph.algorithms.bfs.hybrid import VARIANT as BFS_HYBRID
from mgraph.algorithms.bfs.level_counts import BITMAPS as BFS_LEVEL_COUNTS_BITMAPS
from mgraph.algorithms.bfs.level_counts import VARIANT as BFS_LEVEL_COUNTS
from mgraph.algorithms.bfs.multi_source import VARIANT as BFS_MULTI_SOURCE
from mgraph.algorithms.bfs.multi_source_bitmaps import VARIANT as BFS_MULTI_SOURCE_BITMAPS
from mgraph.algorithms.bfs.persistent import VARIANT as BFS_PERSISTENT
from mgraph.algorithms.bfs.persistent_multi_gpu import VARIANT as BFS_PERSISTENT_MULTI_GPU
from mgraph.algorithms.bfs.step import VARIANT as BFS_STEP
from mgraph.algorithms.bfs.sweep import VARIANT as BFS_SWEEP
from mgraph.algorithms.bridges.cover import VARIANT as COVER
from mgraph.algorithms.common.streamed_search import BFS as BFS_STREAMED
from mgraph.algorithms.common.streamed_search import SSSP as SSSP_STREAMED
from mgraph.algorithms.components.afforest import AROUND_GIANT
from mgraph.algorithms.components.afforest import VARIANT as AFFOREST
from mgraph.algorithms.components.blocks import VARIANT as COMPONENTS_BLOCKS
from mgraph.algorithms.components.serial import VARIANT as COMPONENTS_SERIAL
from mgraph.algorithms.core_numbers.peeling import VARIANT as PEELING
from mgraph.algorithms.core_numbers.serial import VARIANT as CORE_NUMBERS_SERIAL
from mgraph.algorithms.distance_matrix.multi_source import BITMAPS as MATRIX_MULTI_SOURCE_BITMAPS
from mgraph.algorithms.distance_matrix.multi_source import VARIANT as MATRIX_MULTI_SOURCE
from mgraph.algorithms.distance_matrix.near_far import VARIANT as MATRIX_NEAR_FAR
from mgraph.algorithms.distance_matrix.one_by_one import VARIANT as MATRIX_ONE_BY_ONE
from mgraph.algorithms.distance_matrix.per_block import VARIANT as MATRIX_PER_BLOCK
from mgraph.algorithms.distance_matrix.per_core import VARIANT as MATRIX_PER_CORE
from mgraph.algorithms.hits.pull import VARIANT as HITS_PULL
from mgraph.algorithms.hits.sweep import VARIANT as HITS_SWEEP
from mgraph.algorithms.pagerank.bins import VARIANT as PAGERANK_BINS
from mgraph.algorithms.pagerank.pull import VARIANT as PAGERANK_PULL
from mgraph.algorithms.pagerank.sweep import VARIANT as PAGERANK_SWEEP
from mgraph.algorithms.predecessors.rows import VARIANT as PREDECESSORS_ROWS
from mgraph.algorithms.predecessors.sweep import VARIANT as PREDECESSORS_SWEEP
from mgraph.algorithms.spanning_forest.blocks import VARIANT as FOREST_BLOCKS
from mgraph.algorithms.spanning_forest.filter_boruvka import PERSISTENT as FOREST_PERSISTENT
from mgraph.algorithms.spanning_forest.filter_boruvka import VARIANT as FOREST_BORUVKA
from mgraph.algorithms.spanning_forest.first_edges import VARIANT as FIRST_EDGES
from mgraph.algorithms.sssp.delta_stepping import VARIANT as SSSP_DELTA_STEPPING
from mgraph.algorithms.sssp.host import VARIANT as SSSP_HOST
from mgraph.algorithms.sssp.hybrid import VARIANT as SSSP_HYBRID
from mgraph.algorithms.sssp.near_far import VARIANT as SSSP_NEAR_FAR
from mgraph.algorithms.sssp.persistent import VARIANT as SSSP_PERSISTENT
from mgraph.algorithms.sssp.persistent_multi_gpu import VARIANT as SSSP_PERSISTENT_MULTI_GPU
from mgraph.algorithms.sssp.sweep import VARIANT as SSSP_SWEEP
from mgraph.algorithms.steiner_tree.terminal_tree import VARIANT as TERMINAL_TREE
from mgraph.algorithms.strong_components.coloring import VARIANT as COLORING
from mgraph.algorithms.strong_components.depth_first import VARIANT as DEPTH_FIRST
from mgraph.algorithms.variant import METHODS, GraphSizes, Variant
from mgraph.formatting import readable_bytes
from mgraph.partition import Partition

BFS = (
    BFS_PERSISTENT_MULTI_GPU,  # GPUs with access to each other's memory
    BFS_HOST,  # one GPU, and a graph that the CPU searches sooner
    BFS_PERSISTENT,  # one GPU
    BFS_STREAMED,  # the layout host
    BFS_SWEEP,  # the compact layout, or on request
    BFS_HYBRID,  # one CPU rank
    BFS_STEP,  # all others
)
SSSP = (
    SSSP_PERSISTENT_MULTI_GPU,  # GPUs with access to each other's memory
    SSSP_HOST,  # one GPU, and a graph that the CPU searches sooner
    SSSP_PERSISTENT,  # one GPU
    SSSP_STREAMED,  # the layout host
    SSSP_SWEEP,  # the compact layout, or on request
    SSSP_HYBRID,  # one CPU rank
    SSSP_DELTA_STEPPING,  # one rank without persistent kernels, if sorting rows by weight pays
    SSSP_NEAR_FAR,  # all others
)
MULTI_SOURCE = (BFS_MULTI_SOURCE_BITMAPS, BFS_MULTI_SOURCE)
LEVEL_COUNTS = (BFS_LEVEL_COUNTS_BITMAPS, BFS_LEVEL_COUNTS)
DISTANCE_MATRIX = (
    MATRIX_PER_BLOCK,  # one GPU and a deep graph
    MATRIX_PER_CORE,  # one CPU rank, by hops on a deep graph only
    MATRIX_MULTI_SOURCE_BITMAPS,  # one GPU, by hops
    MATRIX_MULTI_SOURCE,  # by hops
    MATRIX_NEAR_FAR,  # several ranks and a deep graph, by weights; not by peer memory
    MATRIX_ONE_BY_ONE,  # all others
)
PREDECESSORS = (PREDECESSORS_SWEEP, PREDECESSORS_ROWS)
COMPONENTS = (AROUND_GIANT, COMPONENTS_SERIAL, COMPONENTS_BLOCKS, AFFOREST)
STRONG_COMPONENTS = (DEPTH_FIRST, COLORING)
CORE_NUMBERS = (CORE_NUMBERS_SERIAL, PEELING)
BRIDGES = (COVER,)
STEINER_TREE = (TERMINAL_TREE,)
SPANNING_FOREST = (FOREST_PERSISTENT, FIRST_EDGES, FOREST_BLOCKS, FOREST_BORUVKA)
PAGERANK = (PAGERANK_SWEEP, PAGERANK_BINS, PAGERANK_PULL)
HITS = (HITS_SWEEP, HITS_PULL)

TABLE: dict[str, tuple[Variant, ...]] = {
    "bfs": BFS,
    "sssp": SSSP,
    "bfs_together": MULTI_SOURCE,
    "distance_matrix": DISTANCE_MATRIX,
    "closeness": LEVEL_COUNTS,
    "predecessors": PREDECESSORS,
    "components": COMPONENTS,
    "strong_components": STRONG_COMPONENTS,
    "core_numbers": CORE_NUMBERS,
    "bridges": BRIDGES,
    "steiner_tree": STEINER_TREE,
    "spanning_forest": SPANNING_FOREST,
    "pagerank": PAGERANK,
    "hits": HITS,
}


def checkpointing_variants(algorithm: str) -> tuple[Variant, ...]:
    """Return the variants of an algorithm that keep checkpoints."""
    return tuple(variant for variant in TABLE[algorithm] if variant.keeps_checkpoints)


def methods_of(algorithm: str) -> tuple[str, ...]:
    """Return what `method` may be for an algorithm: the general words, then the short names of its variants."""
    return *METHODS, *(variant.short_name for variant in TABLE[algorithm] if variant.short_name not in METHODS)


def markdown() -> str:
    """Return the table as docs/variants.md has it."""
    return "\n".join(_lines()) + "\n"


HEAD = """# Variants: which loop runs

Written by `python -m mgraph.algorithms.variants > docs/variants.md`, from the table by which the ranks choose.

Of an algorithm the first variant that applies runs. `method` of `mg.bfs` and `mg.sssp` (`--method`) restricts the
choice: `auto` allows every variant, `frontier` all but the sweeps, a short name (after the dot, such as `step` or
`persistent`) that variant alone; one that does not apply is refused. The name of the variant that ran is in
`.stats.variant`, and `--trace` prints it.

```bash
mgraph bfs rmat:16 --source 1 --method step --trace
```

A call with `checkpoint=` runs the first variant that applies and keeps checkpoints.

What a variant needs is made once for a graph, in order. If a rank cannot make it (no access to peer memory, no room),
no rank uses it, and the next variant that applies runs. What is in parentheses is made only where there is room for it.

"takes" is an example of the bytes on each rank in addition to the graph, the result and the needs, but including
first_neighbors: for 2^26 vertices, half of them with edges, and 2^30 edges with weights of 8 bits; on 4 ranks where it
exchanges through peer buffers, else on one. Predecessors use memory that the search has freed. A host copy is as large
as the rows, in the memory of the host."""


def _example(variant: Variant) -> GraphSizes:
    num_ranks = 4 if variant.has_peer_buffers else 1
    return GraphSizes(1 << 26, 1 << 30, False, Partition(1 << 25, num_ranks, True), np.dtype(np.uint8), 255)


def _lines() -> Iterator[str]:
    yield HEAD
    for algorithm, variants in TABLE.items():
        yield ""
        yield f"## {algorithm}"
        yield ""
        yield "| variant | runs | needs | takes | checkpoints | loop |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for variant in variants:
            needs = [need.name for need in variant.needs] + [f"({want.name})" for want in variant.wants]
            takes = readable_bytes(variant.bytes(_example(variant)))
            keeps = "yes" if variant.keeps_checkpoints else "no"
            yield f"| {variant.name} | {variant.when} | {', '.join(needs)} | {takes} | {keeps} | `{loop_of(variant)}` |"


def loop_of(variant: Variant) -> str:
    """Return the path of the file that has a variant's loop."""
    loop = variant.loop.func if isinstance(variant.loop, partial) else variant.loop
    return f"{loop.__module__.replace('.', '/')}.py"


if __name__ == "__main__":
    print(markdown(), end="")
