"""Compressed files: known by their first bytes, in every format, and refused if damaged."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zipfile

import pyarrow
import pytest
from binary_graphs import gap_bytes
from table_checks import rows_in, rows_of

from mgraph.errors import InputError, UnknownFormat, UsageError
from mgraph.io.formats import read_source

ROWS = [(0, 1), (1, 2), (2, 0)]
DATA = gap_bytes([(u, v, 0) for u, v in ROWS], 3, directed=False, weighted=False)


def zipped(data, name="g.sg", more=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/", b"")
        for each in (name, *more):
            archive.writestr(each, data)
    return file.getvalue()


def zstd(data):
    return pyarrow.Codec("zstd").compress(data).to_pybytes()


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd, ".zip": zipped}


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("name", ["g.sg{}", "g.sg", "g{}.sg"])
def test_packed_file_is_read_whatever_its_name(tmp_path, suffix, name):
    path = tmp_path / name.format(suffix)
    path.write_bytes(PACKERS[suffix](DATA))
    table = read_source(path)
    assert rows_of(table) == ROWS
    assert table.name == name.format(suffix).removesuffix(suffix).removesuffix(".sg")
    table.release()


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_parts_that_follow_one_another_are_read(tmp_path, suffix):
    path = tmp_path / f"g.sg{suffix}"
    path.write_bytes(PACKERS[suffix](DATA[:30]) + PACKERS[suffix](DATA[30:]))
    assert rows_in(path) == ROWS


@pytest.mark.parametrize("suffix", PACKERS)
def test_truncated_file_is_refused(tmp_path, suffix):
    path = tmp_path / f"g.sg{suffix}"
    data = PACKERS[suffix](DATA)
    for length in range(1, len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(InputError, match=r"g\.sg"):
            rows_in(path)


@pytest.mark.parametrize("suffix", PACKERS)
def test_flipped_bit_is_refused_or_changes_nothing(tmp_path, suffix):
    path = tmp_path / f"g.sg{suffix}"
    data = PACKERS[suffix](DATA)
    for bit in range(0, 8 * len(data), 5):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            rows = rows_in(path)
        except (InputError, UsageError) as error:
            assert "g.sg" in str(error)  # noqa: PT017  in a loop
            continue
        # Without its flag a frame of zstd has no checksum.
        assert rows == ROWS or suffix == ".zst"


@pytest.mark.parametrize(
    ("name", "member", "expected"),
    [
        ("data.zip", "edges.wel", "edges"),
        ("data", "folder/edges.WEL", "edges"),
        ("soc.v2.zip", "edges.wel", "edges"),
        ("graph.txt.zip", "edges.wel", "graph"),
    ],
)
def test_name_in_a_zip_counts_where_that_of_the_archive_tells_no_format(tmp_path, name, member, expected):
    path = tmp_path / name
    path.write_bytes(zipped(b"0 1 5\n1 2 7\n", member))
    # Three columns without names have a weight in .wel, and in no other text.
    options = {} if expected == "edges" else {"weight": 2}
    table = read_source(path, **options)
    assert rows_of(table) == [(0, 1, 5), (1, 2, 7)]
    assert table.name == expected
    assert str(table.path) == str(path)


def test_zip_without_a_name_that_tells_the_format(tmp_path):
    path = tmp_path / "data.zip"
    path.write_bytes(zipped(b"0 1\n", "README"))
    with pytest.raises(UnknownFormat, match=r"data\.zip is of no format known by name"):
        read_source(path)
    assert read_source(path, format="text").name == "data"
    path.write_bytes(zipped(b"<graphml/>", "g.graphml"))
    with pytest.raises(UnknownFormat, match=r"data\.zip: mg\.from_networkx"):
        read_source(path)


def test_zip_of_several_files_is_refused(tmp_path):
    path = tmp_path / "g.zip"
    path.write_bytes(zipped(DATA, more=["h.sg"]))
    with pytest.raises(InputError, match=r"g\.zip is an archive of 2 files, and only one would be read: unpack it"):
        read_source(path)
    path.write_bytes(zipped(DATA)[:40])
    with pytest.raises(InputError, match=r"g\.zip is no zip archive, or truncated or damaged"):
        read_source(path)


def test_tar_archive_is_refused(tmp_path):
    import tarfile

    (tmp_path / "out.g").write_bytes(DATA)
    with tarfile.open(tmp_path / "g.tar.bz2", "w:bz2") as archive:
        archive.add(tmp_path / "out.g", "g/out.g")
    with pytest.raises(UnknownFormat, match=r"g\.tar\.bz2 is a tar archive: unpack it"):
        read_source(tmp_path / "g.tar.bz2")


def test_zstd_without_a_library_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "g.sg.zst"
    path.write_bytes(zstd(DATA))
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        UsageError, match=r"is packed by zstd, which needs Python 3\.14 or pyarrow: pip install pyarrow"
    ):
        read_source(path)
