"""Test errors of the command line: one line and an exit code for each."""

from __future__ import annotations

import json
import re

import dask
import numpy as np
import pytest
from cli_runs import refused, run, start

from mgraph.backends.cpu import CpuBackend
from mgraph.errors import InputError

pytestmark = pytest.mark.usefixtures("no_gpus")

BAD = {
    "badid.txt": "0 1\n1 x\n",
    "negative.txt": "0 1\n-3 1\n",
    "nan.wel": "0 1 1\n1 2 nan\n",
    "weight.csv": "source,target,weight\n0,1,2\n1,2,heavy\n",
    "short.el": "0 1\n2\n",
    "minus.wel": "0 1 -5\n",
    "plain.el": "0 1\n",
    "three.txt": "0 1 2\n1 2 5\n",
    "names.csv": "tx_id,user,shop\n0,1,2\n",
    "time.csv": "time,dst,src\n1600000000,1,0\n",
    "long.mtx": "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 2 9223372036854775808\n",
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
        (
            "bfs rmat:30 -s 0 --method hybrid --checkpoint kept",
            2,
            "method 'hybrid' keeps no checkpoints: streamed, sweep, step do",
        ),
        ("sssp rmat:30 -s 0 --checkpoint none/kept", 2, r"/none/kept: there is no folder .*/none$"),
        ("components rmat:30 --checkpoint none/kept", 2, r"/none/kept: there is no folder .*/none$"),
        ("msf rmat:30 --checkpoint none/kept", 2, r"/none/kept: there is no folder .*/none$"),
        ("bfs rmat:30 -s 0 --on-loss retry", 2, "'retry' is not one of 'error', 'rebuild'"),
        ("bfs /dev/null -s 0", 3, "is not a file"),
        ("bfs badid.txt -s 0", 3, r"/badid\.txt:2: vertex 'x' is not "),
        ("bfs negative.txt -s 0 --num-vertices 9", 3, r"/negative\.txt:2: vertex -3 is negative"),
        ("sssp nan.wel -s 0", 3, r"/nan\.wel:2: weight 'nan' is not a finite number"),
        ("sssp weight.csv -s 0", 3, r"/weight\.csv:3: weight 'heavy' is not a number"),
        (
            "bfs names.csv -s 0",
            3,
            r"/names\.csv has the columns tx_id, user, shop, and no two of them are known as the ends",
        ),
        (
            "sssp time.csv -s 0",
            2,
            r"/time\.csv has 3 columns \(time, dst, src\): say which is the weight, .*--weight none\)$",
        ),
        ("sssp long.mtx -s 0", 3, r"/long\.mtx:3: weight 9223372036854775808 is beyond 64 signed bits"),
        ("bfs short.el -s 0", 3, r"/short\.el:2: "),
        ("bfs noise.dat -s 0", 3, "is of no format known"),
        ("bfs noise.npz -s 0", 3, r"noise\.npz"),
        ("bfs noise.mtx -s 0", 3, r"noise\.mtx"),
        ("bfs cut.csr -s 0", 3, r"cut\.csr"),
        ("info cut.csr", 3, r"cut\.csr"),
        ("components none.txt", 3, r"/none\.txt: no such file$"),
        ("components short.el", 3, r"/short\.el:2: "),
        ("components", 2, "Missing argument 'INPUT'"),
        ("bfs plain.el -s 0 --verb-timeout 0", 2, "'--verb-timeout': '0' is not a positive number of seconds"),
        ("info plain.el --verb-timeout nan", 2, "'--verb-timeout': 'nan' is not a positive number of seconds"),
        ("graph500 --open-timeout inf", 2, "'--open-timeout': 'inf' is not a positive number of seconds"),
        ("msf plain.el --open-timeout soon", 2, "'--open-timeout': 'soon' is not a positive number of seconds"),
        ("components plain.el --source 0", 2, "source= and target= .--source-column, --target-column., or neither"),
        ("components plain.el --path-to 0", 2, "No such option"),
        ("components plain.el -o out.xml", 2, r"'\.xml' is not one of \.npz, \.csv, .*\.parquet"),
        ("components plain.el -o .", 2, r"\. is not empty: delete it, give another folder, or overwrite it"),
        ("components plain.el -o none/out/", 2, r"there is no folder /.*none$"),
        ("components plain.el --backend cuda", 2, "wants a GPU"),
        ("components rmat:4 --weight w", 2, "--weight applies to files, and rmat:4 is generated"),
        ("plan none.csr", 3, "no such file"),
        ("sssp minus.wel -s 0", 3, "weights that are not negative, and one is -5"),
        ("sssp plain.el -s 0", 2, "the graph has no weights: use bfs"),
        ("bfs plain.el -s 2", 2, r"source 2 is not a vertex: ids are 0\.\.1"),
        ("bfs plain.el -s -1", 2, "source -1 is not a vertex"),
        ("bfs plain.el -s one", 2, "source 'one' is not an integer"),
        ("bfs plain.el", 2, "Missing option '--source'"),
        ("bfs", 2, "Missing argument 'INPUT'"),
        ("bfs plain.el -s 0 --depth-limit -1", 2, "-1 is not in the range"),
        ("sssp minus.wel -s 0 --cutoff -1", 2, "-1.0 is not in the range"),
        ("sssp rmat:4 -s 0 --cutoff nan", 2, "'--cutoff': nan is not a distance"),
        ("bfs plain.el -s 0 --plot steps.txt", 2, "steps.txt: a plot is a file that ends in one of .png"),
        ("bfs plain.el -s 0 --plot nowhere/a.png", 2, "there is no folder nowhere"),
        ("bfs plain.el -s 0 --path-to 5", 2, r"target 5 is not a vertex: ids are 0\.\.1"),
        ("bfs plain.el -s 0 --format xml", 2, "format .xml. is not one of mtx, npz"),
        ("bfs plain.el -s 0 --num-vertices 1", 3, r"/plain\.el:1: "),
        ("bfs plain.el -s 0 -o nowhere/out.npz", 2, "there is no folder nowhere"),
        ("bfs plain.el -s 0 -o out.xml", 2, r"'\.xml' is not one of \.npz, \.csv, .*\.parquet"),
        ("bfs plain.el -s 0 --backend cuda", 2, "wants a GPU"),
        ("bfs plain.el -s 0 --workers 0", 2, "0 is not in the range"),
        ("bfs rmat:4 -s 0 --weight w", 2, "--weight applies to files, and rmat:4 is generated"),
        ("bfs rmat:x -s 0", 2, "'rmat:x': scale 'x' is not a whole number"),
        ("bfs rmat:5,weights=7 -s 0", 2, "rmat:5,weights=7"),
        ("generate rmat:4 out.xml", 2, r"'\.xml' is not one of"),
        ("generate rmat:4 nowhere/out.csv", 2, "there is no folder nowhere"),
        ("generate plain.el out.csv", 2, "'plain.el' is no spec, which begins with rmat"),
        ("bfs rmat:4 -s 0 --layout compact --method frontier", 2, "--method frontier needs rows"),
        ("plan", 2, "give INPUT, a file or a spec, or --scale: one of them"),
        ("plan rmat:5 --gpus 2", 2, "how much memory does each GPU have. Give it, as in --gpus 2 --memory 139GiB"),
        ("plan rmat:5 --gpus 2 --ranks 2", 2, "--gpus plans for GPUs and --ranks for ranks on the CPU: give one"),
        ("plan rmat:5 --directed", 2, "--directed applies to files"),
        (f"plan rmat:5 --memory {'9' * 400}", 2, "is not an amount such as 139GiB"),
        ("plan rmat:5 --memory much", 2, "'much' is not an amount such as 139GiB"),
        ("graph500 --scale 5 --official --json", 2, "--official and --json .* give one of them"),
        ("bfs plain.el -s 0 --workers 99999", 2, "num_ranks is 99999: one process has at most 256"),
        ("graph500 --scale 0", 2, "0 is not in the range"),
        ("graph500 --kernel msf", 2, "'msf' is not one of 'bfs', 'sssp'"),
        ("nonsense", 2, "No such command 'nonsense'"),
        ("bfs --nonsense", 2, "No such option"),
        (f"bfs {'x' * 300} -s 0", 3, "x(: no such file.*| cannot be read: File name too long)$"),
        (f"bfs rmat:4 -s 0 -o {'x' * 300}.csv", 2, "x.csv cannot be written: File name too long"),
        (f"generate rmat:4 {'x' * 300}.csv", 2, "x.csv cannot be written: File name too long"),
        ("bfs rmat:4 -s 0 --scheduler nonsense", 2, "'nonsense' is not an address of a scheduler"),
        ("bfs rmat:4 -s 0 --scheduler tcp://127.0.0.1:1", 4, "no scheduler answers at tcp://127.0.0.1:1"),
        (
            "bfs rmat:4 -s 0 --scheduler-file none.json",
            4,
            r"none.json was not there after 0.1 s: check that .* --scheduler-file none.json, .*timeouts.scheduler-file",
        ),
        (
            "info rmat:4 --scheduler-file no/x.json",
            4,
            r"no/x.json was not there after 0.1 s, nor is its folder /.*/no:",
        ),
        ("bfs rmat:4 -s 0 --scheduler-file plain.el", 2, "plain.el is not a scheduler file: it contains no address"),
    ],
)
def test_errors_end_in_one_line_with_their_exit_code(arguments, code, message, bad):
    # A tenth of the first is left to tell a refused connection from a silent service, also on a busy machine.
    with dask.config.set({"mgraph.timeouts.scheduler": 2, "mgraph.timeouts.scheduler-file": 0.1}):
        line = refused(*arguments.split(), code=code)
    assert re.search(message, line), line


@pytest.mark.parametrize("command", ["bfs {} -s 0", "sssp {} -s 0", "components {}", "msf {}", "info {}", "plan {}"])
def test_unnamed_third_column_is_asked_about_by_every_command(command, bad):
    line = refused(*command.format("three.txt").split(), code=2)
    assert "three.txt has 3 columns: say which is the weight, or that there is none: weight=2 (--weight 2), or " in line
    run(*command.format("three.txt").split(), "--weight", 2)
    if "sssp" not in command and "msf" not in command:
        run(*command.format("three.txt").split(), "--weight", "none")


@pytest.mark.parametrize("command", ["bfs {} -s 0", "components {}"])
def test_commands_without_weights_read_the_ends_alone_where_they_are_known(command, bad, tmp_path):
    (tmp_path / "float.wel").write_text("0 1 0.5\n1 2 many\n")
    (tmp_path / "words.csv").write_text("source,target,weight\n0,1,heavy\n1,2,light\n")
    columns = ("--source-column", 0, "--target-column", 1)
    for file in (["time.csv"], ["float.wel"], ["words.csv"], ["three.txt", *columns]):
        facts = json.loads(run(*command.format(file[0]).split(), *file[1:], "--json").stdout)
        assert facts["info"]["weight_dtype"] is None


def test_columns_other_than_the_ends_can_be_ignored(bad):
    found = json.loads(run("info", "time.csv", "--weight", "none", "--json").stdout)
    assert (found["num_vertices"], found["weight_dtype"]) == (2, None)


def test_invalid_arguments_are_refused_before_any_work(bad):
    for arguments in (
        "bfs plain.el -s 9 --num-vertices 9",
        "sssp plain.el -s 0",
        "bfs rmat:20 -s 0 -o x/y.csv",
        "bfs rmat:9 -s 0 --path-to 512",
        "graph500 --layout compact --roots-at-once",
    ):
        assert len(run(*arguments.split(), code=2).stderr.splitlines()) == 1


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "saved", "folder"])
@pytest.mark.parametrize("command", ["bfs", "components", "msf", "convert", "vertices"])
def test_output_of_numbers_is_refused_for_strings_before_any_work(folder, command, kind):
    (folder / "words.csv").write_text("source,target,weight\na,b,1\n")
    source = {"csv": "words.csv", "saved": "saved", "folder": "parts/"}.get(kind, f"words.{kind}")
    if kind == "saved":
        run("save", "words.csv", source)
    elif kind != "csv":
        run("convert", "words.csv", source)
    arguments = {
        "bfs": ("bfs", source, "-s", "a", "-o", "out.npz"),
        "components": ("components", source, "-o", "out.npz"),
        "msf": ("msf", source, "-o", "out.npz"),
        "convert": ("convert", source, "out.mtx"),
        "vertices": ("convert", source, "out.mtx", "--vertices", "out.npz"),
    }[command]
    (line,) = run(*arguments, code=2).stderr.splitlines()
    assert "out.mtx numbers vertices, and these are strings: --vertices FILE" in line or (
        "out.npz: a .npz file holds numbers, and the vertices are strings: write .csv, .tsv, .parquet or .arrow" in line
    )
    assert not list(folder.glob("out*"))


def test_folder_without_write_permission_is_refused(bad, monkeypatch):
    monkeypatch.setattr("os.access", lambda *args: False)
    assert "no file may be written in ." in refused("bfs", "plain.el", "-s", 0, "-o", "out.csv", code=2)


def test_graph_that_does_not_fit_ends_in_exit_code_5(monkeypatch):
    for free, text in (
        ("2", r"17\.9 KiB is needed on each rank for the order of 256 vertices, and 2 KiB is free: use ranks"),
        ("19", r"takes .* more here, and 19 KiB is free: use ranks with more memory"),
    ):
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self, free=free: int(free) << 10)
        assert re.search(text, refused("info", "rmat:8", code=5))
    monkeypatch.setattr("mgraph.cli.info.Graph.from_source", lambda *args, **options: np.empty(1 << 55))
    assert "out of memory: Unable to allocate" in refused("info", "rmat:8", code=5)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (FileNotFoundError(2, "No such file or directory", "gone.el"), "mgraph: gone.el: No such file or directory\n"),
        (
            InputError("Couldn't deserialize thrift:\ninvalid TType\n"),
            "mgraph: Couldn't deserialize thrift: invalid TType\n",
        ),
    ],
)
def test_errors_of_libraries_end_in_one_line(error, line, monkeypatch):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr("mgraph.cli.info.Graph.from_source", fail)
    assert run("info", "rmat:4", code=3).stderr == f"building rmat4\n{line}"


@pytest.mark.parametrize("library", [None, ImportError("a library could not be loaded")])
def test_interrupt_inside_a_library_ends_as_interrupted(library, monkeypatch):
    def interrupt(*args, **options):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise library or KeyboardInterrupt from None

    monkeypatch.setattr("mgraph.cli.main.importlib.import_module", interrupt)
    assert run("info", "rmat:4", code=130).stderr == "mgraph: interrupted\n"


def test_full_disk_behind_standard_output_ends_in_one_line():
    with open("/dev/full", "w") as full:
        process = start("plan", "rmat:4", stdout=full)
        assert process.communicate(timeout=60)[1] == "mgraph: No space left on device\n"
    assert process.returncode == 3


def test_process_ends_with_exit_code_and_no_traceback(bad):
    process = start("bfs", "badid.txt", "-s", "0")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (3, "")
    # Where these kernels have never been compiled, a line says that they are now.
    lines = r"building badid\n(compiling kernels .*\n)?mgraph: \S+badid\.txt:2: vertex 'x' is not .*\n"
    assert re.fullmatch(lines, err)


@pytest.mark.parametrize(
    "command",
    [
        "bfs edges.wel -s 0 -o out.csv",
        "bfs edges.wel -s 0 --plot out.png",
        "sssp edges.wel -s 0 -o out.arrow",
        "components edges.wel -o out.parquet",
        "msf edges.wel -o out.npz",
        "convert edges.wel out.txt",
        "convert edges.wel out.sg --weight none",
        "convert edges.wel new.npz --vertices out.csv",
        "generate rmat:4 out.mtx",
        "generate rmat:4 out --to graph500-16",
        "save edges.wel out",
    ],
)
def test_existing_output_is_replaced_only_on_request(folder, command, monkeypatch):
    (folder / "edges.wel").write_text("0 1 1\n1 2 5\n")
    out = next(word for word in command.split() if word.startswith("out"))
    if command.startswith("save"):
        run("save", "rmat:3", out)
        old = {path.name for path in (folder / out).iterdir()}
    else:
        (folder / out).write_text("mine")
    with monkeypatch.context() as patches:
        patches.setattr("mgraph.api.graph.Graph.from_source", lambda *args, **options: pytest.fail("a graph was built"))
        line = refused(*command.split(), code=2)
    assert "--overwrite" in line
    if command.startswith("save"):
        assert {path.name for path in (folder / out).iterdir()} == old
    else:
        assert (folder / out).read_text() == "mine"
        assert not (folder / "new.npz").exists()
    run(*command.split(), "--overwrite")
    assert command.startswith("save") or (folder / out).read_bytes() != b"mine"


@pytest.mark.parametrize("command", ["bfs", "msf", "components"])
def test_output_over_the_input_is_refused(folder, command):
    (folder / "edges.csv").write_text("source,target\n0,1\n")
    (folder / "link.csv").symlink_to("edges.csv")
    source = ["-s", 0] if command == "bfs" else []
    for output in ("edges.csv", "link.csv"):
        assert f"{output} is the input" in refused(command, "edges.csv", *source, "-o", output, code=2)
    assert (folder / "edges.csv").read_text() == "source,target\n0,1\n"
