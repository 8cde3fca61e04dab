"""Save shards to a folder and load them, without a cluster."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import numpy as np
from builds import BACKEND, CaseEdges
from on_ranks import run_on_ranks

from mgraph.ingest.build import build
from mgraph.ingest.host_plan import InUse
from mgraph.shard.shard import Blocks, Rows, Shard
from mgraph.store.load import load_shard
from mgraph.store.manifest import MANIFEST, StoredGraph, manifest_text, open_store
from mgraph.store.save import save_shard


def build_shards(case, num_ranks, order="degree", layout="rows", backend=BACKEND) -> list[Shard]:
    """Return the shards of a build of a case, or of any edge source."""
    source = CaseEdges(case) if hasattr(case, "sources") else case
    program = lambda _, comm: build(source, backend, comm, order=order, layout=layout)  # noqa: E731
    return run_on_ranks(program, [None] * num_ranks)


def save_shards(shards: Sequence[Shard], folder: pathlib.Path, name: str = "graph") -> StoredGraph:
    """Save all shards of a graph to a new folder; return what opening it gives."""
    folder.mkdir(parents=True)
    saved = [save_shard(shard, folder) for shard in shards]
    parts = [part for part, _ in saved]
    text = manifest_text(name, shards[0].info, saved[0][1], parts)
    (folder / MANIFEST).write_bytes(text)
    return open_store(folder)


def load_rank(store: StoredGraph, backend, comm, layout="auto") -> Shard:
    """Load a rank's part of a saved graph on which nothing runs."""
    return load_shard(store, backend, comm, layout, lambda survey, layout: InUse(0, 0))


def load_shards(store: StoredGraph, num_ranks: int, backend=BACKEND, layout="auto") -> list[Shard]:
    """Load a saved graph on this many ranks."""
    return run_on_ranks(lambda _, comm: load_rank(store, backend, comm, layout), [None] * num_ranks)


def arrays_of(shard: Shard) -> dict[str, np.ndarray | None]:
    """Return all arrays of a shard, by name, in host memory."""
    arrays = {name: getattr(shard, name) for name in ("user_of_local", "position_of_user", "stored_degrees")}
    parts: list[tuple[str, Rows | Blocks]] = [(f"blocks {width}", blocks) for width, blocks in shard.blocks.items()]
    if shard.stored_rows is not None:
        parts.append(("rows", shard.stored_rows))
    for part, value in parts:
        arrays |= {f"{part} {name}": array for name, array in vars(value).items() if hasattr(array, "dtype")}
    return {name: None if array is None else shard.backend.to_host(array) for name, array in arrays.items()}


def assert_same_shards(shards: Sequence[Shard], expected: Sequence[Shard]) -> None:
    """Compare every array of the shards to the bit, and their facts; sums of weights differ in their last bits."""
    assert len(shards) == len(expected)
    for shard, wanted in zip(shards, expected, strict=True):
        assert (shard.rank, shard.partition) == (wanted.rank, wanted.partition)
        assert shard.blocks.keys() == wanted.blocks.keys()
        assert {**vars(shard.info), "sum_weights": 0} == {**vars(wanted.info), "sum_weights": 0}
        np.testing.assert_allclose(shard.info.sum_weights, wanted.info.sum_weights, rtol=1e-12)
        found = arrays_of(shard)
        other = arrays_of(wanted)
        if not wanted.has_rows and wanted.position_of_user is not None:
            # Any position from num_positions on says that a vertex is isolated; builds differ in which.
            for arrays in (found, other):
                last = arrays["position_of_user"].dtype.type(wanted.partition.num_positions)
                arrays["position_of_user"] = np.minimum(arrays["position_of_user"], last)
        assert found.keys() == other.keys()
        for name, array in found.items():
            assert (array is None) == (other[name] is None), name
            if array is not None:
                assert array.dtype == other[name].dtype, name
                np.testing.assert_array_equal(array.view(np.uint8), other[name].view(np.uint8), err_msg=name)
