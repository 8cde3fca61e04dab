"""Write docs/scaling.md and its plots from the records in bench/results."""

from __future__ import annotations

import json
import pathlib
import re
import statistics

import record
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from run import source_of
from superstep_model import (
    LAUNCH_US,
    NETWORK_BYTES_PER_US,
    NETWORK_US,
    RANKS_PER_HOST,
    Model,
    can_predict,
    fit,
    predict_ms,
)

from mgraph.api.graph500 import KERNELS
from mgraph.formatting import readable_bytes
from mgraph.planning.memory import plan_graph
from mgraph.planning.placement import ARCS_PER_RANK, place_graph

# Enough memory that it does not influence the placement.
ENOUGH_BYTES = 1 << 50
FUTURE_RANKS = (8, 16, 64, 256, 1024)
HEAD = """# Scaling

`python bench/scaling.py --report-only` writes this page from the newest record of each kind in `bench/results`. Every
result was validated; with one seed of roots, results that differ in a bit between numbers of ranks end the measurement.
Times begin with a built graph and end when every owner has its vertices' results. In persistent multi-GPU searches they
begin when all ranks have the root, after the launch of 30 to 90 us (commits before 7bfa45a include it). Times of the
translation to user ids are in `bench/README.md`. *Strong* is the time on one rank divided by the time on p ranks,
divided by p. *Weak* is the time on one rank divided by the time on p ranks for a graph p times as large. Both compare
records of one commit; a cell is empty if there is none for one rank.
"""
PROVEN = """The newest commits measured with every result validated: {commits}.
Of later commits, the tests run the searches of several ranks in the emulator of CUDA.
"""
FASTEST = """
### How many ranks are fastest

Medians in milliseconds on 1, 2, 4, ... ranks of one commit, `auto` methods. If the user gives no number of ranks, a
graph uses at most one for every {arcs:,} arcs, and a graph of low mean degree as few as hold it
(`mgraph/planning/placement.py`).

{table}
"""
MEMORY = """
### Memory, planned and measured

Peak memory of the build on the fullest rank, and the plan of `mgraph plan`, for the newest record of each graph of at
least a gigabyte. The plan is off by {error:.0%} in the median and {worst:.0%} at most.

{table}
"""
MODEL = """
### The time of a superstep

    microseconds = a + b log2(ranks) + c (arcs of a rank) + d (bytes that reach a rank)

Fitted to every superstep of the searches on several ranks, at the newest commit of each algorithm and method that has
several points (`bench/superstep_model.py`). The first superstep includes the wait for the last rank to begin.

{table}

Over the measured points the model's times are off by {error:.0%} in the median and {worst:.0%} at most{held_out}.

### Predicted beyond what was measured

Computed from the supersteps of the largest graph on the largest number of ranks: the same graph on more ranks, and a
graph that grows with the ranks. All measured ranks are on one host, connected by its own links. More than {per_host}
ranks are on several hosts, of which this is assumed, not measured: bytes from other hosts come through an adapter of
{network:.0f} GB/s for each GPU; a superstep takes {latency:.0f} microseconds more for its message between hosts, and
{launch:.0f} for its launch by the host, since there are no peer buffers.

{predictions}

The model omits:

- Larger graphs are assumed to need the same number of supersteps, and all ranks to have equal shares of each.
- Caches: the time for each arc is the same at every size.
- The sweeps' reduction of all states is modeled by its bytes, in rings: its latency grows with the number of ranks, not
  with its logarithm. Lists of lowered states, which shortest paths send where few have fallen, count as if reduced.
"""


def write_report(path: pathlib.Path) -> None:
    """Write the page, and a plot for each machine next to it."""
    text = [HEAD]
    for file in sorted(record.RESULTS.glob("*.jsonl")):
        every = [facts for line in file.read_text().splitlines() if "bench" not in (facts := json.loads(line))]
        lines = _searches(every)
        if any(line["ranks"] > 1 for line in lines):
            picture = path.with_name(f"{path.stem}-{file.stem}.svg")
            _draw(lines, picture)
            text.append(f"\n## {file.stem}\n\n![time and bytes over ranks]({picture.name})\n")
            text.append(_proven(every))
            text.append(_measured(lines))
            text.append(_fastest(every))
            text.append(_model(lines))
            text.append(_memory(every))
    path.write_text("\n".join(text).rstrip() + "\n")


def _proven(lines: list[dict]) -> str:
    """Return the newest commit with a validated record, for each number of GPUs."""
    newest = {}
    for line in sorted(lines, key=lambda line: line["date"]):
        if line["backend"] == "cuda" and line["validated"] and line["ranks"]:
            newest[line["ranks"]] = line["commit"]
    commits = ", ".join(f"{commit} on {ranks} GPU{'s' * (ranks > 1)}" for ranks, commit in sorted(newest.items()))
    return PROVEN.format(commits=commits)


def _searches(lines: list[dict]) -> list[dict]:
    """Return the newest record of each RMAT search with all its supersteps."""
    kinds = ("graph", "algorithm", "method", "ranks", "backend")
    rmat = [line for line in lines if line["graph"].startswith("rmat") and line["algorithm"] in KERNELS]
    known = [line for line in rmat if line.get("steps") and len(line["steps"]) == line["supersteps"]]
    found = {tuple(line[kind] for kind in kinds): line for line in known if line["layout"] == "rows"}
    return sorted(found.values(), key=lambda line: (*_curve(line), _scale(line), line["ranks"]))


def _curve(line: dict) -> tuple[str, str]:
    return line["algorithm"], line["method"]


def _scale(line: dict) -> int:
    return int(line["graph"].removeprefix("rmat"))


def _measured(lines: list[dict]) -> str:
    times = {(*_curve(line), line["commit"], _scale(line), line["ranks"]): line["median_ms"] for line in lines}
    rows = []
    for line in lines:
        curve = (*_curve(line), line["commit"])
        scale = _scale(line)
        ranks = line["ranks"]
        strong = times.get((*curve, scale, 1), 0.0) / line["median_ms"] / ranks
        weak = times.get((*curve, scale - (ranks.bit_length() - 1), 1), 0.0) / line["median_ms"]
        several = ranks > 1
        rows.append(
            [*_curve(line), line["graph"], str(ranks), f"{line['median_ms']:.3g}",
             f"{strong:.0%}" if several and strong else "",
             f"{weak:.0%}" if several and weak and ranks & (ranks - 1) == 0 else "", f"{line['teps'] / 1e9:.3g}",
             f"{max(line['bytes_sent_by_rank']) / 1e6:.3g}", f"{line['bytes_per_edge']:.3g}", line["commit"]]
        )  # fmt: skip
    what = ["algorithm", "method", "graph", "ranks", "median ms", "strong", "weak"]
    return _table([*what, "GTEPS", "MB sent", "B/edge", "commit"], rows)


def _fastest(lines: list[dict]) -> str:
    """Return the times of graphs that were measured on several numbers of ranks."""
    auto = [line for line in lines if line.get("layout") == "rows" and line["method"] != "sweep" and "ranks" in line]
    times: dict[tuple, dict[int, float]] = {}
    for line in auto:
        key = line["graph"], line["algorithm"], line["commit"]
        times.setdefault(key, {})[line["ranks"]] = line["median_ms"]
    newest = {key[:2]: key for key, by_ranks in times.items() if len(by_ranks) > 1}
    arcs = {line["graph"]: 2 * line["m"] for line in auto}
    most = sorted({ranks for key in newest.values() for ranks in times[key]})
    rows = []
    for (graph, algorithm), key in sorted(newest.items(), key=lambda item: (item[0][1], _size(item[0][0]))):
        cells = [f"{times[key][ranks]:.3g}" if ranks in times[key] else "" for ranks in most]
        best = min(times[key], key=times[key].__getitem__)
        taken = place_graph(source_of(graph, "int"), most[-1], "cuda", ENOUGH_BYTES).num_ranks
        rows.append([algorithm, graph, f"{arcs[graph]:.2g}", *cells, str(best), str(taken), key[2]])
    head = [
        "algorithm",
        "graph",
        "arcs",
        *(f"{ranks}" for ranks in most),
        "fastest",
        f"placed, of {most[-1]}",
        "commit",
    ]
    table = _table(head, rows)
    return FASTEST.format(arcs=ARCS_PER_RANK["cuda"], table=table)


def _memory(lines: list[dict]) -> str:
    """Return the measured and the planned memory of builds."""
    # A build of split rows takes what memory there is.
    large = [line for line in lines if line.get("build_peak_bytes", 0) >= 1 << 30 and line["layout"] != "split"]
    newest = {(line["graph"], line["layout"], line["weights"] or "none", line["ranks"]): line for line in large}
    rows = []
    errors = []
    for kind, line in sorted(newest.items(), key=lambda item: (_size(item[0][0]), item[0][1:])):
        graph, layout, weights, ranks = kind
        source = source_of(graph, "none" if weights == "none" else "int")
        planned = plan_graph(source, ranks, line["backend"], ENOUGH_BYTES, layout).parts["while it is built"]
        errors.append(planned / line["build_peak_bytes"] - 1)
        sizes = (readable_bytes(line["build_peak_bytes"]), readable_bytes(planned))
        rows.append([graph, layout, weights, str(ranks), *sizes, f"{errors[-1]:+.1%}", line["commit"]])
    head = ["graph", "layout", "weights", "ranks", "measured", "planned", "off by", "commit"]
    if not rows:
        return ""
    off = [abs(error) for error in errors]
    return MEMORY.format(error=statistics.median(off), worst=max(off), table=_table(head, rows))


def _size(graph: str) -> tuple[str, int]:
    stem, size = re.fullmatch(r"(\D*)(\d*).*", graph).groups()  # type: ignore[union-attr]
    return stem, int(size or 0)


def _model(lines: list[dict]) -> str:
    # Use the newest commit of each curve with several points: one point does not separate the costs of arcs and bytes.
    curves: dict[tuple, dict[str, list[dict]]] = {}
    for line in sorted(lines, key=lambda line: line["date"]):
        if line["ranks"] > 1:
            curves.setdefault(_curve(line), {}).setdefault(line["commit"], []).append(line)
    known = [[points for points in commits.values() if len(points) > 1] for commits in curves.values()]
    several = [line for points in known if points for line in points[-1]]
    if not several:
        return ""
    model = fit(several)
    errors = _errors(model, several)
    table = _table(
        ["superstep", "a, us", "b, us", "arcs/ns", "bytes/ns"],
        [
            [f"{algorithm} {method}", f"{c[0]:.3g}", f"{c[1]:.3g}", _rate(c[2]), _rate(c[3])]
            for (algorithm, _, method), c in sorted(model.items())
        ],
    )
    predictions = _table(
        ["algorithm", "method", "from", *(f"{p} ranks" for p in FUTURE_RANKS)], _predicted(model, several)
    )
    return MODEL.format(
        table=table,
        predictions=predictions,
        error=statistics.median(errors),
        worst=max(errors),
        held_out=_held_out(several),
        per_host=RANKS_PER_HOST,
        network=NETWORK_BYTES_PER_US / 1e3,
        latency=NETWORK_US,
        launch=LAUNCH_US,
    )


def _errors(model: Model, lines: list[dict]) -> list[float]:
    return [abs(predict_ms(model, line, line["ranks"]) / line["median_ms"] - 1) for line in lines]


def _held_out(lines: list[dict]) -> str:
    """Return the error of a model of fewer ranks on the largest number measured."""
    most = max(line["ranks"] for line in lines)
    fewer = [line for line in lines if line["ranks"] < most]
    model = fit(fewer)
    if not (held := [line for line in lines if line["ranks"] == most and can_predict(model, line)]) or not fewer:
        return ""
    errors = _errors(model, held)
    return (
        f"; fitted to fewer ranks,\nit is off on {most} by {statistics.median(errors):.0%} in the median and "
        f"{max(errors):.0%} at most"
    )


def _rate(microseconds: float) -> str:
    return f"{1e-3 / microseconds:.3g}" if microseconds else "free"


def _predicted(model: Model, lines: list[dict]) -> list[list[str]]:
    rows = []
    for curve in dict.fromkeys(map(_curve, lines)):
        last = max((line for line in lines if _curve(line) == curve), key=lambda line: (line["ranks"], _scale(line)))
        start = f"{last['graph']} on {last['ranks']}"
        strong = [predict_ms(model, last, p) for p in FUTURE_RANKS]
        weak = [predict_ms(model, last, p, p / last["ranks"]) for p in FUTURE_RANKS]
        rows.append([*curve, f"{start}, the same graph", *(f"{ms:.3g} ms" for ms in strong)])
        rows.append([*curve, f"{start}, growing", *(f"{ms:.3g} ms" for ms in weak)])
    return rows


def _draw(lines: list[dict], picture: pathlib.Path) -> None:
    figure = Figure(figsize=(11, 6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2).ravel()
    one = {(_curve(line), _scale(line)): line["median_ms"] for line in lines if line["ranks"] == 1}
    panels = (
        ("ms", lambda line: line["median_ms"]),
        (
            "strong efficiency",
            lambda line: one.get((_curve(line), _scale(line)), 0) / line["median_ms"] / line["ranks"],
        ),
        ("MB sent by a rank", lambda line: max(line["bytes_sent_by_rank"]) / 1e6),
        ("bytes of memory per edge", lambda line: line["bytes_per_edge"]),
    )
    for curve, scale in dict.fromkeys((_curve(line), _scale(line)) for line in lines):
        points = [line for line in lines if (_curve(line), _scale(line)) == (curve, scale)]
        if len(points) > 1:
            for panel, (_, value) in zip(axes, panels, strict=True):
                name = f"{' '.join(curve)}, {points[0]['graph']}"
                panel.plot([line["ranks"] for line in points], [value(line) for line in points], "o-", label=name)
    for panel, (label, _) in zip(axes, panels, strict=True):
        panel.set_xscale("log", base=2)
        panel.set_xlabel("ranks")
        panel.set_ylabel(label)
    axes[0].set_yscale("log")
    axes[2].set_yscale("symlog")
    axes[0].legend(fontsize=6)
    # The same records make the same plot, to the byte.
    with rc_context({"svg.hashsalt": picture.stem}):
        figure.savefig(picture, metadata={"Date": None})


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])
