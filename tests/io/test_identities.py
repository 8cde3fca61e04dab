"""The identities of files: every reader's files are found, and a change of any is."""

from __future__ import annotations

import gzip
import os

import fsspec
import numpy as np
import pytest

import mgraph as mg
from mgraph.generate.rmat import Rmat
from mgraph.io.formats import read_source
from mgraph.io.identities import changed_file, identities
from mgraph.io.memory import edges_table, id_options

WRITTEN = ("txt", "csv", "mtx", "gr", "csr", "npz", "parquet", "arrow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    with mg.rmat(5, weights=None) as g:
        for suffix in WRITTEN:
            g.edges.write(folder / f"edges.{suffix}")
    (folder / "edges.el.gz").write_bytes(gzip.compress(b"0 1\n1 2\n"))
    (folder / "edges.graph").write_text("3 2\n2\n1 3\n2\n")
    return folder


@pytest.mark.parametrize("name", [*(f"edges.{suffix}" for suffix in WRITTEN), "edges.el.gz", "edges.graph"])
def test_file_of_every_reader_is_known(folder, name):
    assert list(identities(read_source(folder / name))) == [folder / name]


def test_any_of_several_files_may_change(tmp_path):
    paths = [tmp_path / f"{part}.el" for part in range(3)]
    for path in paths:
        path.write_text("0 1\n")
    known = identities(read_source(paths))
    assert changed_file(known) is None
    os.utime(paths[1], ns=(1, 1))
    assert changed_file(known) == paths[1]
    paths[0].unlink()
    assert changed_file(known) == paths[0]


def test_companions_are_known(tmp_path):
    (tmp_path / "g.e").write_text("0 1\n")
    (tmp_path / "g.v").write_text("0\n1\n2\n")
    assert set(identities(read_source(tmp_path / "g.e"))) == {tmp_path / "g.e", tmp_path / "g.v"}


def test_remote_file_is_asked_for_its_version_again():
    memory = fsspec.filesystem("memory")
    memory.pipe("/identities/edges.el", b"0 1\n1 2\n")
    known = identities(read_source("memory://identities/edges.el"))
    assert changed_file(known) is None
    memory.pipe("/identities/edges.el", b"0 1\n1 22\n")
    assert str(changed_file(known)) == "memory://identities/edges.el"
    memory.rm("/identities", recursive=True)
    assert str(changed_file(known)) == "memory://identities/edges.el"


def test_edges_in_memory_and_generators_have_no_file():
    assert identities(edges_table(np.array([0]), np.array([1]), None, how=id_options())) == {}
    assert identities(Rmat(4)) == {}
