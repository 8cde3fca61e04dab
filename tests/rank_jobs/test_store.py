"""Graphs are saved by all ranks and loaded by any: whole or not at all, however the process ends."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import oracles
import pytest
from cli_runs import ENVIRONMENT
from distributed import Client
from interrupts import interrupt_often
from socket_cluster import SocketCluster
from user_graphs import graph_of
from worker_processes import worker_processes
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster
from mgraph.store import files

CASE = ZOO["grid"]


@pytest.mark.ci
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_algorithms_run_on_a_loaded_graph_as_on_a_built_one(tmp_path, order, directed):
    case = random_case(1, num_vertices=300, directed=directed)
    for p, q in ((1, 3), (3, 1), (2, 2)):
        with InProcessCluster(p) as saving, InProcessCluster(q) as loading:
            with graph_of(case, saving, order=order) as g:
                g.save(tmp_path / f"{p}")
            built = graph_of(case, loading, order=order)
            g = mg.load(tmp_path / f"{p}", cluster=loading)
            assert (g.name, g.num_ranks, g.info.order) == ("edges", q, order)
            assert {stats["loaded"] for stats in g.build_stats} == {True}
            assert {stats["loaded"] for stats in built.build_stats} == {False}
            assert repr(g) == repr(built)
            algorithms = [lambda g: mg.bfs(g, 5), lambda g: mg.sssp(g, 5), mg.connected_components]
            algorithms += [] if directed else [mg.minimum_spanning_forest]
            for algorithm in algorithms:
                found = algorithm(g)
                mg.validate(found)
                for column, wanted in zip(found.columns, algorithm(built).columns, strict=True):
                    np.testing.assert_array_equal(column.to_numpy(), wanted.to_numpy())
            np.testing.assert_array_equal(mg.sssp(g, 5).distances, oracles.sssp(case, [5]))


def test_compact_graph_is_loaded_compact(tmp_path):
    with InProcessCluster(2) as cluster:
        graph_of(CASE, cluster, layout="compact").save(tmp_path / "store")
        g = mg.load(tmp_path / "store", cluster=cluster, name="mine")
        assert (g.info.layout, g.name) == ("compact", "mine")
        np.testing.assert_array_equal(mg.bfs(g, 0).distances, oracles.bfs(CASE, [0]))


@pytest.mark.ci
def test_ranks_in_processes_save_and_load(tmp_path):
    with (
        worker_processes() as workers,
        Client(workers, set_as_default=False) as client,
        mg.connect(client) as cluster,
        InProcessCluster(3) as here,
    ):
        graph_of(CASE, cluster).save(tmp_path / "store")
        graph_of(CASE, here).save(tmp_path / "other")
        for name, where in (("store", here), ("other", cluster), ("store", cluster)):
            g = mg.load(tmp_path / name, cluster=where)
            np.testing.assert_array_equal(mg.sssp(g, 0).distances, oracles.sssp(CASE, [0]))
        # A rank that does not see a file names its host.
        (tmp_path / "store/targets-00001.bin").unlink()
        with pytest.raises(mg.InputError, match=r"targets-00001\.bin cannot be read on .*: No such file"):
            mg.load(tmp_path / "store", cluster=cluster)


def test_ranks_over_sockets_deal_rows(tmp_path):
    case = random_case(2, num_vertices=300)
    with InProcessCluster(1) as one:
        graph_of(case, one, order="degree").save(tmp_path / "store")
    with SocketCluster(3) as cluster:
        g = mg.load(tmp_path / "store", cluster=cluster)
        np.testing.assert_array_equal(mg.sssp(g, 5).distances, oracles.sssp(case, [5]))


def test_failed_save_leaves_nothing_and_the_old_store(tmp_path, monkeypatch):
    with InProcessCluster(3) as cluster:
        g = graph_of(CASE, cluster)
        g.save(tmp_path / "store")
        write = files.write_array

        def fail(path, *args):
            if path.name == "targets-00001.bin":
                raise OSError(28, "No space left on device")
            return write(path, *args)

        monkeypatch.setattr("mgraph.store.save.write_array", fail)
        for target in ("store", "new"):
            with pytest.raises(mg.InputError, match=r"targets-00001\.bin cannot be written: No space left on device"):
                g.save(tmp_path / target, overwrite=True)
        assert os.listdir(tmp_path) == ["store"]
        assert mg.load(tmp_path / "store", cluster=cluster).info == g.info


def test_save_to_a_full_disk_leaves_nothing(small_disk):
    with InProcessCluster(2) as cluster:
        g = mg.rmat(14, cluster=cluster)
        with pytest.raises(mg.InputError, match=r"\.bin cannot be written: No space left on device"):
            g.save(small_disk / "store")
        assert os.listdir(small_disk) == []


def test_arguments_of_save_are_checked(tmp_path):
    with InProcessCluster(2) as cluster:
        g = graph_of(CASE, cluster)
        g.save(str(tmp_path / "store"))
        with pytest.raises(mg.UsageError, match=r"is a saved graph: overwrite=True"):
            g.save(tmp_path / "store")
        with pytest.raises(mg.UsageError, match="overwrite 'yes' is not True or False"):
            g.save(tmp_path / "store", overwrite="yes")
        with pytest.raises(mg.UsageError, match="path 3 is not the name of a folder"):
            g.save(3)
        with pytest.raises(mg.UsageError, match=r"store is a saved graph: mg\.load reads it"):
            mg.read(tmp_path / "store")
        g.close()
        with pytest.raises(mg.GraphClosed):
            g.save(tmp_path / "new")
        assert os.listdir(tmp_path) == ["store"]


def test_damaged_store_leaves_nothing_on_the_ranks(tmp_path):
    with InProcessCluster(2) as cluster:
        graph_of(CASE, cluster).save(tmp_path / "store")
        with open(tmp_path / "store/weights-00000.bin", "r+b") as file:
            file.write(b"\xff")
        with pytest.raises(mg.InputError, match=r"weights-00000\.bin: bytes 0 to \d+ are not those that were saved"):
            mg.load(tmp_path / "store", cluster=cluster)
        assert [dict(objects) for objects in cluster._objects] == [{}, {}]


SAVER = """
import sys
import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster
with InProcessCluster(2) as cluster:
    graphs = [mg.rmat(14, seed=seed, cluster=cluster) for seed in (1, 2)]
    print("ready", flush=True)
    while True:
        for g in graphs:
            g.save(sys.argv[1], overwrite=True)
"""


@pytest.mark.ci
def test_killed_process_leaves_a_store_that_loads_or_none(tmp_path):
    seed = int(time.time())
    print(f"seed {seed}")
    draw = random.Random(seed)
    target = tmp_path / "store"
    with InProcessCluster(3) as cluster:
        wanted = [mg.rmat(14, seed=seed, cluster=cluster).info for seed in (1, 2)]
        for _ in range(6):
            saver = subprocess.Popen(
                [sys.executable, "-c", SAVER, str(target)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
            )
            saver.stdout.readline()
            time.sleep(draw.uniform(0, 0.5))
            saver.send_signal(draw.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
            saver.wait()
            saver.stdout.close()
            # Whatever has a manifest is a whole store; between two renames the old one has a temporary name.
            for name in os.listdir(tmp_path):
                assert name == "store" or name.startswith(".mgraph-")
                if (tmp_path / name / "mgraph.json").exists():
                    assert mg.load(tmp_path / name, cluster=cluster).info in wanted


@pytest.mark.ci
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_interrupted_saves_leave_one_store_and_no_descriptors(tmp_path, num_ranks):
    interrupt_often(
        f"""
import os
from mgraph.cluster.in_process import InProcessCluster
cluster = InProcessCluster({num_ranks})
g = mg.rmat(13, cluster=cluster)
g.save("{tmp_path}/store")
before = len(os.listdir("/proc/self/fd"))
""",
        f'g.save("{tmp_path}/store", overwrite=True)',
        f"""
assert mg.load("{tmp_path}/store", cluster=cluster).info == g.info
assert os.listdir("{tmp_path}") == ["store"]
assert len(os.listdir("/proc/self/fd")) <= before
""",
        times=20,
    )
