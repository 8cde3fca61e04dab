"""A build that runs out of memory behind its plan says so by name: the process has less than it believes."""

from __future__ import annotations

import pathlib
import resource
import subprocess
import sys

import pytest
from dask_processes import ENVIRONMENT
from distributed import Client, LocalCluster

import mgraph as mg

# More than a warm process needs to go on with, less than a graph of this scale takes.
LEFT_BYTES, SCALE = 64 << 20, 20
SAID = rf"building rmat{SCALE} takes more memory than there is \(.*\): `mgraph plan` tells what it takes"


def leave_little_memory() -> None:
    """Limit this process's address space to little more than it has."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + LEFT_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def build_and_search(cluster) -> None:
    with mg.rmat(12, cluster=cluster) as g:
        assert mg.bfs(g, 0).stats.num_reached > 1


def build_in_this_process() -> None:
    with mg.connect(backend="cpu") as cluster:
        build_and_search(cluster)
        leave_little_memory()
        with pytest.raises(mg.WouldNotFit, match=SAID):
            mg.rmat(SCALE, cluster=cluster)
        assert [len(objects) for objects in cluster._objects] == [0]
        build_and_search(cluster)


def test_in_process():
    code = "import test_build_out_of_memory as test; test.build_in_this_process()"
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_on_a_worker():
    workers = LocalCluster(n_workers=1, threads_per_worker=1, memory_limit=0, dashboard_address=None)
    with workers, Client(workers, set_as_default=False) as client, mg.connect(client) as cluster:
        build_and_search(cluster)
        client.run(leave_little_memory)
        with pytest.raises(mg.WouldNotFit, match=SAID):
            mg.rmat(SCALE, cluster=cluster)
        build_and_search(cluster)
