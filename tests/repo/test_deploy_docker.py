"""The Dockerfiles of deploy/: each RUN line runs in a plain virtual environment, or is listed as not run."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy" / "docker").glob("*Dockerfile"))
# Why a RUN line that begins so is not run by a test.
NOT_RUN = {
    "apt-get update": "it would install packages of the system",
    "useradd": "it would add a user to this machine",
}
SMOKE = ["mgraph", "graph500", "--scale", "16"]


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile with their arguments, each as one line."""
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line.strip())]


def of_kind(file: pathlib.Path, kind: str) -> list[str]:
    return [rest for name, rest in instructions(file.read_text()) if name == kind]


def is_run(line: str) -> bool:
    return not any(line.startswith(beginning) for beginning in NOT_RUN)


def test_there_are_two_images():
    assert [file.name for file in FILES] == ["Dockerfile", "cpu.Dockerfile"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_image_has_a_fixed_base_an_unprivileged_user_and_the_smoke_command(file):
    (base,) = of_kind(file, "FROM")
    assert re.fullmatch(r"[\w./-]+:[\w.-]*\d[\w.-]*", base)
    (user,) = of_kind(file, "USER")
    assert user.isdigit() and int(user) > 0
    assert f"--uid {user} " in "".join(of_kind(file, "RUN"))
    (command,) = of_kind(file, "CMD")
    assert json.loads(command) == SMOKE
    for line in (line for line in of_kind(file, "RUN") if "apt-get install" in line):
        assert "--no-install-recommends" in line and "rm -rf /var/lib/apt/lists/*" in line
    known = {"FROM", "RUN", "COPY", "ENV", "USER", "WORKDIR", "CMD"}
    assert {name for name, _ in instructions(file.read_text())} == known


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_copied_files_are_in_the_context(file):
    context = (ROOT / ".dockerignore").read_text().splitlines()
    for line in of_kind(file, "COPY"):
        *sources, _ = line.split()
        assert all((ROOT / source).exists() and f"!{source}" in context for source in sources)


def test_each_reason_not_to_run_a_line_is_used():
    lines = [line for file in FILES for line in of_kind(file, "RUN")]
    assert [beginning for beginning in NOT_RUN if not any(line.startswith(beginning) for line in lines)] == []


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_lines_of_the_image_run_and_make_the_command(file, tmp_path, record_property):
    """In place of the image: its folders are in this test's, and `python3` is the interpreter of the tests."""
    places = {"/opt/mgraph": str(tmp_path / "opt"), "/src": str(tmp_path / "src")}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(pathlib.Path(sys.base_prefix) / "bin" / "python3")
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    ways = {"cwd": tmp_path, "capture_output": True, "text": True, "check": False}

    def here(text: str) -> str:
        for place, folder in places.items():
            text = text.replace(place, folder)
        return text

    ran = []
    for name, rest in instructions(file.read_text()):
        if name == "COPY":
            *sources, target = rest.split()
            for source in sources:
                copy(ROOT / source, pathlib.Path(here(target)))
        elif name == "ENV":
            variable, _, value = rest.partition("=")
            environment[variable] = here(value).replace("$PATH", environment["PATH"])
        elif name == "RUN" and is_run(rest):
            done = subprocess.run(["sh", "-c", here(rest)], env=environment, **ways)
            assert done.returncode == 0, done.stdout + done.stderr
            ran.append(rest)
    assert len(ran) == 2
    smoke = subprocess.run(SMOKE, env=environment, **ways)
    assert "all validated" in smoke.stdout, smoke.stderr
    packages = subprocess.run(["pip", "freeze"], env=environment, **ways).stdout.split()
    kept = [package for package in packages if re.match("cupy|dask|distributed|nccl|nvidia", package)]
    record_property("recipe", {"recipe": f"docker, {file.name}", "ran": ran, "packages": kept})


def copy(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copy a file into a folder, or a folder's files, as COPY does."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.mkdir(exist_ok=True)
        shutil.copy(source, target)


def test_instructions_are_parsed():
    text = "# a comment\nFROM a:1\nRUN one \\\n    && two\n\nENV A=b c\n"
    assert instructions(text) == [("FROM", "a:1"), ("RUN", "one && two"), ("ENV", "A=b c")]
