"""Measure the deduplication of a folder of Parquet files: pairs of equal records in, a label for every id out.

    python bench/deduplicate.py --pairs 100000000 --ids 50000000

Makes the files (ids are strings of 16 characters; groups of four ids are linked by a cycle and by random pairs), runs

    mgraph components pairs/ --source a --target b -o labels/

as a process of its own, once without and once with an output, checks every label, and records the seconds of both
and the largest memory of the process. All kernels are compiled before, by runs on a thousandth of the pairs; the last
of these tells how long a process takes that has little to do. Then it runs the second command twice in one process,
and records the seconds of its phases the second time. Files are read from the page cache.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import importlib
import io
import json
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet as pq
import record

from mgraph.cli.main import main as cli
from mgraph.cluster.devices import visible_gpus
from mgraph.formatting import readable_bytes

GROUP = 4
ROWS_PER_FILE = 1 << 23
FEW = 1000
# Functions with seconds to be added up, of all threads together: where they are looked up, and their names there.
PHASES = {
    "read": ("mgraph.rank_jobs.build", "read_table"),
    "read.pieces": ("mgraph.io.parquet", "ParquetTable.piece"),
    "read.utf8": ("mgraph.ingest.read", "first_invalid"),
    "read.encode": ("mgraph.labels.reader", "LabelReader.add"),
    "read.encode.pack": ("mgraph.labels.device_dictionary", "_packed"),
    "read.encode.insert": ("mgraph.labels.device_dictionary", "DeviceDictionary._insert"),
    "read.map": ("mgraph.ingest.read", "mapped"),
    "read.map.finish": ("mgraph.labels.reader", "LabelReader.finish"),
    "read.map.sort": ("mgraph.labels.device_sort", "sort_codes"),
    "build": ("mgraph.rank_jobs.build", "build"),
    "components": ("mgraph.rank_jobs.components", "run_variant.compute_components"),
    "write": ("mgraph.api.tables_on_ranks", "write_parts"),
    "write.rows": ("mgraph.rank_jobs.table_rows", "ResultRows._rows"),
    "write.labels": ("mgraph.labels.table", "LabelTable.labels_of"),
    "write.parquet": ("mgraph.rank_jobs.table_rows", "write_parquet"),
}
HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def names_of(ids: np.ndarray) -> pa.Array:
    """Return the names of ids: 16 hexadecimal digits of a bijection of 64-bit words."""
    words = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    octets = words.astype(">u8").view(np.uint8)
    digits = np.empty((len(octets), 2), np.uint8)
    digits[:, 0] = HEX[octets >> 4]
    digits[:, 1] = HEX[octets & 15]
    offsets = np.arange(len(ids) + 1, dtype=np.int32) * 16
    return pa.Array.from_buffers(pa.string(), len(ids), [None, pa.py_buffer(offsets), pa.py_buffer(digits.ravel())])


def write_pairs(folder: pathlib.Path, num_pairs: int, num_ids: int, seed: int) -> int:
    """Write the pairs; return the bytes of the files."""
    random = np.random.default_rng(seed)
    for k, first in enumerate(range(0, num_pairs, ROWS_PER_FILE)):
        rows = np.arange(first, min(first + ROWS_PER_FILE, num_pairs))
        # The first pairs link every id with the next of its group; the others are random pairs within groups.
        a = np.where(rows < num_ids, rows, random.integers(0, num_ids, len(rows)))
        step = np.where(rows < num_ids, 1, random.integers(1, GROUP, len(rows)))
        b = a - a % GROUP + (a + step) % GROUP
        table = pa.table({"a": names_of(a), "b": names_of(b), "score": random.random(len(rows), np.float32)})
        pq.write_table(table, folder / f"part-{k:05d}.parquet")
    return sum(path.stat().st_size for path in folder.iterdir())


def check(folder: pathlib.Path, num_ids: int) -> None:
    """Compare every label with the smallest name of its group."""
    table = pyarrow.dataset.dataset(folder).to_table()
    assert len(table) == num_ids, f"{len(table)} ids of {num_ids}"
    found = pa.table({"name": table.column(0).cast(pa.string()), "label": table.column(1).cast(pa.string())})
    for first in range(0, num_ids, ROWS_PER_FILE):
        ids = np.arange(first, min(first + ROWS_PER_FILE, num_ids))
        names = names_of(ids).to_numpy(zero_copy_only=False).astype("S16")
        least = np.repeat(np.sort(names.reshape(-1, GROUP), axis=1)[:, 0], GROUP)
        expected = pa.table({"name": pa.array(names.astype(str)), "expected": pa.array(least.astype(str))})
        both = expected.join(found, "name", join_type="inner")
        assert len(both) == len(ids), "an id is missing"
        assert pyarrow.compute.all(pyarrow.compute.equal(both["label"], both["expected"])).as_py(), "a wrong label"


def run(command: list[str]) -> tuple[float, float, int, dict]:
    """Run a command; return its seconds, those of all cores together, the largest memory so far, and its JSON."""
    started = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime - before.ru_utime + used.ru_stime - before.ru_stime
    return seconds, cpu, used.ru_maxrss << 10, json.loads(done.stdout)


@contextlib.contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Yield the seconds of the phases, which are added up until the end."""
    seconds: dict[str, float] = collections.defaultdict(float)
    lock = threading.Lock()

    def wrapped(phase: str, function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*args: object, **options: object) -> object:
            started = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                with lock:
                    seconds[phase] += time.perf_counter() - started

        return call

    with contextlib.ExitStack() as undo:
        for phase, (module, name) in PHASES.items():
            *owners, name = name.split(".")
            owner = functools.reduce(getattr, owners, importlib.import_module(module))
            undo.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, wrapped(phase, getattr(owner, name)))
        yield seconds


def phases_of(words: list[str]) -> dict[str, float]:
    """Run a command of mgraph in this process; return the seconds of its phases."""
    with timed() as seconds, contextlib.redirect_stdout(io.StringIO()):
        started = time.perf_counter()
        click.Group.main(cli, words, standalone_mode=False)  # which raises errors, and does not exit
        seconds["all"] = time.perf_counter() - started
    return {phase: round(seconds[phase], 3) for phase in ("all", *PHASES)}


def words_of(root: pathlib.Path, pairs: str, backend: str) -> list[str]:
    """Return the words of the command that labels a folder of pairs."""
    return [
        *("components", str(root / pairs), "--source", "a", "--target", "b", "--weight", "none"),
        *("--backend", backend, "--json"),
    ]


@click.command(help=__doc__)
@click.option("--pairs", type=int, default=100_000_000, show_default=True)
@click.option("--ids", type=int, default=50_000_000, show_default=True, help="A multiple of four, at most --pairs.")
@click.option("--backend", default="auto", show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--folder", type=click.Path(path_type=pathlib.Path), help="Where the files are made, and removed again.")
@click.option("--commit", "commit_name")
def main(pairs: int, ids: int, backend: str, seed: int, folder: pathlib.Path | None, commit_name: str | None) -> None:
    if ids % GROUP or ids > pairs:
        raise click.UsageError(f"--ids must be a multiple of {GROUP}, at most --pairs")
    root = pathlib.Path(tempfile.mkdtemp(dir=folder))
    process = [sys.executable, "-m", "mgraph"]
    try:
        for name, share in (("few", FEW), ("pairs", 1)):
            (root / name).mkdir()
            num_bytes = write_pairs(root / name, pairs // share, max(ids // share // GROUP, 1) * GROUP, seed)
        click.echo(f"{pairs:,} pairs of {ids:,} ids: {readable_bytes(num_bytes)} of Parquet")
        for output in ("few-1", "few-2"):
            start_s, _, _, _ = run([*process, *words_of(root, "few", backend), "-o", str(root / output) + "/"])
        words = words_of(root, "pairs", backend)
        labelled_s, _, _, result = run([*process, *words])
        assert result["num_components"] == ids // GROUP, result["num_components"]
        written_s, written_cpu_s, peak, result = run([*process, *words, "-o", str(root / "labels") + "/"])
        check(root / "labels", ids)
        for output in ("once", "again"):
            seconds = phases_of([*words, "-o", str(root / output) + "/"])
    finally:
        shutil.rmtree(root)
    for phase, length in seconds.items():
        click.echo(f"{phase:20} {length:8.3f} s")
    click.echo(f"labelled in {labelled_s:.1f} s, written too in {written_s:.1f} s, {readable_bytes(peak)} of memory")
    click.echo(f"a process with a thousandth of the pairs takes {start_s:.1f} s")
    facts = {
        "graph": f"pairs{pairs}",
        "pairs": pairs,
        "ids": ids,
        "file_bytes": num_bytes,
        "start_s": start_s,
        "labelled_s": labelled_s,
        "written_s": written_s,
        "written_cpu_s": written_cpu_s,
        "phases_s": seconds,
    }
    used = ("cuda" if visible_gpus() else "cpu") if backend == "auto" else backend
    record.append(used, commit_name, {"bench": "deduplicate", "backend": used, **facts, "peak_bytes": peak})


if __name__ == "__main__":
    main()
