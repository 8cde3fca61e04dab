"""Test what a job file may say: every fault is named by line and key."""

from __future__ import annotations

import pytest

from mgraph.cli.job_file import line_of, read_job
from mgraph.errors import InputError, UsageError

GOOD = """\
manifest = "done.json"
[graph]
input = "edges.csv"   # line 3
source-column = 0
directed = true

[cluster]
workers = 2
[limits]
memory = "2GiB"
verb-timeout = 2.5

[[run]]
algorithm = "bfs"
source = [
  5,
  "random",
]
depth-limit = 3
[[run]]
algorithm = "msf"
maximum = true
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read_text(text):
        (tmp_path / "job.toml").write_text(text)
        return read_job("job.toml")

    return read_text


def test_tables_become_options_of_commands(read):
    job = read(GOOD)
    first, second = job.runs
    assert (job.options["directed"], job.options["verb_timeout_s"], job.options["memory"]) == (True, 2.5, 2 << 30)
    assert (first.options["source"], first.options["depth_limit"]) == (("5", "random"), 3)
    assert (second.options["maximum"], second.options["num_ranks"], second.options["output"]) == (True, 2, None)
    assert str(job.manifest) == "done.json"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[cluster]",
            "[clusters]",
            "job.toml:7: clusters: there is no such key: manifest, graph, cluster, limits, run",
        ),
        (
            "workers",
            "ranks",
            "job.toml:8: cluster.ranks: there is no such key: scheduler, scheduler-file, workers, back",
        ),
        ("workers = 2", "workers = 0", "job.toml:8: cluster.workers: 0 is not in the range x>=1"),
        ("workers = 2", "workers = true", "job.toml:8: cluster.workers: True is no text or number"),
        ("directed = true", 'directed = "yes"', "job.toml:5: graph.directed: 'yes' is neither true nor false"),
        ('"msf"\nmaximum = true', '"k-hop"\nsource = 1\nhops = -1', "job.toml:23: run[2].hops: -1 is not in the range"),
        ('"msf"\nmaximum = true', '"k-hop"\nsource = 1', "job.toml:20: run[2].hops: "),
        (
            '"msf"\nmaximum',
            '"degrees"\nvalidate',
            "job.toml:22: run[2].validate: there is no such key: algorithm, direc",
        ),
        ("maximum = true", "depth-limit = 3", "job.toml:22: run[2].depth-limit: there is no such key: algorithm, max"),
        ("depth-limit = 3", 'depth-limit = "x"', "job.toml:19: run[1].depth-limit: 'x' is not a valid whole number"),
        ('"random"', "[1]", "job.toml:15: run[1].source: [5, [1]] is no text or number, nor a list of them"),
        ("memory = ", 'on-loss = "retry" #', "job.toml:10: limits.on-loss: 'retry' is not one of 'error', 'rebuild'"),
        ("memory = ", "memory = [1] #", "job.toml:10: limits.memory: [1] is no text or number"),
        ('"msf"', '"mst"', "job.toml:21: run[2].algorithm: it must be one of bfs, sssp, path, distances, k-hop"),
        ('algorithm = "msf"', "", "job.toml:20: run[2].algorithm: it must be one of"),
        ("source = ", "path-to = 1 #", "job.toml is not TOML: "),
        ("maximum", "overwrite", "job.toml:22: run[2].overwrite: there is no such key"),
        ('"edges.csv"', "5", "job.toml:3: graph.input: it must name the input"),
        ('"edges.csv"', '"-"', "job.toml:3: graph.input: standard input cannot be read again"),
        ("input =", "order =", "job.toml:2: graph.input: it must name the input"),
        ('manifest = "done.json"', "manifest = 3", "job.toml:1: manifest: it must name a file"),
        ('manifest = "done.json"', "limits = 3 #", "job.toml is not TOML: "),
        ("directed = true", 'order = "random"', "job.toml:5: graph.order: 'random' is not one of 'auto', 'degree'"),
    ],
)
def test_faults_name_line_and_key(read, old, new, message):
    assert old in GOOD
    with pytest.raises(UsageError) as caught:
        read(GOOD.replace(old, new))
    assert message in str(caught.value)


def test_layout_of_an_algorithm_that_needs_rows_is_refused(read):
    text = GOOD.replace("directed = true", 'layout = "host"').replace('"msf"\nmaximum = true', '"core-numbers"')
    with pytest.raises(UsageError, match=r"job\.toml:5: graph\.layout: core-numbers needs rows"):
        read(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "job.toml: a job needs a table [graph]"),
        ('[graph]\ninput = "rmat:5"\n', "job.toml: a job needs a table [[run]]"),
        ("[[graph]]\n", "job.toml:1: graph: it must be a table, [graph]"),
        ('[graph]\ninput = "rmat:5"\n[run]\n', "job.toml:3: run: it must be a table for each run, [[run]]"),
        ('[graph]\ninput = "rmat:5"\n\n[[run]]\nalgorithm = "bfs"\n', "job.toml:4: run[1].source: "),
    ],
)
def test_missing_parts_are_named(read, text, message):
    with pytest.raises(UsageError) as caught:
        read(text)
    assert message in str(caught.value)


def test_unreadable_file_is_bad_input(tmp_path):
    (tmp_path / "noise.toml").write_bytes(b"\xff\xfe")
    for name in ("none.toml", "noise.toml"):
        with pytest.raises(InputError, match=f"{name} cannot be read: "):
            read_job(str(tmp_path / name))


def test_line_of_a_key_is_where_its_statement_begins():
    text = 'a = """\nb = 1\n"""\n# b = 2\n\n[c]\nb = [\n 1,\n]\nd.e = 5\n[[f]]\n[[f]]\ng = {h = 1}\n'
    places = {("a",): 1, ("c",): 6, ("c", "b"): 7, ("c", "d", "e"): 10, ("f", 1): 12, ("f", 1, "g", "h"): 13}
    assert {place: line_of(text, place) for place in places} == places
    assert line_of(text, ("b",)) == line_of(text, ("f", 2)) == 0
