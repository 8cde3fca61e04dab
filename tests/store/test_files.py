"""Damage of a file is named with its bytes; extents of all parts are read as one array, in bounded memory."""

from __future__ import annotations

import contextlib
import os
import shutil
import tracemalloc

import numpy as np
import pytest
from builds import BACKEND
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from stores import assert_same_shards, build_shards, load_shards, save_shards
from tiers import examples
from zoo import random_case

from mgraph.backends.cpu import CpuBackend
from mgraph.errors import InputError
from mgraph.store import files, manifest
from mgraph.store.files import Extent, extents_of, read_array, write_array
from mgraph.store.manifest import StoredGraph, StoredPart, file_name


def make_store(folder, *parts, backend=BACKEND):
    """Write the parts of an array `values`; return a store that has nothing else."""
    stored = [
        StoredPart({"values": write_array(folder / file_name("values", k), part, part.dtype, backend)}, [], None)
        for k, part in enumerate(parts)
    ]
    return StoredGraph(folder, "values", None, None, {"values": parts[0].dtype}, stored)


def read(store, begin, end, **how):
    return read_array(store, "values", extents_of(store, "values", begin, end), how.pop("backend", BACKEND), **how)


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(manifest, "CHUNK_BYTES", 16)
    monkeypatch.setattr(files, "PIECE_CHUNKS", 2)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int64", "float64"])
@pytest.mark.parametrize("threads", [1, 3])
def test_any_range_over_all_parts_is_read(tmp_path, dtype, threads):
    parts = [np.arange(first, first + count).astype(dtype) for first, count in ((0, 11), (11, 0), (11, 64), (75, 33))]
    whole = np.concatenate(parts)
    backend = CpuBackend(threads)
    store = make_store(tmp_path, *parts, backend=backend)
    for begin in range(0, len(whole) + 1, 5):
        for end in range(begin, len(whole) + 1, 7):
            np.testing.assert_array_equal(read(store, begin, end, backend=backend), whole[begin:end])
    wide = read(store, 3, 60, dtype=np.dtype(np.float64), convert=lambda piece: piece * 2, backend=backend)
    np.testing.assert_array_equal(wide, whole[3:60] * 2.0)


def test_files_are_plain_arrays_of_their_values(tmp_path):
    values = np.arange(1_000_000, dtype=np.uint32)
    make_store(tmp_path, values)
    np.testing.assert_array_equal(np.fromfile(tmp_path / "values-00000.bin", "<u4"), values)


@pytest.mark.parametrize(
    ("at", "said"), [(0, "bytes 0 to 1048575"), (1048576, "bytes 1048576 to 2097151"), (-1, "bytes 3145728 to 3999999")]
)
def test_damage_is_named_with_file_and_bytes(tmp_path, at, said):
    store = make_store(tmp_path, np.arange(1_000_000, dtype=np.uint32))
    file = tmp_path / "values-00000.bin"
    with open(file, "r+b") as raw:
        raw.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        raw.write(b"\xff" if at >= 0 else b"\x7e")
    with pytest.raises(InputError, match=rf"values-00000\.bin: {said} are not those that were saved"):
        read(store, 0, 1_000_000)
    assert read(store, 600_000, 600_010).tolist() == list(range(600_000, 600_010))


def test_sizes_of_files_are_compared(tmp_path):
    store = make_store(tmp_path, np.arange(100, dtype=np.uint32))
    file = tmp_path / "values-00000.bin"
    os.truncate(file, 399)
    with pytest.raises(InputError, match="has 399 bytes, and was saved with 400: it was truncated"):
        read(store, 0, 100)
    os.truncate(file, 401)
    with pytest.raises(InputError, match="has 401 bytes, and was saved with 400: it was replaced"):
        read(store, 0, 1)
    file.unlink()
    with pytest.raises(InputError, match=r"cannot be read on .*: No such file or directory: every rank must see"):
        read(store, 0, 1)
    file.mkdir()
    with pytest.raises(InputError, match="values-00000"):
        read(store, 0, 1)


def test_swapped_files_are_detected(tmp_path):
    store = make_store(tmp_path, np.arange(100, dtype=np.uint32), np.arange(100, 200, dtype=np.uint32))
    first, second = (tmp_path / file_name("values", k) for k in range(2))
    first.rename(tmp_path / "x")
    second.rename(first)
    (tmp_path / "x").rename(second)
    with pytest.raises(InputError, match="bytes 0 to 399 are not those that were saved"):
        read(store, 0, 1)


def test_existing_file_is_not_overwritten(tmp_path):
    make_store(tmp_path, np.arange(4))
    with pytest.raises(FileExistsError):
        make_store(tmp_path, np.arange(4))


def test_reading_takes_the_array_and_staging_alone(tmp_path):
    values = np.random.default_rng(1).integers(0, 1 << 32, 6 << 20, dtype=np.uint32)
    store = make_store(tmp_path, values)
    backend = CpuBackend(2)
    for how in ({}, {"dtype": np.dtype(np.int64)}, {"convert": lambda piece: piece}):
        tracemalloc.start()
        got = read(store, 1, len(values), backend=backend, **how)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < got.nbytes + files.staging_bytes(store, backend)
        np.testing.assert_array_equal(got, values[1:])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores") / "whole"
    return save_shards(build_shards(random_case(1, num_vertices=250), 2), folder), build_shards(
        random_case(1, num_vertices=250), 3
    )


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_mutated_stores_load_as_saved_or_raise_input_error(saved, tmp_path, data):
    store, expected = saved
    folder = tmp_path / "mutated"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(store.path, folder)
    name = data.draw(st.sampled_from(sorted(os.listdir(folder))))
    text = bytearray((folder / name).read_bytes())
    kind = data.draw(st.sampled_from(["flip", "cut", "insert", "delete", "zero"]))
    at = data.draw(st.integers(0, max(len(text) - 1, 0)))
    if kind == "flip" and text:
        text[at] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "zero":
        text[at : at + 64] = bytes(min(64, len(text) - at))
    else:
        text[at : at + (0 if kind == "insert" else 1 if kind == "delete" else len(text))] = (
            b"x" if kind == "insert" else b""
        )
    (folder / name).write_bytes(bytes(text))
    with contextlib.suppress(InputError):
        assert_same_shards(load_shards(manifest.open_store(folder), 3), expected)


def test_extents_cover_the_range_once(tmp_path):
    store = make_store(tmp_path, *[np.zeros(n, np.uint8) for n in (3, 0, 4)])
    assert extents_of(store, "values", 1, 6) == [Extent(0, 1, 3), Extent(2, 0, 3)]
    assert extents_of(store, "values", 3, 3) == []
