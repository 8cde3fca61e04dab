"""Append a record of a whole run of the suite to bench/results."""

from __future__ import annotations

import os
from typing import Any

import pytest
from faults.log import append_line

OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed")


def append_run(config: pytest.Config, stats: dict[str, list], facts: dict[str, Any]) -> None:
    """Append a line: tier, outcomes, wall time, and the seeds that draw the same run again."""
    option = config.option
    facts = {
        "bench": "suite",
        "tier": option.tier,
        "arguments": list(config.invocation_params.args),
        "cores": len(os.sched_getaffinity(0)),
        "processes": getattr(option, "numprocesses", None) or 1,
        **{name: len(stats.get(name, ())) for name in OUTCOMES},
        "failures": [report.nodeid for kind in ("failed", "error") for report in stats.get(kind, ())],
        **facts,
        "faults": option.faults,
        "fault_seed": option.fault_seed,
        "hypothesis_seed": option.hypothesis_seed,
    }
    append_line(option.run_log, facts)
