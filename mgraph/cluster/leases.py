"""Who may use which ranks: a lease is all of a job's ranks or none, granted in order of asking.

A plain class without threads, clocks or Dask: the caller serialises its calls and tells the jobs what
was granted. A waiting lease is granted as soon as none of its members is held, nor wanted by a lease
that asked earlier. So no job starves, and jobs on different ranks do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from mgraph.errors import UsageError


@dataclass
class _Wish:
    owner: str
    members: frozenset[str]
    held: bool = False


class Change(NamedTuple):
    """Names of the leases that a call ended, and of those that it granted, in order of asking."""

    ended: list[str]
    granted: list[str]


class Leases:
    """Leases held and waited for, by name."""

    def __init__(self) -> None:
        # A dict keeps the order of asking.
        self._wishes: dict[str, _Wish] = {}

    def __contains__(self, lease: str) -> bool:
        return lease in self._wishes

    def __len__(self) -> int:
        return len(self._wishes)

    def held(self, lease: str) -> bool:
        """Return whether the lease is granted and not yet ended."""
        wish = self._wishes.get(lease)
        return wish is not None and wish.held

    def ask(self, lease: str, owner: str, members: Iterable[str]) -> Change:
        """Queue for all of `members`; the answer says whether that was enough to get them."""
        wanted = frozenset(members)
        if lease in self._wishes:
            raise UsageError(f"lease {lease!r} was asked for already")
        if not wanted:
            raise UsageError(f"lease {lease!r} names no member")
        self._wishes[lease] = _Wish(owner, wanted)
        return Change([], self._grant())

    def end(self, lease: str) -> Change:
        """End a lease, held or waiting; one that is not there has ended already."""
        return self._end(lambda name, wish: name == lease)

    def end_owner(self, owner: str) -> Change:
        """End every lease of an owner that left."""
        return self._end(lambda name, wish: wish.owner == owner)

    def end_member(self, member: str) -> Change:
        """End every lease that holds or waits for a member that died."""
        return self._end(lambda name, wish: member in wish.members)

    def _end(self, chosen: Callable[[str, _Wish], bool]) -> Change:
        ended = [name for name, wish in self._wishes.items() if chosen(name, wish)]
        for name in ended:
            del self._wishes[name]
        return Change(ended, self._grant() if ended else [])

    def _grant(self) -> list[str]:
        taken = {member for wish in self._wishes.values() if wish.held for member in wish.members}
        granted = []
        for name, wish in self._wishes.items():
            if wish.held:
                continue
            if taken.isdisjoint(wish.members):
                wish.held = True
                granted.append(name)
            # Granted or not, later leases may not take these members first.
            taken |= wish.members
        return granted
