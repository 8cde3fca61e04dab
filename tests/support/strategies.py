"""Random small graphs for hypothesis, built to collide: few vertices, few weights, many ties and zeros."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from zoo import GraphCase

# Zeros, ties, sums that round, and a weight that absorbs its neighbours in float32.
FLOATS = (0.0, 0.5, 1.0, 1.0, 0.1, 0.2, 0.3, 3.0, 2.0**24)
INTEGERS = (0, 1, 1, 2, 3, 7, 255)
LARGE_INTEGERS = (0, 1, 2**31 - 1, 2**31, 2**40, 2**53 + 1)
PALETTES = {"float32": FLOATS, "float64": FLOATS, "uint8": INTEGERS, "int32": INTEGERS, "int64": LARGE_INTEGERS}


@st.composite
def graphs(draw: st.DrawFn, max_vertices: int = 12, max_edges: int = 30, dtypes: tuple = tuple(PALETTES)) -> GraphCase:
    """Draw a graph with at least one vertex; loops, parallel edges and isolated vertices come by chance."""
    n = draw(st.integers(1, max_vertices))
    vertex = st.integers(0, n - 1)
    dtype = draw(st.sampled_from(dtypes))
    edges = draw(st.lists(st.tuples(vertex, vertex, st.sampled_from(PALETTES[dtype])), max_size=max_edges))
    sources, targets, weights = (list(column) for column in zip(*edges, strict=True)) if edges else ([], [], [])
    return GraphCase(
        "drawn",
        n,
        np.array(sources, np.uint32),
        np.array(targets, np.uint32),
        np.array(weights, dtype),
        draw(st.booleans()),
    )


@st.composite
def graphs_and_sources(draw: st.DrawFn, **limits: int) -> tuple[GraphCase, list[int]]:
    """Draw a graph and one to three sources, which may repeat."""
    graph = draw(graphs(**limits))
    return graph, draw(st.lists(st.integers(0, graph.num_vertices - 1), min_size=1, max_size=3))


rank_counts = st.sampled_from([1, 2, 3, 4, 7])
orders = st.sampled_from(["degree", "natural"])
