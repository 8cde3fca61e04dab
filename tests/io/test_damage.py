"""Files with changed or missing bytes: read or refused with InputError, never another exception."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys

import numpy as np
import pytest
from dask_processes import ENVIRONMENT
from edge_checks import BACKEND, read_edges, whole

from mgraph.errors import InputError, MgraphError
from mgraph.generate.rmat import Rmat
from mgraph.io.formats import read_source
from mgraph.io.write import write_edges

MTX = "%%MatrixMarket matrix coordinate real general\n9 9 4\n1 2 0.5\n3 4 1e3\n9 9 -2\n2 1 7\n"
DAMAGES = 500


def damaged(data: bytes, seed: int) -> bytes:
    """Return the bytes with a few changed, mostly at the beginning, or truncated."""
    random = np.random.default_rng(seed)
    if seed % 5 == 0:
        return data[: random.integers(len(data))]
    changed = bytearray(data)
    for _ in range(random.integers(1, 4)):
        changed[random.integers([len(data), min(len(data), 400)][seed % 2])] = random.integers(256)
    return bytes(changed)


def whole_bytes(path, suffix):
    if suffix == ".mtx":
        return MTX.encode()
    if suffix == ".wel.gz":
        return gzip.compress(b"".join(b"%d %d %d\n" % (v, v * 7 % 64, v) for v in range(64)))
    write_edges(path, Rmat(5))
    return path.read_bytes()


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("suffix", [".npz", ".csr", ".csv", ".parquet", ".mtx", ".wel.gz"])
def test_damaged_file_is_refused_or_reads_the_same(tmp_path, suffix):
    path = tmp_path / f"graph{suffix}"
    data = whole_bytes(path, suffix)
    read = 0
    refused = 0
    for seed in range(DAMAGES):
        path.write_bytes(damaged(data, seed))
        try:
            source = read_edges(path)
            chunks = [source.chunk(k, 2, BACKEND) for k in range(2)] if source.num_vertices < 1 << 40 else []
        except MgraphError as error:
            assert str(path) in str(error)  # noqa: PT017  which of the files it is
            refused += 1
            continue
        read += 1
        for chunk in chunks:
            assert len(chunk.sources) == len(chunk.targets)
            for ids in (chunk.sources, chunk.targets):
                assert len(ids) == 0 or ids.max() < source.num_vertices
            assert chunk.weights is None or (len(chunk.weights) == len(chunk) and np.isfinite(chunk.weights).all())
    assert read
    assert refused


@pytest.mark.parametrize("suffix", [".npz", ".csr", ".parquet"])
def test_file_truncated_after_the_check_is_refused(tmp_path, suffix):
    path = tmp_path / f"graph{suffix}"
    write_edges(path, Rmat(5))
    source = read_source(path)
    size = path.stat().st_size
    for length in range(size - 1, -1, -61):
        os.truncate(path, length)
        with pytest.raises(InputError, match=str(path)):
            whole(source, 3)


def test_offsets_changed_after_the_check_are_refused(tmp_path):
    path = tmp_path / "graph.csr"
    write_edges(path, Rmat(5))
    source = read_source(path)
    data = path.read_bytes()
    random = np.random.default_rng(1)
    refused = 0
    for _ in range(200):
        changed = bytearray(data)
        at = 32 + 8 * int(random.integers(33)) + int(random.integers(8))
        changed[at] ^= 1 << int(random.integers(8))
        path.write_bytes(changed)
        try:
            whole(source, 3)
        except InputError as error:
            assert f"{path}" in str(error)  # noqa: PT017  in a loop
            refused += 1
    assert refused > 100


# In a separate process: a read beyond the end of a memory-mapped file would raise SIGBUS.
CUT = """
import os, sys
from edge_checks import BACKEND, read_edges
chunk = read_edges(sys.argv[1]).chunk(0, 1, BACKEND)
before = int(chunk.sources.sum()), int(chunk.targets.sum()), int(chunk.weights.sum())
os.truncate(sys.argv[1], 10)
assert before == (int(chunk.sources.sum()), int(chunk.targets.sum()), int(chunk.weights.sum()))
"""


@pytest.mark.parametrize("suffix", [".npz", ".csr", ".parquet"])
def test_chunk_remains_valid_after_its_file_is_deleted(tmp_path, suffix):
    path = tmp_path / f"graph{suffix}"
    write_edges(path, Rmat(10))
    subprocess.run([sys.executable, "-c", CUT, path], env=ENVIRONMENT, check=True, timeout=120)
