"""Outputs are written whole or not at all, however the process ends; links, modes and owners are kept."""

from __future__ import annotations

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pytest
from cli_runs import ENVIRONMENT, refused, run
from edge_checks import as_rows, read_edges, whole

import mgraph as mg
from mgraph.api.plot import plot_supersteps
from mgraph.errors import InputError, UsageError, WouldNotFit
from mgraph.generate.rmat import Rmat
from mgraph.io.replace import replacing
from mgraph.io.write import write_columns, write_edges

SUFFIXES = (".npz", ".csv", ".csr", ".parquet")
COLUMNS = {"vertex": np.arange(5), "distance": np.arange(5.0)}


@pytest.fixture(params=[True, False], ids=["unnamed", "named"])
def unnamed(request, monkeypatch):
    """Write with unnamed files, and as on a file system without them."""
    if not request.param:
        real = os.open

        def refuse(path, flags, *args, **options):
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
            return real(path, flags, *args, **options)

        monkeypatch.setattr(os, "open", refuse)


def mode_of(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_symbolic_link_stays_and_its_target_is_replaced(tmp_path, suffix):
    for folder in ("there", "here"):
        (tmp_path / folder).mkdir()
    target = tmp_path / f"there/a{suffix}"
    link = tmp_path / f"here/b{suffix}"
    second = tmp_path / f"here/c{suffix}"
    link.symlink_to(f"../there/a{suffix}")
    second.symlink_to(link)
    for source in (Rmat(4), Rmat(5)):  # a link to nothing, and one to an old file
        write_edges(second, source)
        assert link.is_symlink()
        assert second.is_symlink()
        assert not target.is_symlink()
        assert len(whole(read_edges(target))) > 0
        assert names(tmp_path / "there") == [target.name]
        assert names(tmp_path / "here") == [link.name, second.name]
    assert read_edges(target, num_vertices=32 if suffix != ".csr" else None).num_vertices == 32


def test_broken_links_are_refused(tmp_path):
    (tmp_path / "a.npz").symlink_to("b.npz")
    (tmp_path / "b.npz").symlink_to("a.npz")
    (tmp_path / "c.npz").symlink_to("none/c.npz")
    (tmp_path / "d.npz").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "e.npz")
    (tmp_path / "f.npz").symlink_to("/dev/null")
    before = names(tmp_path)
    for name, message in [
        ("a.npz", "cannot be written: Too many levels of symbolic links"),
        ("c.npz", f"there is no folder {tmp_path}/none"),
        ("d.npz", "is a folder"),
        ("e.npz", "is a device or a pipe"),
        ("f.npz", "is a device or a pipe"),
        ("a.npz/x.npz", "there is no folder"),
    ]:
        with pytest.raises(UsageError, match=rf"^{tmp_path / name}.*{message}"):
            write_columns(tmp_path / name, COLUMNS)
    assert names(tmp_path) == before
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o027, 0o777])
def test_new_file_has_the_mode_of_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        for suffix in SUFFIXES:
            write_edges(tmp_path / f"a{suffix}", Rmat(4))
            assert mode_of(tmp_path / f"a{suffix}") == 0o666 & ~umask
    finally:
        os.umask(before)


@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o660, 0o400])
def test_replaced_file_keeps_its_mode_and_owner(tmp_path, mode):
    path = tmp_path / "a.npz"
    other = tmp_path / "other.npz"
    path.write_text("old")
    path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, 12345, 54321)
    os.link(path, other)
    before = path.stat()
    write_columns(path, COLUMNS)
    after = path.stat()
    assert (before.st_mode, before.st_uid, before.st_gid) == (after.st_mode, after.st_uid, after.st_gid)
    # Another hard link to the old file keeps the old contents.
    assert other.read_text() == "old"
    assert names(tmp_path) == ["a.npz", "other.npz"]


@pytest.mark.ci
@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_columns_and_pictures_are_written_whole(tmp_path, suffix):
    for _ in range(2):
        write_columns(tmp_path / f"a{suffix}", COLUMNS)
    assert names(tmp_path) == [f"a{suffix}"]
    stats = mg.bfs(mg.rmat(5), 0).stats
    for picture in ("a.png", "a.svg", "a.pdf"):
        plot_supersteps(stats, tmp_path / picture)
        assert (tmp_path / picture).stat().st_size > 1000
    assert names(tmp_path) == sorted([f"a{suffix}", "a.png", "a.svg", "a.pdf"])


@pytest.mark.usefixtures("unnamed")
def test_failed_write_leaves_nothing(tmp_path):
    path = tmp_path / "a.npz"
    before = len(os.listdir("/proc/self/fd"))
    for error in (ValueError, KeyboardInterrupt, MemoryError):
        with pytest.raises(error):
            _fail(path, error)
    assert names(tmp_path) == []
    assert len(os.listdir("/proc/self/fd")) == before


def _fail(path, error) -> None:
    with replacing(path) as temporary:
        temporary.write_text("half")
        raise error


# Writes two graphs alternately, forever.
WRITER = """
import sys
from mgraph.generate.rmat import Rmat
from mgraph.io.write import write_edges
k = 0
while True:
    write_edges(sys.argv[1], Rmat(15 + k % 2, edge_factor=8))
    k += 1
    print(k, flush=True)
"""


@pytest.mark.ci
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_killed_process_leaves_the_old_file_or_the_new(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    expected = []
    for scale in (15, 16):
        write_edges(path, Rmat(scale, edge_factor=8))
        expected.append(path.read_bytes())
    seed = int(time.time())
    print(f"seed {seed}")
    draw = random.Random(seed)
    for _ in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
        )
        writer.stdout.readline()
        time.sleep(draw.uniform(0, 0.5))
        writer.send_signal(draw.choice([signal.SIGKILL, signal.SIGTERM]))
        writer.wait()
        writer.stdout.close()
        assert path.read_bytes() in expected
        # Just before it replaces the old file, the new one has a temporary name, and is whole already.
        for name in names(tmp_path):
            assert (tmp_path / name).read_bytes() in expected
            assert name == path.name or (tmp_path / name).unlink() is None


@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_old_file_remains_on_a_full_disk(small_disk, suffix):
    path = small_disk / f"a{suffix}"
    write_edges(path, Rmat(4))
    old = path.read_bytes()
    with pytest.raises((InputError, WouldNotFit), match=rf"{path} (cannot be written: .*No space left|would take)"):
        write_edges(path, Rmat(16))
    if suffix != ".csr":
        with pytest.raises(InputError, match=rf"{path} cannot be written: .*No space left"):
            write_columns(path, {"a": np.random.default_rng(1).random(300_000)})
    assert path.read_bytes() == old
    assert names(small_disk) == [path.name]
    # The disk of the target counts, not that of the link.
    link = small_disk.parent / f"link{suffix}"
    link.symlink_to(path)
    with pytest.raises((InputError, WouldNotFit), match=rf"{link} (cannot be written: .*No space left|would take)"):
        write_edges(link, Rmat(16))
    assert names(small_disk) == [path.name]


def test_read_only_disk_is_refused_before_work(small_disk):
    path = small_disk / "a.csv"
    write_columns(path, COLUMNS)
    old = path.read_bytes()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(UsageError, match=f"no file may be written in {small_disk}"):
        write_columns(path, COLUMNS)
    line = refused("bfs", "rmat:40", "-s", "1", "-o", path, "--overwrite", code=2)
    assert f"no file may be written in {small_disk}" in line
    assert path.read_bytes() == old
    assert names(small_disk) == [path.name]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_unwritable_folder_is_refused(tmp_path):
    for folder in (tmp_path, *(parent for parent in tmp_path.parents if "pytest-of" in str(parent))):
        folder.chmod(0o755)
    (tmp_path / "a.csv").write_text("old")
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            write_columns(tmp_path / "a.csv", COLUMNS)
        except UsageError as error:
            os._exit(0 if f"no file may be written in {tmp_path}" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (tmp_path / "a.csv").read_text() == "old"


def test_the_command_line_writes_through_a_link(tmp_path):
    (tmp_path / "out.npz").symlink_to("real.npz")
    run("bfs", "rmat:5", "-s", "1", "-o", tmp_path / "out.npz")
    assert (tmp_path / "out.npz").is_symlink()
    with np.load(tmp_path / "real.npz") as columns:
        assert len(columns["distances"]) == 32
    run("generate", "rmat:5", tmp_path / "out.npz", "--overwrite")
    assert as_rows(whole(read_edges(tmp_path / "real.npz"))) == as_rows(whole(Rmat(5)))
