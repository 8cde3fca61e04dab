"""Leases, exhaustively for a few and by hypothesis for many."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgraph.cluster.leases import Change, Leases
from mgraph.errors import UsageError


def test_lease_is_granted_at_once_when_all_members_are_free():
    leases = Leases()
    assert leases.ask("a", "client", "xy") == Change([], ["a"])
    assert leases.held("a")
    assert "a" in leases
    assert len(leases) == 1


def test_all_or_none():
    leases = Leases()
    leases.ask("a", "c", "x")
    assert leases.ask("b", "c", "xy") == Change([], [])
    # y is free, and still not given to b alone; nor to one who asks later.
    assert leases.ask("c", "c", "y") == Change([], [])
    assert not leases.held("b")
    assert not leases.held("c")
    assert leases.end("a") == Change(["a"], ["b"])
    assert leases.end("b") == Change(["b"], ["c"])


def test_other_members_do_not_wait():
    leases = Leases()
    leases.ask("a", "c", "x")
    leases.ask("b", "c", "x")
    assert leases.ask("c", "c", "yz") == Change([], ["c"])


def test_granted_in_order_of_asking():
    leases = Leases()
    names = [f"lease {i}" for i in range(5)]
    for name in names:
        leases.ask(name, "c", "xyz")
    order = [names[0]]
    while len(order) < 5:
        order += leases.end(order[-1]).granted
    assert order == names


def test_ending_one_that_waits_lets_the_next_pass():
    leases = Leases()
    leases.ask("a", "c", "x")
    leases.ask("b", "c", "xy")
    leases.ask("c", "c", "y")
    assert leases.end("b") == Change(["b"], ["c"])


def test_ending_one_that_is_not_there_changes_nothing():
    leases = Leases()
    leases.ask("a", "c", "x")
    assert leases.end("b") == Change([], [])
    leases.end("a")
    assert leases.end("a") == Change([], [])


def test_owner_that_leaves_takes_held_and_waiting_leases_along():
    leases = Leases()
    leases.ask("a", "left", "x")
    leases.ask("b", "stays", "x")
    leases.ask("c", "left", "xy")
    leases.ask("d", "stays", "y")
    assert leases.end_owner("left") == Change(["a", "c"], ["b", "d"])
    assert leases.end_owner("left") == Change([], [])


def test_member_that_dies_takes_held_and_waiting_leases_along():
    leases = Leases()
    leases.ask("a", "c", "xy")
    leases.ask("b", "c", "x")
    leases.ask("c", "c", "y")
    assert leases.end_member("x") == Change(["a", "b"], ["c"])
    assert leases.end_member("z") == Change([], [])


def test_name_is_used_once_and_members_are_named():
    leases = Leases()
    leases.ask("a", "c", "x")
    with pytest.raises(UsageError, match="'a'"):
        leases.ask("a", "c", "y")
    with pytest.raises(UsageError, match="no member"):
        leases.ask("b", "c", "")
    assert "b" not in leases


class Model:
    """The rules, written down once more: who asked, in order, and who holds."""

    def __init__(self) -> None:
        self.leases = Leases()
        self.asked: dict[str, tuple[str, frozenset[str]]] = {}
        self.holds: set[str] = set()
        self.names = itertools.count()

    def apply(self, change: Change, ended: set[str]) -> None:
        assert set(change.ended) == ended
        for name in ended:
            del self.asked[name]
            self.holds.discard(name)
        assert not self.holds & set(change.granted)
        self.holds |= set(change.granted)
        self.check()

    def ask(self, owner: str, members: frozenset[str]) -> None:
        name = str(next(self.names))
        self.asked[name] = owner, members
        self.apply(self.leases.ask(name, owner, members), set())

    def end(self, name: str) -> None:
        self.apply(self.leases.end(name), {name} & set(self.asked))

    def end_owner(self, owner: str) -> None:
        self.apply(self.leases.end_owner(owner), {name for name, (who, _) in self.asked.items() if who == owner})

    def end_member(self, member: str) -> None:
        ended = {name for name, (_, members) in self.asked.items() if member in members}
        self.apply(self.leases.end_member(member), ended)

    def check(self) -> None:
        assert {name for name in self.asked if self.leases.held(name)} == self.holds
        assert len(self.leases) == len(self.asked)
        for one, other in itertools.combinations(self.asked, 2):
            shared = self.asked[one][1] & self.asked[other][1]
            # No member is held twice, and nobody is overtaken by one who asked later for the same.
            assert not (shared and other in self.holds)
        for name in set(self.asked) - self.holds:
            # Nobody waits for nothing.
            assert any(
                self.asked[name][1] & self.asked[other][1]
                for other in self.asked
                if other != name and (other in self.holds or int(other) < int(name))
            )


MEMBERS = st.frozensets(st.sampled_from("wxyz"), min_size=1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from("ABC"), MEMBERS),
        st.tuples(st.just("end"), st.integers(0, 12).map(str)),
        st.tuples(st.just("end_owner"), st.sampled_from("ABC")),
        st.tuples(st.just("end_member"), st.sampled_from("wxyz")),
    ),
    max_size=25,
)


@settings(max_examples=300, deadline=None)
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
            for i, members in enumerate(wishes):
                model.ask("AB"[i % 2], members)
            for i in ends:
                model.end(str(i))
            assert not {*model.asked, *model.holds}
