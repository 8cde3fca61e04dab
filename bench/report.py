"""Write bench/README.md from the newest record of each kind in bench/results."""

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

`bench/run.py` measures all algorithms: it generates or reads a graph, builds it, runs, validates every result (untimed)
and appends a record to `bench/results`. The other programs:

- `bench/cpu.py`: the same graph on the CPU with mgraph, the GAP benchmark and SciPy, in one run.
- `bench/libraries.py`: whole Python calls on the CPU beside SciPy, NetworkX, igraph and NetworKit, in one run; it ends
  with a table for `README.md`.
- `bench/shapes.py`: graphs of three dozen shapes (`bench/shape_graphs.py`) and road maps, with SciPy beside every cell,
  the answers compared and the worst ratio first.
- `bench/ingest.py`: seconds from a file or arrays to a built graph, beside pyarrow and pandas reading the same file.
  `bench/deduplicate.py`: components of a folder of pairs of string ids. `bench/networkx_thresholds.py`: from which size
  on the backend of NetworkX is faster than NetworkX, for `docs/networkx.md`. `bench/csgraph.py`: calls of
  `mgraph.csgraph` beside SciPy's, for `docs/csgraph.md`. `bench/strong_components.py`: rounds of
  strong components, for `docs/strong-components.md`. `bench/closeness.py`: closeness beside SciPy and igraph, for
  `docs/closeness.md`. `bench/pagerank.py`: iterations beside SciPy, NetworkX and igraph, for `docs/pagerank.md`.
  `bench/hits.py`: the same of hubs and authorities, for `docs/hits.md`. `bench/multi_source_gpu.py`: levels from many
  roots on one GPU, for `docs/many-roots.md`.
  `bench/structure.py`: core numbers, bridges, neighborhoods, sides, cuts and linkage beside NetworkX, SciPy, igraph and
  NetworKit.
- `bench/host_layout.py`: graphs larger than the device's (limited) memory, the layout host against the compact one.
- `bench/regressions.py`: the newest record of each cell beside those before; it fails if one is slower beyond noise.
- `bench/compare.py`: the cells of `bench/run.py` in two checkouts, measured alternately, and the ratios of their times.
- `bench/call.py`: the microseconds of each part of a call. `bench/cluster_call.py`: what a call through a Dask cluster
  takes beside its work. `bench/verbs.py`: verbs between processes, through shared memory and sockets, beside
  a ping-pong. `bench/rates.py`: what a GPU's memory delivers.
- `bench/cost_model.py`: the gain of the cost model, which chooses the method of each superstep inside a persistent
  kernel. (`docs/variants.md` has the choice of the loop.) `bench/counters.py`: hardware counters of a search's kernels.
  `bench/floors.py`: the least time that any algorithm needs. `bench/checkpoints.py`: what checkpoints take and save.
- `bench/energy.py`: the energy of searches, in MTEPS per watt of one GPU's board.
- `bench/five_papers.py`: the five papers that mgraph grew from, run again (`make papers`): their graphs and methods,
  and mgraph beside them. `bench/papers_report.py` writes their tables and figures into `docs/papers.md`.
- `bench/forest_parts.py`: what the preparation of a forest would gain. `bench/edge_blocks.py`: the two sorts of edges
  into blocks.
- `bench/conformance`: the reference code of Graph500, the verifiers of the GAP benchmark, and the rules and data of
  LDBC Graphalytics, each judging mgraph's results ([docs/validation.md](../docs/validation.md)).
- `bench/delivery.py`: how results of several ranks reach user ids, each part of the way.
- `bench/scaling.py`: ranks and scales, for `docs/scaling.md`. `bench/sanitize.py`: every algorithm under the tools of
  compute-sanitizer. `bench/device.sh`: all of these on a machine with GPUs.

`make test-all` appends a record to suite.jsonl (tests, seconds, seeds, and which recipes of `deploy/` ran), and one to
faults.jsonl (which processes it killed, in which phase, and the outcome). `make deploy` runs the recipes alone, and
appends to deploy.jsonl. `make soak` appends to soak.jsonl (faults and jobs of ten minutes, times to the error, memory,
leftovers).

Each name is one graph: `rmatS` is a Graph500 graph of 2^S vertices with 16 edges each (`rmatS-efF`: with F), `uni24`
has 2^24 vertices of mean degree 16, `grid4k` is a grid of 4096 x 4096 with a tenth of its edges removed. Weights are
integers 1..255. Times are medians over random roots (for components and spanning forests over as many runs), one search
after another. They begin with a built graph (in persistent multi-GPU searches, since 7bfa45a, when all ranks have the
root, after the launch) and end when every vertex's distance and predecessor, or component, or the forest's edges are
computed. `translate` is the translation to user ids (for BFS on one GPU, what remains of it when the search is done),
`prep` what the method derives from a graph once, such as edge blocks. GTEPS are 10^9 undirected edges per second: the
edges of all roots' components divided by the time of all searches or, without roots, those of the graph divided by the
median. (If all roots are in one component this is the harmonic mean of the rates, which `mgraph graph500` prints; one
root in a component of two vertices would make that mean nearly zero.) *B/edge* is device memory for each undirected
edge, including edge blocks where sweeps use them; `build peak` is the peak memory of the build. Rows with one digest
have results equal to the bit. `docs/glossary.md` explains names in older records.

`python bench/report.py` makes the tables below from the newest record of each kind.
"""
# Values in records, in the words of docs/glossary.md.
TODAY = {
    "is all there that the method needs": "check of derived data",
    "waiting": "wait for the device",
    "source to position: orders, read back": "source to position: launch parameters, read back",
    "the search: memory, orders": "search: allocation, launch parameters",
    "translation: memory, arguments": "translation: allocation, arguments",
    "the job besides": "rest of the rank job",
    "the trace": "trace",
    "rates": "measured rates",
    "rates, no pull": "measured rates, no pull",
    "rates, no pull, queues": "measured rates, no pull, queues only",
    "rates, no queue of far": "measured rates, no far queue",
    "as it is": "none",
    "ranks": "integer ranks of weights",
    "mgraph/kernels/bfs_sweep.py": "mgraph/algorithms/bfs/sweep_kernels.py",
    "mgraph/kernels/sssp_fused.cuh": "mgraph/algorithms/sssp/persistent_kernels.cuh",
}
KIND = ("graph", "algorithm", "method", "gpus", "launcher", "ranks", "backend", "weights", "layout", "placement")


@click.command(help=__doc__)
def main() -> None:
    text = [HEAD]
    for path in sorted(record.RESULTS.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        if path.stem in ("deploy", "faults", "soak", "suite"):
            continue
        text.append(f"\n## {path.stem}\n")
        text += _goals(path.stem, lines) + _calls(lines) + _sanitized(lines)
        if searches := _newest([line for line in lines if "gap_ms" not in line and "bench" not in line]):
            text.append(_table(SEARCH_COLUMNS, searches))
        text += _clocks(searches)
        for title, columns, kind in PARTS:
            if parts := [line for line in lines if line.get("bench") == title]:
                newest = {tuple(line[name] for name in kind): line for line in parts}
                text += [ABOUT[title], _table(columns, sorted(newest.values(), key=_place_of_part))]
        text += _shapes(lines)
        if compared := _newest([line for line in lines if "gap_ms" in line and "bench" not in line]):
            text.append(f"\nOther libraries on the same {compared[0]['cores']} cores, in one run (`bench/cpu.py`):\n")
            text.append(_table(CPU_COLUMNS, compared))
    pathlib.Path(__file__).with_name("README.md").write_text("\n".join(text).rstrip() + "\n")


def _newest(lines: list[dict]) -> list[dict]:
    """Return the newest record of each kind, sorted by graph and size."""
    # Fields that older records lack.
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
The terms of each floor (`bench/floors.py` computes those of shortest paths, forests and components):
"""
GOALS = """Other libraries on this machine, and mgraph's goals (`bench/peers.toml`), in milliseconds: the best of
mgraph's methods and launchers on one device, at the commit measured last; the floor; the best other library, and its
time divided by mgraph's.
"""


def _goals(machine: str, lines: list[dict]) -> list[str]:
    """Return the table of goals on a machine, and why cells miss them."""
    with open(pathlib.Path(__file__).with_name("peers.toml"), "rb") as file:
        peers = tomllib.load(file)
    if peers.pop("machine") != machine:
        return []
    found = [line for line in lines if line.get("gpus") == 1 and "bench" not in line]
    cells = []
    reasons = []
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
Hardware counters of the kernels of some cells (`bench/counters.py`), from a root of median time: microseconds under the
profiler; throughput of memory and of the L2 cache; its hit rate, in sectors of 32 bytes; sectors for each load of a
warp; occupancy; and the main reasons of stalls. A barrier is one of a thread block, one warp of which waits at the grid
barrier.
"""
WAITS = {
    "barrier": "barrier",
    "long_scoreboard": "memory",
    "short_scoreboard": "shared memory",
    "wait": "fixed latency",
    "not_selected": "not selected",
    "selected": "none",
    "sleeping": "sleep",
    "branch_resolving": "branch",
    "lg_throttle": "load queue",
}
COUNTER_COLUMNS = {
    "algorithm": lambda line: line["algorithm"],
    "graph": lambda line: line["graph"],
    "kernel": lambda line: f"`{line['kernel']}`",
    "us": lambda line: f"{line['microseconds']:,.0f}",
    "memory TB/s": lambda line: f"{line['dram_bytes_per_s'] / 1e12:.2f}",
    "L2 TB/s": lambda line: f"{line['l2_bytes_per_s'] / 1e12:.2f}",
    "L2 hits": lambda line: f"{line['l2_hits']:.0%}",
    "sectors/load": lambda line: f"{line['sectors_per_request']:.1f}",
    "occupancy": lambda line: f"{line['occupancy']:.0%}",
    "stalls": lambda line: ", ".join(
        f"{WAITS.get(name, name)} {share:.0%}"
        for name, share in sorted(line["waits"].items(), key=lambda wait: -wait[1])[:3]
    ),
    "commit": lambda line: line["commit"],
}


def _counters(lines: list[dict]) -> list[str]:
    """Return the table of each cell's kernels at its newest commit."""
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
Reports of compute-sanitizer's tools, with every algorithm on small graphs (`bench/sanitize.py`): in kernels of mgraph,
with the file that has a comment to explain them, and in those of CuPy.
"""
SANITIZED_COLUMNS = {
    "tool": lambda line: line["tool"],
    "kernels of mgraph": lambda line: str(line["kernels"]),
    "reports": lambda line: ", ".join(f"{count} in `{name}`" for name, count in line["ours"].items()) or "none",
    "explained in": lambda line: ", ".join(f"`{TODAY.get(name, name)}`" for name in line["argued"]),
    "in other kernels": lambda line: ", ".join(f"{count} in `{name}`" for name, count in line["foreign"].items()),
    "commit": lambda line: line["commit"],
}


def _sanitized(lines: list[dict]) -> list[str]:
    newest = {line["tool"]: line for line in lines if line.get("bench") == "sanitize"}
    return [SANITIZED, _table(SANITIZED_COLUMNS, list(newest.values())), ""] if newest else []


CALLS = """The parts of a call of `mg.bfs`, medians over random roots (`bench/call.py`): the time of its kernels, and of
the translation to user ids, with the least time of its memory accesses (streams and random loads, at the device's
rates). The host launches the translation before it waits for the search; its time is what remains when the search is
done.
"""


def _calls(lines: list[dict]) -> list[str]:
    """Return the table of calls and their parts."""
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
        *(
            (f"part: {TODAY.get(name, name)}", lambda line, name=name: line["parts_us"].get(name, 0.0))
            for name in parts
        ),
    ]
    return [CALLS, _table(columns, rows), ""]


CLOCKS = """
Graph500's clock (`clock` of `bench/run.py`): from the root's position until the parents of all vertices are in memory
as user ids, of SSSP with the distances. In the graph's own order, which the specification allows, and in the order of
user ids; GTEPS are medians over the roots, beside the harmonic mean. `mgraph graph500` counts loops and parallel edges
too, as specified: its rates are higher by a few percent.
"""
CLOCK_COLUMNS = {
    "graph": lambda row: row[0]["graph"],
    "algorithm": lambda row: row[0]["algorithm"],
    "method": lambda row: row[0]["method"],
    "ranks": lambda row: row[0]["placement"].partition(" rank")[0],
    "order of the array": lambda row: row[1],
    "median ms": lambda row: f"{row[2]['median_ms']:.3g}",
    "min .. max": lambda row: f"{row[2]['min_ms']:.3g} .. {row[2]['max_ms']:.3g}",
    "GTEPS": lambda row: f"{row[2]['teps'] / 1e9:.4g}",
    "harmonic mean": lambda row: f"{row[2]['harmonic_teps'] / 1e9:.4g}",
    "roots": lambda row: str(row[0]["sources"]),
    "commit": lambda row: row[0]["commit"],
}


def _clocks(searches: list[dict]) -> list[str]:
    """Return the table of searches on Graph500's clock."""
    rows = [(line, order, clock) for line in searches for order, clock in line.get("clock", {}).items()]
    return [CLOCKS, _table(CLOCK_COLUMNS, rows)] if rows else []


SHAPES = """
Graphs of many shapes beside SciPy on one core (`bench/shapes.py`, whole calls in milliseconds), by {}: {} cells, of
which {} take longer than allowed, SciPy's time and that to write the result. The worst:
"""
SHAPE_COLUMNS = {
    "cell: ms, SciPy's": lambda line: f"{line['graph']}, {line['algorithm']}: {line['ms']:.3g}, {line['scipy_ms']:.3g}",
    "allowed = 1": lambda line: f"{line['ratio']:.2f}x",
    "first call": lambda line: f"{line['first_ms']:.3g}",
    "commit": lambda line: line["commit"],
}


def _shapes(lines: list[dict]) -> list[str]:
    """Return a table for each number of cores."""
    of_shapes = [line for line in lines if line.get("bench") == "shapes" and "cores" in line]
    newest = {(line["cores"], line["graph"], line["algorithm"]): line for line in of_shapes}
    text = []
    for cores in sorted({line["cores"] for line in of_shapes}):
        cells = [line for line in newest.values() if line["cores"] == cores]
        worst = sorted(cells, key=lambda line: -line["ratio"])
        by = f"{cores} cores" + (" and one GPU" if worst[0]["backend"] == "cuda" else "")
        text.append(SHAPES.format(by, len(worst), sum(line["ratio"] > 1 for line in worst)))
        text.append(_table(SHAPE_COLUMNS, worst[:8]))
    return text


ABOUT = {
    "libraries": """
Python libraries on the same cores, in one run (`bench/libraries.py`): milliseconds of whole calls, from the library's
own graph to all distances, labels or edges of the forest in Python. SciPy, NetworkX and igraph use one core.
""",
    "ingest": """
Ways in (`bench/ingest.py`): seconds from a file in the page cache, or from arrays, to a built graph, the best of some
runs; beside it pyarrow in the same run, which reads the file into a table and builds nothing. CPU s: medians of the
seconds of all cores together, which other processes on the machine change little, of the whole, of a parse of the same
text without a build, and of pyarrow.
""",
    "cluster_call": """
A warm call through a Dask cluster on one host (`bench/cluster_call.py`), milliseconds: of nothing, of `mg.bfs`, and of
the same beside the seconds of its phases; medians of a loop of calls, and in parentheses what 99 of 100 take at most.
""",
    "deduplicate": """
Deduplication (`bench/deduplicate.py`): the command `components` over a folder of Parquet files with pairs of string ids
of 16 characters, without and with a folder of labels written; the whole process, its start included.
""",
    "energy": """
The energy of searches (`bench/energy.py`): from random roots again and again for seconds, on Graph500's clock in the
graph's own order, every root's result validated. MTEPS/W is the harmonic mean of the rates over the mean power of the
loop, as in the Green Graph500, but power is that of the GPU's board alone. The list's best, 6,234 (small data) and
6,320 (big data), counts whole systems: hosts, memory, network and power supplies too. Between two searches the GPU
waits for the host; millions of edges per joule charge this to the searches, and *busy* is their share of the time.
""",
    "forms": """
The gain of the cost model, which chooses the method of each superstep by measured rates of the device
(`bench/cost_model.py`): milliseconds of the kernel from a source, with measured rates, with the rates of one H200 as
constants, and with one method excluded.
""",
    "forest parts": """
What each preparation of a spanning forest gains (`bench/forest_parts.py`): milliseconds of the forest with one change,
and of the preparation, which would be added. Fully sorted rows, from which the papers start, take longer to sort than
the forest takes; so do integer ranks of weights that do not fit 32 bits.
""",
}
LIBRARY_COLUMNS = {
    "graph": lambda line: line["graph"],
    "algorithm": lambda line: line["algorithm"],
    **{
        name: lambda line, name=name: f"{line['call_ms'][name]:.3g}"
        for name in ("mgraph", "SciPy", "NetworkX", "igraph", "NetworKit")
    },
    "cores": lambda line: str(line["cores"]),
    "commit": lambda line: line["commit"],
}
INGEST_COLUMNS = {
    "graph": lambda line: line["graph"],
    "from": lambda line: line["way"],
    "built s": lambda line: f"{line['best_s']:.2f}",
    "pyarrow reads it in s": lambda line: f"{line['pyarrow_s']:.2f}" if "pyarrow_s" in line else "",
    "CPU s": lambda line: f"{line['cpu_s']:.2f}" if "cpu_s" in line else "",
    "of a parse": lambda line: f"{line['parsed_cpu_s']:.2f}" if "parsed_cpu_s" in line else "",
    "pyarrow's": lambda line: f"{line['pyarrow_cpu_s']:.2f}" if "pyarrow_cpu_s" in line else "",
    "host peak": lambda line: readable_bytes(line["host_peak_bytes"]),
    "device peak": lambda line: readable_bytes(line["device_peak_bytes"]) if line["gpus"] else "",
    "cores": lambda line: str(line["cores"]),
    "commit": lambda line: line["commit"],
}
CLUSTER_CALL_COLUMNS = {
    "graph": lambda line: line["graph"],
    "workers": lambda line: str(line["workers"]),
    "backend": lambda line: line.get("backend", "cpu"),
    "nothing": lambda line: _median_and_most(line, "nothing"),
    "BFS": lambda line: _median_and_most(line, "bfs"),
    "beside the search": lambda line: _median_and_most(line, "beside_the_search"),
    "more than 3 ms beside": lambda line: f"{line['beside_over_3_ms']:,} of {line['calls']:,}",
    "called": lambda line: line["called"],
    "commit": lambda line: line["commit"],
}
DEDUPLICATE_COLUMNS = {
    "pairs": lambda line: f"{line['pairs']:,}",
    "distinct ids": lambda line: f"{line['ids']:,}",
    "Parquet": lambda line: readable_bytes(line["file_bytes"]),
    "labelled s": lambda line: f"{line['labelled_s']:.1f}",
    "written too s": lambda line: f"{line['written_s']:.1f}",
    "CPU s": lambda line: f"{line['written_cpu_s']:.1f}" if "written_cpu_s" in line else "",
    "memory": lambda line: readable_bytes(line["peak_bytes"]),
    "commit": lambda line: line["commit"],
}
ENERGY_COLUMNS = {
    "graph": lambda line: line["graph"],
    "algorithm": lambda line: line["algorithm"],
    "median ms": lambda line: f"{line['median_ms']:.3g}",
    "GTEPS, harmonic mean": lambda line: f"{line['harmonic_teps'] / 1e9:.4g}",
    "idle W": lambda line: f"{line['idle_w']:.0f}",
    "mean W": lambda line: f"{line['watts']:.0f}",
    "MTEPS/W": lambda line: f"{line['mteps_per_w']:,.0f}",
    "million edges/J": lambda line: f"{line['edges_per_joule'] / 1e6:,.0f}",
    "busy": lambda line: f"{line['busy']:.0%}",
    "searches": lambda line: f"{line['searches']:,}",
    "seconds": lambda line: f"{line['seconds']:.1f}",
    "commit": lambda line: line["commit"],
}
FORM_COLUMNS = {
    "graph": lambda line: line["graph"],
    "algorithm": lambda line: line["algorithm"],
    "choice by": lambda line: TODAY.get(line["part"], line["part"]),
    "median ms": lambda line: f"{line['median_ms']:.3g}",
    "min .. max": lambda line: f"{line['min_ms']:.3g} .. {line['max_ms']:.3g}",
    "commit": lambda line: line["commit"],
}
PART_COLUMNS = {
    "graph": lambda line: line["graph"],
    "change": lambda line: TODAY.get(line["part"], line["part"]),
    "forest ms": lambda line: f"{line['forest_ms']:.3g}" if line["forest_ms"] else "",
    "preparation ms": lambda line: f"{line['prepare_ms']:.3g}" if line["prepare_ms"] else "",
    "commit": lambda line: line["commit"],
}
PARTS = (
    ("libraries", LIBRARY_COLUMNS, ("graph", "algorithm")),
    ("ingest", INGEST_COLUMNS, ("graph", "way")),
    ("cluster_call", CLUSTER_CALL_COLUMNS, ("graph", "workers", "called")),
    ("deduplicate", DEDUPLICATE_COLUMNS, ("graph", "backend")),
    ("energy", ENERGY_COLUMNS, ("graph", "algorithm")),
    ("forms", FORM_COLUMNS, ("graph", "algorithm", "part")),
    ("forest parts", PART_COLUMNS, ("graph", "part")),
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
    "B/edge": lambda line: f"{line['bytes_per_edge']:.3g}",
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
    "best other": lambda cell: f"{cell['peer_ms']:.3g}",
    "which": lambda cell: cell["peer"],
    "faster": lambda cell: f"{cell['peer_ms'] / cell['median_ms']:.2f}x",
    "goal": lambda cell: f"{cell['goal_ms']:.3g}",
    "share of goal": lambda cell: f"{cell['median_ms'] / cell['goal_ms']:.2f}",
    "commit": lambda cell: cell["commit"],
}
CPU_COLUMNS = {
    "graph": lambda line: line["graph"],
    "algorithm": lambda line: line["algorithm"],
    "mgraph ms": lambda line: f"{line['median_ms']:.3g}",
    "whole call ms": lambda line: f"{line['call_ms']:.3g}",
    "GAP ms": lambda line: f"{line['gap_ms']:.3g}" if line["gap_ms"] else "",
    "SciPy ms": lambda line: f"{line['scipy_ms']:.3g}",
    "GAP = 1": lambda line: f"{line['median_ms'] / line['gap_ms']:.2f}x" if line["gap_ms"] else "",
    "commit": lambda line: line["commit"],
}


def _median_and_most(line: dict, what: str) -> str:
    return f"{line[f'{what}_ms']:.3g} ({line[f'{what}_99_of_100_ms']:.3g})"


def _table(columns: dict, lines: list[dict]) -> str:
    rows = [list(columns), ["---"] * len(columns), *([cell(line) for cell in columns.values()] for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()
