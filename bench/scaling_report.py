"""docs/scaling.md and its pictures, from the lines of bench/results that tell their supersteps."""

from __future__ import annotations

import json
import pathlib
import statistics

import record
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from superstep_model import Model, fit, predict_ms

from mgraph.graph500 import KERNELS

FUTURE_RANKS = (8, 16, 64, 256, 1024)
HEAD = """# Scaling

Made by `python bench/scaling.py --report-only` from the newest lines of `bench/results`: RMAT graphs with 16 edges
a vertex and integer weights, the same roots for any number of ranks, every answer validated and equal to the bit.
Times run from a built graph to every vertex's distance and predecessor. *Strong* is the time on one rank over that
on p ranks, divided by p; *weak* is the time on one rank over that on p ranks of a graph p times as large.
"""
MODEL = """
## What a superstep takes

    microseconds = a + b log2(ranks) + c (arcs of a rank) + d (bytes that reach a rank)

Fitted to every superstep above, for each kind by itself (`bench/superstep_model.py`).

{table}

Predicted beyond what was measured, from the supersteps of the largest number of ranks: the same graph on more
ranks, and a graph that grows with them. Over the measured points the model's times are off by {error:.0%} in the
median and {worst:.0%} at most. Of networks between hosts these measurements say nothing.

{predictions}
"""


def write_report(path: pathlib.Path) -> None:
    """Write the page, and a picture of each machine's curves beside it."""
    text = [HEAD]
    for file in sorted(record.RESULTS.glob("*.jsonl")):
        lines = _newest([json.loads(line) for line in file.read_text().splitlines()])
        if lines:
            picture = path.with_name(f"{path.stem}-{file.stem}.svg")
            _draw(lines, picture)
            text.append(f"\n# {file.stem}\n\n![time and bytes over ranks]({picture.name})\n")
            text.append(_measured(lines))
            text.append(_model(lines))
    path.write_text("\n".join(text).rstrip() + "\n")


def _newest(lines: list[dict]) -> list[dict]:
    kinds = ("graph", "algorithm", "method", "ranks", "backend")
    searches = [line for line in lines if line["graph"].startswith("rmat") and line["algorithm"] in KERNELS]
    # Without steps nothing is known of supersteps, and a search may have had more of them than are kept.
    known = [line for line in searches if len(line.get("steps", ())) == line.get("supersteps")]
    found = {tuple(line[kind] for kind in kinds): line for line in known if line["layout"] == "rows"}
    return sorted(found.values(), key=lambda line: (*_curve(line), _scale(line), line["ranks"]))


def _curve(line: dict) -> tuple[str, str]:
    return line["algorithm"], line["method"]


def _scale(line: dict) -> int:
    return int(line["graph"].removeprefix("rmat"))


def _measured(lines: list[dict]) -> str:
    times = {(*_curve(line), _scale(line), line["ranks"]): line["median_ms"] for line in lines}
    rows = []
    for line in lines:
        curve, scale, ranks = _curve(line), _scale(line), line["ranks"]
        strong = times.get((*curve, scale, 1), 0.0) / line["median_ms"] / ranks
        weak = times.get((*curve, scale - (ranks.bit_length() - 1), 1), 0.0) / line["median_ms"]
        rows.append(
            [*curve, line["graph"], str(ranks), f"{line['median_ms']:.3g}", f"{strong:.0%}" if strong else "",
             f"{weak:.0%}" if weak and ranks & (ranks - 1) == 0 else "", f"{line['teps'] / 1e9:.3g}",
             f"{max(line['bytes_sent_by_rank']) / 1e6:.3g}", f"{line['bytes_per_edge']:.3g}", line["commit"]]
        )  # fmt: skip
    head = [
        "algorithm",
        "method",
        "graph",
        "ranks",
        "median ms",
        "strong",
        "weak",
        "GTEPS",
        "MB sent",
        "B/edge",
        "commit",
    ]
    return _table(head, rows)


def _model(lines: list[dict]) -> str:
    model = fit(lines)
    errors = [abs(predict_ms(model, line, line["ranks"]) / line["median_ms"] - 1) for line in lines]
    table = _table(
        ["superstep", "a, us", "b, us", "arcs a ns", "bytes a ns"],
        [[f"{a} {m}", f"{c[0]:.3g}", f"{c[1]:.3g}", _rate(c[2]), _rate(c[3])] for (a, m), c in sorted(model.items())],
    )
    predictions = _table(
        ["algorithm", "method", "from", *(f"{p} ranks" for p in FUTURE_RANKS)], _predicted(model, lines)
    )
    return MODEL.format(table=table, predictions=predictions, error=statistics.median(errors), worst=max(errors))


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
    figure = Figure(figsize=(9, 4), layout="constrained")
    FigureCanvasAgg(figure)
    times, sent = figure.subplots(1, 2)
    for curve, scale in dict.fromkeys((_curve(line), _scale(line)) for line in lines):
        points = [line for line in lines if (_curve(line), _scale(line)) == (curve, scale)]
        ranks = [line["ranks"] for line in points]
        name = f"{' '.join(curve)}, {points[0]['graph']}"
        times.plot(ranks, [line["median_ms"] for line in points], "o-", label=name)
        sent.plot(ranks, [max(line["bytes_sent_by_rank"]) / 1e6 for line in points], "o-", label=name)
    for axes, label in ((times, "ms"), (sent, "MB sent by a rank")):
        axes.set_xscale("log", base=2)
        axes.set_yscale("symlog" if axes is sent else "log")
        axes.set_xlabel("ranks")
        axes.set_ylabel(label)
    times.legend(fontsize=6)
    figure.savefig(picture)


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])
