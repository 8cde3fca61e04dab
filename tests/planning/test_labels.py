"""The plan of labels covers what a build of labelled ids takes, and is not much more."""

from __future__ import annotations

import threading
import tracemalloc

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from cli_runs import run
from on_ranks import run_on_ranks

from mgraph.backends.cpu import CpuBackend
from mgraph.ingest.build import build
from mgraph.ingest.read import read_table
from mgraph.io import text
from mgraph.io.formats import read_source
from mgraph.labels import dictionary
from mgraph.labels.dictionary import group_strings
from mgraph.planning.labels import LABELS, LABELS_READ, LABELS_SORTED, ON_HOST, PlannedLabels
from mgraph.planning.memory import plan_graph

EDGES = 150_000
THREADS = 2
NAMES = {
    "short": "{:x}",
    "long": "record/{:032x}",
    "16 bytes": "{:016x}",
}


def write_names(folder, name, num_labels=2 * EDGES):
    """Write a matching of labels, or a graph of fewer labels, as text."""
    ids = np.random.default_rng(1).permutation(2 * EDGES) % num_labels
    path = folder / "edges.csv"
    names = [name.format(i * 0x9E3779B1 % (1 << 32)) for i in ids.tolist()]
    path.write_text("source,target\n" + "".join(map("{},{}\n".format, names[::2], names[1::2])))
    return path


def label_bytes_of(table, backend, num_ranks):
    """Build a table; return the bytes of its labels."""

    def program(table, comm):
        edges, labels = read_table(table, backend, comm)
        build(edges, backend, comm)
        return labels.nbytes

    return sum(run_on_ranks(program, [table] * num_ranks))


def peak_of(table, backend, num_ranks=1):
    """Return the most bytes that a build of a table holds at a time, and those of its labels."""
    # The first build also compiles kernels, which takes memory.
    label_bytes_of(table, backend, num_ranks)
    tracemalloc.start(1)
    try:
        held = label_bytes_of(table, backend, num_ranks)
        return tracemalloc.get_traced_memory()[1], held
    finally:
        tracemalloc.stop()


@pytest.fixture
def cpu(monkeypatch):
    """Return a backend of two threads, as many as the plan then counts on any host."""
    monkeypatch.setattr("mgraph.planning.labels.available_cores", lambda: THREADS)
    return CpuBackend(THREADS)


@pytest.fixture
def read_by_two(monkeypatch):
    """Return a function that opens a table of which two threads always hold a piece each while they encode it.

    Else the load of the machine would decide how much is held at a time.
    """
    barrier = threading.Barrier(THREADS, timeout=60)

    def group(*args):
        group_strings(*args)
        barrier.wait()

    def opened(path, **options):
        monkeypatch.setattr(dictionary, "group_strings", group)
        # An even number of pieces.
        monkeypatch.setattr(text, "MIN_PIECE_BYTES", -(-path.stat().st_size // (2 * THREADS)))
        return read_source(path, **options)

    return opened


@pytest.mark.ci
@pytest.mark.parametrize("name", NAMES)
def test_plan_of_strings_covers_their_build_by_at_most_a_third_more(name, cpu, read_by_two, tmp_path):
    table = read_by_two(write_names(tmp_path, NAMES[name]), labels="string")
    plan = plan_graph(table, 1, "cpu", 1 << 34)
    peak, held = peak_of(table, cpu)
    assert peak <= plan.needed_bytes <= 4 / 3 * peak
    assert held <= plan.parts[LABELS] <= 1.1 * held


def test_plan_of_several_ranks_covers_their_build(cpu, tmp_path):
    table = read_source(write_names(tmp_path, NAMES["16 bytes"]), labels="string")
    peak, held = peak_of(table, cpu, num_ranks=3)
    plan = plan_graph(table, 3, "cpu", 1 << 34)
    # The pieces that ranks read at a time are much of a table as small as this one.
    assert peak <= 3 * plan.needed_bytes <= 2 * peak
    assert held <= 3 * plan.parts[LABELS] <= 1.1 * held


def test_plan_of_integers_covers_their_build_by_at_most_a_third_more(cpu, read_by_two, tmp_path):
    ids = np.random.default_rng(2).permutation(2 * EDGES) * 10**9
    path = tmp_path / "edges.csv"
    path.write_text("source,target\n" + "".join(map("{},{}\n".format, ids[::2].tolist(), ids[1::2].tolist())))
    peak, held = peak_of(read_by_two(path), cpu)
    # Labels by request, and by gaps that samples of the file show.
    for table in (read_source(path), read_source(path, labels=True)):
        plan = plan_graph(table, 1, "cpu", 1 << 34)
        assert peak <= plan.needed_bytes <= 4 / 3 * peak
        assert plan.parts[LABELS] == pytest.approx(held, rel=0.05)


def test_plan_covers_graphs_of_fewer_labels(cpu, tmp_path):
    table = read_source(write_names(tmp_path, NAMES["16 bytes"], num_labels=EDGES // 8), labels="string")
    peak, _ = peak_of(table, cpu)
    assert peak <= plan_graph(table, 1, "cpu", 1 << 34).needed_bytes


def test_plan_knows_strings_of_parquet_by_their_columns(tmp_path):
    names = [f"{i:016x}" for i in np.random.default_rng(3).integers(0, 1 << 60, 2 * EDGES).tolist()]
    table = pyarrow.table({"source": names[::2], "target": names[1::2], "other": names[::2]})
    for k in range(2):
        pyarrow.parquet.write_table(table, tmp_path / f"part-{k}.parquet")
    options = {"source": "source", "target": "target", "weight": False}
    one = plan_graph(read_source(tmp_path / "part-0.parquet", **options), 1, "cpu", 1 << 34)
    two = plan_graph(read_source(tmp_path, **options), 1, "cpu", 1 << 34)
    # Of each string 16 bytes, and its offset.
    assert one.parts[LABELS] == pytest.approx(2 * EDGES * (16 + 8), rel=0.01)
    # The second file has the same strings.
    assert two.parts[LABELS] == pytest.approx(one.parts[LABELS], rel=0.01)
    pyarrow.parquet.write_table(pyarrow.table({"source": [1, 2], "target": [2, 3]}), tmp_path / "numbers.parquet")
    assert LABELS not in plan_graph(read_source(tmp_path / "numbers.parquet"), 1, "cpu", 1 << 34).parts


def test_labels_beside_gpus_are_on_the_host(tmp_path):
    table = read_source(write_names(tmp_path, NAMES["short"]), labels="string")
    plan = plan_graph(table, 2, "cuda", 1 << 34)
    assert {LABELS + ON_HOST, LABELS_READ + ON_HOST, LABELS_SORTED + ON_HOST} <= plan.parts.keys()
    needed = plan.needed_bytes
    plan.parts[LABELS_SORTED + ON_HOST] += 1 << 34
    assert plan.needed_bytes == needed


def test_more_ranks_have_fewer_labels_each():
    labels = PlannedLabels(1 << 20, 16, is_text=True)
    one, four, eight = (labels.parts(1 << 20, 64, num_ranks, 1 << 40) for num_ranks in (1, 4, 8))
    assert four[LABELS] == pytest.approx(one[LABELS] / 4, rel=0.01)
    for part in (LABELS_READ, LABELS_SORTED):
        assert eight[part] < four[part] < one[part]


def test_plan_prints_the_parts_of_labels(tmp_path):
    text = run("plan", write_names(tmp_path, NAMES["short"]), "--labels", "string").stdout
    for part in (LABELS, LABELS_READ, LABELS_SORTED):
        assert part in text
