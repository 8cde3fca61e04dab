"""Test that every path and command in the documents exists, and that their examples and those of docstrings run."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import logging
import lzma
import pathlib
import re
import shlex
import subprocess
from collections.abc import Collection

import click
import pytest
from click.testing import CliRunner

import mgraph
from mgraph.cli.main import main

ROOT = pathlib.Path(__file__).parents[2]
NAMED = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "bench/README.md")
DOCUMENTS = [*(ROOT / name for name in NAMED), *sorted(ROOT.glob("d*/**/*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A block that does not run everywhere.
NEEDY_FENCE = re.compile(r"^<!-- needs: [\w ]+ -->\n```.*?^```$", re.MULTILINE | re.DOTALL)
# Documents with Python that tests/nx_backend and tests/store run.
PYTHON_RUN_ELSEWHERE = {"networkx.md", "store.md"}
EXAMPLES_OF_THE_QUICK_TIER = {"README.md", "quickstart.md", "bfs.md", "labels.md"}
# A word in backticks that may be a path of this tree: it has a slash or a known suffix.
SUFFIXES = ["cu", "cuh", "json", "jsonl", "md", "py", "sbatch", "sh", "toml", "yaml", "yml"]
PATH = re.compile(rf"(?:[\w.-]+/)+[\w.*-]*|[\w-]+\.(?:{'|'.join(SUFFIXES)})|LICENSE|Makefile")
# Files that users create.
MADE = {"build/docs", "scheduler.json", "edges.csv", "my_job.sh", "mgraph.json", "pairs/", "labels/", "people.csv"}
MADE |= {"roads.gr.xz", "job.toml", "job.manifest.json", ".venv/bin/python"}
# Programs of others, which are not checked.
FOREIGN = {
    *("pip", "python3", ".venv/bin/pip", ".venv/bin/pytest", "git", "pre-commit", "dask", "export", "mkdir"),
    *("sbatch", "openssl", "docker", "apptainer", "kubectl", "helm"),
}
# Names of commands that are no calls of them, for lack of an argument.
NAMES_OF_COMMANDS = {
    f"mgraph {name}"
    for name in (
        *("bfs", "sssp", "path", "components", "strong-components", "core-numbers", "pagerank", "degrees", "diameter"),
        *("closeness", "distances", "k-hop", "bipartite", "msf", "hits", "bridges", "steiner-tree"),
        *("convert", "save", "generate", "info"),
    )
}
# Modules of public classes with examples in their docstrings, beside those of functions.
WITH_EXAMPLES = {"mgraph.api.graph", "mgraph.api.columns", "mgraph.api.edges", "mgraph.api.traversal_results"}
PUBLIC = [name for name in dir(mgraph) if not name.startswith("_")]


def fences(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return [body for found, body in FENCE.findall(text) if found == language]


def spans(text: str) -> list[str]:
    """Return the code spans outside of fenced blocks."""
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", text))


def paths(text: str) -> list[str]:
    """Return the paths in code spans, and the local targets of links."""
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    return [span for span in spans(text) if PATH.fullmatch(span) and span not in MADE] + links


def commands(text: str) -> list[list[str]]:
    """Return the commands of bash blocks, and our commands in code spans."""
    lines = [line for block in fences(text, "bash") for line in block.replace("\\\n", " ").splitlines()]
    ours = [span for span in spans(text) if span.split()[0] in ("make", "mgraph") and len(span.split()) > 1]
    lines += [span for span in ours if span not in NAMES_OF_COMMANDS]
    split = [shlex.split(part, comments=True) for line in lines for part in line.split("&&")]
    return [words for words in split if words]


def fault_of(words: list[str]) -> str | None:
    """Return why a command would fail, None if it would start."""
    program, *arguments = words
    if program in FOREIGN:
        scripts = [word for word in arguments if word.endswith(".py") and not (ROOT / word).is_file()]
        return f"no such file: {scripts[0]}" if scripts else None
    if program.removeprefix(".venv/bin/") == "mgraph":
        return _mgraph_fault(arguments)
    if program == "make":
        targets = [word for word in arguments if "=" not in word]
        return _run_fault(["make", "--dry-run", *targets])
    if (ROOT / program).is_file():
        return _run_fault([program, "--help"]) if program.startswith("deploy/") else None
    return f"unknown program {program}"


def _mgraph_fault(arguments: list[str]) -> str | None:
    """Parse the arguments of a command without running it."""
    name, *rest = arguments
    group = click.Context(main)
    command = main.get_command(group, name)
    if command is None:
        return f"mgraph has no command {name}"
    with contextlib.closing(click.Context(command, info_name=name, parent=group)) as context:
        try:
            command.parse_args(context, list(rest))
        except click.UsageError as error:
            return error.format_message()
    return None


def _run_fault(command: list[str]) -> str | None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30)
    return done.stderr or f"exit code {done.returncode}" if done.returncode else None


@pytest.mark.parametrize("document", sorted(ROOT.glob("docs/*.md")), ids=str)
def test_prose_of_documents_is_at_most_120_columns_wide(document):
    prose = FENCE.sub("", document.read_text()).splitlines()
    assert [line for line in prose if len(line) > 120 and not line.startswith("|")] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_in_documents_exist(document):
    found = paths(document.read_text())
    assert found
    assert [path for path in found if not (any(ROOT.glob(path.rstrip("/"))) or (document.parent / path).exists())] == []


def missing_tests(text: str) -> list[str]:
    """Return the tests that a document names by path and function, and that are not there."""
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(named) == text.count("::"), "a test is not named as `tests/x/test_y.py::test_z`"
    return [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).is_file() or f"\ndef {name}(" not in (ROOT / path).read_text()
    ]


def test_every_failure_names_tests_that_exist():
    text = (ROOT / "docs" / "failures.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 30
    assert [row for row in rows if "::" not in row.rpartition(" | ")[2]] == []
    assert missing_tests(text) == []


def test_tests_that_do_not_exist_are_found():
    gone = "tests/repo/test_docs.py::test_of_nothing", "tests/repo/test_nothing.py::missing_tests"
    assert missing_tests(" ".join(f"`{name}`" for name in (*gone, "tests/repo/test_docs.py::missing_tests"))) == [*gone]


@pytest.mark.ci
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_documents_parse(document):
    found = commands(document.read_text())
    assert found
    assert {shlex.join(words): fault for words in found if (fault := fault_of(words))} == {}


def runnable(document: pathlib.Path) -> str:
    """Return the text of a document without the blocks that do not run everywhere."""
    return NEEDY_FENCE.sub("", document.read_text())


def write_samples(folder: pathlib.Path) -> None:
    """Write the files that examples read."""
    frames = pytest.importorskip("pandas")
    ends = ["alice", "bob", "carol", "dave", "erin"], ["bob", "carol", "dave", "alice", "frank"]
    edges = frames.DataFrame({"src": ends[0], "dst": ends[1], "cost": [2, 1, 4, 3, 5]})
    edges.to_parquet(folder / "edges.parquet")
    edges.set_axis(["source", "target", "weight"], axis=1).to_csv(folder / "people.csv", index=False)
    (folder / "pairs").mkdir()
    pairs = frames.DataFrame({"a": ["r1", "r2", "r7"], "b": ["r2", "r3", "r9"], "score": [0.9, 0.8, 0.7]})
    pairs.to_parquet(folder / "pairs" / "part-0.parquet")
    (folder / "edges.txt").write_text("0 1\n1 2\n")
    (folder / "roads.gr.xz").write_bytes(lzma.compress(b"p sp 3 4\na 1 2 5\na 2 1 5\na 2 3 4\na 3 2 4\n"))


@pytest.fixture
def samples(tmp_path, monkeypatch):
    """Run a test in a folder with the files that examples read; undo what they set for the process."""
    write_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    logger = logging.getLogger("mgraph")
    level = logger.level
    yield
    logger.setLevel(level)


def documents_with(language: str, left_out: Collection[str] = ()) -> list:
    """Return the documents for users that have blocks of a language, as parameters of a test."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = [path for path in found if path.name not in left_out and fences(runnable(path), language)]
    # The others start workers of Dask, or import and compile for seconds.
    marks = {path: () if path.name in EXAMPLES_OF_THE_QUICK_TIER else pytest.mark.ci for path in found}
    return [pytest.param(path, marks=marks[path], id=path.name) for path in found]


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize("document", documents_with("python", PYTHON_RUN_ELSEWHERE))
def test_python_examples_run(document, capsys):
    names = {"__name__": "__main__"}
    for block in fences(runnable(document), "python"):
        exec(compile(block, document.name, "exec"), names)
    assert capsys.readouterr().out or document.name != "README.md"


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize("document", documents_with("bash"))
def test_commands_of_examples_run(document):
    """Commands on a scheduler are parsed only. A TOML block is the job file of the commands."""
    for block in fences(document.read_text(), "toml"):
        pathlib.Path("job.toml").write_text(block)
    blocks = "".join(f"```bash\n{block}```\n" for block in fences(runnable(document), "bash"))
    found = [words for words in commands(blocks) if words[0] == "mgraph"]
    for words in (words for words in found if not any(word.startswith("--scheduler") for word in words)):
        result = CliRunner().invoke(main, words[1:], prog_name="mgraph")
        assert result.exit_code == 0, (shlex.join(words), result.output)


def test_python_that_is_not_run_compiles():
    for document in (ROOT / "docs").glob("*.md"):
        for block in fences(document.read_text(), "python"):
            compile(block, document.name, "exec")


def test_readme_has_the_two_commands_of_ci():
    text = (ROOT / "README.md").read_text()
    for name, end in (("run", "mgraph graph500 --scale 16"), ("test", "pytest")):
        (command,) = re.findall(rf"^<!-- ci: {name} -->\n```bash\n(.*)\n```$", text, re.MULTILINE)
        assert command.endswith(end)


ADVICE_OF_ANOTHER_PROJECT = re.compile(
    r"(pip (install|download|wheel) [^\n&;]*|metadata\.(version|distribution)\([\"'])(?<![\w/.-])mgraph\b"
    r"|(?<![\w-])mgraph\[\w"
)


def test_no_advice_installs_the_other_mgraph_of_the_package_index():
    """On the package index `mgraph` is another project: advice names `dask-mgraph`, packages, or this checkout."""
    texts = [*DOCUMENTS, ROOT / "pyproject.toml", ROOT / "Makefile", ROOT / ".ci/run", *ROOT.glob(".github/**/*.yml")]
    texts += [*ROOT.glob("mgraph/**/*.py"), *ROOT.glob("deploy/**/*.*"), *ROOT.glob("bench/*.*")]
    texts += [path for path in ROOT.glob("tests/**/*.py") if path.name != "test_docs.py"]
    lines = [(path.name, line) for path in texts for line in path.read_text().splitlines()]
    assert [found for found in lines if ADVICE_OF_ANOTHER_PROJECT.search(found[1])] == []


@pytest.mark.parametrize(
    "advice",
    [
        "pip install mgraph",
        "pip install 'mgraph[io]'",
        "pip install -U mgraph[cuda13]",
        "needs mgraph[io]",
        'importlib.metadata.version("mgraph")',
    ],
)
def test_advice_to_install_the_other_mgraph_is_detected(advice):
    assert ADVICE_OF_ANOTHER_PROJECT.search(advice)


@pytest.mark.parametrize(
    "advice",
    ["pip install dask-mgraph", "pip install 'dask-mgraph[cuda13]'", "pip install . && .venv/bin/mgraph graph500"],
)
def test_advice_to_install_this_distribution_passes(advice):
    assert not ADVICE_OF_ANOTHER_PROJECT.search(advice)


# ---- the reference --------------------------------------------------------------------------------
def test_reference_has_every_public_name():
    text = (ROOT / "docs" / "api.rst").read_text()
    assert [name for name in PUBLIC if not re.search(rf"^\.\. auto\w+:: {name}$", text, re.MULTILINE)] == []


MAKING = {"mgraph.api.create", "mgraph.api.from_memory", "mgraph.cluster.connect"}
FUNCTIONS = [name for name in PUBLIC if inspect.isfunction(getattr(mgraph, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_of_public_functions_say_what_these_return_raise_and_cost_in_an_example(name):
    sections = re.findall(r"^(\w+)\n-+$", inspect.getdoc(getattr(mgraph, name)), re.MULTILINE)
    assert {"Raises", "Examples"} <= {*sections}
    assert "Returns" in sections or name == "validate"
    # What a build takes is in docs/memory.md.
    assert "Notes" in sections or getattr(mgraph, name).__module__ in MAKING


@pytest.mark.ci
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize("module", sorted({getattr(mgraph, name).__module__ for name in FUNCTIONS} | WITH_EXAMPLES))
def test_examples_of_docstrings_run(module, capsys):
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(importlib.import_module(module), globs={"mg": mgraph}):
        runner.run(example)
    assert runner.summarize(verbose=False).attempted
    assert runner.failures == 0, capsys.readouterr().out


def test_site_has_every_page():
    text = (ROOT / "docs" / "index.rst").read_text()
    pages = [path.stem for path in sorted((ROOT / "docs").glob("*.*")) if path.suffix in (".md", ".rst")]
    assert [page for page in pages if not re.search(rf"^   {page}$", text, re.MULTILINE)] == ["index"]


# ---- the checkers can fail -------------------------------------------------------------------------
@pytest.mark.parametrize(
    "command",
    [
        "mgraph no-such-command",
        "mgraph graph500 --no-such-option 3",
        "mgraph graph500 --scale many",
        "mgraph bfs",
        "make no-such-target",
        "deploy/no-such.sh",
        "python3 bench/no_such.py",
        "no-such-program",
    ],
)
def test_invalid_commands_are_detected(command):
    assert fault_of(shlex.split(command))


def test_paths_and_commands_are_parsed_from_documents():
    text = "See `mgraph/no/such.py`, `tests/`, `x.y`, [a](docs/a.md), [b](https://b.c) and `mgraph info --json x`.\n"
    text += "```bash\nmake check && mgraph bfs x  # why\n```\n`make` `Makefile` `--json`"
    assert paths(text) == ["mgraph/no/such.py", "tests/", "Makefile", "docs/a.md"]
    assert commands(text) == [["make", "check"], ["mgraph", "bfs", "x"], ["mgraph", "info", "--json", "x"]]
