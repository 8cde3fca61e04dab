"""Row buckets give the rows that RowsBuilder makes, for any buckets, threads and ranks."""

from __future__ import annotations

import numpy as np
import pytest
from on_ranks import run_on_ranks

from mgraph.backends.cpu import CpuBackend
from mgraph.comm.threads import open_threads
from mgraph.partition import Partition
from mgraph.shard import bucketed_rows
from mgraph.shard.bucketed_rows import BucketedRows
from mgraph.shard.rows import RowsBuilder


def random_arcs(num_positions, num_arcs, dtype, seed=1):
    """Return skewed arcs with many parallel ones."""
    random = np.random.default_rng(seed)
    ends = (num_positions * random.random((2, num_arcs)) ** 3).astype(np.uint32)
    weights = None if dtype is None else random.integers(0, 100, num_arcs).astype(dtype)
    return *ends, weights


def build_rows(kind, comm, partition, arcs, threads=1):
    """Return a rank's rows of arcs that all ranks give in equal parts."""
    sources, targets, weights = arcs
    lengths = np.bincount(sources, minlength=partition.num_positions).astype(np.uint32)
    positions = np.arange(partition.num_positions)
    own = lengths[partition.owner(positions) == comm.rank]
    builder = kind(CpuBackend(threads), comm, partition, own, None if weights is None else weights.dtype)
    part = slice(len(sources) * comm.rank // comm.size, len(sources) * (comm.rank + 1) // comm.size)
    builder.add(sources[part], targets[part], None if weights is None else weights[part])
    return builder.finish()


def check_equal(found, expected):
    rows, dropped = found
    others, of_others = expected
    assert dropped == of_others
    np.testing.assert_array_equal(rows.indptr, others.indptr)
    np.testing.assert_array_equal(rows.targets, others.targets)
    if others.weights is not None:
        np.testing.assert_array_equal(rows.weights, others.weights)
        assert rows.weights.dtype == others.weights.dtype


@pytest.fixture
def small_buckets(monkeypatch):
    for name, value in (
        ("BUCKET_ARCS", 50),
        ("MIN_BUCKET_ARCS", 50),
        ("MAX_BUCKETS", 300),
        ("MAX_ROWS", 20),
        ("WHOLE_ROWS", 8),
    ):
        monkeypatch.setattr(bucketed_rows, name, value)
    monkeypatch.setattr(bucketed_rows, "RANGE_EDGES", 100)


@pytest.mark.parametrize("dtype", [None, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_equal_those_without_buckets(dtype, threads, small_buckets):
    (comm,) = open_threads(1)
    partition = Partition(150, 1, cyclic=True)
    arcs = random_arcs(150, 5000, dtype)
    found = build_rows(BucketedRows, comm, partition, arcs, threads)
    check_equal(found, build_rows(RowsBuilder, comm, partition, arcs))


@pytest.mark.parametrize("cyclic", [True, False])
def test_rows_of_several_ranks_equal_those_without_buckets(cyclic, small_buckets):
    partition = Partition(200, 3, cyclic)
    arcs = random_arcs(200, 3000, np.float32)

    def both(_, comm):
        return [build_rows(kind, comm, partition, arcs) for kind in (BucketedRows, RowsBuilder)]

    for found, expected in run_on_ranks(both, [None] * 3):
        check_equal(found, expected)


@pytest.mark.parametrize("num_rows", [0, 1, 7, 100, (1 << 16) - 1, (1 << 16) + 1, 200_000])
def test_rows_of_any_number_have_buckets(num_rows):
    (comm,) = open_threads(1)
    partition = Partition(num_rows, 1, cyclic=False)
    arcs = random_arcs(num_rows, 1000 if num_rows else 0, np.uint16)
    check_equal(*(build_rows(kind, comm, partition, arcs) for kind in (BucketedRows, RowsBuilder)))


def test_keys_without_bits_for_indices_are_sorted_too(monkeypatch):
    (comm,) = open_threads(1)
    partition = Partition(100, 1, cyclic=False)
    arcs = random_arcs(100, 2000, np.int32)
    expected = build_rows(RowsBuilder, comm, partition, arcs)
    monkeypatch.setattr(BucketedRows, "_target_bits", 56)
    check_equal(build_rows(BucketedRows, comm, partition, arcs), expected)


@pytest.mark.parametrize("directed", [True, False])
def test_edges_between_user_ids_are_translated_and_loops_dropped(directed, small_buckets):
    (comm,) = open_threads(1)
    partition = Partition(100, 1, cyclic=True)
    sources, targets, weights = random_arcs(100, 2000, np.uint8)
    table = np.random.default_rng(2).permutation(100).astype(np.uint32)
    kept = sources != targets
    arcs = table[sources[kept]], table[targets[kept]], weights[kept]
    if not directed:
        arcs = tuple(np.concatenate([arcs[one], arcs[other]]) for one, other in ((0, 1), (1, 0), (2, 2)))
    lengths = np.bincount(arcs[0], minlength=100).astype(np.uint32)
    builder = BucketedRows(CpuBackend(1), comm, partition, lengths, weights.dtype)
    builder.add_edges(sources, targets, weights, table, directed)
    check_equal(builder.finish(), build_rows(RowsBuilder, comm, partition, arcs))
