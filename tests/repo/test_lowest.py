"""Test that the list of lowest versions agrees with pyproject.toml."""

from __future__ import annotations

import lowest
import pytest
from packaging.requirements import Requirement

PYPROJECT = (lowest.ROOT / "pyproject.toml").read_text()


def test_list_of_lowest_versions_is_up_to_date():
    assert (lowest.ROOT / "tests/lowest.txt").read_text() == lowest.lowest(PYPROJECT)


def test_list_changes_with_a_lower_bound():
    (numba,) = (line for line in lowest.lowest(PYPROJECT).splitlines() if line.startswith("numba=="))
    bound = numba.removeprefix("numba==")
    assert "numba==99" in lowest.lowest(PYPROJECT.replace(f'"numba>={bound}"', '"numba>=99"')).splitlines()


def test_requirement_without_a_lower_bound_is_refused():
    with pytest.raises(ValueError, match="not enough values"):
        lowest.lowest(PYPROJECT.replace('"click>=', '"click<'))


def test_every_line_is_a_constraint_on_one_version():
    lines = lowest.lowest(PYPROJECT).splitlines()[1:]
    assert all([part.operator for part in Requirement(line).specifier] == ["=="] for line in lines)
    assert len({Requirement(line).name for line in lines}) == len(lines)
