"""Test `mgraph run`; what a job file may say is in test_job_file.py."""

from __future__ import annotations

import json
import pathlib
import signal

import pandas
import pytest
from cli_runs import refused, run, start
from dask_processes import wait_until
from losing_cluster import LosingCluster

from mgraph.cli import algorithm_command
from mgraph.cli.job_file import COMMANDS

SSSP = 'algorithm = "sssp"\nsource = "a"\noutput = "paths.csv"\n'
JOB = f"""
[graph]
input = "edges.csv"

[cluster]
backend = "cpu"

[[run]]
{SSSP}
[[run]]
algorithm = "components"
validate = true
output = "groups/"
"""


# The keys of algorithms that have no rules by which they are checked.
BARE = {
    "path": 'source = "a"\ntarget = "c"\n',
    "k-hop": 'source = "a"\nhops = 1\nsave = "near"\n',
    "degrees": 'output = "degrees.csv"\n',
    "closeness": 'harmonic = true\noutput = "closeness.csv"\n',
    "diameter": "largest = true\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges.csv").write_text("source,target,weight\na,b,2\nb,c,1\na,c,4\nx,y,5\n")
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def names():
    return sorted(path.name for path in pathlib.Path().iterdir())


def test_job_writes_outputs_and_a_manifest_and_is_done(folder):
    head, *_, last = run("run", "job.toml").stdout.splitlines()
    assert head.startswith("<sssp of edges from a: 3 of 5 vertices reached")
    assert last == "job.manifest.json: 2 runs"
    assert names() == ["edges.csv", "groups", "job.manifest.json", "job.toml", "paths.csv"]
    assert pandas.read_csv("paths.csv")["distances"].tolist() == [0, 2, 3, -1, -1]
    manifest = json.loads((folder / "job.manifest.json").read_text())
    paths, groups = manifest["runs"]
    assert (paths["parameters"]["source"], paths["stats"]["variant"]) == ("a", "sssp.hybrid")
    assert groups["summary"].endswith(", validated")
    assert (groups["num_components"], groups["outputs"][0]["file"]) == (2, "groups/part-00000.parquet")
    assert paths["versions"].keys() >= {"mgraph", "numpy", "numba", "dask", "distributed"}
    before = (folder / "paths.csv").stat()
    done = run("run", "job.toml")
    assert (done.stdout, done.stderr) == (
        "job.toml is done: nothing is left to run; --overwrite runs it again\n",
        "",
    )
    assert json.loads(run("run", "job.toml", "--json").stdout) == manifest
    run("run", "job.toml", "--overwrite")
    assert (folder / "paths.csv").stat().st_ino != before.st_ino


def test_every_algorithm_runs_is_validated_and_is_done(folder):
    checked = 'validate = true\noutput = "{}.csv"\n'
    more = dict.fromkeys(("bfs", "sssp", "distances"), checked + 'source = ["a", "c"]\n')
    more |= {"steiner-tree": checked + 'terminal = ["a", "c"]\n', "hits": checked + 'tolerance = "none"\n'}
    more |= BARE
    for directed, chosen in ((False, COMMANDS.keys() - {"strong-components"}), (True, {"strong-components"})):
        text = f'[graph]\ninput = "edges.csv"\ndirected = {str(directed).lower()}\n[cluster]\nbackend = "cpu"\n'
        for name in sorted(chosen):
            text += f'[[run]]\nalgorithm = "{name}"\n' + more.get(name, checked).format(name)
        job = f"job-{directed}.toml"
        (folder / job).write_text(text)
        assert run("run", job).stdout.splitlines()[-1].startswith(f"job-{directed}.manifest.json: {len(chosen)} run")
        assert {f"{name}.csv" for name in chosen - BARE.keys()} < {*names()}
        assert "is done" in run("run", job).stdout
    runs = json.loads((folder / "job-False.manifest.json").read_text())["runs"]
    found = {each["parameters"]["algorithm"]: each for each in runs}
    assert (found["path"]["distance"], found["path"]["vertices"]) == (3, ["a", "b", "c"])
    assert (found["diameter"]["diameter"], found["diameter"]["info"]["num_vertices"]) == (3, 3)
    assert pandas.read_csv("degrees.csv")["degrees"].tolist() == [2, 2, 2, 1, 1]
    assert pandas.read_csv("closeness.csv")["harmonic"].tolist() == [1 / 2 + 1 / 3, 3 / 2, 4 / 3, 1 / 5, 1 / 5]
    assert found["k-hop"]["levels"] == [1, 2]
    assert "3 vertices" in run("components", "near", "--backend", "cpu").stdout
    (folder / "near" / "mgraph.json").unlink()
    assert "near is a folder with other files" in refused("run", "job-False.toml", code=2)


def test_weights_are_not_read_for_runs_that_count_hops(folder):
    (folder / "edges.csv").write_text("source,target,weight\na,b,2\nb,c,none\n")
    text = JOB.replace(SSSP, f'algorithm = "path"\n{BARE["path"]}')
    (folder / "job.toml").write_text(text)
    assert "none" in refused("run", "job.toml", code=3)
    (folder / "job.toml").write_text(text.replace('"path"', '"path"\nhops = true'))
    assert run("run", "job.toml").stdout.startswith("2 hops: a -> b -> c\n")


def test_only_what_is_missing_runs_again(folder):
    run("run", "job.toml")
    (folder / "paths.csv").unlink()
    again = run("run", "job.toml")
    assert again.stdout.splitlines()[-1] == "job.manifest.json: 1 run, 1 done before"
    assert "components" not in again.stdout
    (folder / "job.toml").write_text(JOB + '[[run]]\nalgorithm = "bfs"\nsource = ["a", "x"]\n')
    assert run("run", "job.toml").stdout.splitlines()[-1] == "job.manifest.json: 1 run, 2 done before"
    (folder / "paths.csv").write_text("mine")
    assert "paths.csv exists" in refused("run", "job.toml", code=2)
    assert (folder / "paths.csv").read_text() == "mine"


def test_changed_input_is_said_and_nothing_is_replaced(folder):
    run("run", "job.toml")
    (folder / "edges.csv").write_text("source,target,weight\na,b,2\n")
    failed = run("run", "job.toml", code=2)
    first, last = failed.stderr.splitlines()
    assert first == "job.manifest.json is of another graph: its input has changed"
    assert last.startswith("mgraph: job.toml:8: run[1]: paths.csv exists")


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize(("name", "output"), [("sssp", "paths.csv"), ("k-hop", "near")])
def test_run_that_ended_while_it_wrote_is_repeated(folder, monkeypatch, name, output, is_written):
    if name == "k-hop":
        (folder / "job.toml").write_text(JOB.replace(SSSP, f'algorithm = "k-hop"\n{BARE["k-hop"]}'))
    write = algorithm_command.write_result

    def killed(found, options, show):
        if is_written:
            write(found, options, show)
        raise KeyboardInterrupt

    monkeypatch.setattr(algorithm_command, "write_result", killed)
    run("run", "job.toml", code=130)
    assert (output in names()) == is_written
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert run("run", "job.toml").stdout.splitlines()[-1] == "job.manifest.json: 2 runs"


def test_interrupted_overwrite_keeps_what_it_has_not_replaced(folder, monkeypatch):
    run("run", "job.toml")
    find = algorithm_command.run_on

    def interrupted(g, spec, options, show):
        if options["output"] == "groups/":
            raise KeyboardInterrupt
        return find(g, spec, options, show)

    monkeypatch.setattr(algorithm_command, "run_on", interrupted)
    run("run", "job.toml", "--overwrite", code=130)
    assert "is done" in run("run", "job.toml").stdout


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": "mgraph-job", "graph": 1, "input": 2, "runs": [3]}', "{"])
def test_file_that_is_no_manifest_is_refused(folder, text):
    (folder / "job.manifest.json").write_text(text)
    assert "job.manifest.json is no manifest of a job" in refused("run", "job.toml", "--overwrite", code=2)
    assert (folder / "job.manifest.json").read_text() == text


def test_failed_run_keeps_those_before_and_names_its_line(folder):
    (folder / "job.toml").write_text(JOB + '[[run]]\nalgorithm = "bfs"\nsource = "nobody"\noutput = "hops.csv"\n')
    assert "job.toml:17: run[3]: source 'nobody' " in refused("run", "job.toml", code=2)
    assert names() == ["edges.csv", "groups", "job.manifest.json", "job.toml", "paths.csv"]
    assert len(json.loads((folder / "job.manifest.json").read_text())["runs"]) == 2


def test_dry_run_prints_the_plan_and_writes_nothing(folder):
    printed = run("run", "job.toml", "--dry-run").stdout
    assert "while sssp runs" in printed
    assert "run 1, sssp, would write paths.csv" in printed
    assert names() == ["edges.csv", "job.toml"]
    facts = json.loads(run("run", "job.toml", "--dry-run", "--json").stdout)
    assert [each["missing"] for each in facts["runs"]] == [True, True]
    (folder / "job.toml").write_text(JOB.replace(SSSP, f'algorithm = "k-hop"\n{BARE["k-hop"]}'))
    assert "run 1, k-hop, would write near" in run("run", "job.toml", "--dry-run").stdout
    (folder / "job.toml").write_text(JOB + '[limits]\nmemory = "1KiB"\n')
    for options in ((), ("--dry-run",)):
        assert "1 KiB" in refused("run", "job.toml", *options, code=5)
    (folder / "job.toml").write_text(JOB.replace("[cluster]", '[cluster]\nscheduler = "tcp://127.0.0.1:9"'))
    assert "no memory plan" in run("run", "job.toml", "--dry-run").stdout


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("edges.csv", "none.csv", "none.csv: no such file"),
        ('"groups/"', '"paths.csv"', "paths.csv would be written twice"),
        (SSSP, 'algorithm = "k-hop"\nsource = "a"\nhops = 1\nsave = "groups"\n', "groups/ would be written twice"),
        (SSSP, 'algorithm = "k-hop"\nsource = "a"\nhops = 1\nsave = "no/near"\n', "/no/near: there is no folder"),
        ('"groups/"', '"edges.csv"', "job.toml:13: run[2]: edges.csv is the input"),
        ('"paths.csv"', '"none/paths.csv"', "job.toml:8: run[1]: none/paths.csv: there is no folder none"),
        ('"paths.csv"', '"paths.npz"', "job.toml:8: run[1]: paths.npz: a .npz file holds numbers"),
        ('"sssp"', '"msf"\nmaximum = true\n#', "job.toml:12: run[1].source: there is no such key"),
        ("[graph]", 'manifest = "edges.csv"\n[graph]', "edges.csv is no manifest of a job"),
        ("[graph]", 'manifest = "none/m.json"\n[graph]', "there is no folder none"),
        ('"edges.csv"', '"rmat:5"\nweight = "w"', "job.toml:2: graph: --weight applies to files, and rmat:5 is gen"),
    ],
)
def test_what_cannot_work_is_refused_before_work(folder, old, new, message):
    (folder / "job.toml").write_text(JOB.replace(old, new))
    line = refused("run", "job.toml", code=3 if "no such file" in message else 2)
    assert message in line
    assert names() == ["edges.csv", "job.toml"]


@pytest.mark.ci
def test_job_that_is_killed_goes_on_where_it_was_stopped(folder):
    text = '[graph]\ninput = "rmat:16"\n[cluster]\nworkers = 2\nbackend = "cpu"\n'
    text += '[[run]]\nalgorithm = "components"\noutput = "groups/"\n'
    text += '[[run]]\nalgorithm = "msf"\nvalidate = true\noutput = "forest.csv"\n'
    (folder / "job.toml").write_text(text)
    process = start("run", "job.toml", cwd=folder)
    manifest = folder / "job.manifest.json"
    wait_until(lambda: manifest.exists() and json.loads(manifest.read_text())["runs"][0]["outputs"], timeout_s=100)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert names() == ["edges.csv", "groups", "job.manifest.json", "job.toml"]
    before = (folder / "groups").stat().st_ino
    assert run("run", "job.toml").stdout.splitlines()[-1] == "job.manifest.json: 1 run, 1 done before"
    assert (folder / "groups").stat().st_ino == before
    assert (folder / "forest.csv").stat().st_size > 100_000


def test_job_is_done_after_a_loss_of_ranks_in_any_of_its_calls(folder, monkeypatch):
    text = JOB.replace("[[run]]", '[limits]\non-loss = "rebuild"\n[[run]]', 1).replace('"groups/"', '"groups.csv"')
    (folder / "job.toml").write_text(text)
    outputs = [folder / "paths.csv", folder / "groups.csv"]

    def run_losing(lost):
        ranks = LosingCluster()
        ranks.lost_job = lost
        monkeypatch.setattr(algorithm_command, "connect", lambda **where: ranks)
        run("run", "job.toml", "--overwrite")
        return ranks, [path.read_bytes() for path in outputs]

    ranks, expected = run_losing(0)
    assert ranks.jobs > 6
    for lost in range(1, ranks.jobs + 1):
        ranks, found = run_losing(lost)
        assert ranks.jobs >= lost and found == expected


@pytest.mark.parametrize("name", BARE)
def test_bare_result_is_found_and_written_after_a_loss_of_ranks_in_any_of_its_calls(folder, monkeypatch, name):
    text = '[graph]\ninput = "edges.csv"\n[cluster]\nbackend = "cpu"\n[limits]\non-loss = "rebuild"\n'
    (folder / "job.toml").write_text(f'{text}[[run]]\nalgorithm = "{name}"\n{BARE[name]}')

    def run_losing(lost):
        ranks = LosingCluster()
        ranks.lost_job = lost
        monkeypatch.setattr(algorithm_command, "connect", lambda **where: ranks)
        run("run", "job.toml", "--overwrite")
        (entry,) = json.loads((folder / "job.manifest.json").read_text())["runs"]
        return ranks, {key: value for key, value in entry.items() if key not in ("seconds", "summary")}

    ranks, expected = run_losing(0)
    assert ranks.jobs > 0
    for lost in range(1, ranks.jobs + 1):
        again, found = run_losing(lost)
        assert again.jobs > ranks.jobs and found == expected
