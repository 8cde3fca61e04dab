"""Test the events of Chrome's trace format, by the rules that its viewers have for them."""

from __future__ import annotations

import itertools
import json

import pytest
from cli_runs import refused, run

import mgraph as mg

# What an event of each phase needs, and the types of its values.
FIELDS = {
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
    "X": {"name": str, "pid": int, "tid": int, "ts": float, "dur": float, "args": dict},
    "C": {"name": str, "pid": int, "ts": float, "args": dict},
}


def checked(trace):
    """Check a trace as it is after its way through JSON; return its events by track."""
    events = json.loads(json.dumps(trace, allow_nan=False))["traceEvents"]
    for event in events:
        fields = FIELDS[event["ph"]]
        assert event.keys() == {"ph", *fields}
        for name, kind in fields.items():
            assert isinstance(event[name], (int, float) if kind is float else kind), event
        assert event.get("ts", 0) >= 0 and event.get("dur", 0) >= 0
    assert all(isinstance(event["args"]["vertices"], int) for event in events if event["ph"] == "C")
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    tracks = {name: [e for e in events if e["ph"] == "X" and e["tid"] == tid] for tid, name in names.items()}
    for track in tracks.values():
        # Events of one track may not overlap in part.
        for one, other in itertools.pairwise(track):
            assert one["ts"] + one["dur"] <= other["ts"] + 1e-3
    return tracks


@pytest.mark.parametrize("find", [lambda g: mg.sssp(g, 1), mg.connected_components, mg.minimum_spanning_forest])
def test_trace_has_every_phase_and_superstep(find):
    with mg.connect(num_ranks=2, backend="cpu") as ranks, mg.rmat(6, cluster=ranks) as g:
        stats = find(g).stats
    tracks = checked(stats.to_chrome_trace())
    assert {event["name"]: event["dur"] for event in tracks["phases"]} == {
        name: 1e6 * seconds for name, seconds in stats.seconds.items()
    }
    assert [(e["name"], e["dur"], e["args"]["arcs"]) for e in tracks["supersteps"]] == [
        (step["method"], step["microseconds"], step["arcs"]) for step in stats.supersteps
    ]


def test_command_and_job_write_a_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("bfs", "rmat:5", "-s", 0, "--trace-file", "t.json", "--backend", "cpu")
    assert checked(json.loads((tmp_path / "t.json").read_text()))["supersteps"]
    assert "t.json exists" in refused("bfs", "rmat:5", "-s", 0, "--trace-file", "t.json", code=2)
    job = '[graph]\ninput = "rmat:5"\n[cluster]\nbackend = "cpu"\n[[run]]\nalgorithm = "msf"\ntrace-file = "m.json"\n'
    (tmp_path / "job.toml").write_text(job)
    run("run", "job.toml")
    assert checked(json.loads((tmp_path / "m.json").read_text()))["supersteps"]
    assert "done" in run("run", "job.toml").stdout
