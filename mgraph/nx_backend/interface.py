"""Offer NetworkX the backend: `backend` is what its entry point `networkx.backends` names."""

from __future__ import annotations

import types
from collections.abc import Callable

from mgraph.nx_backend import (
    bipartite,
    breadth_first,
    bridges,
    centrality,
    components,
    cores,
    dijkstra,
    distances,
    ego,
    generic_paths,
    link_analysis,
    spanning_trees,
    steiner,
    unweighted_paths,
)
from mgraph.nx_backend.choose import Chooser
from mgraph.nx_backend.convert import convert_from_nx, convert_to_nx

MODULES = (
    bipartite,
    breadth_first,
    bridges,
    centrality,
    components,
    cores,
    dijkstra,
    distances,
    ego,
    generic_paths,
    link_analysis,
    spanning_trees,
    steiner,
    unweighted_paths,
)

# By the names under which NetworkX dispatches them.
FUNCTIONS: dict[str, Callable] = {name: getattr(module, name) for module in MODULES for name in module.__all__}

_chooser = Chooser(FUNCTIONS)

backend = types.SimpleNamespace(
    **FUNCTIONS,
    convert_from_nx=convert_from_nx,
    convert_to_nx=convert_to_nx,
    can_run=_chooser.can_run,
    should_run=_chooser.should_run,
)
