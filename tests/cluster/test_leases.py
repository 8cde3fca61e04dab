"""Leases, exhaustively for a few and by hypothesis for many."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from mgraph.cluster.leases import Leases
from mgraph.errors import UsageError


def test_lease_is_granted_at_once_when_all_members_are_free():
    leases = Leases()
    assert leases.ask("a", "xy") == ["a"]
    assert leases.held("a")


def test_all_or_none():
    leases = Leases()
    leases.ask("a", "x")
    assert leases.ask("b", "xy") == []
    # y is free, and still not given to b alone; nor to one who asks later.
    assert leases.ask("c", "y") == []
    assert not leases.held("b")
    assert not leases.held("c")
    assert leases.end("a") == ["b"]
    assert leases.end("b") == ["c"]


def test_other_members_do_not_wait():
    leases = Leases()
    leases.ask("a", "x")
    leases.ask("b", "x")
    assert leases.ask("c", "yz") == ["c"]


def test_granted_in_order_of_asking():
    leases = Leases()
    names = [f"lease {i}" for i in range(5)]
    for name in names:
        leases.ask(name, "xyz")
    order = [names[0]]
    while len(order) < 5:
        order += leases.end(order[-1])
    assert order == names


def test_ending_one_that_waits_lets_the_next_pass():
    leases = Leases()
    leases.ask("a", "x")
    leases.ask("b", "xy")
    leases.ask("c", "y")
    assert leases.end("b") == ["c"]


def test_ending_one_that_is_not_there_changes_nothing():
    leases = Leases()
    leases.ask("a", "x")
    assert leases.end("b") == []
    leases.end("a")
    assert leases.end("a") == []


def test_name_is_used_once_and_members_are_named():
    leases = Leases()
    leases.ask("a", "x")
    with pytest.raises(UsageError, match="'a'"):
        leases.ask("a", "y")
    with pytest.raises(UsageError, match="no member"):
        leases.ask("b", "")
    assert not leases.held("b")


class Model:
    """The rules, written down once more: who asked, in order, and who holds."""

    def __init__(self) -> None:
        self.leases = Leases()
        self.asked: dict[str, frozenset[str]] = {}
        self.holds: set[str] = set()
        self.names = itertools.count()

    def apply(self, granted: list[str]) -> None:
        assert not self.holds & set(granted)
        self.holds |= set(granted)
        self.check()

    def ask(self, members: frozenset[str]) -> None:
        name = str(next(self.names))
        self.asked[name] = members
        self.apply(self.leases.ask(name, members))

    def end(self, name: str) -> None:
        self.asked.pop(name, None)
        self.holds.discard(name)
        self.apply(self.leases.end(name))

    def check(self) -> None:
        assert {name for name in self.asked if self.leases.held(name)} == self.holds
        for one, other in itertools.combinations(self.asked, 2):
            shared = self.asked[one] & self.asked[other]
            # No member is held twice, and nobody is overtaken by one who asked later for the same.
            assert not (shared and other in self.holds)
        for name in set(self.asked) - self.holds:
            # Nobody waits for nothing.
            assert any(
                self.asked[name] & self.asked[other]
                for other in self.asked
                if other != name and (other in self.holds or int(other) < int(name))
            )


MEMBERS = st.frozensets(st.sampled_from("wxyz"), min_size=1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), MEMBERS),
        st.tuples(st.just("end"), st.integers(0, 12).map(str)),
    ),
    max_size=25,
)


@examples(300)
@given(STEPS)
def test_rules_hold_after_any_steps(steps):
    model = Model()
    for verb, *args in steps:
        getattr(model, verb)(*args)


def test_rules_hold_for_every_short_history():
    sets = [frozenset(s) for s in ("x", "y", "xy")]
    for wishes in itertools.product(sets, repeat=4):
        for ends in itertools.permutations(range(4)):
            model = Model()
            for members in wishes:
                model.ask(members)
            for i in ends:
                model.end(str(i))
            assert not {*model.asked, *model.holds}
