"""Test the release: notes and version agree, built files are checked, and nothing is published unasked."""

from __future__ import annotations

import io
import pathlib
import subprocess
import tarfile
import zipfile

import pytest
import release

ROOT = pathlib.Path(__file__).parents[2]
CHANGELOG = """# Changelog

## [Unreleased]

## [0.2.0] - 2027-01-31

### Added

- One thing.

## [0.1.0] - 2026-12-24

- The first.
"""
METADATA = """Metadata-Version: 2.4
Name: dask-mgraph
Version: 0.2.0
Summary: graphs
Requires-Python: >=3.11
License-Expression: BSD-3-Clause
Description-Content-Type: text/markdown

# mgraph
"""


@pytest.mark.parametrize(
    ("version", "notes"),
    [("0.2.0", "### Added\n\n- One thing."), ("0.1.0", "- The first."), ("0.3.0", None), ("0", None)],
)
def test_notes_are_the_section_of_the_version(version, notes):
    assert release.notes_of(CHANGELOG, version) == notes


@pytest.fixture
def tree(tmp_path):
    """Make a repository with a version, its section in the changelog, and all committed."""
    (tmp_path / "mgraph").mkdir()
    (tmp_path / "mgraph/__init__.py").write_text('"""A package."""\n\n__version__ = "0.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def test_tree_of_a_release_has_no_problem(tree):
    assert release.version_of(tree) == "0.2.0"
    assert list(release.problems_of_tree(tree, "0.2.0")) == []


def test_what_would_make_a_wrong_release_is_named(tree):
    assert "no section [0.3.0]" in next(release.problems_of_tree(tree, "0.3.0"))
    subprocess.run(["git", "tag", "v0.2.0"], cwd=tree, check=True)
    (tree / "CHANGELOG.md").write_text(CHANGELOG + "- More.\n")
    changed, tagged = release.problems_of_tree(tree, "0.2.0")
    assert changed == "the tree has changes without a commit"
    assert tagged.startswith("the tag v0.2.0 exists")


def built(folder: pathlib.Path, metadata: str = METADATA, data: tuple[str, ...] = release.DATA) -> list[pathlib.Path]:
    """Write an sdist and a wheel with these metadata."""
    sdist = folder / "dask_mgraph-0.2.0.tar.gz"
    wheel = folder / "dask_mgraph-0.2.0-py3-none-any.whl"
    with tarfile.open(sdist, "w:gz") as out:
        entry = tarfile.TarInfo("dask_mgraph-0.2.0/PKG-INFO")
        entry.size = len(metadata)
        out.addfile(entry, io.BytesIO(metadata.encode()))
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("dask_mgraph-0.2.0.dist-info/METADATA", metadata)
        for name in data:
            archive.writestr(name, "")
    return [sdist, wheel]


def test_built_files_are_checked(tmp_path):
    files = built(tmp_path)
    assert list(release.problems_of_files(files, "0.2.0")) == []
    assert "an sdist and a wheel are wanted" in next(release.problems_of_files(files[:1], "0.2.0"))
    assert any("and the tree dask-mgraph 0.3.0" in problem for problem in release.problems_of_files(files, "0.3.0"))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("Name: dask-mgraph", "Name: mgraph", "it is mgraph 0.2.0"),
        ("Summary: graphs\n", "", "no Summary"),
        ("# mgraph\n", "", "no description"),
    ],
)
def test_wrong_metadata_are_found(tmp_path, old, new, problem):
    assert any(
        problem in found for found in release.problems_of_files(built(tmp_path, METADATA.replace(old, new)), "0.2.0")
    )


def test_wheel_without_data_is_found(tmp_path):
    found = list(release.problems_of_files(built(tmp_path, data=release.DATA[1:]), "0.2.0"))
    assert found == ["dask_mgraph-0.2.0-py3-none-any.whl: no mgraph/py.typed"]
    assert all((ROOT / name).is_file() for name in release.DATA)


@pytest.fixture
def rehearsal(tree, monkeypatch):
    """Plant a build, and record what would be published."""
    published: list[list[str]] = []
    (tree / ".git/info/exclude").write_text("dist/\n")
    (tree / "dist").mkdir()
    monkeypatch.setattr(release, "ROOT", tree)
    monkeypatch.setattr(release, "build", lambda root, folder: built(folder))
    monkeypatch.setattr(release, "problems_by_twine", lambda files: [])
    monkeypatch.setattr(release, "publish", lambda version, files, run: published.append([version]))
    monkeypatch.delenv("CONFIRM", raising=False)
    return published


def test_nothing_is_published_unless_confirmed(rehearsal, monkeypatch, capsys):
    assert release.main() == 0
    said = capsys.readouterr().out
    assert "- One thing." in said and "nothing was tagged or uploaded: make release CONFIRM=1 does both" in said
    monkeypatch.setenv("CONFIRM", "yes")
    assert release.main() == 0
    assert rehearsal == []
    monkeypatch.setenv("CONFIRM", "1")
    assert release.main() == 0
    assert rehearsal == [["0.2.0"]]


def test_release_with_a_problem_is_not_published(rehearsal, tree, monkeypatch, capsys):
    monkeypatch.setenv("CONFIRM", "1")
    (tree / "new").write_text("")
    assert release.main() == 1
    assert "problem: the tree has changes without a commit" in capsys.readouterr().out
    assert rehearsal == []


def test_publishing_tags_and_uploads(capsys):
    commands: list[list[str]] = []
    release.publish("0.2.0", [pathlib.Path("a.whl")], commands.append)
    (tag, upload) = commands
    assert tag[:2] == ["git", "tag"] and "v0.2.0" in tag
    assert upload[-2:] == ["upload", "a.whl"]
