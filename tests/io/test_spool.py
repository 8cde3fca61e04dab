"""Copies of compressed files and of standard input: unnamed, shared in a process, deleted after use."""

from __future__ import annotations

import gc
import gzip
import io
import os
import pathlib
import pickle
import signal
import sys
import tempfile
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from dask_processes import ENVIRONMENT, dask_process, scheduler_by_hand, wait_until
from distributed import Client
from edge_checks import BACKEND, as_rows, assert_chunks_agree, whole

import mgraph as mg
from mgraph.edges import is_table
from mgraph.errors import InputError, WouldNotFit
from mgraph.generate.rmat import Rmat
from mgraph.io.formats import read_source
from mgraph.io.write import write_edges

TEXT = b"".join(b"%d %d %d\n" % (v, v * 7 % 64, v) for v in range(64))


def copies(process: int | str = "self", folder: str | os.PathLike | None = None) -> list[str]:
    """Return the unnamed temporary files that a process has open, one entry per descriptor."""
    found = []
    for link in pathlib.Path(f"/proc/{process}/fd").iterdir():
        try:
            target = os.readlink(link)
        except OSError:
            continue
        if target.startswith(str(folder or tempfile.gettempdir())) and target.endswith("(deleted)"):
            found.append(target)
    return found


@pytest.fixture
def spool(tmp_path, monkeypatch):
    """Use a separate folder for temporary files."""
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(params=[".wel.gz", ".npz", ".mtx.gz"])
def packed(request, tmp_path):
    path = tmp_path / f"graph{request.param}"
    if request.param == ".npz":
        ids = np.arange(64)
        np.savez_compressed(path, sources=ids, targets=ids * 7 % 64, weights=ids)
    else:
        head = b"%%MatrixMarket matrix coordinate integer general\n64 64 64\n"
        lines = b"".join(b"%d %d %d\n" % (v + 1, v * 7 % 64 + 1, v) for v in range(64))
        path.write_bytes(gzip.compress(TEXT if "wel" in request.param else head + lines))
    return path


def part_of(source, k):
    """Return some edges of a source, or all of a table of one piece."""
    return source.piece(0, BACKEND) if is_table(source) else source.chunk(k, 5, BACKEND)


def test_copy_is_unnamed_and_deleted_with_its_source(packed, spool):
    source = read_source(packed)
    assert as_rows(whole(source, 3)) == sorted((v, v * 7 % 64, v) for v in range(64))
    # Two ranks in this process, each with its unpickled copy of the source.
    others = [pickle.loads(pickle.dumps(source)) for _ in range(2)]
    assert others[0] == source
    with ThreadPoolExecutor(8) as pool:
        for chunk in pool.map(lambda k: part_of(others[k % 2], k % 5), range(200)):
            base = getattr(source, "base", 0)
            np.testing.assert_array_equal(chunk.targets - base, (chunk.sources.astype(int) - base) * 7 % 64)
    assert len(copies(folder=spool)) == 1
    assert not list(spool.iterdir())
    source.release()
    assert_chunks_agree(source)
    source = others = chunk = None
    gc.collect()
    assert not copies(folder=spool)


def test_built_graph_keeps_no_copy(packed, spool):
    source = read_source(packed)
    with mg.connect(num_ranks=3, backend="cpu") as cluster:
        with mg.Graph.from_source(source, cluster=cluster) as g:
            assert g.num_vertices == 64
            assert not copies(folder=spool)
            assert not list(spool.iterdir())
        with mg.read(packed, cluster=cluster):
            assert not copies(folder=spool)
    with pytest.raises(mg.UsageError), mg.connect(num_ranks=2, backend="cpu") as cluster:
        mg.read(packed, cluster=cluster, order="none")
    gc.collect()
    assert not copies(folder=spool)


def test_forked_child_reads_the_copy_without_deleting_it(packed, spool):
    source = read_source(packed)
    whole(source)
    child = os.fork()
    if child == 0:
        try:
            same = len(whole(source)) == 64 and len(whole(pickle.loads(pickle.dumps(source)))) == 64
            source.release()
            os._exit(0 if same else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert len(copies(folder=spool)) == 1
    assert len(whole(source)) == 64


def test_errors_name_the_compressed_file(tmp_path, spool):
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress(b"0 1\n1 x\n"))
    with pytest.raises(InputError, match=rf"^{path}:2: vertex 'x'"):
        whole(read_source(path))
    path = tmp_path / "graph.npz"
    np.savez_compressed(path, sources=[0, 1], targets=[1, 2], num_vertices=2)
    with pytest.raises(InputError, match=rf"^{path}: edge 1: vertex 2 is not in 0\.\.1"):
        whole(read_source(path))
    np.savez_compressed(path, sources=["a"], targets=[1])
    with pytest.raises(InputError, match=rf"^{path}: sources are <U1"):
        read_source(path)
    np.savez_compressed(path, sources=np.array([None]), targets=[1])
    with pytest.raises(InputError, match=rf"^{path}: sources\.npy holds Python objects"):
        read_source(path)


def test_full_disk_error_names_the_folder(tmp_path, small_disk, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress(TEXT * 5000))
    with pytest.raises(WouldNotFit, match=rf"^{path} .* {small_disk}.*TMPDIR"):
        read_source(path)
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(TEXT * 5000)))
    with pytest.raises(WouldNotFit, match=rf"^standard input .* {small_disk}.*TMPDIR"):
        read_source("-")
    path = tmp_path / "graph.npz"
    np.savez_compressed(path, sources=np.zeros(500_000, int), targets=np.zeros(500_000, int))
    with pytest.raises(
        WouldNotFit, match=rf"^{path} .* into {small_disk}: 0 B of it are there, and .* are left.*TMPDIR"
    ):
        whole(read_source(path))
    assert not copies(folder=small_disk)


def worker_with_spool(file, spool, scratch, options):
    """Start a worker by its command, with temporary files in `spool`."""
    fixed = "--scheduler-file", file, "--nthreads", "1", "--no-dashboard", "--local-directory", str(scratch)
    return dask_process("worker", *fixed, *options, environment=ENVIRONMENT | {"TMPDIR": str(spool)})


@pytest.mark.ci
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("options", [("--no-nanny",), ()], ids=["no nanny", "nanny"])
def test_worker_leaves_no_copy_however_it_ends(tmp_path, spool, number, options):
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress(TEXT))
    with (
        scheduler_by_hand(tmp_path) as (_, file),
        worker_with_spool(file, spool, tmp_path / "scratch", options) as worker,
        Client(scheduler_file=file, set_as_default=False) as client,
    ):
        client.wait_for_workers(1, timeout=60)
        (process,) = client.run(os.getpid).values()
        with mg.connect(client) as cluster:
            graph = mg.read(path, weight=2, cluster=cluster)
            assert graph.num_vertices == 64
            wait_until(lambda: not copies(process, spool))
            graph.close()
            # The copy exists while a source is read.
            client.run(_read_and_keep, path)
            assert copies(process, spool)
            os.kill(process, number)
            worker.send_signal(number)
            worker.wait(60)
    assert not list(spool.iterdir())


def _read_and_keep(path, dask_worker) -> None:
    dask_worker.source = read_source(path, weight=2)


def test_standard_input_reaches_workers_in_other_processes(client, monkeypatch, spool, tmp_path):
    write_edges(tmp_path / "a.npz", Rmat(4))
    (tmp_path / "a.wel").write_bytes(TEXT)
    with mg.read(tmp_path / "a.npz", num_chunks=1) as g, mg.read(tmp_path / "a.wel") as text:
        sizes = [(graph.num_vertices, graph.num_edges) for graph in (g, text)]
    inputs = TEXT, gzip.compress(TEXT), (tmp_path / "a.npz").read_bytes()
    for data, expected in zip(inputs, (sizes[1], sizes[1], sizes[0]), strict=True):
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(data)))
        with (
            mg.connect(client) as cluster,
            mg.read("-", cluster=cluster, weight=2 if expected == sizes[1] else None) as g,
        ):
            assert g.name == "stdin"
            assert (g.num_vertices, g.num_edges) == expected
    assert not list(spool.iterdir())
    gc.collect()
    assert not copies(folder=spool)


@pytest.mark.ci
def test_standard_input_on_another_machine_is_refused(monkeypatch, spool):
    for data in (TEXT, gzip.compress(TEXT)):
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(data)))
        source = read_source("-", weight=2)
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(b"0 1\n0 x\n")))
        with pytest.raises(InputError, match=r"^stdin:2: vertex 'x'"):
            whole(read_source("-"))
        travelled = pickle.dumps(source)
        assert as_rows(whole(pickle.loads(travelled), 2)) == as_rows(whole(source))
        del source
        gc.collect()
        with pytest.raises(InputError, match=f"standard input was copied by process {os.getpid()} on .* every rank"):
            whole(pickle.loads(travelled))
