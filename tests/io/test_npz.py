"""NumPy archives: every byte used is checked once; damaged, ambiguous or changed archives are refused."""

from __future__ import annotations

import io
import os
import pickle
import struct
import time
import warnings
import zipfile

import numpy as np
import pytest
from edge_checks import BACKEND, as_rows, assert_chunks_agree, read_edges, whole

from mgraph.errors import InputError
from mgraph.io import archive as archive_module
from mgraph.io import pieces
from mgraph.io.formats import read_source

ARRAYS = {
    "sources": np.arange(24, dtype="i4"),
    "targets": (np.arange(24, dtype="i4") + 1) % 24,
    "weights": np.arange(24, dtype="f4"),
    "num_vertices": np.int64(30),
    "directed": np.bool_(True),
}
SAMPLE = 700


@pytest.fixture
def path(tmp_path):
    return tmp_path / "graph.npz"


def facts(source):
    return as_rows(whole(source, 2)), source.num_vertices, source.directed, source.weight_dtype


def npy(array, **changes) -> bytes:
    """Return the bytes of an array's file with a changed header."""
    file = io.BytesIO()
    header = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(file, header | changes)
    return file.getvalue() + array.tobytes()


def archive(path, members: list[tuple[str, bytes]], compression=zipfile.ZIP_STORED) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", compression) as file:
        warnings.simplefilter("ignore")  # of two members of one name
        for name, data in members:
            file.writestr(name, data)


@pytest.mark.ci
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_flipped_bit_is_refused_or_changes_nothing(path, save):
    save(path, **ARRAYS)
    data = path.read_bytes()
    expected = facts(read_edges(path))
    seed = int(time.time())
    print(f"seed {seed}")
    # As many flips in the directory, where most bits matter, as before it.
    directory = data.index(b"PK\x01\x02")
    random = np.random.default_rng(seed)
    refused = 0
    parts = (0, directory), (directory, len(data))
    for bit in np.concatenate(
        [random.choice(range(8 * lo, 8 * hi), SAMPLE, replace=False) for lo, hi in parts]
    ).tolist():
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            found = facts(read_edges(path))
        except InputError as error:
            assert str(path) in str(error)  # noqa: PT017  in a loop
            refused += 1
            continue
        assert found == expected, f"bit {bit}"
    assert refused > SAMPLE


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_truncated_archive_is_refused(path, save):
    save(path, **ARRAYS)
    data = path.read_bytes()
    for length in range(0, len(data), 3):
        path.write_bytes(data[:length])
        with pytest.raises(InputError, match=r"graph\.npz"):
            read_edges(path)


def test_shape_beyond_the_array_is_refused(path):
    np.savez(path, sources=np.arange(64, dtype="i4"), targets=np.arange(64, dtype="i4"))
    path.write_bytes(path.read_bytes().replace(b"(64,)", b"(65,)"))
    with pytest.raises(InputError, match=r"graph\.npz.*Bad CRC-32|truncated or damaged"):
        read_edges(path)
    # Also if the archive's CRC is that of the changed header.
    for count in (63, 65):
        ends = npy(np.arange(64), shape=(count,))
        archive(path, [("sources.npy", ends), ("targets.npy", ends)])
        with pytest.raises(InputError, match=rf"sources\.npy is to be int64 of shape \({count},\), which takes"):
            read_edges(path)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [(1 << 62,), (1 << 40, 1 << 40), (-5,), (10**30,), (1 << 63, 2)])
def test_absurd_shape_is_refused_without_a_warning(path, shape):
    ends = npy(np.arange(4), shape=shape)
    archive(path, [("sources.npy", ends), ("targets.npy", ends)])
    with pytest.raises(InputError, match=r"graph\.npz: sources\.npy"):
        read_edges(path)


def test_two_arrays_of_one_name_are_refused(path):
    ends = npy(np.arange(4))
    archive(path, [("sources.npy", ends), ("targets.npy", ends), ("sources.npy", npy(np.arange(4)[::-1].copy()))])
    with pytest.raises(InputError, match=r"graph\.npz has two arrays 'sources'"):
        read_edges(path)


@pytest.mark.filterwarnings("ignore:Overlapped entries")  # which Python 3.14 warns of
def test_members_that_overlap_are_refused(path):
    # The directory's second entry points to the first member, which has another name.
    ends = npy(np.arange(4))
    archive(path, [("sources.npy", ends), ("targets.npy", ends)])
    data = bytearray(path.read_bytes())
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    struct.pack_into("<I", data, second + 42, 0)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"graph\.npz is no NumPy archive, or truncated or damaged"):
        read_edges(path)
    # A member that extends into the next, with sizes and a CRC that agree.
    archive(path, [("sources.npy", ends), ("targets.npy", ends)])
    data = bytearray(path.read_bytes())
    first = data.index(b"PK\x01\x02")
    longer = data[41 : 41 + len(ends) + 50]
    struct.pack_into("<III", data, first + 16, zipfile.crc32(longer), len(longer), len(longer))
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"graph\.npz"):
        read_edges(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(2, [("a", "i4"), ("b", "i4")]), "sources are .*, not integers"),
        (np.zeros((2, 2), "i4"), r"sources must be one-dimensional, not of shape \(2, 2\)"),
        (np.asfortranarray(np.zeros((2, 3), "i4")), r"sources must be one-dimensional, not of shape \(2, 3\)"),
        (np.array([None, 1]), "sources.npy holds Python objects"),
        (np.array(["a", "b"]), "sources are <U1, not integers"),
        (np.array([], "f8"), None),
        (np.array(7), r"sources must be one-dimensional, not of shape \(\)"),
    ],
)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_wrong_dtype_or_shape_are_refused(path, save, array, message):
    save(path, sources=array, targets=array)
    if message is None:
        assert facts(read_edges(path, num_vertices=0))[:2] == ([], 0)
    else:
        with pytest.raises(InputError, match=message):
            read_edges(path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_big_endian_arrays_are_read(path, save):
    save(
        path,
        **{key: np.asarray(array).astype(np.asarray(array).dtype.newbyteorder(">")) for key, array in ARRAYS.items()},
    )
    source = read_edges(path)
    assert facts(source)[0] == [(v, (v + 1) % 24, float(v)) for v in range(24)]
    assert_chunks_agree(source)
    save(path, sources=[0], targets=[1], weights=np.array([2**63], ">u8"))
    with pytest.raises(InputError, match=r"edge 0: weight = 9223372036854775808 is beyond 64 signed bits"):
        read_edges(path)


class Unseekable(io.RawIOBase):
    """A stub of a pipe, on which zipfile writes sizes and CRCs after each member instead of in its header."""

    def __init__(self, file):
        self.file = file

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)


def test_archives_of_other_programs_are_read(path):
    np.savez(path, **ARRAYS)
    data = path.read_bytes()
    expected = facts(read_edges(path))
    with open(path, "wb") as file, zipfile.ZipFile(Unseekable(file), "w") as streamed:
        for key, array in ARRAYS.items():
            streamed.writestr(f"{key}.npy", npy(np.asarray(array)))
    assert struct.unpack_from("<H", path.read_bytes(), 6)[0] & 8
    assert facts(read_edges(path)) == expected
    # A comment, bytes before the archive, and a member that is not an array.
    for name in ("readme.txt", "folder/"):
        path.write_bytes(b"#!/bin/sh\n" + data)
        with zipfile.ZipFile(path, "a") as more:
            more.comment = b"PK about the graph"
            more.writestr(name, b"")
        assert facts(read_edges(path)) == expected
    for compression in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        archive(path, [(f"{key}.npy", npy(np.asarray(array))) for key, array in ARRAYS.items()], compression)
        assert facts(read_edges(path)) == expected


def test_encrypted_archive_is_refused(path):
    np.savez(path, **ARRAYS)
    data = bytearray(path.read_bytes())
    for magic, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.index(magic)
        while at >= 0:
            data[at + flags] |= 1
            at = data.find(magic, at + 1)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"graph\.npz.*encrypted"):
        read_edges(path)


def test_checks_do_not_depend_on_the_piece_size(path, monkeypatch):
    monkeypatch.setattr(archive_module, "PIECE_BYTES", 64)
    monkeypatch.setattr(pieces, "PIECE_EDGES", 5)
    for save in (np.savez, np.savez_compressed):
        save(path, **ARRAYS)
        assert facts(read_edges(path))[0] == [(v, (v + 1) % 24, float(v)) for v in range(24)]
    np.savez(path, **(ARRAYS | {"targets": np.where(np.arange(24) == 21, -7, 0)}))
    with pytest.raises(InputError, match=r"graph\.npz: edge 21: vertex -7 is negative"):
        read_edges(path)
    np.savez(path, **(ARRAYS | {"weights": np.where(np.arange(24) == 20, np.nan, 0)}))
    with pytest.raises(InputError, match=r"graph\.npz: edge 20: weight = nan is not a finite number"):
        read_edges(path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_changed_file_is_refused(path, save):
    save(path, **ARRAYS)
    data = path.read_bytes()
    source = pickle.loads(pickle.dumps(read_source(path)))
    # A copy of the same bytes, as on the disk of another machine.
    path.unlink()
    path.write_bytes(data)
    os.utime(path, (1, 1))
    assert_chunks_agree(source)
    source.release()
    damaged = bytearray(data)
    damaged[data.index(b"\x93NUMPY") + 140 if save is np.savez else 80] ^= 1
    others = io.BytesIO()
    save(others, **(ARRAYS | {"sources": ARRAYS["targets"]}))
    for changed in (damaged, data[:-100], data[:300], b"", others.getvalue()):
        path.write_bytes(changed)
        with pytest.raises(InputError, match=r"graph\.npz (has changed while being read|is damaged or truncated)"):
            source.piece(0, BACKEND)
    path.unlink()
    source.release()
    with pytest.raises(InputError, match=r"graph\.npz cannot be read: No such file"):
        source.piece(0, BACKEND)
