"""Append records to bench/results, with date, commit, machine and versions."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import pathlib
import re
import statistics
import subprocess
from collections.abc import Sequence

from mgraph.cluster.devices import visible_gpus

RESULTS = pathlib.Path(__file__).with_name("results")
PACKAGES = (
    *("numpy", "numba", "scipy", "dask", "distributed", "networkx", "igraph", "networkit"),
    *("cupy-cuda13x", "cupy-cuda12x", "nccl4py", "dask-cuda"),
)


def machine(backend: str) -> str:
    """Return the name of the GPU or CPU, suitable for file names."""
    if backend == "cuda":
        import pynvml

        pynvml.nvmlInit()
        name = str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByUUID(visible_gpus()[0].uuid)))
    else:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def commit(checkout: pathlib.Path = RESULTS.parent.parent) -> str:
    """Return the commit, with a plus if the tree has changes.

    Unknown outside of a checkout.
    """

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=checkout, capture_output=True, text=True, check=True).stdout.strip()

    try:
        # Records that were just appended are not a change.
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/results")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def versions() -> dict[str, str]:
    """Return the versions of packages that influence speed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def spread(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return median, minimum and maximum of the times."""
    return {
        "median_ms": round(statistics.median(milliseconds), 4),
        "min_ms": round(min(milliseconds), 4),
        "max_ms": round(max(milliseconds), 4),
    }


def lines(backend: str) -> list[dict]:
    """Return the records of this machine."""
    path = RESULTS / f"{machine(backend)}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def append(backend: str, commit_name: str | None, facts: dict) -> None:
    """Append a record to the results of this machine."""
    head = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit_name or commit(),
        "machine": machine(backend),
    }
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / f"{head['machine']}.jsonl", "a") as file:
        file.write(json.dumps(head | facts | {"versions": versions()}) + "\n")
