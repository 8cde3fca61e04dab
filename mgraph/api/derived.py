"""Make a graph of another one, on its ranks."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from mgraph.api.graph import Graph


def derived_graph(g: Graph, name: str, job: Callable[..., Any], *args: Any) -> Graph:
    """Return the graph that a job builds of another one, on its ranks."""
    key = f"graph-{name}-{uuid.uuid4().hex}"
    try:
        infos, stats = zip(*g._run(job, (), key, *args), strict=True)
        return Graph(g.cluster, key, name, infos[0], list(stats), g.placement)
    except BaseException:
        g.cluster.forget(key)
        raise
