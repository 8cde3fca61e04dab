"""Build a release and check it: `make release`; with CONFIRM=1 in the environment also tag and upload it.

What would make a wrong release is printed as a problem, one line each; then nothing is tagged or uploaded.
"""

from __future__ import annotations

import email.parser
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from email.message import Message

ROOT = pathlib.Path(__file__).parents[2]
NAME = "dask-mgraph"
FIELDS = ("Name", "Version", "Summary", "Requires-Python", "License-Expression", "Description-Content-Type")
# One of each kind that a wheel must have beside the .py.
DATA = ("mgraph/py.typed", "mgraph/config/mgraph.yaml", "mgraph/backends/device/prelude.cuh")

Run = Callable[[list[str]], object]


def version_of(root: pathlib.Path) -> str:
    """Return the version of the package, which pyproject.toml takes too."""
    (version,) = re.findall(r'^__version__ = "(.+)"$', (root / "mgraph/__init__.py").read_text(), re.MULTILINE)
    return version


def notes_of(changelog: str, version: str) -> str | None:
    """Return the section of a version, None if there is none; sections begin with `## [version] - date`."""
    found = re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    return found[1].strip() if found else None


def metadata_of(path: pathlib.Path) -> Message:
    """Return the metadata of an sdist or a wheel."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            return email.parser.BytesParser().parsebytes(wheel.read(name))
    with tarfile.open(path) as sdist:
        stem = path.name.removesuffix(".tar.gz")
        file = sdist.extractfile(f"{stem}/PKG-INFO")
        assert file is not None
        return email.parser.BytesParser().parsebytes(file.read())


def problems_of_files(files: list[pathlib.Path], version: str) -> Iterator[str]:
    """Yield what is wrong with the built files."""
    kinds = sorted("wheel" if path.suffix == ".whl" else "sdist" for path in files)
    if kinds != ["sdist", "wheel"]:
        yield f"the build made {', '.join(path.name for path in files) or 'nothing'}: an sdist and a wheel are wanted"
    for path in files:
        metadata = metadata_of(path)
        yield from (f"{path.name}: no {field}" for field in FIELDS if not metadata[field])
        if (metadata["Name"], metadata["Version"]) != (NAME, version):
            yield f"{path.name}: it is {metadata['Name']} {metadata['Version']}, and the tree {NAME} {version}"
        if not str(metadata.get_payload()).strip():
            yield f"{path.name}: no description"
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                yield from (f"{path.name}: no {name}" for name in DATA if name not in wheel.namelist())


def problems_of_tree(root: pathlib.Path, version: str) -> Iterator[str]:
    """Yield what is wrong with the tree: its changelog, changes without a commit, a tag that exists."""
    if notes_of((root / "CHANGELOG.md").read_text(), version) is None:
        yield f"CHANGELOG.md has no section [{version}] with a date: rename [Unreleased], and begin a new one"
    if _git(root, "status", "--porcelain"):
        yield "the tree has changes without a commit"
    if _git(root, "tag", "--list", f"v{version}"):
        yield f"the tag v{version} exists: give mgraph/__init__.py another version"


def _git(root: pathlib.Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def build(root: pathlib.Path, folder: pathlib.Path) -> list[pathlib.Path]:
    """Build an sdist, and a wheel from it; return both."""
    if importlib.util.find_spec("build") is None:
        sys.exit("release: the package `build` is not installed: pip install -e '.[release]'")
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(root)], check=True)
    return sorted(folder.iterdir())


def problems_by_twine(files: list[pathlib.Path]) -> Iterator[str]:
    """Yield what `twine check` finds, where it is installed."""
    if importlib.util.find_spec("twine") is None:
        print("twine is not installed: metadata are parsed alone")
        return
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        yield f"twine check: {' '.join((done.stdout + done.stderr).split())}"


def publish(version: str, files: list[pathlib.Path], run: Run) -> None:
    """Tag the commit, and upload the files."""
    run(["git", "tag", "--annotate", f"v{version}", "--message", f"{NAME} {version}"])
    run([sys.executable, "-m", "twine", "upload", *map(str, files)])
    print(f"tagged and uploaded; `git push origin v{version}` publishes the tag")


def main() -> int:
    """Build, check, print the notes; return 1 if there is a problem."""
    version = version_of(ROOT)
    files = build(ROOT, ROOT / "dist")
    problems = [*problems_of_tree(ROOT, version), *problems_of_files(files, version), *problems_by_twine(files)]
    print(f"\n{NAME} {version}: {', '.join(path.name for path in files)}\n")
    print(notes_of((ROOT / "CHANGELOG.md").read_text(), version) or "no notes", end="\n\n")
    print(*(f"problem: {problem}" for problem in problems), sep="\n", end="\n" if problems else "")
    if problems:
        print("nothing was tagged or uploaded")
        return 1
    if os.environ.get("CONFIRM") != "1":
        print("nothing was tagged or uploaded: make release CONFIRM=1 does both")
        return 0
    publish(version, files, lambda command: subprocess.run(command, cwd=ROOT, check=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
