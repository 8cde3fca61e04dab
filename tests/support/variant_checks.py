"""Change variants of the table for a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mgraph.algorithms.variants import TABLE


def wrap_run(monkeypatch: pytest.MonkeyPatch, name: str, wrap: Callable[[Callable], Callable[..., Any]]) -> None:
    """Have the variant `name` run `wrap(its loop)`."""
    algorithm = name.partition(".")[0]
    variants = tuple(replace(v, loop=wrap(v.loop)) if v.name == name else v for v in TABLE[algorithm])
    assert variants != TABLE[algorithm], f"there is no {name}"
    monkeypatch.setitem(TABLE, algorithm, variants)
