"""Show graphs, results and stats as small tables in notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from mgraph.formatting import counted, readable_bytes, readable_seconds

if TYPE_CHECKING:
    from mgraph.api.graph import Graph
    from mgraph.api.multi_source import TraversedTogether
    from mgraph.api.results import Costs, Result
    from mgraph.api.traversal_results import TraversedMany

LEFT = "text-align: left"
SHOWN = 10


def html_table(caption: str, facts: Mapping[str, object]) -> str:
    """Return a table of a row for each fact, with all text escaped."""
    rows = "".join(
        f'<tr><th style="{LEFT}">{escape(name)}</th><td style="{LEFT}">{escape(str(fact))}</td></tr>'
        for name, fact in facts.items()
    )
    return f'<table><caption style="{LEFT}">{escape(caption)}</caption><tbody>{rows}</tbody></table>'


def html_of_graph(g: Graph) -> str:
    """Return the sizes of a graph, and where it is stored."""
    if g.closed:
        return html_table(_head(g), {})
    info = g.info
    arcs = "arcs" if info.directed else "edges"
    facts = {
        "vertices": f"{info.num_vertices:,}" + (f", {info.labels} labels" if info.labels else ""),
        "isolated vertices": f"{info.num_isolated:,}",
        arcs: f"{info.num_edges:,}, {'directed' if info.directed else 'undirected'}",
        "dropped": f"{counted(info.num_loops, 'loop')}, {counted(info.num_parallel, 'parallel edge')}",
        "weights": f"{info.weight_dtype}, {info.min_weight:,} to {info.max_weight:,}" if info.weight_dtype else "none",
        "order": info.order,
        "layout": info.layout,
        "placement": f"{g.placement}, {g.cluster.backend}",
    }
    return html_table(f"Graph {g.name}", facts)


def html_of_result(result: Result) -> str:
    """Return the columns of a result, and what it cost."""
    if result.closed:
        return html_table(_head(result), {})
    facts = {column.name: f"{len(column):,} of {column.dtype}" for column in result.columns}
    return html_table(_head(result), facts | facts_of_costs(result.stats))


def html_of_roots(found: TraversedTogether) -> str:
    """Return the number of roots of a search, and what it cost."""
    return html_table(_head(found), {"roots": f"{len(found):,}"} | facts_of_costs(found.stats))


def html_of_many(found: TraversedMany) -> str:
    """Return a row for each of the first searches."""
    facts = {f"{number}": _head(result) for number, result in enumerate(found.results[:SHOWN])}
    more = {"...": f"{len(found) - SHOWN:,} more"} if len(found) > SHOWN else {}
    return html_table(_head(found), facts | more)


def html_of_costs(costs: Costs) -> str:
    """Return what a result cost."""
    return html_table(_head(costs), facts_of_costs(costs))


def facts_of_costs(costs: Costs) -> dict[str, str]:
    """Return the rows of what a result cost."""
    return {
        "variant": costs.variant,
        "seconds": ", ".join(f"{phase} {readable_seconds(seconds)}" for phase, seconds in costs.seconds.items()),
        "supersteps": f"{len(costs.supersteps):,}",
        "arcs scanned": f"{sum(costs.arcs):,}",
        "bytes sent": readable_bytes(sum(costs.bytes_sent)),
        "placement": costs.placement,
    }


def _head(shown: object) -> str:
    return repr(shown).removeprefix("<").removesuffix(">")
