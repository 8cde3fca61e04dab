"""Inputs that would exhaust memory or disk: endless lines, and copies larger than the disk; refused early."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import shutil
import subprocess
import sys
import textwrap

import pytest
from cli_runs import start
from dask_processes import ENVIRONMENT
from disks import mounted_disk
from edge_checks import read_edges

import mgraph as mg

BOMB_BYTES = 512 << 20
# Additional memory allowed for reading a decompression bomb: blocks of 16 MiB per thread, but no whole line.
MAX_BYTES = 150 << 20
READ = """
    import os, resource, sys
    from edge_checks import read_edges
    import mgraph as mg

    def held():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

    def transferred():
        counts = dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())
        return int(counts["rchar"]) + int(counts["wchar"])

    small, bomb, limit = sys.argv[1:]
    # Every thread needs address space for its stack.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    read_edges(small)  # compiles the parser
    size = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmSize"))
    resource.setrlimit(resource.RLIMIT_AS, (size + int(limit), resource.RLIM_INFINITY))
    before, moved = held(), transferred()
    try:
        read_edges(bomb)
    except mg.MgraphError as error:
        print(held() - before, transferred() - moved, type(error).__name__, error)
"""


def read_bomb(bomb, tmp_path) -> tuple[int, int, str]:
    """Read a file in a separate process; return its additional memory, the bytes read and written, and its error."""
    spools = tmp_path / "spools"
    spools.mkdir()
    small = tmp_path / "small.txt"
    small.write_text("0 1\n" * 100)
    code = [sys.executable, "-c", textwrap.dedent(READ), str(small), str(bomb), str(2 * MAX_BYTES)]
    environment = {**ENVIRONMENT, "TMPDIR": str(spools)}
    done = subprocess.run(code, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert list(spools.iterdir()) == []
    held, moved, error = done.stdout.strip().split(" ", 2)
    return int(held), int(moved), error


def write_packed(path, begin: bytes, fill: bytes) -> None:
    """Write a compressed file that expands to BOMB_BYTES, by repeating a member of a gzip file."""
    piece = fill * ((8 << 20) // len(fill))
    member = gzip.compress(piece, 1)
    path.write_bytes(gzip.compress(begin) + member * (BOMB_BYTES // len(piece)))


HEADS = {".txt": b"0 1\n", ".mtx": b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n"}


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("suffix", HEADS)
@pytest.mark.parametrize("fill", [b" ", b"#x", b"\0", b"1"])
def test_compressed_text_of_one_line_needs_neither_memory_nor_disk(tmp_path, suffix, fill):
    bomb = tmp_path / f"bomb{suffix}.gz"
    write_packed(bomb, HEADS[suffix], fill)
    held, moved, error = read_bomb(bomb, tmp_path)
    assert re.fullmatch(
        rf"InputError {re.escape(str(bomb))}, at byte {len(HEADS[suffix])} of what it unpacks to: "
        r"the line is longer than 1 MiB: is it text, an edge a line\?",
        error,
    )
    assert held < MAX_BYTES
    assert moved < BOMB_BYTES // 8


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("suffix", HEADS)
@pytest.mark.parametrize("at", [0, 40 << 20])
def test_text_of_one_line_is_refused_before_its_end(tmp_path, suffix, at):
    bomb = tmp_path / f"bomb{suffix}"
    head = HEADS[suffix]
    with open(bomb, "wb") as file:
        file.write(head)
        file.write(b"# a comment of thirty-two bytes\n" * (at // 32))
        file.truncate(4 << 30)  # a sparse file of zeros
    held, moved, error = read_bomb(bomb, tmp_path)
    line = head.count(b"\n") + at // 32 + 1
    assert error.startswith(f"InputError {bomb}:{line}: the line is longer than 1 MiB")
    assert held < MAX_BYTES
    # Other threads may have begun blocks before the first was refused.
    assert moved < (256 << 20) + (os.cpu_count() or 1) * (32 << 20)


@pytest.fixture
def small_disk(tmp_path, monkeypatch):
    """Yield a folder for temporary files on a disk of 16 MiB."""
    with mounted_disk(tmp_path / "disk", "16m") as folder:
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        yield folder


NO_ROOM = r"does not fit into {}: 1[0-5](\.\d)? MiB of it are there, and \S+ (MiB|KiB) are left: TMPDIR, .* a folder"


def test_copy_that_does_not_fit_the_disk_is_refused_and_deleted(tmp_path, small_disk):
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress(b"0 1\n" * (6 << 20)))
    with pytest.raises(mg.WouldNotFit, match="without its compression " + NO_ROOM.format(small_disk)):
        read_edges(path)
    assert list(small_disk.iterdir()) == []
    assert shutil.disk_usage(small_disk).used == 0
    path.write_bytes(gzip.compress(b"0 1\n" * (3 << 20)))
    assert read_edges(path).num_input_edges == 3 << 20


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gzip", "bzip2", "xz"])
def test_binary_copy_that_does_not_fit_the_disk_is_refused(tmp_path, small_disk, pack):
    path = tmp_path / "edges.sg"
    path.write_bytes(pack(bytes(64 << 20)))
    with pytest.raises(mg.WouldNotFit, match="without its compression " + NO_ROOM.format(small_disk)):
        read_edges(path)
    assert shutil.disk_usage(small_disk).used == 0


def test_metis_file_of_one_line_needs_no_memory(tmp_path):
    bomb = tmp_path / "bomb.graph"
    with open(bomb, "wb") as file:
        file.write(b"2 1\n2\n")
        file.truncate(4 << 30)  # a sparse file of zeros
    held, moved, error = read_bomb(bomb, tmp_path)
    assert error.startswith(f"InputError {bomb}, at byte 16777220: the line is longer than all vertices as neighbors")
    assert held < MAX_BYTES
    assert moved < BOMB_BYTES // 8


def test_standard_input_that_does_not_fit_the_disk_is_refused(small_disk):
    process = start("info", "-", stdin=subprocess.PIPE, text=False, env={**ENVIRONMENT, "TMPDIR": str(small_disk)})
    out, err = process.communicate(b"0 1\n" * (6 << 20), timeout=100)
    assert (process.returncode, out) == (5, b"")
    assert re.fullmatch(r"mgraph: standard input " + NO_ROOM.format(small_disk) + ".*\n", err.decode())
    assert shutil.disk_usage(small_disk).used == 0


def test_copy_leaves_a_reserve_on_the_disk(tmp_path, monkeypatch):
    disk = os.statvfs(tmp_path)
    fields = list(disk)
    fields[4] = (60 << 20) // disk.f_frsize  # f_bavail
    monkeypatch.setattr("os.fstatvfs", lambda descriptor: os.statvfs_result(fields))
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress(b"0 1\n"))
    with pytest.raises(mg.WouldNotFit, match=r"0 B of it are there, and 60 MiB are left"):
        read_edges(path)
