"""The places of dealt rows follow from arithmetic alone."""

from __future__ import annotations

import numpy as np
import pytest
from stores import build_shards, save_shards
from zoo import random_case

from mgraph.partition import Partition
from mgraph.store import save
from mgraph.store.deal import Piece, pieces_of_arcs, pieces_of_rows


@pytest.mark.parametrize("num_parts", [1, 2, 3, 4, 6, 7])
@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4, 6, 7])
def test_dealt_rows_are_those_of_the_partition(num_parts, num_ranks):
    old = Partition(200, num_parts, cyclic=True)
    new = Partition(200, num_ranks, cyclic=True)
    for part in range(num_parts):
        for first, last in ((0, old.num_owned(part)), (5, 6), (3, 3), (11, 25)):
            positions = np.arange(first, last) * num_parts + part
            piece = Piece(part, range(first, last), range(0), 0, None)
            for rank in range(num_ranks):
                rows, local = piece.dealt(num_parts, rank, num_ranks)
                mine = np.flatnonzero(new.owner(positions) == rank)
                assert list(range(last - first)[rows]) == mine.tolist()
                assert list(range(new.num_owned(rank))[local]) == new.local(positions[mine]).tolist()


def test_pieces_cover_rows_and_arcs_once(tmp_path, monkeypatch):
    monkeypatch.setattr(save, "PIECE_ARCS", 16)
    monkeypatch.setattr("mgraph.store.deal.PIECE_ARCS", 16)
    case = random_case(1, num_vertices=400)
    shards = build_shards(case, 3)
    store = save_shards(shards, tmp_path / "store")
    for number, shard in enumerate(shards):
        indptr = shard.rows.indptr
        rows = [piece for piece in pieces_of_rows(store) if piece.part == number]
        assert [row for piece in rows for row in piece.rows] == list(range(shard.num_owned))
        arcs = [piece for piece in pieces_of_arcs(store) if piece.part == number]
        assert [arc for piece in arcs for arc in piece.arcs] == list(range(indptr[-1]))
        for piece in arcs:
            assert len(piece.arcs) <= 16
            assert len(piece.rows) <= 17
            lengths = piece.lengths_of(np.diff(indptr)[piece.rows.start : piece.rows.stop], slice(None))
            assert lengths.sum() == len(piece.arcs)
            assert piece.arcs.start == indptr[piece.rows.start] + piece.skip
