"""Tiers of the suite: `quick` for everybody, `ci` with all that CI checks, `all` with hours of random work.

A test is in the lowest tier that its marks allow: `ci` and `long` move it up; of one marked `covering` the quick tier
runs a part of the parameter sets. Numbers of examples, seeds and faults grow by tier. What a run leaves to a higher
tier is deselected, counted and reported.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import settings

TIERS = ("quick", "ci", "all")
QUICK, CI, ALL = TIERS
# Factors of the number of Hypothesis examples that a test gives for CI.
EXAMPLES = {QUICK: 0.2, CI: 1, ALL: 25}
FAULTS = {QUICK: 4, CI: 20, ALL: 200}
# How many sets of emulator seeds a test marked `interleavings` runs with.
INTERLEAVINGS = {QUICK: 1, CI: 1, ALL: 10}

# Set by conftest before any test module is imported.
chosen = QUICK


def scaled(count: int, tier: str | None = None) -> int:
    """Return the number of examples of a tier (of the chosen one) for a test that has `count` in CI."""
    return max(min(count, 2), round(count * EXAMPLES[tier or chosen]))


def examples(count: int, **more: object) -> settings:
    """Return Hypothesis settings with `count` examples in CI, fewer in the quick tier, many more in the highest."""
    return settings(max_examples=scaled(count), deadline=None, **more)


def by_tier(quick: Any, ci: Any, everything: Any = None) -> Any:
    """Return the value for the chosen tier, CI's for the highest by default; a test that uses it is marked `widens`."""
    if chosen == ALL and everything is not None:
        return everything
    return quick if chosen == QUICK else ci


def widens(item: pytest.Item) -> bool:
    """Return whether a test does more in a higher tier."""
    return bool(item.get_closest_marker("widens")) or getattr(item.obj, "is_hypothesis_test", False)


def choose(items: list[pytest.Item], tier: str, beyond: str | None = None) -> set[pytest.Item]:
    """Return the tests of a tier, without those that a run of the tier `beyond` has done in full."""
    kept = _at_most(items, tier)
    if beyond:
        kept -= {item for item in _at_most(items, beyond) if not widens(item)}
    return kept


def _at_most(items: list[pytest.Item], tier: str) -> set[pytest.Item]:
    higher = {QUICK: ("ci", "long"), CI: ("long",), ALL: ()}[tier]
    kept = {item for item in items if not any(item.get_closest_marker(name) for name in higher)}
    if tier == QUICK:
        groups = defaultdict(list)
        for item in items:
            if item in kept and item.get_closest_marker("covering"):
                groups[item.nodeid.partition("[")[0]].append(item)
        for name, group in groups.items():
            marks = [item.get_closest_marker("covering").kwargs for item in group]
            width = max(mark.get("width", 1) for mark in marks)
            every = max(mark.get("every", 1) for mark in marks)
            chosen_sets = covering(group, width)
            # Tests of the same graphs begin at different ones.
            first = len(name) % min(every, len(chosen_sets))
            kept -= set(group) - set(chosen_sets[first::every])
    return kept


def covering(items: list[pytest.Item], width: int) -> list[pytest.Item]:
    """Return a few parametrized tests that have every value of each parameter, or with width 2 every pair of values."""
    # A value is one object for all tests that it is given to.
    parameters = {
        item: [(name, id(value)) for name, value in sorted(item.callspec.params.items(), key=lambda pair: pair[0])]
        for item in items
    }
    goals = {item: set(itertools.combinations(values, min(width, len(values)))) for item, values in parameters.items()}
    missing = set().union(*goals.values())
    found = []
    while missing:
        best = max(goals, key=lambda item: len(goals[item] & missing))
        missing -= goals[best]
        found.append(best)
    return found
