"""Measure cells of bench/run.py for bench/compare.py, with the code of the checkout that PYTHONPATH begins with.

Each line of standard input is a list: graph, algorithm, seed of the roots. Each line of standard output is the facts
of that cell. A graph is built when it is first named.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import run

import mgraph as mg

SOURCES = 16


def main(backend: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    # What the checkout prints is not an answer.
    os.dup2(2, 1)
    graphs: dict[str, Any] = {}
    with mg.connect(backend=backend, num_ranks=1) as cluster:
        for line in sys.stdin:
            name, algorithm, seed = json.loads(line)
            if name not in graphs:
                graphs[name] = run.Graph.from_source(run.source_of(name, "int"), cluster=cluster, layout="rows")
            g = graphs[name]
            if algorithm in run.KERNELS:
                facts = run.measure(g, algorithm, "frontier", run.random_roots(g, SOURCES, seed))
            else:
                facts = run.measure_whole(g, algorithm, SOURCES)
            print(json.dumps(facts), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
