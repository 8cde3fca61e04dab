"""Read tables of edges on several ranks: the same edges and the same error for any number of them."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass, field

import numpy as np
import pytest
from emulator.backend import EmulatedBackend
from on_ranks import RANKS, run_on_ranks

import mgraph as mg
from mgraph.backends.cpu import CpuBackend
from mgraph.comm.threads import open_threads
from mgraph.edges import EdgePiece
from mgraph.errors import InputError
from mgraph.ingest import read
from mgraph.io import text
from mgraph.io.formats import read_source
from mgraph.labels.strings import Strings

BACKEND = CpuBackend(2)


@dataclass(frozen=True)
class Table:
    """Pieces in memory as a table; an entry that is an exception is raised."""

    pieces: list = field(default_factory=list)
    has_weights: bool = False
    num_vertices: int | None = None
    labels: object = "auto"
    base: int = 0
    declared_edges: int | None = None
    name = "table"
    directed = False

    @property
    def num_pieces(self):
        return len(self.pieces)

    @property
    def max_edges(self):
        return 1

    def piece(self, k, backend):
        if isinstance(self.pieces[k], Exception):
            raise self.pieces[k]
        sources, targets, *rest = self.pieces[k]
        columns = [ids if isinstance(ids, Strings) else np.asarray(ids) for ids in (sources, targets)]
        weights = np.asarray(rest[0]) if rest else None
        doubt = rest[1] if len(rest) > 1 else None
        return EdgePiece(*columns, weights, lambda i: f"piece {k} edge {i}", None, doubt)

    def release(self):
        """Do nothing."""


def edges_of(table, num_ranks, backend=BACKEND):
    """Return the facts of a table, and its edges in order of the pieces, read on some ranks."""
    num_chunks = 3 * num_ranks

    def program(_, comm):
        edges, _labels = read.read_table(table, backend, comm)
        chunks = [edges.chunk(k, num_chunks, backend) for k in range(comm.rank, num_chunks, comm.size)]
        return edges, [(chunk.sources, chunk.targets, chunk.weights) for chunk in chunks]

    ranks = run_on_ranks(program, [None] * num_ranks)
    edges = ranks[0][0]
    assert all(_facts(other) == _facts(edges) for other, _ in ranks)
    columns = zip(*(chunk for _, chunks in ranks for chunk in chunks), strict=True)
    whole = [None if parts[0] is None else np.concatenate(parts) for parts in columns]
    rows = sorted(zip(*(part.tolist() for part in whole if part is not None), strict=True))
    assert len(rows) == edges.num_input_edges
    return *_facts(edges), rows


def _facts(edges):
    return edges.num_vertices, edges.num_input_edges, edges.weight_dtype


@pytest.mark.parametrize("rounds", [1, 64])
def test_edges_do_not_depend_on_the_number_of_ranks(monkeypatch, rounds):
    monkeypatch.setattr(read, "ROUND_PIECES", rounds)
    rng = np.random.default_rng(rounds)
    pieces = [(rng.integers(0, 50, m), rng.integers(0, 50, m), rng.integers(0, 300, m)) for m in (7, 0, 90, 1, 33, 5)]
    expected = sorted((int(u), int(v), int(w)) for piece in pieces for u, v, w in zip(*piece, strict=True))
    for num_ranks in RANKS:
        n, m, dtype, rows = edges_of(Table(pieces, True), num_ranks)
        assert (n, m, dtype) == (50, 136, np.uint16)
        assert rows == expected


def test_table_without_edges_has_the_vertices_that_are_declared():
    for pieces in ([], [([], [])]):
        empty = [tuple(np.array(ids, np.int64) for ids in piece) for piece in pieces]
        assert edges_of(Table(empty, num_vertices=0), 2) == (0, 0, None, [])
        assert edges_of(Table(empty, num_vertices=5), 2) == (5, 0, None, [])
        with pytest.raises(InputError, match=r"has no edges, and does not say .* give num_vertices="):
            edges_of(Table(empty), 2)


@pytest.mark.parametrize(
    ("weights", "dtype"),
    [
        ([np.uint8([1]), np.int64([255])], "uint8"),
        ([np.int64([-1]), np.int64([7])], "int32"),
        ([np.int64([-1]), np.int64([2**31])], "int64"),
        ([np.float32([0.5]), np.float32([1])], "float32"),
        ([np.float32([0.5]), np.int64([1])], "float64"),
        ([np.float32([0.5]), np.float64([1])], "float64"),
        ([np.int64([2**53 + 1]), np.float64([1])], "float64"),
        ([np.float32([]), np.int64([])], "float64"),
        ([np.int64([]), np.int64([])], "uint8"),
    ],
)
def test_weights_of_all_pieces_decide_their_dtype(weights, dtype):
    pieces = [(np.arange(len(w)), np.arange(len(w)), w) for w in weights]
    for num_ranks in (1, 2):
        _, _, found, rows = edges_of(Table(pieces, True, num_vertices=9), num_ranks)
        assert found == dtype
        assert sorted(row[2] for row in rows) == sorted(
            float(w) if dtype[0] == "f" else int(w) for p in weights for w in p
        )


def test_first_wrong_piece_is_reported_whatever_the_number_of_ranks(monkeypatch):
    good = [0, 1], [1, 0]
    errors = {k: InputError(f"piece {k} is wrong") for k in (5, 6, 9, 13)}
    pieces = [errors.get(k, good) for k in range(20)]
    for rounds in (1, 2, 64):
        monkeypatch.setattr(read, "ROUND_PIECES", rounds)
        for num_ranks in RANKS:
            with pytest.raises(InputError, match="piece 5 is wrong"):
                edges_of(Table(pieces), num_ranks)


def test_doubtful_weights_are_refused_unless_some_are_floats():
    doubt = InputError("beyond 64 bits")
    whole = [0], [1], np.int64([1])
    doubtful = [0], [1], np.float64([2.0**70]), doubt
    for num_ranks in (1, 3):
        with pytest.raises(InputError, match="beyond 64 bits"):
            edges_of(Table([whole, doubtful, doubtful], True), num_ranks)
        found = edges_of(Table([whole, doubtful, ([0], [1], np.float64([0.5]))], True), num_ranks)
        assert found == (2, 3, np.float64, [(0, 1, 0.5), (0, 1, 1.0), (0, 1, 2.0**70)])


@pytest.mark.parametrize(
    ("options", "ids", "message"),
    [
        ({"num_vertices": 4}, [0, 4], "piece 1 edge 1: vertex 4 is not in 0..3"),
        ({"num_vertices": 4, "base": 1}, [4, 5], "piece 1 edge 1: vertex 5 is not in 1..4"),
        ({"num_vertices": 4}, [0, -1], "piece 1 edge 1: vertex -1 is negative: vertices are numbered from 0"),
        ({"base": 1}, [2, 0], "piece 1 edge 1: vertex 0 is below the first: vertices are numbered from 1"),
        ({"labels": False}, [-7, 0], "piece 1 edge 0: vertex -7 is negative"),
        ({"labels": False}, [0, 2**63 - 1], "piece 1 edge 1: vertex 9223372036854775807 is beyond 63 bits"),
        ({"declared_edges": 4}, [2, 1], "table has 3 edges where its header says 4"),
    ],
)
def test_wrong_ids_are_named(options, ids, message):
    for pieces in ([([1], [1]), (ids, [1, 1])], [([1], [1]), ([1, 1], ids)]):
        for num_ranks in (1, 2):
            with pytest.raises(InputError, match=message.replace(".", r"\.")):
                edges_of(Table(pieces, **options), num_ranks)


def test_base_is_subtracted():
    assert edges_of(Table([([1, 3], [2, 4])], base=1), 1) == (4, 2, None, [(0, 1), (2, 3)])


@pytest.mark.parametrize(
    ("ids", "are_labels"),
    [
        ([0, 1, 2], False),
        ([0, 5, 3], False),
        ([0, 6, 3], True),
        ([0, -1, 3], True),
        ([0, 10**15], True),
        ([3, 2**63 - 1], True),
        ([3, 2**63], True),
        (list(range(0, 100, 2)), False),
        (list(range(0, 100, 3)), True),
    ],
)
def test_integers_with_gaps_are_labels(ids, are_labels):
    pieces = [(np.array(ids[k::5]), np.array(ids[k::5])) for k in range(5)]
    for num_ranks in (1, 2, 3):
        n, m, _, rows = edges_of(Table(pieces), num_ranks)
        places = {label: k for k, label in enumerate(sorted(ids))} if are_labels else {label: label for label in ids}
        assert (n, m) == (len(ids) if are_labels else max(ids) + 1, len(ids))
        assert rows == sorted((places[label], places[label]) for label in ids)
        if max(ids) < 10**6 and min(ids) >= 0:
            assert edges_of(Table(pieces, labels=False), num_ranks)[0] == max(ids) + 1
            assert edges_of(Table(pieces, num_vertices=10**6), num_ranks)[0] == 10**6
        assert edges_of(Table(pieces, labels=True), num_ranks)[0] == len(ids)


def test_id_that_cannot_be_a_label_is_named():
    large = np.array([5, 2**64 - 1], np.uint64), np.array([2**63, 7], np.uint64)
    pieces = [([0, 1], [1, 2]), large]
    for num_ranks in (1, 2):
        with pytest.raises(InputError, match="piece 1 edge 1: the id 18446744073709551615 cannot be a label"):
            edges_of(Table(pieces), num_ranks)
    large[0][1] = 2**64 - 2
    assert edges_of(Table(pieces), 2)[3] == [(0, 1), (1, 2), (3, 5), (6, 4)]
    assert edges_of(Table(pieces[1:], base=5), 2)[3] == [(0, 2), (3, 1)]


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_piece_may_have_ids_beyond_63_bits_alone(num_ranks):
    beyond = np.array([2**64 - 2], np.uint64), np.array([2**63], np.uint64)
    assert edges_of(Table([beyond, ([0], [1])]), num_ranks)[3] == [(0, 1), (3, 2)]


def test_base_is_no_part_of_labels():
    pieces = [([1, 900], [2, 900])]
    assert edges_of(Table(pieces, base=1), 2) == (3, 2, None, [(0, 1), (2, 2)])


@pytest.mark.parametrize("budget", [0, 100, 1 << 30])
def test_strings_are_mapped_in_order_of_their_bytes(monkeypatch, budget):
    monkeypatch.setattr(read, "memory_budget", lambda backend, comm: budget)
    rng = np.random.default_rng(3)
    names = [f"v{k * k}" for k in range(40)] + ["ü", "Z", "zebra", " a"]
    order = {name: k for k, name in enumerate(sorted(names, key=str.encode))}
    ends = [rng.permutation(names * 3) for _ in range(2)]
    expected = sorted((order[u], order[v]) for u, v in zip(*ends, strict=True))
    pieces = [(Strings.of(ends[0][k::7].tolist()), Strings.of(ends[1][k::7].tolist())) for k in range(7)]
    for num_ranks in RANKS:
        assert edges_of(Table(pieces), num_ranks) == (44, 132, None, expected)
    for options in ({"labels": False}, {"num_vertices": 99}):
        with pytest.raises(InputError, match=r"piece 0 edge 0: ids are strings, and .* says that they are numbers"):
            edges_of(Table(pieces, **options), 2)
    with pytest.raises(InputError, match="piece 1 edge 0: some ids are strings, and others integers"):
        edges_of(Table([([1], [2]), *pieces]), 2)


@pytest.mark.parametrize("num_ranks", [1, 2])
@pytest.mark.parametrize("kept_on_device", [True, False])
@pytest.mark.parametrize("kind", ["strings", "integers", "base"])
def test_labels_of_a_device_are_those_of_the_host(monkeypatch, kind, kept_on_device, num_ranks):
    if not kept_on_device:
        monkeypatch.setattr(read, "device_of", lambda *_: None)
    rng = np.random.default_rng(5)
    ends = rng.integers(1, 40, (2, 200)) ** 5
    if kind == "strings":
        pieces = [tuple(Strings.of([f"v{k}" for k in column[i::3].tolist()]) for column in ends) for i in range(3)]
    else:
        pieces = [tuple(column[i::3] for column in ends) for i in range(3)]
    table = Table(pieces, base=int(kind == "base"))
    assert edges_of(table, num_ranks, EmulatedBackend(seed=6)) == edges_of(table, num_ranks)


@pytest.mark.parametrize("labels", [False, True])
def test_edges_beyond_the_budget_are_kept_in_a_file(monkeypatch, labels):
    rng = np.random.default_rng(4)
    pieces = [(rng.integers(0, 90, m), rng.integers(0, 90, m), rng.random(m)) for m in (1000, 0, 300, 7)]
    found = []
    for budget in (0, 3000, 1 << 30):
        monkeypatch.setattr(read, "memory_budget", lambda backend, comm, budget=budget: budget)
        found += [edges_of(Table(pieces, True, labels=labels), num_ranks) for num_ranks in (1, 3)]
    assert all(edges == found[0] for edges in found)
    assert found[0][:3] == (90, 1307, np.float64)


def test_first_wrong_line_of_all_workers_is_reported(client, tmp_path):
    lines = ["0 1"] * 400_000
    lines[390_000] = "0 x"
    lines[350_000] = "0 y"
    path = tmp_path / "edges.el"
    path.write_text("\n".join(lines))
    with mg.connect(client) as cluster:
        assert cluster.num_ranks > 1
        with pytest.raises(InputError, match=r"edges\.el:350001: vertex 'y' is not a whole number"):
            mg.read(path, cluster=cluster)
        path.write_text("\n".join(["0 1"] * 400_000))
        with mg.read(path, cluster=cluster) as g:
            assert (g.num_edges, g.info.num_parallel) == (1, 399_999)


@pytest.mark.ci
def test_memory_beyond_the_budget_is_that_of_a_few_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "PIECE_BYTES", 1 << 16)
    monkeypatch.setattr(text, "MIN_PIECE_BYTES", 1 << 16)
    monkeypatch.setattr("mgraph.io.text.MAX_LINE_BYTES", 1 << 10)
    monkeypatch.setattr(read, "memory_budget", lambda backend, comm: 1 << 18)
    path = tmp_path / "edges.wel"
    path.write_text("".join(f"{k} {k // 2} 0.25\n" for k in range(300_000)))
    table = read_source(path)
    comm = open_threads(1)[0]
    read.read_table(table, BACKEND, comm)  # compiles
    tracemalloc.start()
    try:
        edges, _ = read.read_table(table, BACKEND, comm)
        assert tracemalloc.get_traced_memory()[1] < 3 << 20, "16 bytes for each of 300,000 edges are 4.6 MiB"
    finally:
        tracemalloc.stop()
    assert edges.num_input_edges == 300_000
    assert float(edges.chunk(0, 1, BACKEND).weights.sum()) == 75_000
