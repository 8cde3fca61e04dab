"""What another process has made is refused by name in a forked child, which leaves the parent's as it is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from dask_processes import ENVIRONMENT

# The child tries everything that would need the parent's threads, and lets go of what it inherited in every way.
PROGRAM = """
import gc, os, sys
import mgraph as mg

def main():
    cluster = mg.connect({options})
    g = mg.rmat(14, cluster=cluster)
    found = mg.bfs(g, 0)
    wanted = found.distances.digest()
    {narrow}
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
            with mg.connect(num_ranks=2, backend="cpu") as own, mg.rmat(14, cluster=own) as g, mg.bfs(g, 0) as found:
                assert found.distances.digest() == wanted
            print("the child is done", flush=True)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert found.distances.digest() == mg.bfs(g, 0).distances.digest() == wanted
    cluster.close()
    print("the parent is done")

if __name__ == "__main__":
    main()
"""


def run(tmp_path, **filling: str) -> None:
    filling = {"narrow": "", "uses": "", **filling}
    (tmp_path / "program.py").write_text(PROGRAM.format(**filling))
    done = subprocess.run(
        # Python warns of forks in processes with threads, as this is.
        [sys.executable, "-W", "ignore::DeprecationWarning", "program.py"],
        cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "the child is done\nthe parent is done\n", "")


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_ranks_of_the_parent_process_are_refused(tmp_path, num_ranks):
    narrow = "part = cluster.narrowed(1)"
    run(tmp_path, options=f"num_ranks={num_ranks}, backend='cpu'", narrow=narrow, uses="lambda: part.run(print),")


def test_a_dask_cluster_of_the_parent_is_refused_and_stays(tmp_path, workers):
    narrow = "part = cluster.narrowed(1)"
    options = f"scheduler={workers.scheduler_address!r}, backend='cpu'"
    run(tmp_path, options=options, narrow=narrow, uses="lambda: part.run(print),")
