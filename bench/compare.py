"""Compare two checkouts on one machine: each cell of bench/run.py is measured alternately in OLD and NEW.

Each checkout has a process with its graphs; for a GPU both run on one core. Where a machine has other guests, a core
may be twice as slow for seconds, and the next one not: so only the ratio of two measurements counts, one right after
the other, and `ratio` is the median of these. All results are validated, and the digests of both checkouts must be
equal. Ends with 1 if a ratio is above --limit.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
from typing import Any

import click
import record

Cell = tuple[str, str]
WORKER = pathlib.Path(__file__).with_name("compare_worker.py").resolve()


class Checkout:
    """A process that measures with the code of a checkout."""

    def __init__(self, folder: pathlib.Path, backend: str) -> None:
        self.folder = folder.resolve()
        paths = [str(self.folder), str(self.folder / "bench")]
        self._process = subprocess.Popen(
            # With -P, `import run` does not find the one beside the worker.
            [sys.executable, "-P", str(WORKER), backend],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )

    def measure(self, cell: Cell, seed: int) -> dict[str, Any]:
        """Return the facts of a cell, with roots drawn by the seed."""
        assert self._process.stdin is not None and self._process.stdout is not None, "both are pipes"
        print(json.dumps([*cell, seed]), file=self._process.stdin, flush=True)
        facts: dict[str, Any] = json.loads(self._process.stdout.readline() or "{}")
        if not facts:
            raise click.ClickException(f"the process of {self.folder} ended with exit code {self._process.wait()}")
        return facts

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def measure_pair(old: Checkout, new: Checkout, cell: Cell, seed: int) -> tuple[dict, dict]:
    """Measure a cell in both checkouts; the seed decides which of them begins."""
    if seed % 2:
        facts = old.measure(cell, seed), new.measure(cell, seed)
    else:
        facts = (new.measure(cell, seed), old.measure(cell, seed))[::-1]
    if facts[0]["digest"] != facts[1]["digest"]:
        raise click.ClickException(f"{' '.join(cell)}: the results differ, with roots drawn by seed {seed}")
    return facts


def facts_of(cell: Cell, pairs: list[tuple[dict, dict]]) -> dict[str, Any]:
    """Return what is recorded of a cell."""
    ratios = [new["median_ms"] / old["median_ms"] for old, new in pairs]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else 3 * ratios
    return {
        "bench": "compare",
        "graph": cell[0],
        "algorithm": cell[1],
        "rounds": len(pairs),
        "old_ms": round(statistics.median(old["median_ms"] for old, _ in pairs), 4),
        "new_ms": round(statistics.median(new["median_ms"] for _, new in pairs), 4),
        "ratio": round(statistics.median(ratios), 4),
        "ratio_quartiles": [round(low, 4), round(high, 4)],
        "validated": all(facts["validated"] for pair in pairs for facts in pair),
    }


@click.command(help=__doc__)
@click.argument("old", type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path))
@click.argument("new", type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path))
@click.option("--graph", "graphs", multiple=True, default=("rmat20", "rmat22", "rmat24", "uni24", "grid4k"))
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), required=True)
@click.option("--rounds", type=click.IntRange(1), default=10, show_default=True)
@click.option("--limit", type=float, default=1.03, show_default=True, help="The largest ratio that passes.")
@click.option("--commits", nargs=2, metavar="OLD NEW", help="Their names, where they are not checkouts of git.")
def main(
    old: pathlib.Path,
    new: pathlib.Path,
    graphs: tuple[str, ...],
    backend: str,
    rounds: int,
    limit: float,
    commits: tuple[str, str] | None,
) -> None:
    names = commits or (record.commit(old), record.commit(new))
    cells = [(graph, algorithm) for graph in graphs for algorithm in ("bfs", "sssp", "components", "msf")]
    if backend == "cuda":
        # Inherited by both processes; all work beside a GPU is done in the caller's thread.
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    both = Checkout(old, backend), Checkout(new, backend)
    seed = random.randrange(1 << 31)
    pairs: dict[Cell, list[tuple[dict, dict]]] = {cell: [] for cell in cells}
    try:
        # The first round, which compiles kernels and fills memory pools, is not counted.
        for number in range(rounds + 1):
            for cell, measured in pairs.items():
                pair = measure_pair(*both, cell, seed + number)
                if number:
                    measured.append(pair)
    finally:
        for checkout in both:
            checkout.close()
    worst = 0.0
    for cell, measured in pairs.items():
        facts = facts_of(cell, measured) | {"old": names[0], "new": names[1], "root_seed": seed}
        worst = max(worst, facts["ratio"])
        record.append(backend, names[1], facts)
        low, high = facts["ratio_quartiles"]
        click.echo(
            f"{cell[0]:8} {cell[1]:10} {facts['old_ms']:9.4f} ms -> {facts['new_ms']:9.4f} ms, "
            f"ratio {facts['ratio']:.3f} ({low:.3f} to {high:.3f})"
        )
    if worst > limit:
        raise click.ClickException(f"a ratio is {worst:.3f}, above {limit:g}")


if __name__ == "__main__":
    main()
