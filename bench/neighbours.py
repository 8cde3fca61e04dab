"""Measure compressed adjacency: read all targets in 32, 24 and 16 bits.

    python bench/neighbours.py rmat24 uni24 ssca2-21

With 16 bits 128 arcs share a base of 32 bits; groups with targets too far apart stay in 32 bits. `read` only
reads: it counts the ids that differ from one id; `look up` also looks up each neighbor's tree, as a spanning forest
does. Graphs have the vertex order that mgraph chooses and, if their ids are scrambled, also that of the generator,
which is local. Compression is not timed. All widths must count the same.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import click
import cupy
import numpy as np
import record
from forest_parts import unscrambled
from run import source_of

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.shard.shard import Shard

CODE = (pathlib.Path(__file__).parent / "papers" / "neighbours.cu").read_text()
GROUP = 128
THREADS = 256
RUNS = 9
NO_BASE = 0xFFFFFFFF


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True, metavar="GRAPH...")
@click.option("--commit", help="The commit to record, if this is not a checkout.")
def main(graphs: tuple[str, ...], commit: str | None) -> None:
    with mg.connect(num_ranks=1, backend="cuda") as cluster:
        for name in graphs:
            source = source_of(name, "int")
            for edges, order in ((source, "auto"), (unscrambled(source), "natural")):
                if edges is None:
                    continue
                with Graph.from_source(edges, cluster=cluster, order=order) as g:
                    (rank,) = cluster._ranks  # in process, so its shard is accessible
                    named = g.info.order if edges is source else "local"
                    for facts in measure(rank.objects[g._key]):
                        facts = {"bench": "neighbours", "algorithm": "msf", "graph": name, "order": named} | facts
                        print({k: v for k, v in facts.items() if k != "bench"}, flush=True)
                        record.append("cuda", commit, facts)


def measure(shard: Shard) -> Iterator[dict]:
    """Yield the time of every width, with its bytes per arc."""
    ids = shard.rows.targets[: len(shard.rows.targets) // GROUP * GROUP]
    # A random half of the vertices is in one tree.
    trees = cupy.random.default_rng(1).integers(0, 2, shard.num_owned).astype(np.uint32)
    counts = {}
    for bits, (packed, bases, arc_bytes) in compressed(ids, shard.num_owned):
        for look_up in (False, True):
            options = (f"-DBITS={bits}", f"-DLOOK_UP={int(look_up)}")
            kernel = cupy.RawKernel(CODE, "read_neighbours", options=options)
            times = []
            outside = 0
            for _ in range(RUNS):
                found = cupy.zeros(1, np.uint64)
                begin = cupy.cuda.Event()
                end = cupy.cuda.Event()
                begin.record()
                blocks = 2048 // THREADS * cupy.cuda.Device().attributes["MultiProcessorCount"]
                kernel((blocks,), (THREADS,), (np.int64(len(ids)), ids, packed, bases, trees, np.uint32(1), found))
                end.record()
                end.synchronize()
                times.append(cupy.cuda.get_elapsed_time(begin, end))
                outside = int(found[0])
            assert counts.setdefault(look_up, outside) == outside, "the widths read different neighbors"
            phase = "look up" if look_up else "read"
            yield {"phase": phase, "bits": bits, "bytes_per_arc": arc_bytes, "arcs": len(ids), **record.spread(times)}
        del packed, bases


def compressed(ids: cupy.ndarray, num_vertices: int) -> Iterator[tuple[int, tuple]]:
    """Yield the targets in every possible width: words, bases, bytes per arc."""
    nothing = cupy.zeros(1, np.uint32)
    yield 32, (nothing, nothing, 4.0)
    if num_vertices <= 1 << 24:
        low_bytes = cupy.ascontiguousarray(ids.view(np.uint8).reshape(-1, 4)[:, :3])
        yield 24, (low_bytes.ravel().view(np.uint32), nothing, 3.0)
    groups = ids.reshape(-1, GROUP)
    bases = groups.min(axis=1)
    fits = groups.max(axis=1) - groups.min(axis=1) < 1 << 16
    packed = (groups - bases[:, None]).astype(np.uint16).ravel().view(np.uint32)
    bases[~fits] = NO_BASE
    share = float(fits.mean())
    yield 16, (packed, bases, round(2 * share + 4 * (1 - share) + 4 / GROUP, 3))


if __name__ == "__main__":
    main()
