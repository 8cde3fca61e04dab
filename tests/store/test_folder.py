"""A store is in its place whole or not at all, and nothing but a store is ever replaced."""

from __future__ import annotations

import os
import shutil

import pytest
from stores import build_shards, save_shards
from zoo import ZOO

from mgraph.errors import InputError, UsageError
from mgraph.store import folder as folders
from mgraph.store.manifest import MANIFEST, open_store


def saved(path):
    return save_shards(build_shards(ZOO["star"], 1), path)


def names(folder):
    return sorted(os.listdir(folder))


def put(tmp_path, target, *, overwrite=False, token="new"):
    """Put a new store, named by the token, in place."""
    temporary = folders.temporary_folder(target, token, "")
    save_shards(build_shards(ZOO["star"], 1), temporary, token)
    text = (temporary / MANIFEST).read_bytes()
    (temporary / MANIFEST).unlink()
    folders.put_in_place(temporary, target, text, overwrite=overwrite)


def test_place_is_refused_unless_it_is_free_or_may_be_replaced(tmp_path):
    store = saved(tmp_path / "store").path
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("new", "empty", "dangling"):
        folders.require_target(tmp_path / name, overwrite=False)
    folders.require_target(store, overwrite=True)
    for name, overwrite, said in (
        ("store", False, r"store is a saved graph: overwrite=True \(--overwrite\) replaces it"),
        ("file", True, "file is a file, and a graph is saved as a folder"),
        ("other", True, "other is a folder with other files, which are not replaced"),
        ("none/new", True, "there is no folder .*none"),
        ("file/new", True, "there is no folder .*file"),
    ):
        with pytest.raises(UsageError, match=said):
            folders.require_target(tmp_path / name, overwrite=overwrite)


def test_folder_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UsageError, match="no folder may be made in"):
        folders.require_target(tmp_path / "new", overwrite=False)


def test_new_store_takes_the_place_of_nothing_of_an_empty_folder_and_of_a_store(tmp_path):
    (tmp_path / "b").mkdir()
    for name in ("a", "b"):
        put(tmp_path, tmp_path / name, token="first")
        assert open_store(tmp_path / name).name == "first"
        put(tmp_path, tmp_path / name, token="second", overwrite=True)
        assert open_store(tmp_path / name).name == "second"
    assert names(tmp_path) == ["a", "b"]


def test_symbolic_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to("there/store")
    for token in ("first", "second"):
        put(tmp_path, link, token=token, overwrite=True)
        assert link.is_symlink()
        assert open_store(link).name == token
    assert names(tmp_path / "there") == ["store"]


def test_store_that_appeared_meanwhile_is_not_replaced(tmp_path):
    saved(tmp_path / "store")
    with pytest.raises(UsageError, match="is a saved graph"):
        put(tmp_path, tmp_path / "store")
    assert open_store(tmp_path / "store").name == "graph"


@pytest.mark.parametrize("failing", ["new", "old", "manifest"])
def test_old_store_is_put_back_after_a_failure(tmp_path, monkeypatch, failing):
    saved(tmp_path / "store")
    rename = os.rename

    def fail(source, target):
        if os.path.basename(source) == (".mgraph-new" if failing == "new" else "store"):
            raise OSError(5, "Input/output error")
        rename(source, target)

    def fail_to_write(file, data):
        raise OSError(28, "No space left on device")

    if failing == "manifest":
        monkeypatch.setattr(folders, "_write_synced", fail_to_write)
    else:
        monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(InputError, match="store cannot be written: "):
        put(tmp_path, tmp_path / "store", overwrite=True)
    assert open_store(tmp_path / "store").name == "graph"
    folders.discard(tmp_path / ".mgraph-new")
    assert names(tmp_path) == ["store"]


def test_folder_that_a_rank_does_not_see_is_named_with_the_host(tmp_path):
    folders.make_temporary(tmp_path / ".mgraph-x")
    folders.require_shared(tmp_path / ".mgraph-x", tmp_path / "store", 1)
    shutil.rmtree(tmp_path / ".mgraph-x")
    with pytest.raises(InputError, match=r"rank 1 on .* does not see .*, where rank 0 writes: save store to a folder"):
        folders.require_shared(tmp_path / ".mgraph-x", tmp_path / "store", 1)
    with pytest.raises(InputError, match="cannot be made: No such file"):
        folders.make_temporary(tmp_path / "none/x")


def test_folder_has_no_manifest_until_it_is_whole(tmp_path, monkeypatch):
    def killed(file, data):
        file.write_bytes(data[: len(data) // 2])
        raise SystemExit

    monkeypatch.setattr(folders, "_write_synced", killed)
    with pytest.raises(SystemExit):
        put(tmp_path, tmp_path / "store")
    assert not list(tmp_path.glob(f"*/{MANIFEST}")) and list(tmp_path.glob(f".*/{MANIFEST}*"))
