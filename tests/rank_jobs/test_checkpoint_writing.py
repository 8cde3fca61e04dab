"""States of a call are written while it goes on, and one that is not whole is never used, nor left by a failed call."""

from __future__ import annotations

import concurrent.futures
import itertools
import os
import signal
import threading
import time
import types

import dask
import numpy as np
import pytest

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster
from mgraph.config import settings
from mgraph.errors import InputError
from mgraph.rank_jobs import checkpoints
from mgraph.rank_jobs.checkpoints import FolderCheckpoints
from mgraph.store import checkpoint as files
from mgraph.store import checkpoint_writer


class Killed(Exception):
    """The end of a search, as if its ranks had been killed."""


@pytest.fixture(autouse=True)
def whenever(monkeypatch):
    """Keep a state whenever none is in flight; a superstep takes about as long as to write one."""
    is_due = FolderCheckpoints.is_due

    def slow(self):
        if self.writer.written is not None:
            concurrent.futures.wait([self.writer.written], timeout=0.005)
        return is_due(self)

    monkeypatch.setattr(FolderCheckpoints, "is_due", slow)
    settings.setting("checkpoint-every")
    with dask.config.set({"mgraph.checkpoint-every": 1e-9, "mgraph.checkpoint-share": 1}):
        yield


@pytest.fixture
def folder(tmp_path):
    """Name the folder of the checkpoint; in the end no thread writes to it."""
    yield tmp_path / "kept"
    assert not writers()


def writers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("mgraph-checkpoint")]


def fsync_after(act):
    """Return os.fsync, which first acts on the number of the call."""
    fsync = os.fsync
    turns = itertools.count(1)

    def counted(descriptor):
        act(next(turns))
        fsync(descriptor)

    return counted


def path(ranks: int, length: int = 150):
    return mg.grid(2, length, drop=0, cluster=InProcessCluster(ranks))


def search(g, **how):
    return mg.bfs(g, 0, method="step", **how)


def levels(found):
    return found.columns[0].digest()


def tokens(folder):
    """List the states of which there are any files."""
    return {int(name.split("-")[2], 16) for name in os.listdir(folder)}


def test_state_does_not_change_while_it_is_written_and_the_search_goes_on(folder, monkeypatch):
    is_due = FolderCheckpoints.is_due
    keep = FolderCheckpoints.keep
    write_part = files.write_part
    steps = 0
    kept = []
    written = []

    def stepped(self):
        nonlocal steps
        steps += 1
        return is_due(self)

    def keeping(self, state, since=None):
        assert len(written) == len(kept), "one state at a time"
        kept.append(state.values.copy())
        keep(self, state, since)

    def late(path, name, *how):
        values = how[2]
        if name == files.VALUES:
            until = steps + 10
            while steps < until and not how[3]():
                time.sleep(1e-3)
            written.append(np.array_equal(values, kept[-1]))
        return write_part(path, name, *how)

    monkeypatch.setattr(FolderCheckpoints, "is_due", stepped)
    monkeypatch.setattr(FolderCheckpoints, "keep", keeping)
    monkeypatch.setattr(files, "write_part", late)
    with path(1) as g:
        found = search(g, checkpoint=folder)
        assert levels(found) == levels(search(g))
    assert len(written) >= 5
    assert all(written)
    assert not folder.exists()


@pytest.mark.parametrize("ranks", [(3, 2), (2, 3)])
def test_state_without_the_manifests_of_all_ranks_is_not_used(folder, monkeypatch, ranks):
    """Rank 1 is killed when its files are there, and no rank cleans up."""
    put_manifest = files.put_manifest
    whole = []

    def killed(path, rank, part):
        if rank == 1 and part.bound > 40:
            raise Killed
        put_manifest(path, rank, part)
        if rank == 1:
            whole.append((part.token, part.bound))

    with monkeypatch.context() as patch:
        patch.setattr(files, "put_manifest", killed)
        patch.setattr(files, "discard_part", lambda *_: None)
        with path(ranks[0]) as g, pytest.raises(Killed):
            search(g, checkpoint=folder)
    token, bound = whole[-1]
    assert files.newest_token(folder) == token
    assert max(tokens(folder)) > token, "files of the next state"
    with path(ranks[1]) as g:
        expected = search(g)
        found = search(g, checkpoint=folder)
        assert levels(found) == levels(expected)
        assert len(found.stats.supersteps) == len(expected.stats.supersteps) - bound
    assert not folder.exists()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError(30, "Read-only file system")])
def test_error_of_a_writer_ends_the_search_and_keeps_the_state_before(folder, monkeypatch, error):
    def fail(turn):
        if turn > 20:
            raise error

    with path(2) as g:
        expected = levels(search(g))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync_after(fail))
            with pytest.raises(InputError, match=f"no checkpoint can .* {error.strerror}"):
                search(g, checkpoint=folder)
        assert files.newest_token(folder) == max(tokens(folder))
        assert levels(search(g, checkpoint=folder)) == expected


@pytest.mark.parametrize("ranks", [1, 2])
def test_interrupt_while_a_state_is_written_leaves_whole_states_and_no_thread(folder, monkeypatch, ranks):
    def interrupt(turn):
        if turn == 20:
            assert writers()
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.1)

    # Long enough for as many states on a slow disk: while one is written there is no other.
    with path(ranks, 600) as g:
        expected = levels(search(g))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync_after(interrupt))
            with pytest.raises(KeyboardInterrupt):
                search(g, checkpoint=folder)
        # After the end of that call.
        assert levels(search(g)) == expected
        assert not writers()
        assert files.newest_token(folder) == max(tokens(folder))
        assert levels(search(g, checkpoint=folder)) == expected


def test_states_are_put_off_until_they_take_less_than_their_share(folder, monkeypatch):
    """On clocks of which a superstep takes a second and the estimate is 3; of a state the copy takes 2, the files 3."""
    now = 0.0
    computed = 0.0
    kept = []

    def stepped(self):
        nonlocal now
        now += 1
        if self.writer.written is not None:
            concurrent.futures.wait([self.writer.written])
        return is_due(self)

    def copied(self, part):
        nonlocal now
        kept.append(now)
        now += 2
        return copy(self, part)

    def written(*how):
        nonlocal computed
        computed += 3
        return write_part(*how)

    is_due = FolderCheckpoints.is_due
    copy = FolderCheckpoints._copied
    write_part = files.write_part
    clocks = types.SimpleNamespace(monotonic=lambda: now, thread_time=lambda: computed, time_ns=time.time_ns)
    monkeypatch.setattr(checkpoints, "time", clocks)
    monkeypatch.setattr(checkpoint_writer, "time", clocks)
    monkeypatch.setattr(FolderCheckpoints, "is_due", stepped)
    monkeypatch.setattr(FolderCheckpoints, "_copied", copied)
    monkeypatch.setattr(files, "write_part", written)
    monkeypatch.setattr(files, "time_of_writing", lambda *how: 3.0)
    with mg.grid(2, 1200, drop=0, cluster=InProcessCluster(1)) as g:
        with dask.config.set({"mgraph.checkpoint-share": 0.02}):
            found = search(g, checkpoint=folder)
        assert kept == [150, 500, 750, 1000]
        assert 4 * 2 <= found.stats.seconds["checkpoint"] < 4 * 5
        kept.clear()
        with dask.config.set({"mgraph.checkpoint-every": 300}):
            now = 0.0
            search(g, checkpoint=folder)
    assert kept == [300, 600, 900, 1200]
