"""The command line with stacks on SIGUSR1: `python -m faults.command bfs ...`."""

from __future__ import annotations

import runpy

from faults import stacks  # noqa: F401

runpy.run_module("mgraph", run_name="__main__", alter_sys=True)
