"""Check hubs and authorities on a cluster: weighted or not, on rows and edge blocks."""

from __future__ import annotations

import functools

import numpy as np
import oracles
from user_graphs import STARTABLE, graph_of

import mgraph as mg

ITERATIONS = 4
# Graphs with an arc of a weight.
OF_HUBS = [case for case in STARTABLE if any(weight > 0 for weight in oracles.arcs_of(case).values())]


def check_hits(case, cluster, order):
    """Compare scores with the oracle's, to the bit, and validate those over rows."""
    for layout in ("rows", "compact"):
        with graph_of(case, cluster, order, layout=layout) as g:
            for weighted, normalized in ((True, True), (False, False)):
                how = {"weighted": weighted, "normalized": normalized}
                with mg.hits(g, tolerance=None, max_iterations=ITERATIONS, **how) as found:
                    for column, right in zip(found.columns, expected_hits(case, **how), strict=True):
                        np.testing.assert_array_equal(column.to_numpy(), right, strict=True)
                    assert found.stats.variant == f"hits.{'pull' if layout == 'rows' else 'sweep'}"
                    if layout == "rows":
                        mg.validate(found)


@functools.lru_cache(maxsize=32)
def expected_hits(case, weighted, normalized):
    """Return the hubs and the authorities that the oracle finds."""
    both = oracles.hits(case, ITERATIONS, weighted=weighted)
    wholes = [float(sum(scores) if normalized else max(scores)) for scores in both]
    return tuple(np.array([score / whole for score in scores]) for scores, whole in zip(both, wholes, strict=True))
