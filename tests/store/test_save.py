"""What is saved does not depend on ids of states, and pieces of rows begin where their cuts say."""

from __future__ import annotations

import itertools
import pathlib
import re

import numpy as np
import pytest
from backends import BACKENDS
from builds import build_compact_on
from stores import build_shards, save_shards
from zoo import ZOO, random_case

from mgraph.errors import InputError
from mgraph.partition import Partition
from mgraph.store import save
from mgraph.store.manifest import file_name
from mgraph.store.save import save_shard


def rows_by_position(store) -> list[list[int]]:
    """Return the targets of every position, read as another program would."""
    rows = {}
    for part in range(len(store.parts)):
        lengths, targets = (
            np.fromfile(store.path / file_name(name, part), store.dtypes[name]) for name in ("lengths", "targets")
        )
        of_rows = np.split(targets, np.cumsum(lengths)[:-1].astype(np.int64)) if len(lengths) else []
        positions = store.partition.position(np.arange(len(lengths)) + part * store.partition.stride)
        rows |= dict(zip(positions.tolist(), [row.tolist() for row in of_rows], strict=True))
    return [rows[position] for position in range(store.partition.num_positions)]


@pytest.mark.parametrize("order", ["degree", "natural"])
def test_rows_by_position_do_not_depend_on_the_ranks(order, tmp_path):
    case = random_case(2, num_vertices=300)
    stores = [save_shards(build_shards(case, p, order), tmp_path / str(p)) for p in (1, 2, 5)]
    first, *others = [rows_by_position(store) for store in stores]
    assert others == [first, first]
    assert all(row == sorted(row) for row in first)


def test_every_layout_has_its_files(tmp_path):
    tables = ["lengths", "positions", "users"]
    case = ZOO["star-of-stars"]
    rows = save_shards(build_shards(case, 2), tmp_path / "rows")
    assert sorted(rows.dtypes) == [*tables[:2], "targets", "users", "weights"]
    natural = save_shards(build_shards(case.unweighted, 2, "natural"), tmp_path / "natural")
    assert sorted(natural.dtypes) == ["lengths", "targets"]
    compact = save_shards(build_compact_on(case, 2), tmp_path / "compact")
    blocks = ["tile_edges", "tile_starts", "unit_segments", "unit_tiles", "weights", "words"]
    assert sorted(compact.dtypes) == sorted([*tables, *blocks])
    names = {file_name(name, part) for name in compact.dtypes for part in range(2)}
    assert {path.name for path in compact.path.iterdir()} == names | {"mgraph.json"}


@pytest.mark.parametrize("name", ["cpu", "emulated"])
def test_cuts_are_at_arcs_and_at_rows(tmp_path, monkeypatch, name):
    monkeypatch.setattr(save, "PIECE_ARCS", 8)
    (shard,) = build_shards(ZOO["star"], 1, "natural", backend=BACKENDS[name].make())
    # The hub has 69 arcs, each of its leaves one.
    part, _ = save_shard(shard, tmp_path)
    hub = [(arc, 0, arc) for arc in range(0, 69, 8)]
    arcs = [(arc, arc - 68, 0) for arc in range(72, 138, 8)]
    rows = [(row + 68, row, 0) for row in range(8, 70, 8)]
    assert part.cuts == [*hub, *sorted(arcs + rows), (138, 70, 0)]


def test_cuts_of_no_arcs(tmp_path):
    for name in ("no-vertex", "no-edges"):
        (shard,) = build_shards(ZOO[name], 1, "natural")
        (tmp_path / name).mkdir()
        part, _ = save_shard(shard, tmp_path / name)
        assert part.cuts == [(0, 0, 0), (0, shard.num_owned, 0)]


def test_folder_that_is_gone_is_named(tmp_path):
    (shard,) = build_shards(ZOO["star"], 1)
    with pytest.raises(InputError, match=r"lengths-00000\.bin cannot be written: No such file or directory"):
        save_shard(shard, tmp_path / "none")


def test_partition_of_a_store_is_that_of_its_save(tmp_path):
    store = save_shards(build_shards(ZOO["isolated"], 3), tmp_path / "store")
    assert store.partition == Partition(5, 3, cyclic=True)


def test_other_programs_read_a_store_as_its_document_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (shard,) = build_shards(random_case(1, num_vertices=100), 1)
    save_shards([shard], tmp_path / "graph")
    document = pathlib.Path(__file__).parents[2] / "docs/store.md"
    (program,) = re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)
    names: dict = {}
    exec(program, names)
    indptr = shard.rows.indptr
    assert [row.tolist() for row in names["rows"]] == [
        shard.rows.targets[lo:hi].tolist() for lo, hi in itertools.pairwise(indptr)
    ]
