"""How long a call of mgraph.csgraph takes, beside SciPy's own: reading the matrix and building the graph included.

Random directed matrices of mean degree 16 in CSR, float64 weights, the ranks of `mgraph.connect()`; the least of
`--repeats` calls, after one that compiles. Results are compared with SciPy's: a difference ends the run. The table is
that of docs/csgraph.md.

    python bench/csgraph.py --sizes 18-22 --repeats 5
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse import csgraph as scipys
from timing import least

import mgraph as mg
from mgraph import csgraph

MEAN_DEGREE = 16
SEED = 1
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "`dijkstra(A, indices=range(16))`": lambda of, A: of.dijkstra(A, indices=range(16)),
    "the same with `unweighted=True`": lambda of, A: of.dijkstra(A, indices=range(16), unweighted=True),
    "`minimum_spanning_tree(A)`": lambda of, A: of.minimum_spanning_tree(A),
    "`dijkstra(A, indices=0)`": lambda of, A: of.dijkstra(A, indices=0),
    "`connected_components(A)`": lambda of, A: of.connected_components(A),
    'the same with `connection="strong"`': lambda of, A: of.connected_components(A, connection="strong"),
    "`breadth_first_order(A, 0)`": lambda of, A: of.breadth_first_order(A, 0),
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
    with mg.connect() as cluster:
        print(f"docs/csgraph.md, milliseconds, SciPy / mgraph, on {cluster}\n")
        print(f"| entries | {' | '.join(f'{1 << power:,}' for power in powers)} |")
        print(f"| {'--- | ' * len(powers)}--- |")
        for name, call in CALLS.items():
            print(f"| {name} | {' | '.join(cell(call, A, given.repeats) for A in matrices)} |", flush=True)
    return 0


def cell(call: Callable[[Any, Any], Any], A: Any, repeats: int) -> str:
    """Time SciPy and mgraph.csgraph, in milliseconds; raise if their results differ."""
    (own, theirs), (ours, found) = (least(repeats, functools.partial(call, of, A)) for of in (scipys, csgraph))
    for one, other in zip(values(theirs), values(found), strict=True):
        np.testing.assert_array_equal(one, other)
    return f"{1e3 * own:.3g} / {1e3 * ours:.3g}"


def values(result: Any) -> list[np.ndarray]:
    """Return arrays that are equal where results are: strong components may be numbered in another order."""
    if scipy.sparse.issparse(result):
        result.sort_indices()
        return [result.indptr, result.indices, result.data]
    if not isinstance(result, tuple):
        return [result]
    first, labels = result
    if isinstance(first, np.ndarray):
        return [first, labels]
    _, smallest, numbers = np.unique(labels, return_index=True, return_inverse=True)
    return [np.array(first), smallest[numbers]]


def made(entries: int) -> Any:
    """Return a random matrix with about this number of entries."""
    rng = np.random.default_rng(SEED)
    n = entries // MEAN_DEGREE
    rows, columns = rng.integers(0, n, (2, entries), np.int32)
    return scipy.sparse.coo_array((rng.random(entries), (rows, columns)), shape=(n, n)).tocsr()


if __name__ == "__main__":
    sys.exit(main())
