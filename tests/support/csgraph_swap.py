"""A plugin of pytest that swaps SciPy's graph functions for those of mgraph.

The file CSGRAPH_REPORT gets, by test, the outcome and the calls that reached each function.
"""

from __future__ import annotations

import collections
import functools
import json
import os
import pathlib

import pytest
import scipy.sparse.csgraph

import mgraph.csgraph

CALLS = collections.Counter()
REPORT = {}


def counted(name, function):
    """Return the function that counts its calls under a name."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        CALLS[name] += 1
        return function(*args, **kwargs)

    return call


def pytest_configure():
    for name in mgraph.csgraph.__all__:
        setattr(scipy.sparse.csgraph, name, counted(name, getattr(mgraph.csgraph, name)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    CALLS.clear()
    done = yield
    REPORT[f"{item.path.name}::{item.name}"]["calls"] = dict(CALLS)
    return done


def pytest_runtest_logreport(report):
    outcome = REPORT.setdefault(f"{report.fspath.rpartition('/')[2]}::{report.nodeid.rpartition('::')[2]}", {})
    if report.when == "call" or report.outcome != "passed":
        outcome["outcome"] = report.outcome


def pytest_sessionfinish():
    pathlib.Path(os.environ["CSGRAPH_REPORT"]).write_text(json.dumps(REPORT))
