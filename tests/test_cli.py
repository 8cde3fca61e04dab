"""The command line: every command, every exit code, one line for whatever is wrong."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import numpy as np
import oracles
import pandas
import pytest
from click.testing import CliRunner
from dask_processes import scheduler_by_hand, worker_by_hand
from zoo import ZOO

import mgraph
from mgraph.cli.main import COMMANDS, main
from mgraph.errors import ClusterError
from mgraph.kernels.backend import CpuBackend

ROOT = pathlib.Path(__file__).parents[1]
# What a command does is the same on any backend; here it is told of no GPU, wherever the tests run.
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
IMPORTS = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
ENVIRONMENT = {**os.environ, **IMPORTS, **NO_GPU}
CASE = ZOO["grid"]


@pytest.fixture(autouse=True)
def without_gpus(monkeypatch):
    """Hide the GPUs from the commands of this process."""
    for name, value in NO_GPU.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with a graph in it."""
    monkeypatch.chdir(tmp_path)
    lines = zip(CASE.sources.tolist(), CASE.targets.tolist(), CASE.weights.tolist(), strict=True)
    (tmp_path / "edges.wel").write_text("".join(f"{u} {v} {w}\n" for u, v, w in lines))
    return tmp_path


def run(*arguments, code=0):
    """Run a command in this process; return its result when it ended with this code."""
    result = CliRunner().invoke(main, list(map(str, arguments)), prog_name="mgraph")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*arguments, code):
    """Run a command that must fail; return the one line that says why."""
    line = run(*arguments, code=code).stderr.splitlines()[-1]
    assert line.startswith("mgraph: ")
    return line


def start(*arguments, **options):
    """Start a command in a process of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": ENVIRONMENT}
    return subprocess.Popen([sys.executable, "-m", "mgraph", *arguments], **(pipes | options))


def test_help_tells_every_command_and_loads_none():
    # What matters is loaded at all, so in a process of its own.
    code = """
import sys
from mgraph.cli.main import main
try:
    main(["--help"], prog_name="mgraph")
finally:
    heavy = {"numpy", "numba", "scipy", "rich", "dask", "distributed", "cupy"} & sys.modules.keys()
    assert not heavy, heavy
"""
    answer = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    for command in COMMANDS:
        assert re.search(rf"^  {command} +[A-Z].*", answer.stdout, re.MULTILINE)
    # Lines are as long as a terminal is wide.
    assert run("-h").stdout == run("--help").stdout == run().stdout
    assert run("-h").stdout.split() == answer.stdout.split()


def test_version():
    assert run("--version").output == f"mgraph, version {mgraph.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(command):
    text = run(command, "--help").output
    assert text.startswith(f"Usage: mgraph {command} [OPTIONS]")
    options = set(re.findall(r"^ +(?:-\w, )?--([\w-]+)", text, re.MULTILINE))
    assert "help" in options
    assert ("json" in options) == (command != "generate")
    if command in ("graph500", "bfs", "sssp", "components", "msf", "info"):
        assert options >= {"scheduler", "scheduler-file", "workers", "backend"}


def test_bfs_says_what_it_found(folder):
    result = run("bfs", "edges.wel", "--source", 0, "--path-to", 3, "--validate", "--trace")
    head, path, *tables = result.stdout.splitlines()
    assert re.fullmatch(
        r"<bfs of edges from 0: 72 of 72 vertices reached, frontier, 17 supersteps, [\d.]+ [mu]?s>, validated", head
    )
    assert path == "0 -> 1 -> 2 -> 3"
    assert re.search(r"arcs looked at . +us ", "".join(tables))
    assert "traverse" in "".join(tables)


@pytest.mark.parametrize("command", ["bfs", "sssp"])
@pytest.mark.parametrize("method", ["frontier", "sweep"])
@pytest.mark.parametrize("workers", [1, 3])
def test_output_files_hold_the_answer(command, method, workers, folder):
    search = oracles.bfs if command == "bfs" else oracles.sssp
    options = "--method", method, "--workers", workers, "--backend", "cpu", "--order", "degree"
    for name in ("answer.npz", "answer.csv", "answer.parquet"):
        run(command, "edges.wel", "-s", 5, "-s", 60, "-o", name, *options)
    frame = pandas.read_csv("answer.csv")
    assert list(frame) == ["distances", "predecessors", "nearest_source"]
    np.testing.assert_array_equal(frame["distances"], search(CASE, [5, 60]))
    pandas.testing.assert_frame_equal(pandas.read_parquet("answer.parquet"), frame, check_dtype=False)
    with np.load("answer.npz") as archive:
        np.testing.assert_array_equal(archive["predecessors"], frame["predecessors"])


def test_limits(folder):
    run("bfs", "edges.wel", "-s", 0, "--depth-limit", 3, "-o", "bfs.npz")
    run("sssp", "edges.wel", "-s", 0, "--cutoff", 7.5, "-o", "sssp.npz")
    np.testing.assert_array_equal(np.load("bfs.npz")["distances"], oracles.bfs(CASE, [0], 3))
    np.testing.assert_array_equal(np.load("sssp.npz")["distances"], oracles.sssp(CASE, [0], 7.5))


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["graph500", "--scale", 5, "--roots", 2], {"graph", "roots", "searches", "validated", "construction_s"}),
        (["bfs", "rmat:5", "-s", 0, "--path-to", 3], {"graph", "info", "sources", "stats", "path", "seconds"}),
        (["sssp", "rmat:5", "-s", 0, "--method", "sweep"], {"graph", "info", "sources", "stats", "path", "seconds"}),
        (["msf", "rmat:5", "--validate"], {"graph", "info", "stats", "total_weight", "num_trees", "validated"}),
        (["components", "rmat:5"], {"graph", "info", "num_components", "stats", "seconds", "validated"}),
        (["info", "rmat:5"], {"name", "num_vertices", "num_edges", "order", "build_s", "shard_bytes"}),
        (["plan", "rmat:5"], {"name", "parts", "needed_bytes", "fits", "memory_bytes"}),
        (["doctor"], {"facts", "problems"}),
    ],
)
def test_json_is_one_object_and_nothing_else(arguments, keys):
    result = run(*arguments, "--json")
    assert json.loads(result.stdout).keys() >= keys
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""


def test_graph500_prints_a_table():
    result = run("graph500", "--scale", 6, "--roots", 3, "--root-seed", 1, "--workers", 2)
    assert result.stdout.startswith("rmat6: 64 vertices, 369 edges, built in ")
    assert "2 cpu ranks, in-process" in result.stdout
    assert "3 roots, all validated" in result.stdout
    assert all(kernel in result.stdout for kernel in ("bfs", "sssp"))
    only = run("graph500", "--scale", 6, "--roots", 2, "--kernel", "sssp", "--no-validate").stdout
    assert "2 roots, not validated" in only
    assert "bfs" not in only
    block = run("graph500", "--scale", 6, "--roots", 3, "--official").stdout.splitlines()
    assert block[0].split() == ["SCALE:", "6"]
    assert len(block) == 6 + 2 * (7 + 7 + 7 + 7)
    assert all(float(line.split()[-1]) >= 0 for line in block)


def test_info_counts_what_was_dropped():
    facts = json.loads(run("info", "rmat:6", "--json").stdout)
    assert facts["num_loops"] + facts["num_parallel"] + facts["num_edges"] == 16 * 64
    table = run("info", "rmat:6").stdout
    assert re.search(r"num loops .* 56", table)
    assert re.search(r"bytes a rank .* KiB", table)


@pytest.mark.parametrize("name", ["g.npz", "g.csv", "g.csr", "g.parquet"])
def test_what_is_generated_can_be_read(name, folder):
    assert run("generate", "rmat:6,weights=float32", name).stderr == f"writing rmat6 to {name}\n"
    if name != "g.parquet":
        facts = json.loads(
            run(
                "info",
                name,
                "--num-vertices" if name == "g.csv" else "--undirected",
                *([64] if name == "g.csv" else []),
                "--json",
            ).stdout
        )
        assert (facts["num_vertices"], facts["num_edges"]) == (64, 369)


def test_plan_tells_what_fits():
    made = json.loads(run("plan", "--scale", 20, "--gpus", 4, "--memory", "1GiB", "--json").stdout)
    assert made["fits"]
    assert made["needed_bytes"] <= made["memory_bytes"] == 1 << 30
    table = run("plan", "uniform:100000:8", "--ranks", 2, "--memory", "0.5g").stdout
    assert "on each of 2 ranks" in table
    line = refused("plan", "rmat:24", "--ranks", 2, "--memory", "1GiB", code=5)
    advised = re.search(r"takes .* on each of 2 ranks, and there is 1.0 GiB: use (\d+) ranks with as much", line)[1]
    run("plan", "rmat:24", "--ranks", advised, "--memory", "1GiB")
    refused("plan", "rmat:24", "--ranks", int(advised) - 1, "--memory", "1GiB", code=5)
    line = refused("plan", "rmat:24", "--gpus", 1, "--memory", "3GiB", code=5)
    assert re.search(r"use 2 ranks with as much, the compact layout \(\d.* GiB\), or fewer edges", line)
    assert "compact on 1 rank" in run("plan", "rmat:24", "--gpus", 1, "--memory", "3GiB", "--layout", "compact").stdout
    auto = json.loads(run("plan", "rmat:24", "--gpus", 1, "--memory", "3GiB", "--layout", "auto", "--json").stdout)
    assert (auto["layout"], auto["fits"]) == ("compact", True)
    # All states are on every rank: of a gigabyte no number is enough.
    assert "use ranks with more memory" in refused("plan", "rmat:30", "--memory", "1GiB", code=5)


def test_doctor_finds_nothing_wrong(monkeypatch):
    text = run("doctor").stdout
    assert "numba" in text
    assert text.endswith("nothing is wrong\n")
    monkeypatch.setattr("mgraph.cli.doctor._version", lambda name: None)
    result = run("doctor", code=ClusterError.exit_code)
    assert "problem: numba is not installed: pip install mgraph" in result.stdout
    assert json.loads(run("doctor", "--json", code=4).stdout)["problems"]


def test_progress_is_plain_lines_where_there_is_no_terminal():
    result = run("graph500", "--scale", 5, "--roots", 20)
    assert result.stderr.splitlines() == ["building rmat5", "bfs", "sssp"]
    assert "\x1b" not in result.output


BAD = {
    "badid.txt": "0 1\n1 x\n",
    "negative.txt": "0 1\n-3 1\n",
    "nan.wel": "0 1 1\n1 2 nan\n",
    "weight.csv": "source,target,weight\n0,1,2\n1,2,heavy\n",
    "short.el": "0 1\n2\n",
    "minus.wel": "0 1 -5\n",
    "plain.el": "0 1\n",
    "noise.dat": "\x00\x01\x02",
    "noise.npz": "PK\x03\x04 but not really",
    "noise.mtx": "%%MatrixMarket nonsense\n",
}


@pytest.fixture
def bad(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in BAD.items():
        (tmp_path / name).write_text(text)
    run("generate", "rmat:5", "whole.csr")
    whole = (tmp_path / "whole.csr").read_bytes()
    (tmp_path / "cut.csr").write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("bfs none.txt -s 0", 3, r"/none\.txt: no such file$"),
        ("bfs . -s 0", 3, "is not a file"),
        ("bfs badid.txt -s 0", 3, r"/badid\.txt:2: vertex 'x' is not "),
        ("bfs negative.txt -s 0", 3, r"/negative\.txt:2: vertex '-3' is negative"),
        ("sssp nan.wel -s 0", 3, r"/nan\.wel:2: weight 'nan' is not a finite number"),
        ("sssp weight.csv -s 0", 3, r"/weight\.csv:3: weight 'heavy' is not a number"),
        ("bfs short.el -s 0", 3, r"/short\.el:2: "),
        ("bfs noise.dat -s 0", 3, "is of no format known"),
        ("bfs noise.npz -s 0", 3, r"noise\.npz"),
        ("bfs noise.mtx -s 0", 3, r"noise\.mtx"),
        ("bfs cut.csr -s 0", 3, r"cut\.csr"),
        ("info cut.csr", 3, r"cut\.csr"),
        ("components none.txt", 3, r"/none\.txt: no such file$"),
        ("components short.el", 3, r"/short\.el:2: "),
        ("components", 2, "Missing argument 'INPUT'"),
        ("components plain.el --source 0", 2, "No such option"),
        ("components plain.el -o out.xml", 3, r"'\.xml' is not one of \.npz, \.csv, \.parquet"),
        ("components plain.el --backend cuda", 2, "wants a GPU"),
        ("components rmat:4 --weight w", 2, "--weight goes with a file, and rmat:4 is generated"),
        ("plan none.csr", 3, "no such file"),
        ("sssp minus.wel -s 0", 3, "weights that are not negative, and one is -5"),
        ("sssp plain.el -s 0", 2, "the graph has no weights: use bfs"),
        ("bfs plain.el -s 2", 2, r"source 2 is not a vertex: ids are 0\.\.1"),
        ("bfs plain.el -s -1", 2, "source -1 is not a vertex"),
        ("bfs plain.el -s one", 2, "'one' is not a valid integer: see .* bfs --help"),
        ("bfs plain.el", 2, "Missing option '--source'"),
        ("bfs", 2, "Missing argument 'INPUT'"),
        ("bfs plain.el -s 0 --depth-limit -1", 2, "-1 is not in the range"),
        ("sssp minus.wel -s 0 --cutoff -1", 2, "-1.0 is not in the range"),
        ("sssp rmat:4 -s 0 --cutoff nan", 2, "'--cutoff': nan is not a distance"),
        ("bfs plain.el -s 0 --plot steps.txt", 2, "steps.txt: a picture is a file that ends in one of .png"),
        ("bfs plain.el -s 0 --plot nowhere/a.png", 2, "there is no folder nowhere"),
        ("bfs plain.el -s 0 --path-to 5", 2, r"target 5 is not a vertex: ids are 0\.\.1"),
        ("bfs plain.el -s 0 --format xml", 2, "format 'xml' is not one of text"),
        ("bfs plain.el -s 0 --num-vertices 1", 3, r"/plain\.el:1: "),
        ("bfs plain.el -s 0 -o nowhere/out.npz", 2, "there is no folder nowhere"),
        ("bfs plain.el -s 0 -o out.xml", 3, r"'\.xml' is not one of \.npz, \.csv, \.parquet"),
        ("bfs plain.el -s 0 --backend cuda", 2, "wants a GPU"),
        ("bfs plain.el -s 0 --workers 0", 2, "0 is not in the range"),
        ("bfs rmat:4 -s 0 --weight w", 2, "--weight goes with a file, and rmat:4 is generated"),
        ("bfs rmat:x -s 0", 2, "'rmat:x': scale 'x' is not a number"),
        ("bfs rmat:5,weights=7 -s 0", 2, "rmat:5,weights=7"),
        ("generate rmat:4 out.xml", 3, r"'\.xml' is not one of"),
        ("generate rmat:4 nowhere/out.csv", 2, "there is no folder nowhere"),
        ("generate plain.el out.csv", 2, "'plain.el' is not one of rmat"),
        ("bfs rmat:4 -s 0 --layout compact --method frontier", 2, "--method frontier needs rows"),
        ("plan", 2, "give INPUT or --scale"),
        ("plan rmat:5 --gpus 2", 2, "--gpus goes with --memory"),
        ("plan rmat:5 --memory much", 2, "'much' is not an amount such as 139GiB"),
        ("graph500 --scale 0", 2, "0 is not in the range"),
        ("graph500 --kernel msf", 2, "'msf' is not one of 'bfs', 'sssp'"),
        ("nonsense", 2, "No such command 'nonsense'"),
        ("bfs --nonsense", 2, "No such option"),
        ("bfs rmat:4 -s 0 --scheduler nonsense", 2, "'nonsense' is not an address of a scheduler"),
        ("bfs rmat:4 -s 0 --scheduler tcp://127.0.0.1:1", 4, "no scheduler answers at tcp://127.0.0.1:1"),
        ("bfs rmat:4 -s 0 --scheduler-file none.json", 4, "none.json was not there after 0.1 s"),
        ("bfs rmat:4 -s 0 --scheduler-file plain.el", 2, "plain.el is not a file in which a scheduler left"),
    ],
)
def test_what_is_wrong_ends_in_one_line(arguments, code, message, bad, monkeypatch):
    monkeypatch.setattr("mgraph.cluster.connect.SCHEDULER_S", 0.1)
    monkeypatch.setattr("mgraph.cluster.connect.SCHEDULER_FILE_S", 0.1)
    line = refused(*arguments.split(), code=code)
    assert re.search(message, line), line


def test_bad_input_is_refused_before_any_work(bad):
    for arguments in (
        "bfs plain.el -s 9",
        "sssp plain.el -s 0",
        "bfs rmat:20 -s 0 -o x/y.csv",
        "bfs rmat:9 -s 0 --path-to 512",
    ):
        assert len(run(*arguments.split(), code=2).stderr.splitlines()) == 1


def test_a_folder_that_cannot_be_written(bad, monkeypatch):
    monkeypatch.setattr("os.access", lambda *args: False)
    assert "no file may be written in ." in refused("bfs", "plain.el", "-s", 0, "-o", "out.csv", code=2)


def test_what_does_not_fit(monkeypatch):
    for free, text in (
        ("2", r"18 KiB is needed on each rank for the order of 256 vertices, and 2 KiB is free: number"),
        ("19", r"takes .* more here, and 19 KiB is free: use ranks with more memory"),
    ):
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self, free=free: int(free) << 10)
        assert re.search(text, refused("info", "rmat:8", code=5))
    monkeypatch.setattr("mgraph.cli.info.Graph.from_source", lambda *args, **options: np.empty(1 << 55))
    assert "out of memory: Unable to allocate" in refused("info", "rmat:8", code=5)


@pytest.mark.parametrize(
    "arguments", [["bfs", "rmat:6", "-s", 0, "--validate"], ["graph500", "--scale", 6, "--roots", 2]]
)
def test_a_wrong_answer_is_told(arguments, monkeypatch):
    def wrong(shard, comm, sources, *rest):
        traversal = search(shard, comm, sources, *rest)
        traversal.distances[traversal.distances == 1] = 2
        return traversal

    from mgraph.jobs import bfs as search

    monkeypatch.setattr("mgraph.jobs.bfs", wrong)
    assert re.search(r"rule 3: no arc from the predecessor explains the distance: \d+", refused(*arguments, code=6))


def test_a_scheduler_by_address_and_by_file(tmp_path):
    with scheduler_by_hand(tmp_path) as (_, file), worker_by_hand(file):
        address = json.loads(pathlib.Path(file).read_text())["address"]
        for where in (
            ["--scheduler-file", file, "--backend", "cpu"],
            ["--scheduler", address, "--backend", "cpu", "--workers", 1],
        ):
            result = run("bfs", "rmat:6", "-s", 0, "--validate", *where)
            assert ", validated" in result.stdout
            assert "1 cpu rank>" in result.stderr


def test_processes_end_with_the_code_and_no_traceback(bad):
    process = start("bfs", "badid.txt", "-s", "0")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (3, "")
    assert re.fullmatch(r"mgraph: \S+badid\.txt:2: vertex 'x' is not .*\n", err)


def test_interrupted_ends_in_one_line():
    process = start("graph500", "--scale", "21")
    assert process.stderr.readline() == "building rmat21\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "mgraph: interrupted\n")


def test_a_reader_that_left_is_no_error():
    process = start("plan", "rmat:20")
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 1
