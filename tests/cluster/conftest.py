"""Fixtures of tests on Dask workers."""

from __future__ import annotations

import pytest


@pytest.fixture
def cluster(client):
    """Two ranks that store an object, `graph`; the first call is made, so that the next one is direct."""
    import rank_programs as programs

    from mgraph.cluster.dask import DaskCluster

    client.wait_for_workers(2, timeout=60)
    with DaskCluster(client, 2, open_timeout_s=30) as cluster:
        cluster.run(programs.keep, "graph", 1)
        yield cluster
