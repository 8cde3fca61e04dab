"""Lets go, in a forked child, of the connections that it shares with its parent.

A child has copies of all descriptors. It must not write to the parent's links, and must not keep them open when the
parent dies: the peers would not see its death.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Shared(Protocol):
    """An object whose descriptors a forked child gets copies of."""

    def forget_in_child(self) -> None:
        """Close the copies without a word to the peers; no other thread of the parent exists here."""


_SHARED: weakref.WeakSet[Shared] = weakref.WeakSet()


def forget_in_children(shared: Shared) -> None:
    """Have every forked child let go of `shared`, as long as it lives."""
    _SHARED.add(shared)


def _forget() -> None:
    for shared in list(_SHARED):
        shared.forget_in_child()


os.register_at_fork(after_in_child=_forget)
