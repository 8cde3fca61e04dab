"""Show what a result cost as events of Chrome's trace format, which Perfetto and chrome://tracing open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mgraph.api.results import Costs

# Phases before the first superstep.
BEFORE = ("prepare", "compile")
PHASES = 1
SUPERSTEPS = 2


def chrome_trace(costs: Costs) -> dict[str, Any]:
    """Return phases and supersteps as complete events, and frontiers as a counter.

    Durations are measured, places in time are not: phases follow each other, and so do supersteps, from the end of the
    preparation.
    """
    events = [_named("process_name", 0, f"mgraph {costs.variant}")]
    events += [_named("thread_name", PHASES, "phases"), _named("thread_name", SUPERSTEPS, "supersteps")]
    at = 0.0
    phases = sorted(costs.seconds.items(), key=lambda phase: phase[0] not in BEFORE)
    for name, seconds in phases:
        events.append(_complete(name, PHASES, at, 1e6 * seconds, {}))
        at += 1e6 * seconds
    at = 1e6 * sum(seconds for name, seconds in phases if name in BEFORE)
    for number, step in enumerate(costs.supersteps):
        facts = {"superstep": number} | {key: value for key, value in step.items() if key != "microseconds"}
        events.append(_complete(step["method"], SUPERSTEPS, at, step["microseconds"], facts))
        events.append({"name": "frontier", "ph": "C", "pid": 0, "ts": at, "args": {"vertices": step["frontier"]}})
        at += step["microseconds"]
    about = {"variant": costs.variant, "placement": costs.placement}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}


def _named(kind: str, track: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": 0, "tid": track, "args": {"name": name}}


def _complete(name: str, track: int, at: float, microseconds: float, facts: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "ph": "X", "pid": 0, "tid": track, "ts": at, "dur": microseconds, "args": facts}
