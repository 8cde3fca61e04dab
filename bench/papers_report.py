"""Write the measured parts of docs/papers.md, and its figures, from the newest records in bench/results.

    python bench/papers_report.py

A part is between `<!-- measured: PAPER -->` and `<!-- end -->`. The records are those of `bench/five_papers.py` on the
machine where that part was measured last; parts without records stay as they are.
"""

from __future__ import annotations

import json
import pathlib
import re

import click
import record
from papers import figures, tables

DOCUMENT = record.RESULTS.parents[1] / "docs" / "papers.md"


@click.command(help=__doc__)
def main() -> None:
    if not figures.is_drawable():
        raise click.ClickException("figures need matplotlib: pip install 'dask-mgraph[plot]'")
    write(DOCUMENT, lines_of(record.RESULTS))


def lines_of(results: pathlib.Path) -> list[dict]:
    """Return the newest lines of each paper, of the machine where it was measured last."""
    read = [json.loads(line) for path in sorted(results.glob("*.jsonl")) for line in path.read_text().splitlines()]
    found = tables.newest(read)
    last = {line["paper"]: line["machine"] for line in sorted(found, key=lambda line: line["date"])}
    return [line for line in found if line["machine"] == last[line["paper"]]]


def write(document: pathlib.Path, lines: list[dict]) -> None:
    """Replace the measured parts of a document, and draw its figures beside it."""
    text = document.read_text()
    for paper in dict.fromkeys(line["paper"] for line in lines):
        part = tables.tables(paper, lines)
        if paper in figures.DRAWN:
            of_paper = [line for line in lines if line["paper"] == paper]
            (figure,) = figures.draw(paper, of_paper, document.parent, [".svg"])
            part += f"\n\n![the paper's figure, drawn again]({figure.name})"
        pattern = rf"(<!-- measured: {paper} -->\n).*?(<!-- end -->)"
        text, count = re.subn(pattern, lambda found, part=part: f"{found[1]}\n{part}\n\n{found[2]}", text, flags=re.S)
        if count != 1:
            raise click.ClickException(f"{document} has {count} parts for {paper}, not one")
    document.write_text(text)


if __name__ == "__main__":
    main()
