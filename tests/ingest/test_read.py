"""Read tables of edges on several ranks: the same edges and the same error for any number of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from on_ranks import RANKS, run_on_ranks

from mgraph.backends.cpu import CpuBackend
from mgraph.edges import EdgePiece
from mgraph.errors import InputError
from mgraph.ingest import read

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
        columns = [np.asarray(column) for column in (sources, targets)]
        weights = np.asarray(rest[0]) if rest else None
        doubt = rest[1] if len(rest) > 1 else None
        return EdgePiece(*columns, weights, lambda i: f"piece {k} edge {i}", None, doubt)

    def release(self):
        """Do nothing."""


def edges_of(table, num_ranks):
    """Return the facts of a table, and its edges in order of the pieces, read on some ranks."""
    num_chunks = 3 * num_ranks

    def program(_, comm):
        edges, _labels = read.read_table(table, BACKEND, comm)
        chunks = [edges.chunk(k, num_chunks, BACKEND) for k in range(comm.rank, num_chunks, comm.size)]
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


def test_table_without_edges_has_no_vertices():
    for pieces in ([], [([], [])]):
        empty = [tuple(np.array(ids, np.int64) for ids in piece) for piece in pieces]
        assert edges_of(Table(empty), 2) == (0, 0, None, [])
        assert edges_of(Table(empty, num_vertices=5), 2) == (5, 0, None, [])


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
        _, _, found, rows = edges_of(Table(pieces, True), num_ranks)
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


def test_ids_with_gaps_are_labels():
    is_label: Callable[[list], bool] = lambda ids: _is_refused(Table([(ids, ids)]))  # noqa: E731
    assert not is_label([0, 1, 2])
    assert not is_label([0, 5, 3])
    assert is_label([0, 6, 3])
    assert is_label([0, -1, 3])
    assert is_label([0, 10**15])
    assert not _is_refused(Table([([0, 10**6], [1, 1])], num_vertices=10**7))
    assert not _is_refused(Table([([0, 10**6], [1, 1])], labels=False))


def _is_refused(table):
    answers = set()
    for num_ranks in (1, 2, 3):
        try:
            edges_of(table, num_ranks)
            answers.add(False)
        except InputError as error:
            assert "labels are not read yet" in str(error)  # noqa: PT017  in a loop
            answers.add(True)
    (answer,) = answers
    return answer
