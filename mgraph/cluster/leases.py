"""Who may use which ranks: a lease is all of a job's ranks or none, granted in order of asking.

A plain class without threads, clocks or Dask: the caller serialises its calls and tells the jobs what
was granted. A waiting lease is granted as soon as none of its members is held, nor wanted by a lease
that asked earlier. So no job starves, and jobs on different ranks do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mgraph.errors import UsageError


@dataclass
class _Wish:
    members: frozenset[str]
    held: bool = False


class Leases:
    """Leases held and waited for, by name."""

    def __init__(self) -> None:
        # A dict keeps the order of asking.
        self._wishes: dict[str, _Wish] = {}

    def held(self, lease: str) -> bool:
        """Return whether the lease is granted and not yet ended."""
        wish = self._wishes.get(lease)
        return wish is not None and wish.held

    def ask(self, lease: str, members: Iterable[str]) -> list[str]:
        """Queue for all of `members`; the leases granted, at most this one, say whether that was enough."""
        wanted = frozenset(members)
        if lease in self._wishes:
            raise UsageError(f"lease {lease!r} was asked for already")
        if not wanted:
            raise UsageError(f"lease {lease!r} names no member")
        self._wishes[lease] = _Wish(wanted)
        return self._grant()

    def end(self, lease: str) -> list[str]:
        """End a lease, held or waiting; return those granted by that. One that is not there has ended already."""
        return [] if self._wishes.pop(lease, None) is None else self._grant()

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
