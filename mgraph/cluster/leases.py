"""Leases on ranks: a job receives all of its ranks or none, in the order of requests.

A plain class without threads, clocks or Dask: the caller serialises calls and informs the jobs of granted leases. A
waiting lease is granted as soon as none of its members is held, nor requested by an earlier lease. So no job starves,
and jobs on different ranks do not wait for each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from mgraph.errors import UsageError


@dataclass
class _Lease:
    members: frozenset[str]
    held: bool = False


class Leases:
    """Held and waiting leases, by name."""

    def __init__(self) -> None:
        # In the order of requests.
        self._leases: dict[str, _Lease] = {}

    def held(self, lease: str) -> bool:
        """Return whether the lease is granted and not yet ended."""
        found = self._leases.get(lease)
        return found is not None and found.held

    def request(self, lease: str, members: Iterable[str]) -> list[str]:
        """Queue a lease on all of `members`; return [lease] if it is granted at once, else []."""
        requested = frozenset(members)
        if lease in self._leases:
            raise UsageError(f"lease {lease!r} was requested already")
        if not requested:
            raise UsageError(f"lease {lease!r} names no member")
        self._leases[lease] = _Lease(requested)
        return self._grant()

    def end(self, lease: str) -> list[str]:
        """End a held or waiting lease; return the leases that are granted now. Unknown leases are ignored."""
        return [] if self._leases.pop(lease, None) is None else self._grant()

    def before(self, lease: str) -> list[str]:
        """Return the leases, held or requested earlier, that a waiting one waits for."""
        members = self._leases[lease].members if lease in self._leases else frozenset()
        earlier = itertools.takewhile(lambda name: name != lease, self._leases)
        return [name for name in earlier if not members.isdisjoint(self._leases[name].members)]

    def wanted(self) -> list[str]:
        """Return the held leases that others wait for."""
        waiting = {member for lease in self._leases.values() if not lease.held for member in lease.members}
        return [name for name, lease in self._leases.items() if lease.held and not waiting.isdisjoint(lease.members)]

    def _grant(self) -> list[str]:
        """Grant every lease that no held or earlier lease blocks; return their names."""
        blocked = {member for lease in self._leases.values() if lease.held for member in lease.members}
        granted = []
        for name, lease in self._leases.items():
            if lease.held:
                continue
            if blocked.isdisjoint(lease.members):
                lease.held = True
                granted.append(name)
            # Granted or not, these members are not available to later leases.
            blocked |= lease.members
        return granted
