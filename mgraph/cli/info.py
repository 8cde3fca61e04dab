"""Define the command `mgraph info`."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from mgraph.api.graph import Graph, making
from mgraph.cli.options import (
    FILE_OPTIONS,
    cluster_options,
    input_options,
    json_option,
    layout_option,
    print_json,
    print_table,
    progress,
    source_of,
)
from mgraph.cluster.connect import connect
from mgraph.formatting import readable_bytes
from mgraph.ingest.build import Layout


@click.command()
@input_options
@layout_option
@cluster_options
@json_option
def info(input: str, layout: Layout, as_json: bool, **options: Any) -> None:
    """Build or load INPUT and print facts: sizes, weights, vertex order, dropped edges."""
    source = source_of(input, {name: options.pop(name) for name in FILE_OPTIONS})
    with connect(**options) as cluster, progress(quiet=as_json) as show:
        show(making(source))
        g = Graph.from_source(source, cluster=cluster, layout=layout)
    facts = {"name": g.name} | dataclasses.asdict(g.info) | {"placement": str(g.placement)}
    build_s = max(stats["seconds"] for stats in g.build_stats)
    shard_bytes = [stats["bytes"] for stats in g.build_stats]
    if as_json:
        print_json(facts | {"build_s": build_s, "shard_bytes": shard_bytes})
        return
    rows = [
        [name.replace("_", " "), f"{value:,}" if type(value) is int else str(value)] for name, value in facts.items()
    ]
    how = "loaded" if g.build_stats[0]["loaded"] else "built"
    rows += [[f"{how} in", f"{build_s:.3g} s"], ["bytes per rank", ", ".join(map(readable_bytes, shard_bytes))]]
    print_table(repr(cluster), ["fact", "value"], rows)
