"""The tables of docs/papers.md, from records: a row for each method, a column for each graph.

Of ranks of a cluster a row has a graph on a number of ranks, and the shares of the time.
"""

from __future__ import annotations

from collections.abc import Callable

KIND = ("machine", "paper", "graph", "algorithm", "method", "runs_on", "ranks")
# Tables of each paper: a title, and which lines are in it. Rates are in arcs of the graph, as the papers count them.
TABLES: dict[str, tuple[tuple[str, Callable[[dict], bool]], ...]] = {
    "kolganov_paths": (
        ("BFS, G arcs/s", lambda line: line["algorithm"] == "bfs"),
        ("SSSP, G arcs/s", lambda line: line["algorithm"] == "sssp"),
    ),
    "kolganov_ranks": (
        ("BFS by sweeps", lambda line: line["algorithm"] == "bfs"),
        ("SSSP by sweeps", lambda line: line["algorithm"] == "sssp"),
    ),
    "kolganov_forests": (
        ("RMAT, milliseconds", lambda line: line["graph"].startswith("rmat")),
        ("SSCA#2, milliseconds", lambda line: line["graph"].startswith("ssca2")),
    ),
    "guo": (
        ("random graphs, milliseconds", lambda line: line["graph"].startswith("uni")),
        ("SSCA#2, milliseconds", lambda line: line["graph"].startswith("ssca2")),
    ),
    "fixed_degree": (("BFS, milliseconds", lambda line: True),),
    "keshavarzi": (
        ("generated graphs, milliseconds", lambda line: not line["graph"].startswith("road")),
        ("road maps, milliseconds", lambda line: line["graph"].startswith("road")),
    ),
}


def newest(lines: list[dict]) -> list[dict]:
    """Return the newest line of each kind, in the order of the runs; not those of small graphs."""
    kept = {
        tuple(line.get(name) for name in KIND): line
        for line in lines
        if line.get("bench") == "papers" and not line["quick"]
    }
    return list(kept.values())


def tables(paper: str, lines: list[dict]) -> str:
    """Return the tables of a paper, of the newest lines of one machine."""
    of_paper = [line for line in lines if line["paper"] == paper]
    found = []
    for title, is_in in TABLES[paper]:
        chosen = [line for line in of_paper if is_in(line)]
        if chosen and "shares" in chosen[0]:
            found.append(table_of_shares(title, chosen))
        elif chosen:
            is_rate = title.endswith("arcs/s")
            found.append(table(title, chosen, lambda line, is_rate=is_rate: _value(line, is_rate)))
    commits = ", ".join(dict.fromkeys(line["commit"] for line in of_paper))
    return "\n\n".join([*found, f"Medians; {of_paper[0]['machine']}, {commits}."])


def table(title: str, lines: list[dict], value: Callable[[dict], str]) -> str:
    """Return a table, its first cell a title."""
    graphs = sorted(dict.fromkeys(line["graph"] for line in lines), key=lambda graph: _size(graph, lines))
    cells = {(line["method"], line["graph"]): value(line) for line in lines}
    rows = [[title, *map(_short, graphs)], ["---"] * (1 + len(graphs))]
    for method in dict.fromkeys(line["method"] for line in lines):
        rows.append([method, *(cells.get((method, graph), "") for graph in graphs)])
    return _markdown(rows)


def table_of_shares(title: str, lines: list[dict]) -> str:
    """Return a table of times, rates and shares: a row for each graph and number of ranks."""
    names = list(lines[0]["shares"])
    rows = [[title, "ranks", "ms", "G arcs/s", *names], ["---"] * (4 + len(names))]
    for line in sorted(lines, key=lambda line: (line["n"], line["arcs"], line["ranks"])):
        values = [_value(line, is_rate) for is_rate in (False, True)]
        shares = [f"{line['shares'][name]:.0%}" for name in names]
        rows.append([line["graph"], str(line["ranks"]), *values, *shares])
    return _markdown(rows)


def _markdown(rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _value(line: dict, is_rate: bool) -> str:
    value = line["arcs_per_s"] / 1e9 if is_rate else line["median_ms"]
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _size(graph: str, lines: list[dict]) -> tuple:
    return next((line["n"], line["arcs"]) for line in lines if line["graph"] == graph)


def _short(graph: str) -> str:
    """Return the name of a graph without what all of its table share."""
    for common in ("-w1000000000-float64", "-clique48", "-w1000", "-unweighted"):
        graph = graph.replace(common, "")
    return graph
