"""Closes, in a forked child, its copies of the parent's connections.

A child inherits copies of all descriptors. It must not write to the parent's links, and must not keep them open when
the parent dies: the peers would not see its death.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Shared(Protocol):
    """An object with descriptors that a forked child inherits."""

    def forget_in_child(self) -> None:
        """Close the copies and send nothing to the peers; the parent's other threads do not exist here."""


_SHARED: weakref.WeakSet[Shared] = weakref.WeakSet()


def forget_in_children(shared: Shared) -> None:
    """Call `shared.forget_in_child` in every forked child, as long as `shared` lives."""
    _SHARED.add(shared)


def _forget() -> None:
    for shared in list(_SHARED):
        shared.forget_in_child()


os.register_at_fork(after_in_child=_forget)
