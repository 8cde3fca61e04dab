"""A forked child is refused the use of its parent's clusters and graphs, and does not affect them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from dask_processes import ENVIRONMENT

# The child tries every use that needs the parent's threads, and then closes and deletes all that it inherited.
PROGRAM = """
import gc, os, sys
import mgraph as mg

def main():
    cluster = {connected}
    g = mg.rmat({scale}, cluster=cluster)
    found = mg.bfs(g, 0)
    expected = found.distances.digest()
    {make_part}
    child = os.fork()
    if child == 0:
        try:
            for use in (
                lambda: mg.bfs(g, 0),
                lambda: found.distances.to_numpy(),
                lambda: mg.rmat(4, cluster=cluster),
                lambda: cluster.narrowed(1).run(print),
                {uses}
            ):
                try:
                    use()
                    print("no error")
                except mg.ClusterError as error:
                    assert f"belongs to process {{os.getppid()}}" in str(error), error
            found.close()
            del found
            g.close()
            del g
            gc.collect()
            cluster.close()
            del cluster
            gc.collect()
            with mg.connect(num_ranks=2, backend="cpu") as own, mg.rmat({scale}, cluster=own) as g:
                assert mg.bfs(g, 0).distances.digest() == expected
            print("the child is done", flush=True)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert found.distances.digest() == mg.bfs(g, 0).distances.digest() == expected
    cluster.close()
    print("the parent is done")

if __name__ == "__main__":
    main()
"""


def run(tmp_path, **filling: str) -> None:
    filling = {"make_part": "", "uses": "", "scale": "14", **filling}
    (tmp_path / "program.py").write_text(PROGRAM.format(**filling))
    done = subprocess.run(
        # Python warns of forks in processes with threads, such as this one.
        [sys.executable, "-W", "ignore::DeprecationWarning", "program.py"],
        cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "the child is done\nthe parent is done\n", "")


MAKE_PART = "part = cluster.narrowed(1)"


@pytest.mark.ci
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_in_process_cluster_of_the_parent_is_refused_and_stays_usable(tmp_path, num_ranks):
    connected = f"mg.connect(num_ranks={num_ranks}, backend='cpu')"
    run(tmp_path, connected=connected, make_part=MAKE_PART, uses="lambda: part.run(print),")


def test_one_gpu_of_the_parent_is_refused_and_stays_usable(tmp_path):
    run(tmp_path, connected="__import__('local_clusters').local_cluster('gpu')", scale="5")


@pytest.mark.ci
def test_dask_cluster_of_the_parent_is_refused_and_stays_usable(tmp_path, workers):
    connected = f"mg.connect(scheduler={workers.scheduler_address!r}, backend='cpu')"
    run(tmp_path, connected=connected, make_part=MAKE_PART, uses="lambda: part.run(print),")
