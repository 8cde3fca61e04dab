"""Tiers of the suite: `quick` for everybody, `ci` with all that CI checks, `all` with hours of random work.

A test is in the lowest tier that its marks allow: `ci` and `long` move it up; of one marked `covering` the quick tier
runs a part of the parameter sets, and so does CI where the mark says `ci`. Numbers of examples, seeds and faults grow
by tier; a run beyond a lower tier draws only as many as that one has left. What a run leaves to a higher tier is
deselected, counted and reported.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

TIERS = ("quick", "ci", "all")
QUICK, CI, ALL = TIERS
# Factors of the number of Hypothesis examples that a test gives for CI.
EXAMPLES = {QUICK: 0.2, CI: 1, ALL: 25}
FAULTS = {QUICK: 4, CI: 20, ALL: 200}
# How many sets of emulator seeds a test marked `interleavings` runs with.
INTERLEAVINGS = {QUICK: 1, CI: 1, ALL: 10}

# Set by conftest before any test module is imported: the tier, and the one that a run before it has done.
chosen = QUICK
beyond: str | None = None


def scaled(count: int) -> int:
    """Return the number of examples to draw for a test that has `count` in CI."""
    whole, done = (max(min(count, 2), round(count * EXAMPLES[tier])) if tier else 0 for tier in (chosen, beyond))
    return max(1, whole - done)


def faults() -> int:
    """Return the number of random faults of each kind."""
    return FAULTS[chosen] - (FAULTS[beyond] if beyond else 0)


def examples(count: int, **more: Any) -> settings:
    """Return Hypothesis settings with `count` examples in CI, fewer in the quick tier, many more in the highest.

    No time is limited, that of drawing an example included: the machine may be busy.
    """
    unchecked = [HealthCheck.too_slow, *more.pop("suppress_health_check", ())]
    return settings(max_examples=scaled(count), deadline=None, suppress_health_check=unchecked, **more)


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
    if tier != ALL:
        groups = defaultdict(list)
        for item in items:
            if item in kept and item.get_closest_marker("covering"):
                groups[item.nodeid.partition("[")[0]].append(item)
        for name, group in groups.items():
            kept -= set(group) - _part(name, group, tier)
    return kept


def _part(name: str, group: list[pytest.Item], tier: str) -> set[pytest.Item]:
    """Return the parameter sets of a test marked `covering` that a tier runs: CI those of the quick tier and more."""
    marks = [item.get_closest_marker("covering").kwargs for item in group]
    keys = "width", "every", "ci", "ci_every"
    width, every, width_in_ci, every_in_ci = (max(mark.get(key, 0) for mark in marks) for key in keys)
    if tier == CI and not width_in_ci and not every_in_ci:
        return set(group)
    quick = _some(name, covering(group, width or 1), every or 1)
    return {*quick, *(_some(name, covering(group, width_in_ci or 1), every_in_ci or 1) if tier == CI else ())}


def _some(name: str, few: list[pytest.Item], every: int) -> list[pytest.Item]:
    # Tests of the same graphs begin at different ones.
    return few[len(name) % min(every, len(few)) :: every]


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
    # Ties go to the set with the least used values, so that each value is paired with many others.
    taken = Counter()
    while missing:
        best = max(
            goals, key=lambda item: (len(goals[item] & missing), -sum(taken[value] for value in parameters[item]))
        )
        missing -= goals[best]
        taken.update(parameters[best])
        found.append(best)
    return found
