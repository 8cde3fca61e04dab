"""The papers' figures, drawn again: what was measured, beside what a paper says of itself."""

from __future__ import annotations

import importlib.util
import math
import pathlib
from collections.abc import Callable, Iterable

SUFFIXES = (".png", ".svg")
# What the papers report of their own hardware: x, y and a label; x is None for a mean, drawn as a line.
Mark = tuple[float | None, float, str]
KOLGANOV = {
    "bfs": [(21, 5.8, "paper, best: GTX Titan"), (None, 5.5, "paper, mean: GTX Titan")],
    "sssp": [(19, 1.1, "paper, best: GTX Titan")],
}
FORESTS: dict[str, list[Mark]] = {
    "rmat": [(23, 3.2, "paper, mean of two entries: GTX Titan")],
    "ssca2": [(25, 3.0, "paper, estimate: K40")],
}
GUO = {
    "uni": [(9, 1.58, "paper, best: GTX 260"), (None, 1.38, "paper, mean: GTX 260")],
    "ssca2": [(11, 4.42, "paper, best: GTX 260"), (None, 2.91, "paper, mean: GTX 260")],
}
FIXED: list[Mark] = [
    (None, 5.7, "paper, most: Tesla M2050 / 6 cores"),
    (None, 2.4, "paper, least: Tesla M2050 / 6 cores"),
]
KESHAVARZI = {
    "Harish, masks": (1.32, 2.0),
    "Luo, queues": (1.0, 3.8),
    "Hong, a warp for each vertex": (1.09, 10.71),
}
CHOICE = "choice at each level"


def is_drawable() -> bool:
    """Return whether Matplotlib is there."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(paper: str, lines: list[dict], folder: pathlib.Path, suffixes: Iterable[str] = SUFFIXES) -> list[pathlib.Path]:
    """Draw the figure of a paper from its records; return the files."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    # SVG ids are random without a salt: the same records draw the same file.
    with rc_context({"svg.hashsalt": paper, "font.size": 9}):
        figure = Figure(figsize=(11, 5), layout="constrained")
        FigureCanvasAgg(figure)
        DRAWN[paper](figure, lines)
        paths = [folder / f"papers-{paper.replace('_', '-')}{suffix}" for suffix in suffixes]
        for path in paths:
            figure.savefig(path, **({"metadata": {"Date": None}} if path.suffix == ".svg" else {"dpi": 120}))
    return paths


def _curves(axes, lines: list[dict], x_of: Callable[[dict], float], y_of: Callable[[dict], float]) -> None:
    """Draw a curve for each method."""
    methods = dict.fromkeys(line["method"] for line in lines)
    for number, method in enumerate(methods):
        points = sorted((x_of(line), y_of(line)) for line in lines if line["method"] == method)
        is_own = method.startswith("mgraph")
        axes.plot(*zip(*points, strict=True), "os^vDP*X"[number % 8] + ("-" if is_own else "--"), ms=4, label=method)


def _marks(axes, marks: list[Mark]) -> None:
    """Draw what the paper reports."""
    for x, y, label in marks:
        if x is None:
            axes.axhline(y, color="black", linestyle=":", label=label)
        else:
            axes.plot([x], [y], "k*", markersize=12, label=label)


def _finish(axes, title: str, x: str, y: str) -> None:
    axes.set(title=title, xlabel=x, ylabel=y, yscale="log")
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=6)


def _scale(line: dict) -> float:
    return math.log2(line["n"])


def _rate(line: dict) -> float:
    return line["arcs_per_s"] / 1e9


def _paths(figure, lines: list[dict]) -> None:
    for axes, (algorithm, marks) in zip(figure.subplots(1, 2), KOLGANOV.items(), strict=True):
        _curves(axes, [line for line in lines if line["algorithm"] == algorithm], _scale, _rate)
        _marks(axes, marks)
        _finish(axes, f"{algorithm}, RMAT of mean degree 32", "log2 of vertices", "G arcs/s")


def _forests(figure, lines: list[dict]) -> None:
    for axes, (kind, marks) in zip(figure.subplots(1, 2), FORESTS.items(), strict=True):
        _curves(axes, [line for line in lines if line["graph"].startswith(kind)], _scale, _rate)
        _marks(axes, marks)
        _finish(axes, f"spanning forest, {kind}", "log2 of vertices", "G arcs/s")


def _tiers(figure, lines: list[dict]) -> None:
    masks = {line["graph"]: line["median_ms"] for line in lines if line["method"].startswith("IIIT")}
    for axes, (kind, marks) in zip(figure.subplots(1, 2), GUO.items(), strict=True):
        others = [line for line in lines if line["graph"].startswith(kind) and not line["method"].startswith("IIIT")]
        _curves(axes, others, _scale, lambda line: masks[line["graph"]] / line["median_ms"])
        _marks(axes, marks)
        _finish(axes, f"SSSP, {kind}", "log2 of vertices", "times as fast as IIIT's masks")


def _degrees(figure, lines: list[dict]) -> None:
    axes = figure.subplots()
    cores = {line["graph"]: line["median_ms"] for line in lines if "all CPU cores" in line["method"]}
    measured = [line for line in lines if line["graph"] in cores and "all CPU cores" not in line["method"]]
    _curves(
        axes, measured, lambda line: line["arcs"] / line["n"], lambda line: cores[line["graph"]] / line["median_ms"]
    )
    _marks(axes, FIXED)
    _finish(axes, "BFS, fixed out-degree", "out-degree", "times as fast as all CPU cores")


def _choice(figure, lines: list[dict]) -> None:
    axes = figure.subplots()
    choice = {line["graph"]: line["median_ms"] for line in lines if line["method"] == CHOICE}
    graphs = list(choice)
    others = [method for method in dict.fromkeys(line["method"] for line in lines) if method != CHOICE]
    for number, method in enumerate(others):
        ratios = {
            line["graph"]: line["median_ms"] / choice[line["graph"]] for line in lines if line["method"] == method
        }
        places = [graphs.index(graph) + 0.2 * number for graph in ratios]
        axes.bar(places, list(ratios.values()), 0.2, label=method)
        if method in KESHAVARZI:
            least, most = KESHAVARZI[method]
            axes.vlines(places, least, most, "black", label="paper's range: GeForce 310M" if number == 0 else None)
    axes.axhline(1, color="gray", linewidth=0.5)
    axes.set_xticks(range(len(graphs)), graphs, rotation=20)
    _finish(axes, "BFS: time divided by that of the choice at each level", "", "times as long")


DRAWN = {
    "kolganov_paths": _paths,
    "kolganov_forests": _forests,
    "guo": _tiers,
    "fixed_degree": _degrees,
    "keshavarzi": _choice,
}
