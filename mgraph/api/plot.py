"""Draw a search: the frontier and the time of every superstep."""

from __future__ import annotations

import importlib.util
import pathlib
from os import PathLike

from mgraph.api.results import Costs
from mgraph.errors import UsageError
from mgraph.io.replace import replacing
from mgraph.io.write import require_file

SUFFIXES = (".png", ".svg", ".pdf")
# By the method of a superstep.
COLORS = {
    "push": "tab:blue",
    "pull": "tab:orange",
    "sweep": "tab:green",
    "chunked": "tab:red",
    "serial": "tab:pink",
    "joint": "tab:cyan",
    "heavy": "tab:purple",
    "scan": "tab:brown",
    "split": "tab:gray",
}


def require_drawable(path: str | PathLike, *, overwrite: bool = False) -> None:
    """Raise UsageError unless a plot can be drawn and written to this path; what exists needs `overwrite`."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("plots need matplotlib: pip install matplotlib")
    path = pathlib.Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path}: a plot is a file that ends in one of {', '.join(SUFFIXES)}")
    require_file(path, overwrite=overwrite)


def plot_supersteps(stats: Costs, path: str | PathLike, title: str = "", *, overwrite: bool = False) -> None:
    """Draw frontier and time of every superstep to a file, colored by method."""
    require_drawable(path, overwrite=overwrite)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # pyplot would need a display, and would keep a reference to the figure.
    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    sizes, times = figure.subplots(2, 1, sharex=True)
    for method in dict.fromkeys(step["method"] for step in stats.supersteps):
        steps = [i for i, step in enumerate(stats.supersteps) if step["method"] == method]
        for axes, key in ((sizes, "frontier"), (times, "microseconds")):
            heights = [max(stats.supersteps[i][key], 1e-1) for i in steps]
            axes.bar(steps, heights, width=1.0, color=COLORS[method], label=method)
    for axes, label in ((sizes, "frontier, vertices"), (times, "time, us")):
        axes.set_yscale("log")
        axes.set_ylabel(label)
    times.set_xlabel("superstep")
    sizes.set_title(title)
    if stats.supersteps:
        sizes.legend()
    path = pathlib.Path(path)
    with replacing(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:].lower())
