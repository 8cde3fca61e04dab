"""How long a call of mgraph.csgraph takes, beside SciPy's own: reading the matrix and building the graph included.

Random directed matrices of mean degree 16 in CSR, float64 weights, the ranks of `mgraph.connect()`; the least of
`--repeats` calls, after one that compiles.

    python bench/csgraph.py --sizes 12-22
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse import csgraph as scipys

import mgraph as mg
from mgraph import csgraph

MEAN_DEGREE = 16
SEED = 1
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "breadth_first_order(A, 0)": lambda of, A: of.breadth_first_order(A, 0),
    "connected_components(A)": lambda of, A: of.connected_components(A),
    "connected_components(A, connection='strong')": lambda of, A: of.connected_components(A, connection="strong"),
    "dijkstra(A, indices=0)": lambda of, A: of.dijkstra(A, indices=0),
    "dijkstra(A, indices=range(16))": lambda of, A: of.dijkstra(A, indices=range(16)),
    "dijkstra(A, indices=range(16), unweighted=True)": lambda of, A: of.dijkstra(A, indices=range(16), unweighted=True),
    "minimum_spanning_tree(A)": lambda of, A: of.minimum_spanning_tree(A),
}


def main() -> int:
    """Print a table with a row for each call, and a column for each number of entries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="12-22", help="powers of two of entries, first-last")
    parser.add_argument("--step", type=int, default=2, help="between powers")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    first, last = map(int, given.sizes.split("-"))
    powers = range(first, last + 1, given.step)
    matrices = [made(1 << power) for power in powers]
    print(f"{'ms, SciPy / mgraph.csgraph; entries':50}" + "".join(f"{1 << power:>22}" for power in powers))
    with mg.connect() as cluster:
        print(f"on {cluster}")
        for name, call in CALLS.items():
            rows = [[least(given.repeats, lambda: call(of, A)) for of in (scipys, csgraph)] for A in matrices]  # noqa: B023
            print(
                f"{name:50}" + "".join(f"{f'{1e3 * own:.3g} / {1e3 * ours:.3g}':>22}" for own, ours in rows), flush=True
            )
    return 0


def made(entries: int) -> Any:
    """Return a random matrix with about this number of entries."""
    rng = np.random.default_rng(SEED)
    n = entries // MEAN_DEGREE
    rows, columns = rng.integers(0, n, (2, entries), np.int32)
    return scipy.sparse.coo_array((rng.random(entries), (rows, columns)), shape=(n, n)).tocsr()


def least(repeats: int, call: Callable[[], Any]) -> float:
    """Return the least seconds of some calls, after one."""
    call()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


if __name__ == "__main__":
    sys.exit(main())
