"""Files at URLs: read in ranges by fsspec, or copied where a file system has no ranges; failures are named."""

from __future__ import annotations

import gzip
import io
import os
import ssl
import sys

import fsspec
import numpy as np
import pandas
import pytest
from binary_graphs import galois_bytes, gap_bytes, graph500_bytes
from dask_processes import make_security
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry
from table_checks import rows_in, rows_of
from web_files import BLOCK_BYTES, Https, served

from mgraph.errors import InputError, UsageError
from mgraph.io import pieces, remote, spool
from mgraph.io.formats import read_source

ROWS = [(0, 1, 5), (1, 0, 5), (1, 3, 7), (3, 1, 7)]
PLAIN = [row[:2] for row in ROWS]
GAP = gap_bytes(ROWS, 7, directed=False, weighted=True)
TEXT = b"% a comment\n" + b"".join(b"%d %d %d\n" % row for row in ROWS)


@pytest.fixture
def store():
    """Yield a file system in memory."""
    found = fsspec.filesystem("memory")
    found.store.clear()
    yield found
    found.store.clear()
    remote.file_system.cache_clear()


class NoRanges(MemoryFileSystem):
    """A file system that does not know the size of a file, as some web servers."""

    protocol = "noranges"

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.removeprefix("noranges://").strip("/")

    def info(self, path, **options):
        return super().info(path, **options) | {"size": None}

    def cat_file(self, path, start=None, end=None, **options):
        raise AssertionError("ranges were asked for")


@pytest.mark.parametrize("url", ["memory://graphs/g.wsg", "memory:///graphs/g.wsg"])
@pytest.mark.parametrize("piece_edges", [1, 1 << 22])
def test_binary_file_is_read_in_ranges(store, monkeypatch, url, piece_edges):
    monkeypatch.setattr(pieces, "PIECE_EDGES", piece_edges)
    store.pipe("/graphs/g.wsg", GAP)
    table = read_source(url)
    assert (table.name, table.num_pieces) == ("g", max(1, 4 // piece_edges))
    assert rows_of(table) == ROWS


def test_every_kind_of_file_is_read(store):
    arrays = {"sources": [0, 1, 1, 3], "targets": [1, 0, 3, 1], "weights": [5, 5, 7, 7]}
    with store.open("/g.npz", "wb") as file:
        np.savez(file, **arrays)
    with store.open("/packed.npz", "wb") as file:
        np.savez_compressed(file, **arrays)
    store.pipe("/g.wel", TEXT)
    store.pipe("/g.wel.gz", gzip.compress(TEXT))
    store.pipe("/g.gr", galois_bytes(ROWS, 7, 1, "uint32"))
    for name, options in (
        ("g.npz", {}),
        ("packed.npz", {}),
        ("g.wel", {}),
        ("g.wel.gz", {}),
        ("g.gr", {"weight": "uint32"}),
    ):
        assert rows_in(f"memory://{name}", **options) == ROWS
    import pyarrow
    import pyarrow.parquet

    with store.open("/g.parquet", "wb") as file:
        pyarrow.parquet.write_table(pyarrow.table(arrays), file)
    assert rows_in("memory://g.parquet") == ROWS


def test_folders_patterns_and_lists_are_read(store, tmp_path):
    for k, row in enumerate(ROWS):
        store.pipe(f"/folder/part-{k}.wel", b"%d %d %d\n" % row)
    store.pipe("/folder/_SUCCESS", b"")
    for url in ("memory://folder", "memory://folder/part-*.wel", [f"memory://folder/part-{k}.wel" for k in range(4)]):
        assert rows_in(url) == ROWS
    store.pipe("/single/part-0.wel", b"1 2 3\n")
    assert [read_source(f"memory://single{end}").name for end in ("", "/", "/*.wel")] == ["single"] * 3
    assert read_source("memory://single/part-0.wel").name == "part-0"
    (tmp_path / "a.wel").write_bytes(b"8 9 1\n")
    assert rows_in([tmp_path / "a.wel", "memory://folder/part-0.wel"]) == [(0, 1, 5), (8, 9, 1)]
    assert rows_in(f"file://{tmp_path}/a.wel") == [(8, 9, 1)]


def test_file_beside_another_is_found(store):
    store.pipe("/g/edges", graph500_bytes(ROWS, wide=True))
    assert rows_in("memory://g/edges", format="graph500-16") == PLAIN
    store.pipe("/g/edges.weights", np.array([w for *_, w in ROWS], "<f4").tobytes())
    assert rows_in("memory://g/edges", format="graph500-16") == ROWS


def test_file_system_without_ranges_is_copied(store, monkeypatch):
    monkeypatch.setitem(_registry, "noranges", NoRanges)
    store.pipe("/g.wsg", GAP)
    table = read_source("noranges://g.wsg")
    assert rows_of(table) == ROWS
    table.release()


class Web(MemoryFileSystem):
    """A web server with or without ranges; as with fsspec's, info() does not tell which."""

    protocol = "http"
    has_ranges = True

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.removeprefix("http://").strip("/")

    def _open(self, path, mode="rb", **options):
        found = super()._open(path, mode, **options)
        if self.has_ranges:
            return found
        copy = io.BytesIO(found.getvalue())
        copy.seek = lambda *_: (_ for _ in ()).throw(ValueError("no ranges"))
        return copy


@pytest.mark.parametrize("has_ranges", [False, True])
def test_web_server_is_asked_whether_it_has_ranges(store, monkeypatch, has_ranges):
    monkeypatch.setitem(_registry, "http", Web)
    monkeypatch.setattr(Web, "has_ranges", has_ranges)
    store.pipe("/host/g.wsg", GAP)
    table = read_source("http://host/g.wsg")
    assert isinstance(table.arrays.file, remote.RemoteFile) == has_ranges
    assert rows_of(table) == ROWS


def test_failures_name_the_url(store, monkeypatch):
    with pytest.raises(InputError, match=r"memory://none\.sg: no such file"):
        read_source("memory://none.sg")
    with pytest.raises(InputError, match=r"memory://none/\*\.sg: there is no file"):
        read_source("memory://none/*.sg")
    with pytest.raises(UsageError, match=r"nothing://a\.sg cannot be opened"):
        read_source("nothing://a.sg")
    store.pipe("/g.wsg", GAP)
    table = read_source("memory://g.wsg")
    store.pipe("/g.wsg", GAP[:50])
    with pytest.raises(InputError, match=r"memory://g\.wsg has changed while being read"):
        rows_of(table)
    store.rm("/g.wsg")
    with pytest.raises(InputError, match=r"memory://g\.wsg: no such file"):
        rows_of(table)


def test_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(UsageError, match=r"s3://bucket/a\.csv needs a package that is not installed: pip install s3fs"):
        read_source("s3://bucket/a.csv")
    remote.file_system.cache_clear()
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UsageError, match=r"memory://a\.csv needs fsspec: pip install fsspec"):
        read_source("memory://a.csv")


@pytest.fixture
def web(tmp_path, monkeypatch):
    """Return the Security of a server with a certificate of its own, which fsspec trusts."""
    (tmp_path / "tls").mkdir()
    security = make_security(tmp_path / "tls")
    monkeypatch.setitem(_registry, "https", Https)
    trusting = ssl.create_default_context(cafile=security.tls_ca_file)
    trusting.check_hostname = False  # the certificate has a name, and the server an address
    monkeypatch.setattr(Https, "context", trusting, raising=False)
    yield security
    remote.file_system.cache_clear()


@pytest.mark.parametrize("has_ranges", [True, False])
def test_files_are_read_by_https(web, tmp_path, monkeypatch, has_ranges):
    monkeypatch.setattr(spool, "PIECE_BYTES", BLOCK_BYTES)
    edges = [(k, k + 1, k % 7) for k in range(3000)]  # many blocks
    text = b"".join(b"%d %d %d\n" % edge for edge in edges)
    (tmp_path / "g.wel").write_bytes(text)
    (tmp_path / "g.wel.gz").write_bytes(gzip.compress(text))
    (tmp_path / "g.wsg").write_bytes(GAP)
    with served(tmp_path, web, has_ranges=has_ranges) as url:
        for name, rows in (("g.wel", edges), ("g.wel.gz", edges), ("g.wsg", ROWS)):
            table = read_source(f"{url}/{name}")
            assert rows_of(table) == rows
            assert table.name == "g"
        with pytest.raises(InputError, match=r"none\.wel: no such file"):
            read_source(f"{url}/none.wel")
        os.utime(tmp_path / "g.wel", (1, 1))
        assert remote.remote_files(f"{url}/g.wel")[0].version == "Thu, 01 Jan 1970 00:00:01 GMT"


@pytest.mark.parametrize("has_ranges", [True, False])
def test_files_are_read_by_http_as_fsspec_does(tmp_path, has_ranges):
    frame = pandas.DataFrame(ROWS, columns=["source", "target", "weight"])
    frame.to_csv(tmp_path / "g.csv.gz", index=False)
    frame.to_parquet(tmp_path / "g.parquet")
    frame.to_feather(tmp_path / "g.arrow")
    (tmp_path / "g.wel").write_bytes(TEXT)
    (tmp_path / "g.wsg").write_bytes(GAP)
    with served(tmp_path, has_ranges=has_ranges) as url:
        for name in ("g.csv.gz", "g.parquet", "g.arrow", "g.wel", "g.wsg"):
            assert rows_in(f"{url}/{name}") == ROWS, name
        with pytest.raises(InputError, match=r"none\.wel: no such file"):
            read_source(f"{url}/none.wel")
    remote.file_system.cache_clear()


def test_server_with_another_certificate_is_refused_by_name(web, tmp_path, monkeypatch):
    monkeypatch.setattr(Https, "context", ssl.create_default_context())
    (tmp_path / "g.wsg").write_bytes(GAP)
    with (
        served(tmp_path, web, has_ranges=True) as url,
        pytest.raises(InputError, match=r"https://127\.0\.0\.1:\d+/g\.wsg cannot be read: .*CERTIFICATE_VERIFY_FAILED"),
    ):
        read_source(f"{url}/g.wsg")
