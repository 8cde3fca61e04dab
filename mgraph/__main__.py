"""python -m mgraph, and the command mgraph."""

from __future__ import annotations

import os
import sys

from mgraph.cli.main import main


def run() -> None:
    """Run the command line, and end the process at once if it succeeds."""
    try:
        main(prog_name="mgraph")
    except SystemExit as end:
        # After an error the interpreter waits at exit for what ranks still undo, and Dask ends processes of its own.
        if end.code or "distributed" in sys.modules:
            raise
        # All is written and closed; to free gigabytes object by object takes a second.
        os._exit(0)


if __name__ == "__main__":
    run()
