"""Rules of leases: exhaustively for short histories, by hypothesis for long ones."""

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
    assert leases.request("a", "xy") == ["a"]
    assert leases.held("a")


def test_lease_holds_all_of_its_members_or_none():
    leases = Leases()
    leases.request("a", "x")
    assert leases.request("b", "xy") == []
    # y is free, but is neither granted to b alone nor to a later lease.
    assert leases.request("c", "y") == []
    assert not leases.held("b")
    assert not leases.held("c")
    assert leases.end("a") == ["b"]
    assert leases.end("b") == ["c"]


def test_leases_on_other_members_do_not_wait():
    leases = Leases()
    leases.request("a", "x")
    leases.request("b", "x")
    assert leases.request("c", "yz") == ["c"]


def test_leases_are_granted_in_order_of_requests():
    leases = Leases()
    names = [f"lease {i}" for i in range(5)]
    for name in names:
        leases.request(name, "xyz")
    order = [names[0]]
    while len(order) < 5:
        order += leases.end(order[-1])
    assert order == names


def test_held_lease_is_wanted_while_others_wait_for_its_members():
    leases = Leases()
    leases.request("a", "x")
    leases.request("b", "y")
    assert leases.wanted() == []
    leases.request("c", "xz")
    assert leases.wanted() == ["a"]
    assert leases.before("c") == ["a"]
    leases.end("a")
    assert leases.wanted() == []


def test_end_of_a_waiting_lease_grants_the_next():
    leases = Leases()
    leases.request("a", "x")
    leases.request("b", "xy")
    leases.request("c", "y")
    assert leases.end("b") == ["c"]


def test_end_of_an_unknown_lease_changes_nothing():
    leases = Leases()
    leases.request("a", "x")
    assert leases.end("b") == []
    leases.end("a")
    assert leases.end("a") == []


def test_repeated_names_and_empty_leases_are_refused():
    leases = Leases()
    leases.request("a", "x")
    with pytest.raises(UsageError, match="'a'"):
        leases.request("a", "y")
    with pytest.raises(UsageError, match="no member"):
        leases.request("b", "")
    assert not leases.held("b")


class Model:
    """Checks the rules after every step: requests in order, and the leases that are held."""

    def __init__(self) -> None:
        self.leases = Leases()
        self.requested: dict[str, frozenset[str]] = {}
        self.held: set[str] = set()
        self.names = itertools.count()

    def apply(self, granted: list[str]) -> None:
        assert not self.held & set(granted)
        self.held |= set(granted)
        self.check()

    def request(self, members: frozenset[str]) -> None:
        name = str(next(self.names))
        self.requested[name] = members
        self.apply(self.leases.request(name, members))

    def end(self, name: str) -> None:
        self.requested.pop(name, None)
        self.held.discard(name)
        self.apply(self.leases.end(name))

    def check(self) -> None:
        assert {name for name in self.requested if self.leases.held(name)} == self.held
        for earlier, later in itertools.combinations(self.requested, 2):
            shared = self.requested[earlier] & self.requested[later]
            # No member is held twice, and no lease is granted before an earlier one with a common member.
            assert not (shared and later in self.held)
        for name in set(self.requested) - self.held:
            # A waiting lease has a reason: a common member with a held or an earlier lease.
            assert any(
                self.requested[name] & self.requested[other]
                for other in self.requested
                if other != name and (other in self.held or int(other) < int(name))
            )


MEMBERS = st.frozensets(st.sampled_from("wxyz"), min_size=1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("request"), MEMBERS),
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
    for requests in itertools.product(sets, repeat=4):
        for ends in itertools.permutations(range(4)):
            model = Model()
            for members in requests:
                model.request(members)
            for i in ends:
                model.end(str(i))
            assert not {*model.requested, *model.held}
