"""Specs: every kind of graph by its short name, and errors of one line."""

from __future__ import annotations

import pytest

from mgraph.errors import UsageError
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.generate.spec import KINDS, is_spec, parse_spec
from mgraph.generate.ssca2 import Ssca2
from mgraph.generate.uniform import FixedOutDegree, Uniform


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("rmat:20", Rmat(20)),
        ("rmat:20:8", Rmat(20, 8)),
        ("rmat:20,edge_factor=8,seed=3,weights=float32", Rmat(20, 8, seed=3, weights="float32")),
        ("rmat:5, scramble=no", Rmat(5, scramble=False)),
        ("rmat:5,weights=none,max_weight=9", Rmat(5, weights=None, max_weight=9)),
        ("uniform:1000000:16", Uniform(1000000, 16)),
        ("uniform:2^24:16", Uniform(2**24, 16)),
        ("uniform:10:2.5", Uniform(10, 2.5)),
        ("uniform:10,degree=3", Uniform(10, 3)),
        ("fixed:100:5", FixedOutDegree(100, 5)),
        ("grid:4096x4096", Grid(4096, 4096)),
        ("grid:3x5:0.2", Grid(3, 5, 0.2)),
        ("grid:3x5,drop=0", Grid(3, 5, 0)),
        ("ssca2:16", Ssca2(16)),
        ("ssca2:16:48", Ssca2(16, 48)),
    ],
)
def test_specs_are_parsed(text, source):
    assert parse_spec(text) == source


@pytest.mark.parametrize(
    ("text", "name"),
    [("rmat:20", "rmat20"), ("uniform:2^24:16", "uni24"), ("grid:4096x4096", "grid4k"), ("ssca2:16", "ssca2-16")],
)
def test_names_are_those_of_the_benchmarks(text, name):
    assert parse_spec(text).name == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rmta:20", r"'rmta:20' is no spec, which begins with rmat, uniform, fixed, grid, ssca2"),
        ("rmat", r"'rmat': scale is missing, expected rmat:SCALE\[:EDGE_FACTOR\]"),
        ("rmat:", r"scale '' is not a whole number"),
        ("rmat:2.5", r"scale '2.5' is not a whole number"),
        ("rmat:abc", r"scale 'abc' is not a whole number"),
        ("rmat:20:16:3", r"expected rmat:SCALE\[:EDGE_FACTOR\]"),
        ("rmat:scale=4", r"scale 'scale=4' is not a whole number"),
        ("rmat:99", r"'rmat:99': scale 99 is not in 0..62"),
        ("rmat:20,seed", r"'seed' is not NAME=VALUE with a name of scale, edge_factor"),
        ("rmat:20,sed=3", r"'sed=3' is not NAME=VALUE"),
        ("rmat:20:8,edge_factor=3", r"edge_factor is given twice"),
        ("rmat:20,scramble=maybe", r"scramble 'maybe' is not one of true, yes, 1"),
        ("rmat:20,weights=int8", r"weights 'int8' is not one of int"),
        ("uniform:100", r"degree is missing, expected uniform:VERTICES:DEGREE"),
        ("uniform:99999^999:3", r"num_vertices '99999\^999' is not a whole number"),
        ("uniform:100:x", r"degree 'x' is not a number"),
        ("grid:100", r"columns is missing, expected grid:ROWSxCOLUMNS"),
        ("grid:3x5x7x9", r"expected grid:ROWSxCOLUMNS"),
        ("grid:3x5:1.5", r"drop 1.5 is not in 0..1"),
    ],
)
def test_wrong_spec_is_refused_in_one_line(text, message):
    with pytest.raises(UsageError, match=message) as caught:
        parse_spec(text)
    assert "\n" not in str(caught.value)


def test_specs_are_distinguished_from_paths():
    assert all(is_spec(f"{kind}:1") for kind in KINDS)
    assert not any(is_spec(path) for path in ("rmat", "rmat.csv", "C:/rmat", "edges.el", "host:rmat:20"))
