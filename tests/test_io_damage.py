"""Files with bytes changed or cut off: read as far as they make sense, or refused by name, never a failure inside."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from edge_checks import BACKEND

from mgraph.errors import MgraphError
from mgraph.generate.rmat import Rmat
from mgraph.io.formats import read_source
from mgraph.io.write import write_edges

MTX = "%%MatrixMarket matrix coordinate real general\n9 9 4\n1 2 0.5\n3 4 1e3\n9 9 -2\n2 1 7\n"
DAMAGES = 500


def damaged(data: bytes, seed: int) -> bytes:
    """Return the bytes with a few of them changed, or the end cut off; the beginning is changed oftener."""
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
    if suffix == ".txt.gz":
        return gzip.compress(b"".join(b"%d %d %d\n" % (v, v * 7 % 64, v) for v in range(64)))
    write_edges(path, Rmat(5))
    return path.read_bytes()


@pytest.mark.parametrize("suffix", [".npz", ".csr", ".csv", ".parquet", ".mtx", ".txt.gz"])
def test_damage_is_told_or_does_no_harm(tmp_path, suffix):
    path = tmp_path / f"graph{suffix}"
    data, read, refused = whole_bytes(path, suffix), 0, 0
    for seed in range(DAMAGES):
        path.write_bytes(damaged(data, seed))
        try:
            source = read_source(path)
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
