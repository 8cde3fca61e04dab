"""Folders of parts appear with all of their files or not at all, and replace only folders of such parts."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import stat
import subprocess
import sys

import pytest
from cli_runs import ENVIRONMENT

from mgraph.errors import InputError, UsageError
from mgraph.io import replace_folder
from mgraph.io.replace_folder import names_folder, part_name, replacing_folder


def written(path, text="new", **options) -> None:
    with replacing_folder(path, **options) as folder:
        for k in range(2):
            (folder / part_name(k)).write_text(text)
        # Nothing that could be read as a result is there before the end.
        assert not pathlib.Path(path).exists() or text not in contents(path)


def contents(path) -> list[str]:
    return [part.read_text() for part in sorted(pathlib.Path(path).iterdir())]


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_new_folder_has_all_parts(tmp_path):
    written(tmp_path / "a")
    written(f"{tmp_path}/b.d/")
    assert names(tmp_path) == ["a", "b.d"]
    assert names(tmp_path / "a") == ["part-00000.parquet", "part-00001.parquet"]


def test_empty_folder_is_replaced_and_keeps_its_mode(tmp_path):
    (tmp_path / "a").mkdir(mode=0o750)
    written(tmp_path / "a")
    assert contents(tmp_path / "a") == ["new", "new"]
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o750


def test_full_folder_is_replaced_only_on_demand(tmp_path):
    written(tmp_path / "a", "old")
    (tmp_path / "a" / part_name(7)).write_text("old")
    with pytest.raises(UsageError, match=re.escape(f"{tmp_path}/a is not empty: delete it, give another folder, or")):
        written(tmp_path / "a")
    assert contents(tmp_path / "a") == ["old"] * 3
    written(tmp_path / "a", overwrite=True)
    assert contents(tmp_path / "a") == ["new"] * 2
    assert names(tmp_path) == ["a"]


def test_folder_of_other_files_is_never_replaced(tmp_path):
    written(tmp_path / "a", "old")
    (tmp_path / "a" / "thesis.tex").write_text("old")
    with pytest.raises(UsageError, match=r"has other files than parts, such as thesis.tex, and is not"):
        written(tmp_path / "a", overwrite=True)
    assert contents(tmp_path / "a") == ["old"] * 3


def test_files_that_come_meanwhile_are_kept(tmp_path):
    for overwrite in (False, True):
        with pytest.raises((InputError, UsageError)):
            _meet(tmp_path / "a", overwrite)
        assert names(tmp_path) == ["a"]
        assert names(tmp_path / "a") == ["thesis.tex"]
        (tmp_path / "a" / "thesis.tex").unlink()


def _meet(path, overwrite) -> None:
    with replacing_folder(path, overwrite=overwrite):
        path.mkdir(exist_ok=True)
        (path / "thesis.tex").write_text("old")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_failed_write_leaves_nothing(tmp_path, error):
    written(tmp_path / "a", "old")
    with pytest.raises(error):
        _fail(tmp_path / "a", error)
    assert names(tmp_path) == ["a"]
    assert contents(tmp_path / "a") == ["old", "old"]


def _fail(path, error) -> None:
    with replacing_folder(path, overwrite=True) as folder:
        (folder / part_name(0)).write_text("half")
        raise error


def test_old_folder_comes_back_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    written(tmp_path / "a", "old")
    rename = pathlib.Path.rename

    def fail(path, target):
        if (path / part_name(0)).read_text() == "new" and not pathlib.Path(target).exists():
            raise OSError(5, "broken")
        return rename(path, target)

    monkeypatch.setattr(pathlib.Path, "rename", fail)
    with pytest.raises(InputError, match="cannot be written: broken"):
        written(tmp_path / "a", overwrite=True)
    assert names(tmp_path) == ["a"]
    assert contents(tmp_path / "a") == ["old", "old"]


def test_link_to_a_folder_stays(tmp_path):
    written(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "new").symlink_to("none")
    written(tmp_path / "link", overwrite=True)
    written(tmp_path / "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new").is_symlink()
    assert contents(tmp_path / "real") == contents(tmp_path / "none") == ["new", "new"]


def test_places_where_no_folder_can_be_are_refused(tmp_path):
    (tmp_path / "file").write_text("old")
    for path, message in [
        (tmp_path / "file", "is a file, not a folder"),
        (tmp_path / "none" / "a", "there is no folder"),
        (tmp_path / "file" / "a", "there is no folder"),
        (tmp_path / ("x" * 300), "cannot be written: File name too long|File name too long"),
    ]:
        with pytest.raises((UsageError, InputError), match=message):
            written(path)
    assert names(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_unwritable_place_is_refused(tmp_path):
    for folder in (tmp_path, *(parent for parent in tmp_path.parents if "pytest-of" in str(parent))):
        folder.chmod(0o755)
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            written(tmp_path / "a")
        except UsageError as error:
            os._exit(0 if f"no folder may be made in {tmp_path}" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert names(tmp_path) == []


def test_names_of_folders_have_no_ending_or_a_slash(tmp_path):
    (tmp_path / "b.d").mkdir()
    assert names_folder("labels")
    assert names_folder("labels.v2/")
    assert names_folder(tmp_path / "b.d")
    assert not names_folder("labels.csv")
    assert not names_folder("x" * 300 + ".csv")


# Writes folders, forever, and says when the first is there.
WRITER = """
import sys
from mgraph.io.replace_folder import part_name, replacing_folder
while True:
    with replacing_folder(sys.argv[1], overwrite=True) as folder:
        for k in range(20):
            (folder / part_name(k)).write_text("x" * 1000)
    print(flush=True)
"""


@pytest.mark.ci
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_process_leaves_a_whole_folder_or_a_hidden_one(tmp_path, number):
    for _ in range(4):
        command = [sys.executable, "-c", WRITER, str(tmp_path / "a")]
        writer = subprocess.Popen(
            command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        writer.stdout.readline()
        writer.send_signal(number)
        writer.wait(60)
        writer.stdout.close()
        hidden = [name for name in names(tmp_path) if name.startswith(".mgraph-")]
        assert set(names(tmp_path)) - set(hidden) <= {"a"}
        if number == signal.SIGINT:
            assert hidden == []
        if (tmp_path / "a").exists():
            assert contents(tmp_path / "a") == ["x" * 1000] * 20


@pytest.mark.parametrize(("steps", "is_new"), [(1, False), (2, False), (3, True), (4, True)])
def test_interrupt_at_each_step_leaves_one_whole_folder(tmp_path, monkeypatch, steps, is_new):
    """The steps: to rename the new folder, which fails; the old one; the new one again; to delete the old one."""
    left = [steps]
    rename = pathlib.Path.rename
    rmtree = replace_folder.shutil.rmtree

    def interrupt():
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    def interrupted_rename(*paths):
        try:
            return rename(*paths)
        finally:
            interrupt()

    def interrupted_rmtree(*args, **options):
        interrupt()
        rmtree(*args, **options)

    with replacing_folder(tmp_path / "a") as folder:
        (folder / part_name(0)).write_text("old")
    monkeypatch.setattr(pathlib.Path, "rename", interrupted_rename)
    monkeypatch.setattr(replace_folder.shutil, "rmtree", interrupted_rmtree)
    with pytest.raises(KeyboardInterrupt), replacing_folder(tmp_path / "a", overwrite=True) as folder:
        (folder / part_name(0)).write_text("new")
    assert names(tmp_path) == ["a"]
    assert contents(tmp_path / "a") == ["new" if is_new else "old"]


def test_part_names_are_those_that_may_be_replaced():
    assert all(replace_folder.PART.fullmatch(part_name(k)) for k in (0, 99999, 1234567))
