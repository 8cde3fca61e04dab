"""Test `mgraph diameter`."""

from __future__ import annotations

import json
import re

from cli_runs import refused, run

CPU = ("--backend", "cpu")


def test_diameter_is_printed_by_weights_and_in_hops(tmp_path):
    (tmp_path / "path.wel").write_text("0 1 5\n1 2 1\n2 3 5\n7 8 1\n")
    given = tmp_path / "path.wel", "--largest", *CPU
    assert re.fullmatch(r"<diameter of path-part: 11, \d+ searches, .*s>\n", run("diameter", *given).stdout)
    hops = json.loads(run("diameter", *given, "--hops", "--json").stdout)
    assert (hops["diameter"], hops["weighted"], hops["exact"], hops["info"]["num_vertices"]) == (3, False, True, 4)
    line = run("diameter", *given, "--lower-bound").stdout
    assert re.fullmatch(r"<diameter of path-part: at least 11, 4 searches, .*s>\n", line)
    (tmp_path / "arcs.el").write_text("0 1\n1 2\n2 0\n2 3\n")
    directed = run("diameter", tmp_path / "arcs.el", "--directed", "--largest", *CPU).stdout
    assert directed.startswith("<diameter of arcs-part: 2 hops, ")
    line = refused("diameter", tmp_path / "path.wel", *CPU, code=2)
    assert "path is not connected, and eccentricities are infinite: it has isolated vertices" in line
