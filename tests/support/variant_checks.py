"""Change rows of the table of variants for a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mgraph.algorithms.variants import TABLE


def wrap_run(monkeypatch: pytest.MonkeyPatch, name: str, wrap: Callable[[Callable], Callable[..., Any]]) -> None:
    """Have the variant `name` run `wrap(its loop)`."""
    algorithm = name.partition(".")[0]
    rows = tuple(replace(row, loop=wrap(row.loop)) if row.name == name else row for row in TABLE[algorithm])
    assert rows != TABLE[algorithm], f"there is no {name}"
    monkeypatch.setitem(TABLE, algorithm, rows)
