"""Time calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def least(repeats: int, call: Callable[[], Result]) -> tuple[float, Result]:
    """Return the least seconds of some calls, after one that compiles and fills caches; and its result."""
    found = call()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds), found
