"""Keys on the ranks that are forgotten when their owners are collected.

A finalizer in Python could lose an interrupt and leave the key behind. So no Python code runs when an owner is
collected: the interpreter calls `put` of a queue with the dead weak reference, and another thread forgets the key.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from queue import SimpleQueue
from typing import Any


class Holds(ABC):
    """The holds of one cluster.

    Attributes
    ----------
    items
        What the thread that forgets keys gets: an OwnerGone, or what its subclass puts there.
    by_key
        The references to living owners.
    """

    def __init__(self) -> None:
        self.items: SimpleQueue[Any] = SimpleQueue()
        self.by_key: dict[str, OwnerGone] = {}

    @abstractmethod
    def forget(self, key: str) -> None:
        """Drop the objects of all ranks under a key."""

    def forget_all_collected(self) -> None:
        """Forget the keys of all owners that were collected: the next call may need their memory.

        Not those in the queue: from Python 3.13 on it gives an item to the waiting thread, which may not have run yet.
        """
        for reference in list(self.by_key.values()):
            if reference() is None:
                self.forget_collected(reference)

    def forget_collected(self, gone: OwnerGone) -> None:
        """Forget the key of an owner that was collected, unless the key was forgotten before."""
        if self.by_key.pop(gone.key, None) is not None:
            self.forget(gone.key)


class OwnerGone(weakref.ref):
    """A weak reference to the owner of a key; queued when the owner is collected."""

    __slots__ = ("key",)
    key: str


class KeyHold:
    """Forgets a key when it is called, or when its owner is collected."""

    def __init__(self, owner: object, holds: Holds, key: str) -> None:
        self._holds = holds
        self._key = key
        reference = OwnerGone(owner, holds.items.put)
        reference.key = key
        # Held here, since a weak reference that is collected before its referent calls nothing.
        holds.by_key[key] = reference

    @property
    def alive(self) -> bool:
        """Whether the key has not been forgotten."""
        return self._key in self._holds.by_key

    def __call__(self) -> None:
        # In this order: after an interrupt between the two lines, the end of the owner still frees the key.
        self._holds.forget(self._key)
        self._holds.by_key.pop(self._key, None)
