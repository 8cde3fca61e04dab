"""Check labels of components, and make graphs of several components."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
from on_ranks import run_on_ranks
from user_graphs import graph_of
from zoo import make_case

import mgraph as mg


def check_components(case, cluster, order):
    """Compare the labels of a graph with the oracle's, and validate them."""
    _check(mg.connected_components, oracles.components(case), case, cluster, order)


def check_strong_components(case, cluster, order):
    """Compare the strong labels of a graph with the oracle's, and validate them."""
    _check(mg.strongly_connected_components, oracles.strong_components(case), case, cluster, order)


def _check(find, wanted, case, cluster, order):
    with graph_of(case, cluster, order) as g, find(g) as found:
        np.testing.assert_array_equal(found.labels.to_numpy(), wanted, strict=True)
        assert found.num_components == len(set(wanted.tolist()))
        mg.validate(found)


def violations_of_labels(validate, shards, labels):
    """Return the violations of labels by user id, which must be equal on all ranks."""
    parts = [(np.asarray(labels, np.int64)[slice(*shard.user_range)],) for shard in shards]
    first, *others = run_on_ranks(validate, shards, parts=parts)
    assert all(other == first for other in others), "the ranks disagree"
    return first


def planted_components(seed, num_parts, size, degree, *, directed=False):
    """Return a random graph of several parts of equal size with shuffled ids."""
    random = np.random.default_rng(seed)
    starts = np.repeat(np.arange(num_parts) * size, size * degree // 2)
    ends = [starts + random.integers(0, size, len(starts)) for _ in range(2)]
    names = random.permutation(num_parts * size).astype(np.uint32)
    case = make_case(f"planted-{seed}", num_parts * size, [], directed=directed)
    return replace(case, sources=names[ends[0]], targets=names[ends[1]], weights=None)
