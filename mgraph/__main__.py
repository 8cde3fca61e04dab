"""python -m mgraph, and the command mgraph."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable


def run() -> None:
    """Run the command line, and end the process at once if it succeeds."""
    main = _import_main()
    try:
        main(prog_name="mgraph")
    except SystemExit as end:
        # After an error the interpreter waits at exit for what ranks still undo, and Dask ends processes of its own.
        if end.code or "distributed" in sys.modules:
            raise
        # All is written and closed; to free gigabytes object by object takes a second.
        os._exit(0)


def _import_main() -> Callable[..., object]:
    """Import the command line, while Ctrl-C ends the process at once, as SIGTERM does.

    Python's handler would end it with a traceback, or not at all: what it raises in a callback of an import is ignored.
    """
    # In a background job of a shell script the signal is ignored, and stays so.
    is_handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_handled:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from mgraph.cli.main import main

    if is_handled:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return main


if __name__ == "__main__":
    run()
