"""Count the calls that reach the backend of NetworkX; as a plugin of pytest, write them to the file NX_CALLS."""

from __future__ import annotations

import collections
import functools
import json
import os
import pathlib

CALLS = collections.Counter()


def count_calls() -> collections.Counter:
    """Begin to count the calls of each function."""
    from mgraph.nx_backend.interface import FUNCTIONS, backend

    def counted(name, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            CALLS[name] += 1
            return function(*args, **kwargs)

        return call

    for name, function in FUNCTIONS.items():
        setattr(backend, name, counted(name, function))
    return CALLS


def pytest_configure():
    count_calls()


def pytest_sessionfinish():
    pathlib.Path(os.environ["NX_CALLS"]).write_text(json.dumps(CALLS))
