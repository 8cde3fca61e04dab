"""Write bench/README.md from the lines of bench/results: the newest of each kind, and how to make it again."""

from __future__ import annotations

import json
import pathlib
import re
import tomllib

import click
import record

from mgraph.formatting import readable_bytes
from mgraph.planning.placement import Placement

HEAD = """# Benchmarks

One driver for all algorithms: `bench/run.py` makes or reads a graph, builds it, runs, validates every answer
(untimed) and appends a line to `bench/results`. `bench/cpu.py` runs the same graph on the CPU through mgraph, the
GAP benchmark and SciPy in one run. `bench/call.py` shows where the microseconds of a whole call go, `bench/rates.py`
what a GPU's memory gives at most, `bench/variants.py` what it brings to choose by that, `bench/counters.py` what the
kernels of a search do with it. `bench/ablation.py` shows what each optimisation of the papers brings, `bench/floors.py`
what any algorithm must do, `bench/forest_parts.py` and `bench/neighbours.py` what preparing a forest and compressing
neighbours would; `bench/scaling.py` goes over ranks and scales, for `docs/scaling.md`. `bench/sanitize.py` has the
tools of compute-sanitizer look at every algorithm. `bench/device.sh` is what is sent to a machine with GPUs.
`make test-all` appends to suite.jsonl, beside those results, how many tests passed in what time and from which seeds,
and to faults.jsonl which processes it killed in which phase and what came of it.

A name means one graph: `rmatS` is a Graph500 graph of 2^S vertices with 16 edges each (`rmatS-efF`: with F), `uni24`
has 2^24 vertices of mean degree 16, `grid4k` is a grid of 4096 x 4096 with a tenth of its edges removed, weights are
integers 1..255. Times are medians over random roots (of components and spanning forests, over as many runs), of
searches one after the other, from a built graph (through windows, since 7bfa45a, from when all ranks know the root:
the launch is behind them then) to every vertex's distance and predecessor, or component, or to the
forest's edges, with all that these need inside; `translate` is the way into user ids (breadth first on one GPU, what
is left of it when the search is done), `prep` what the method needs once for a graph, such as blocks. GTEPS are 10^9
undirected edges a second: the edges of all roots' components over the time of all searches or, without roots, those of
the graph over the median. (Where all roots are in one component that is the harmonic mean of the rates, which
`mgraph graph500` prints. One root in a component of two vertices would take that mean to nearly zero.) `B an edge` is
device memory for an undirected edge, blocks for sweeps included where they are used; `build peak` the most that the
build held. Lines with one digest gave the same answers, to the bit.

The tables below are made by `python bench/report.py` from the newest line of each kind.
"""
KIND = ("graph", "algorithm", "method", "gpus", "launcher", "ranks", "backend", "weights", "layout", "placement")


@click.command(help=__doc__)
def main() -> None:
    text = [HEAD]
    for path in sorted(record.RESULTS.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        if path.stem in ("faults", "suite"):
            continue
        text.append(f"\n## {path.stem}\n")
        ablations = [line for line in lines if line.get("bench") == "ablation"]
        text += _goals(path.stem, lines) + _calls(lines) + _sanitized(lines)
        if searches := _newest([line for line in lines if "gap_ms" not in line and "bench" not in line]):
            text.append(_table(SEARCH_COLUMNS, searches))
        if ablations:
            text.append(ABLATION)
            text.append(_ablation_table(ablations))
        for title, columns, kind in PARTS:
            if parts := [line for line in lines if line.get("bench") == title]:
                newest = {tuple(line[name] for name in kind): line for line in parts}
                text += [ABOUT[title], _table(columns, sorted(newest.values(), key=_place_of_part))]
        if rivals := _newest([line for line in lines if "gap_ms" in line]):
            text.append(f"\nAgainst others on the same {rivals[0]['cores']} cores, in one run (`bench/cpu.py`):\n")
            text.append(_table(RIVAL_COLUMNS, rivals))
    pathlib.Path(__file__).with_name("README.md").write_text("\n".join(text).rstrip() + "\n")


def _newest(lines: list[dict]) -> list[dict]:
    """Return the last line of every kind, in an order that people read."""
    # What older lines do not tell.
    complete = [{"layout": "rows", "placement": _all_ranks(line.get("ranks", 1))} | line for line in lines]
    newest = {tuple(line.get(name) for name in KIND): line for line in complete}
    return sorted(newest.values(), key=_place)


def _all_ranks(ranks: int) -> str:
    return str(Placement(ranks, ranks))


def _place(line: dict) -> tuple:
    stem, size = re.fullmatch(r"(\D+)(\d*).*", line["graph"]).groups()  # type: ignore[union-attr]
    return line["algorithm"], stem, int(size or 0), line.get("ranks", 1), line["method"]


REASONS = """
Why a cell misses its goal:
"""
FLOORS = """
What the floors are the sums of (`bench/floors.py` counts those of shortest paths, forests and components):
"""
GOALS = """What others reach on this machine and mgraph goes for (`bench/peers.toml`), in milliseconds: the best of
mgraph's methods and launchers on one device, at the commit measured last; the floor, counted there; the best peer, and
how often its time holds ours.
"""


def _goals(machine: str, lines: list[dict]) -> list[str]:
    """Return the table of what mgraph goes for on a machine, and beneath it why a cell misses that."""
    with open(pathlib.Path(__file__).with_name("peers.toml"), "rb") as file:
        peers = tomllib.load(file)
    if peers.pop("machine") != machine:
        return []
    found = [line for line in lines if line.get("gpus") == 1 and "bench" not in line]
    cells, reasons = [], []
    for algorithm, graphs in peers.items():
        for graph, cell in graphs.items():
            own = [line for line in found if (line["algorithm"], line["graph"]) == (algorithm, graph)]
            newest = [line for line in own if line["commit"] == own[-1]["commit"]]
            best = min(newest, key=lambda line: line["median_ms"])
            cells.append({**cell, **best})
            if best["median_ms"] > cell["goal_ms"] and "why" in cell:
                reasons.append(f"- {algorithm}, {graph}: {cell['why']}")
    sums = [f"- {cell['algorithm']}, {cell['graph']}: {cell['floor']}" for cell in cells if "floor" in cell]
    because = [REASONS, *reasons] if reasons else []
    return [GOALS, _table(GOAL_COLUMNS, cells), *because, *_counters(lines), FLOORS, *sums, ""]


COUNTERS = """
What the kernels of some cells do, by the hardware's counters (`bench/counters.py`), from a root of median time:
microseconds in the profiler; what goes through memory and through the L2 cache; how often a sector of 32 bytes is
there; sectors that a warp's load asks for; warps on a multiprocessor, of as many as it holds; and what those wait for.
"The others" are those of a block, one of which waits for all blocks where a round ends.
"""
WAITS = {
    "barrier": "the others",
    "long_scoreboard": "memory",
    "short_scoreboard": "shared memory",
    "wait": "the instruction before",
    "not_selected": "their turn",
    "selected": "nothing",
    "sleeping": "a clock",
    "branch_resolving": "a branch",
    "lg_throttle": "room for a load",
}
COUNTER_COLUMNS = {
    "algorithm": lambda line: line["algorithm"],
    "graph": lambda line: line["graph"],
    "kernel": lambda line: f"`{line['kernel']}`",
    "us": lambda line: f"{line['microseconds']:,.0f}",
    "memory TB/s": lambda line: f"{line['dram_bytes_per_s'] / 1e12:.2f}",
    "L2 TB/s": lambda line: f"{line['l2_bytes_per_s'] / 1e12:.2f}",
    "hits": lambda line: f"{line['l2_hits']:.0%}",
    "sectors a load": lambda line: f"{line['sectors_per_request']:.1f}",
    "warps": lambda line: f"{line['occupancy']:.0%}",
    "wait for": lambda line: ", ".join(
        f"{WAITS.get(name, name)} {share:.0%}"
        for name, share in sorted(line["waits"].items(), key=lambda wait: -wait[1])[:3]
    ),
    "commit": lambda line: line["commit"],
}


def _counters(lines: list[dict]) -> list[str]:
    """Return the table of what was counted of each cell's kernels when it was last looked at."""
    counted = [line for line in lines if line.get("bench") == "counters"]
    last = {(line["algorithm"], line["graph"]): line["commit"] for line in counted}
    newest = {
        (line["algorithm"], line["graph"], line["kernel"]): line
        for line in counted
        if line["commit"] == last[line["algorithm"], line["graph"]]
    }
    rows = sorted(newest.values(), key=lambda line: _place({"method": ""} | line))
    return [COUNTERS, _table(COUNTER_COLUMNS, rows)] if rows else []


SANITIZED = """
What the tools of compute-sanitizer find where every algorithm runs on small graphs (`bench/sanitize.py`): reports in
kernels of mgraph, with the file whose comment argues them, and in those of CuPy.
"""
SANITIZED_COLUMNS = {
    "tool": lambda line: line["tool"],
    "kernels of mgraph": lambda line: str(line["kernels"]),
    "reports": lambda line: ", ".join(f"{count} in `{name}`" for name, count in line["ours"].items()) or "none",
    "argued in": lambda line: ", ".join(f"`{name}`" for name in line["argued"]),
    "in others' kernels": lambda line: ", ".join(f"{count} in `{name}`" for name, count in line["foreign"].items()),
    "commit": lambda line: line["commit"],
}


def _sanitized(lines: list[dict]) -> list[str]:
    newest = {line["tool"]: line for line in lines if line.get("bench") == "sanitize"}
    return [SANITIZED, _table(SANITIZED_COLUMNS, list(newest.values())), ""] if newest else []


CALLS = """Where the microseconds of a whole call of `mg.bfs` go, of which the medians over random roots stand here
(`bench/call.py`), with what the kernels take by themselves, and the translation into user ids, with what its memory
takes: its streams and its random loads at the rates of the device. It is launched right behind the search, before that
is waited for: its time is what is left of it when the search is done.
"""


def _calls(lines: list[dict]) -> list[str]:
    """Return the table of calls and their parts, none where none was measured."""
    calls = {line["graph"]: line for line in lines if line.get("bench") == "call"}
    if not calls:
        return []
    parts = dict.fromkeys(name for line in calls.values() for name in line["parts_us"])
    columns: dict = {"microseconds": lambda row: row[0]}
    for graph, line in calls.items():
        columns[graph] = lambda row, line=line: f"{found:.1f}" if (found := row[1](line)) is not None else ""
    rows: list[tuple] = [
        ("a call", lambda line: line["call_us"]),
        ("its kernels", lambda line: line["kernels_us"]),
        ("its translation", lambda line: line["translate_us"]),
        ("translation, its memory", lambda line: line.get("translate_memory_us")),
        *((f"part: {name}", lambda line, name=name: line["parts_us"].get(name, 0.0)) for name in parts),
    ]
    return [CALLS, _table(columns, rows), ""]


ABLATION = """
What the papers' optimisations bring, in 10^9 arcs of the graph a second without predecessors (`bench/ablation.py`): one
thread an edge, with segments, with a read-only copy of the state, with both; beside them mgraph's own sweep, and its
frontier: driven by the host, a launch a step; in one launch, over plain rows; and as it is, shortest paths over rows by
weight. Each in the order of the input and in order of degree.
"""
PAPERS = ("base", "segments", "read-only", "segments+read-only")
OWN = ("sweep", "stepped", "plain rows", "frontier")


def _ablation_table(lines: list[dict]) -> str:
    """Return a row a graph, algorithm and order, a column a variant, from the newest line of each."""
    rates = {(line["algorithm"], line["graph"], line["order"], line["variant"]): line["arcs_per_s"] for line in lines}
    kinds = dict.fromkeys((line["algorithm"], line["graph"], line["order"]) for line in lines)
    columns: dict = {name: lambda kind, i=i: kind[i] for i, name in enumerate(("algorithm", "graph", "order"))}
    for variant in (*PAPERS, *OWN):
        columns[variant] = lambda kind, variant=variant: (
            f"{rates[*kind, variant] / 1e9:.3g}" if (*kind, variant) in rates else ""
        )
    commits = {(line["algorithm"], line["graph"], line["order"]): line["commit"] for line in lines}
    columns["commit"] = lambda kind: commits[kind]
    rows = sorted(kinds, key=lambda kind: (*_place({"algorithm": kind[0], "graph": kind[1], "method": ""}), kind[2]))
    return _table(columns, rows)


ABOUT = {
    "forms": """
What it brings to choose the form of every round by what the device's memory gives (`bench/variants.py`): milliseconds of
the kernel from a source, beside those with the rates of one H200 as constants, and with a form left out.
""",
    "forest parts": """
What each preparation of a spanning forest brings (`bench/forest_parts.py`): the forest's milliseconds with one thing
done otherwise, and those of the preparation, which would come on top. Rows sorted by weight, from which the papers
start, take longer to sort than the forest takes; so do ranks of weights that do not fit 32 bits.
""",
    "neighbours": """
Whether compressed neighbours would pay (`bench/neighbours.py`): all arcs of a graph, read alone, and looked up. To look
up the trees that neighbours are in takes many times longer than to read them. Of most a spanning forest looks at a bit,
in which it spends several times longer than their numbers take to be read: so they are not compressed.
""",
}
FORM_COLUMNS = {
    "graph": lambda line: line["graph"],
    "algorithm": lambda line: line["algorithm"],
    "chosen by": lambda line: line["part"],
    "median ms": lambda line: f"{line['median_ms']:.3g}",
    "min .. max": lambda line: f"{line['min_ms']:.3g} .. {line['max_ms']:.3g}",
    "commit": lambda line: line["commit"],
}
PART_COLUMNS = {
    "graph": lambda line: line["graph"],
    "done otherwise": lambda line: line["part"],
    "forest ms": lambda line: f"{line['forest_ms']:.3g}" if line["forest_ms"] else "",
    "before, ms": lambda line: f"{line['prepare_ms']:.3g}" if line["prepare_ms"] else "",
    "commit": lambda line: line["commit"],
}
NEIGHBOUR_COLUMNS = {
    "graph": lambda line: line["graph"],
    "order": lambda line: line["order"],
    "phase": lambda line: line["phase"],
    "bits": lambda line: str(line["bits"]),
    "B an arc": lambda line: f"{line['bytes_per_arc']:.3g}",
    "median ms": lambda line: f"{line['median_ms']:.3g}",
    "commit": lambda line: line["commit"],
}
PARTS = (
    ("forms", FORM_COLUMNS, ("graph", "algorithm", "part")),
    ("forest parts", PART_COLUMNS, ("graph", "part")),
    ("neighbours", NEIGHBOUR_COLUMNS, ("graph", "order", "phase", "bits")),
)


def _place_of_part(line: dict) -> tuple:
    method = line.get("part", "")
    place = _place({"algorithm": line.get("algorithm", ""), "graph": line["graph"], "method": method})
    return *place, line.get("order"), line.get("phase"), -line.get("bits", 0)


SEARCH_COLUMNS = {
    "graph": lambda line: line["graph"],
    "algorithm": lambda line: line["algorithm"],
    "method": lambda line: line["method"],
    "ranks": lambda line: line["placement"].partition(" rank")[0],
    "launcher": lambda line: line.get("launcher", ""),
    "median ms": lambda line: f"{line['median_ms']:.3g}",
    "min .. max": lambda line: f"{line['min_ms']:.3g} .. {line['max_ms']:.3g}",
    "translate": lambda line: f"{line['translate_ms']:.2g}",
    "prep": lambda line: f"{line['prep_ms']:.3g}",
    "GTEPS": lambda line: f"{line['teps'] / 1e9:.3g}",
    "build s": lambda line: f"{line['build_s']:.2g}",
    "layout": lambda line: line["layout"],
    "B an edge": lambda line: f"{line['bytes_per_edge']:.3g}",
    "build peak": lambda line: readable_bytes(line["build_peak_bytes"]) if "build_peak_bytes" in line else "",
    "roots": lambda line: str(line["sources"]),
    "commit": lambda line: line["commit"],
}
GOAL_COLUMNS = {
    "algorithm": lambda cell: cell["algorithm"],
    "graph": lambda cell: cell["graph"],
    "ours": lambda cell: f"{cell['median_ms']:.3g}",
    "method": lambda cell: cell["method"],
    "floor": lambda cell: f"{cell['floor_ms']:.2g}" if "floor_ms" in cell else "",
    "best peer": lambda cell: f"{cell['peer_ms']:.3g}",
    "which": lambda cell: cell["peer"],
    "faster": lambda cell: f"{cell['peer_ms'] / cell['median_ms']:.2f}x",
    "goal": lambda cell: f"{cell['goal_ms']:.3g}",
    "of the goal": lambda cell: f"{cell['median_ms'] / cell['goal_ms']:.2f}",
    "commit": lambda cell: cell["commit"],
}
RIVAL_COLUMNS = {
    "graph": lambda line: line["graph"],
    "algorithm": lambda line: line["algorithm"],
    "mgraph ms": lambda line: f"{line['median_ms']:.3g}",
    "whole call ms": lambda line: f"{line['call_ms']:.3g}",
    "GAP ms": lambda line: f"{line['gap_ms']:.3g}" if line["gap_ms"] else "",
    "SciPy ms": lambda line: f"{line['scipy_ms']:.3g}",
    "of GAP": lambda line: f"{line['median_ms'] / line['gap_ms']:.2f}x" if line["gap_ms"] else "",
    "commit": lambda line: line["commit"],
}


def _table(columns: dict, lines: list[dict]) -> str:
    rows = [list(columns), ["---"] * len(columns), *([cell(line) for cell in columns.values()] for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()
