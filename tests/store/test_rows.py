"""A load is planned before it allocates, and holds no more than the shard and its staging."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from builds import BACKEND
from on_ranks import run_on_ranks
from stores import build_shards, load_rank, load_shards, save_shards
from zoo import ZOO, random_case

from mgraph.backends.cpu import CpuBackend
from mgraph.comm.threads import open_threads
from mgraph.errors import InputError, WouldNotFit
from mgraph.generate.rmat import Rmat
from mgraph.planning.memory import plan_graph
from mgraph.store import manifest
from mgraph.store.files import staging_bytes
from mgraph.store.manifest import StoredGraph


@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("layout", ["rows", "compact"])
def test_load_that_would_not_fit_is_refused(tmp_path, monkeypatch, layout, num_ranks):
    store = save_shards(build_shards(random_case(1), 1, layout=layout), tmp_path / "store")
    backend = CpuBackend(1)
    backend.free_bytes = lambda: 1000
    read = []
    monkeypatch.setattr("mgraph.store.vertex_tables.read_array", lambda *args: read.append(args))
    with pytest.raises(WouldNotFit, match=r"loading graph takes .* more on each rank, and 1000 B is free: use more"):
        run_on_ranks(lambda _, comm: load_rank(store, backend, comm), [None] * num_ranks)
    assert not read


def test_small_graph_needs_little_memory_on_any_number_of_threads(tmp_path):
    store = save_shards(build_shards(ZOO["grid"], 1), tmp_path / "store")
    backend = CpuBackend(64)
    backend.free_bytes = lambda: 1 << 18
    assert run_on_ranks(lambda _, comm: load_rank(store, backend, comm), [None])[0].info == store.info


def test_arcs_are_counted_before_they_are_allocated(tmp_path):
    store = save_shards(build_shards(ZOO["complete"], 1), tmp_path / "store")
    free = iter([1 << 30, 100])
    backend = CpuBackend(1)
    backend.free_bytes = lambda: next(free, 100)
    with pytest.raises(WouldNotFit, match="and 100 B is free"):
        run_on_ranks(lambda _, comm: load_rank(store, backend, comm), [None])


def test_lengths_that_contradict_the_arcs_are_refused(tmp_path):
    store = save_shards(build_shards(ZOO["path"], 1, "natural"), tmp_path / "store")
    # Lengths with right checksums: one row is shorter, and no row longer.
    shorter = manifest.StoredArray(7, store.parts[0].arrays["lengths"].checksums.copy())
    data = bytearray((store.path / "lengths-00000.bin").read_bytes())
    data[0] ^= 1
    (store.path / "lengths-00000.bin").write_bytes(data)
    shorter.checksums[0] = __import__("zlib").crc32(bytes(data))
    part = manifest.StoredPart({**store.parts[0].arrays, "lengths": shorter}, store.parts[0].cuts, None)
    wrong = StoredGraph(store.path, store.name, store.info, store.partition, store.dtypes, [part])
    with pytest.raises(InputError, match="the lengths of its rows are not those of 12 arcs"):
        load_shards(wrong, 1)


@pytest.mark.parametrize("order", ["natural", "degree"])
def test_load_holds_the_shard_and_staging_alone(tmp_path, order):
    store = save_shards(build_shards(Rmat(16), 1, order), tmp_path / "store")
    backend = CpuBackend(1)
    load_shards(store, 1)
    (comm,) = open_threads(1)
    tracemalloc.start()
    shard = load_rank(store, backend, comm)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    lengths = 4 * shard.num_owned
    assert peak < shard.nbytes + lengths + staging_bytes(store, backend)
    assert json.loads((store.path / "mgraph.json").read_bytes())["graph"]["num_arcs"] == len(shard.rows.targets)


def test_loaded_rows_hold_no_second_copy(tmp_path):
    store = save_shards(build_shards(ZOO["grid"], 1, "natural"), tmp_path / "store")
    (shard,) = load_shards(store, 1)
    assert shard.rows.targets.base is None
    assert shard.nbytes == sum(a.nbytes for a in (shard.rows.indptr, shard.rows.targets, shard.rows.weights))
    assert shard.backend is BACKEND


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_plan_of_a_saved_graph_counts_the_load_and_no_build(tmp_path, num_ranks):
    store = save_shards(build_shards(Rmat(12), 1), tmp_path / "rows")
    plan = plan_graph(store, num_ranks, "cpu", 1 << 30)
    assert "while it is built" not in plan.parts
    shards = load_shards(store, num_ranks)
    assert plan.parts["graph"] == pytest.approx(max(shard.nbytes for shard in shards), rel=0.05)
    assert plan.parts["while it is loaded"] > plan.parts["graph"]
    compact = save_shards(build_shards(Rmat(12), 1, layout="compact"), tmp_path / "compact")
    assert plan_graph(compact, num_ranks, "cpu", 1 << 30).layout == "compact"
