"""Test the output of every command; errors are in test_refusals.py."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import dask
import numpy as np
import oracles
import pandas
import pytest
from cli_runs import CASE, ENVIRONMENT, refused, run, start
from dask_processes import make_security, scheduler_by_hand, worker_by_hand
from variant_checks import wrap_run

import mgraph
from mgraph.cli.main import COMMANDS
from mgraph.errors import ClusterError

pytestmark = pytest.mark.usefixtures("no_gpus")


def test_help_lists_every_command_and_imports_none():
    # Imports are counted, so this runs in a separate process.
    code = """
import sys
from mgraph.cli.main import main
try:
    main(["--help"], prog_name="mgraph")
finally:
    heavy = {"numpy", "numba", "scipy", "rich", "dask", "distributed", "cupy"} & sys.modules.keys()
    assert not heavy, heavy
"""
    finished = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    for command in COMMANDS:
        assert re.search(rf"^  {command} +[A-Z].*", finished.stdout, re.MULTILINE)
    # Line lengths follow the width of the terminal.
    assert run("-h").stdout == run("--help").stdout == run().stdout
    assert run("-h").stdout.split() == finished.stdout.split()


def test_command_imports_nothing_that_it_does_not_need(tmp_path):
    pandas.DataFrame({"a": ["x", "y"], "b": ["y", "z"]}).to_parquet(tmp_path / "pairs.parquet")
    code = f"""
import sys
from mgraph.cli.main import main
try:
    main(["components", "{tmp_path}/pairs.parquet", "--source", "a", "--target", "b"], prog_name="mgraph")
finally:
    heavy = {{"scipy.linalg", "cffi", "rich", "dask", "distributed", "pandas", "pyarrow.compute"}} & sys.modules.keys()
    assert not heavy, heavy
"""
    finished = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert "1 component of 3 vertices" in finished.stdout


@pytest.mark.parametrize(("arguments", "code"), [(["plan", "rmat:5", "--json"], 0), (["info", "absent.csv"], 3)])
def test_process_ends_with_whole_output_and_exit_code(arguments, code):
    command = [sys.executable, "-m", "mgraph", *arguments]
    finished = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert finished.returncode == code, finished.stderr
    assert bool(code) == bool(finished.stderr)
    assert code or json.loads(finished.stdout)["name"]


def test_version_option():
    assert run("--version").output == f"mgraph, version {mgraph.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_its_options(command):
    text = run(command, "--help").output
    assert text.startswith(f"Usage: mgraph {command} [OPTIONS]")
    options = set(re.findall(r"^ +(?:-\w, )?--([\w-]+)", text, re.MULTILINE))
    assert "help" in options
    assert ("json" in options) == (command not in ("convert", "generate"))
    if command in ("graph500", "bfs", "sssp", "components", "msf", "info"):
        assert options >= {"scheduler", "scheduler-file", "workers", "backend"}


def test_bfs_prints_summary_path_and_trace(folder):
    result = run("bfs", "edges.wel", "--source", 0, "--path-to", 3, "--validate", "--trace")
    head, path, *tables = result.stdout.splitlines()
    assert re.fullmatch(
        r"<bfs of edges from 0: 72 of 72 vertices reached, frontier, 1 superstep, [\d.]+ [mu]?s>, validated", head
    )
    assert path == "0 -> 1 -> 2 -> 3"
    assert re.search(r"arcs scanned . +us ", "".join(tables))
    assert "traverse" in "".join(tables)


@pytest.mark.parametrize("command", ["bfs", "sssp"])
@pytest.mark.parametrize("method", ["frontier", "sweep"])
@pytest.mark.parametrize("workers", [1, 3])
def test_output_files_equal_the_oracle(command, method, workers, folder):
    search = oracles.bfs if command == "bfs" else oracles.sssp
    options = "--method", method, "--workers", workers, "--backend", "cpu", "--order", "degree"
    for name in ("answer.npz", "answer.csv", "answer.parquet"):
        run(command, "edges.wel", "-s", 5, "-s", 60, "-o", name, *options)
    frame = pandas.read_csv("answer.csv")
    assert list(frame) == ["vertex", "distances", "predecessors", "nearest_source"]
    np.testing.assert_array_equal(frame["distances"], search(CASE, [5, 60]))
    pandas.testing.assert_frame_equal(pandas.read_parquet("answer.parquet"), frame, check_dtype=False)
    with np.load("answer.npz") as archive:
        np.testing.assert_array_equal(archive["predecessors"], frame["predecessors"])


def test_depth_limit_and_cutoff_apply(folder):
    run("bfs", "edges.wel", "-s", 0, "--depth-limit", 3, "-o", "bfs.npz")
    run("sssp", "edges.wel", "-s", 0, "--cutoff", 7.5, "-o", "sssp.npz")
    np.testing.assert_array_equal(np.load("bfs.npz")["distances"], oracles.bfs(CASE, [0], 3))
    np.testing.assert_array_equal(np.load("sssp.npz")["distances"], oracles.sssp(CASE, [0], 7.5))


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (
            ["graph500", "--scale", 5, "--roots", 2, "--weights", "graph500"],
            {"graph", "roots", "searches", "validated", "construction_s"},
        ),
        (["bfs", "rmat:5", "-s", 0, "--path-to", 3], {"graph", "info", "sources", "stats", "path", "seconds"}),
        (["sssp", "rmat:5", "-s", 0, "--method", "sweep"], {"graph", "info", "sources", "stats", "path", "seconds"}),
        (["msf", "rmat:5", "--validate"], {"graph", "info", "stats", "total_weight", "num_trees", "validated"}),
        (["components", "rmat:5"], {"graph", "info", "num_components", "stats", "seconds", "validated"}),
        (["info", "rmat:5"], {"name", "num_vertices", "num_edges", "order", "build_s", "shard_bytes"}),
        (["plan", "rmat:5"], {"name", "parts", "needed_bytes", "fits", "memory_bytes"}),
        (["doctor"], {"facts", "problems"}),
    ],
)
def test_json_output_is_one_object(arguments, keys):
    result = run(*arguments, "--json")
    assert json.loads(result.stdout).keys() >= keys
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""


def test_json_output_includes_the_trace():
    printed = json.loads(run("bfs", "rmat:5", "-s", 0, "--trace", "--json").stdout)
    assert {"method", "frontier", "arcs", "microseconds"} <= printed["stats"]["supersteps"][0].keys()


def test_graph500_prints_table_or_output_block():
    result = run("graph500", "--scale", 6, "--roots", 3, "--root-seed", 1, "--workers", 2)
    assert result.stdout.startswith("rmat6: 64 vertices, 369 edges, built in ")
    assert "2 cpu ranks, in-process" in result.stdout
    assert "3 roots, all validated" in result.stdout
    for kernel in ("bfs", "sssp"):
        assert re.search(rf"{kernel} +. +graph's own order .*\n.*{kernel} +. +order of user ids", result.stdout)
    assert "The graph's own order counts: " in result.stdout
    only = run("graph500", "--scale", 6, "--roots", 2, "--kernel", "sssp", "--no-validate").stdout
    assert "2 roots, not validated" in only
    assert "bfs" not in only
    block = run("graph500", "--scale", 6, "--roots", 3, "--official").stdout.splitlines()
    assert block[0].split() == ["SCALE:", "6"]
    assert len(block) == 6 + 2 * (7 + 7 + 7 + 7 + 2)
    assert all(float(line.split()[-1]) >= 0 for line in block)


def test_info_counts_dropped_edges():
    facts = json.loads(run("info", "rmat:6", "--json").stdout)
    assert facts["num_loops"] + facts["num_parallel"] + facts["num_edges"] == 16 * 64
    table = run("info", "rmat:6").stdout
    assert re.search(r"num loops .* 56", table)
    assert re.search(r"bytes per rank .* KiB", table)


def test_weight_option_selects_or_ignores_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("four.el").write_text("0 1 7 x\n")
    assert "four.el has 4 columns: say which is the weight, or that there is none" in refused("info", "four.el", code=2)
    for column, dtype in (("none", None), ("2", "uint8")):
        assert json.loads(run("info", "four.el", "--weight", column, "--json").stdout)["weight_dtype"] == dtype


@pytest.mark.parametrize("name", ["g.npz", "g.csv", "g.csr", "g.parquet"])
def test_generated_files_can_be_read(name, folder):
    assert run("generate", "rmat:6,weights=float32", name).stderr == f"writing rmat6-float32 to {name}\n"
    # A .csv file does not contain isolated vertices beyond the largest id.
    options = ["--num-vertices", 64] if name == "g.csv" else []
    facts = json.loads(run("info", name, *options, "--json").stdout)
    assert (facts["num_vertices"], facts["num_edges"]) == (64, 369)


def test_plan_prints_needs_and_advice():
    made = json.loads(run("plan", "--scale", 20, "--gpus", 4, "--memory", "1GiB", "--json").stdout)
    assert made["fits"]
    assert made["needed_bytes"] <= made["memory_bytes"] == 1 << 30
    table = run("plan", "uniform:100000:8", "--ranks", 2, "--memory", "0.5g").stdout
    assert "on each of 2 ranks" in table
    # Needs of optional searches are in the table but not in the sum.
    assert (
        "not counted as needed: edge blocks, if a sweep is requested; the lightest arcs" in run("plan", "rmat:9").stdout
    )
    assert (
        "not counted as needed: PageRank and HITS; spanning forests; validation of forests\n"
        in run("plan", "rmat:9", "--layout", "compact").stdout
    )
    line = refused("plan", "rmat:24", "--ranks", 2, "--memory", "1GiB", code=5)
    advised = re.search(r"takes .* on each of 2 ranks, and there is 1.0 GiB: use (\d+) ranks with as much", line)[1]
    run("plan", "rmat:24", "--ranks", advised, "--memory", "1GiB")
    refused("plan", "rmat:24", "--ranks", int(advised) - 1, "--memory", "1GiB", code=5)
    line = refused("plan", "rmat:24", "--gpus", 1, "--memory", "3GiB", code=5)
    assert re.search(r"the layout split \(\d.* GiB and \d.* GiB of host memory\), or fewer edges", line)
    line = refused("plan", "rmat:24", "--gpus", 1, "--memory", "3GiB", "--host-memory", "1MB", code=5)
    assert re.search(r"use 2 ranks with as much, the layout compact \(\d.* GiB\), or fewer edges", line)
    assert "compact on 1 rank" in run("plan", "rmat:24", "--gpus", 1, "--memory", "3GiB", "--layout", "compact").stdout
    auto = json.loads(run("plan", "rmat:24", "--gpus", 1, "--memory", "3GiB", "--layout", "auto", "--json").stdout)
    assert (auto["layout"], auto["fits"]) == ("split", True)
    # Every rank holds all states, so no number of ranks with a gigabyte is enough.
    assert "use ranks with more memory" in refused("plan", "rmat:30", "--memory", "1GiB", code=5)


def test_doctor_reports_packages_and_problems(monkeypatch):
    text = run("doctor").stdout
    assert "numba" in text
    assert text.endswith("no problems\n")
    monkeypatch.setattr("mgraph.cli.doctor._version", lambda name: None)
    result = run("doctor", code=ClusterError.exit_code)
    assert "problem: numba is not installed: pip install numba" in result.stdout
    assert json.loads(run("doctor", "--json", code=4).stdout)["problems"]


def test_doctor_reports_certificates_and_open_schedulers(tmp_path):
    security = make_security(tmp_path)

    def tls() -> str:
        return json.loads(run("doctor", "--json").stdout)["facts"]["tls"]

    with dask.config.set({"scheduler-address": "tcp://10.0.0.1:8786"}):
        assert "no certificates are set; Dask's scheduler-address tcp://10.0.0.1:8786 is without: whoever" in tls()
    files = {"ca-file": security.tls_ca_file} | {
        f"client.{what}": getattr(security, f"tls_client_{what}") for what in ("cert", "key")
    }
    with dask.config.set({f"distributed.comm.tls.{name}": file for name, file in files.items()}):
        assert tls().startswith("certificates are set")


def test_progress_is_plain_lines_without_a_terminal():
    result = run("graph500", "--scale", 5, "--roots", 20)
    assert result.stderr.splitlines() == ["building rmat5", "bfs", "sssp"]
    assert "\x1b" not in result.output


@pytest.mark.parametrize(
    "arguments", [["bfs", "rmat:6", "-s", 0, "--validate"], ["graph500", "--scale", 6, "--roots", 2]]
)
def test_validation_failure_names_the_rule(arguments, monkeypatch):
    def wrong(search):
        def run(*args, **more):
            traversal = search(*args, **more)
            traversal.distances[traversal.distances == 1] = 2
            return traversal

        return run

    wrap_run(monkeypatch, "bfs.hybrid", wrong)
    assert re.search(r"rule 3: no arc from the predecessor explains the distance: \d+", refused(*arguments, code=6))


@pytest.mark.ci
def test_scheduler_is_found_by_address_and_by_file(tmp_path):
    with scheduler_by_hand(tmp_path) as (_, file), worker_by_hand(file):
        address = json.loads(pathlib.Path(file).read_text())["address"]
        for where in (
            ["--scheduler-file", file, "--backend", "cpu"],
            ["--scheduler", address, "--backend", "cpu", "--workers", 1],
        ):
            result = run("bfs", "rmat:6", "-s", 0, "--validate", *where)
            assert ", validated" in result.stdout
            assert "1 cpu rank>" in result.stderr


def test_interrupt_ends_in_one_line():
    process = start("graph500", "--scale", "21")
    assert process.stderr.readline() == "building rmat21\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "mgraph: interrupted\n")


# Code of a module in which what the handler of a signal raises is lost.
LOSSES = {
    "callback of a weak reference": "referent = {1}; reference = weakref.ref(referent, send); del referent",
    "__del__": "type('Sender', (), {'__del__': send})()",
    "except": "try:\n    send()\nexcept BaseException:\n    pass",
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("number", "code", "line"),
    [(signal.SIGINT, 130, "mgraph: interrupted\n"), (signal.SIGTERM, 143, "mgraph: terminated\n")],
)
def test_signal_during_imports_is_not_lost(number, code, line, loss, tmp_path, monkeypatch):
    send = f"def send(*_): signal.raise_signal({number})"
    command = "@click.command()\ndef stub(): print('the command ran')"
    (tmp_path / "stub.py").write_text("\n".join(["import signal, weakref, click", send, LOSSES[loss], command]))
    monkeypatch.setattr("mgraph.cli.__path__", [*mgraph.cli.__path__, str(tmp_path)])
    monkeypatch.setitem(COMMANDS, "stub", ("stub", ""))
    monkeypatch.delitem(sys.modules, "mgraph.cli.stub", raising=False)
    handler = signal.getsignal(signal.SIGINT)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    result = run("stub", code=code)
    assert (result.stdout, result.stderr) == ("", line)
    assert signal.getsignal(signal.SIGINT) is handler
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_before_the_command_line_is_imported_ends_the_process_silently(number, tmp_path):
    (tmp_path / "click.py").write_text(
        f"import signal\ntry:\n    signal.raise_signal({number})\nexcept BaseException:\n    pass\n"
    )
    path = os.pathsep.join([str(tmp_path), ENVIRONMENT["PYTHONPATH"]])
    process = start("--version", env=ENVIRONMENT | {"PYTHONPATH": path})
    assert (*process.communicate(timeout=60), process.returncode) == ("", "", -number)


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".csr"])
def test_edges_that_the_disk_cannot_hold_are_refused(tmp_path, suffix):
    result = run("generate", "rmat:50", tmp_path / f"edges{suffix}", code=5)
    assert re.search(r"edges\.\w+ would take [\d,.]+ \w+ at least, and [\d,.]+ \w+ are free there", result.stderr)
    assert list(tmp_path.iterdir()) == []


def _writes_in(process: int, folder) -> bool:
    """Return whether a process has an open file in this folder, named or unnamed."""
    try:
        return any(os.readlink(link).startswith(str(folder)) for link in pathlib.Path(f"/proc/{process}/fd").iterdir())
    except FileNotFoundError:  # closed meanwhile
        return False


def test_terminated_command_leaves_no_file(tmp_path):
    """SIGTERM is sent by SLURM when the time of a job is over."""
    process = start("generate", "rmat:24", str(tmp_path / "edges.csv"))
    while not _writes_in(process.pid, tmp_path):
        assert process.poll() is None
        time.sleep(0.01)
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.splitlines()[-1]) == (143, "", "mgraph: terminated")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("plan", "rmat:20"), ("--help",), ("bfs", "--help"), ("--version",)])
def test_closed_pipe_prints_no_error(arguments):
    process = start(*arguments)
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 141


@pytest.mark.parametrize("arguments", [("plan", "rmat:x"), ("info", "rmat:4")])
def test_closed_pipe_of_errors_and_progress_ends_quietly(arguments):
    process = start(*arguments)
    process.stderr.close()
    out = process.stdout.read()
    process.stdout.close()
    assert process.wait(60) == (2 if "x" in arguments[1] else 141)
    assert out == ""
