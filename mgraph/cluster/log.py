"""Write to the logger `mgraph`: every record has the rank that writes it, its job, and the id of its call."""

from __future__ import annotations

import copy
import logging
import secrets
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LOGGER = logging.getLogger("mgraph")
# Of a worker's log.
FORMAT = "%(asctime)s - %(name)s - %(levelname)s - call %(call)s - rank %(rank)s - %(job)s - %(message)s"
# A longer wait is logged.
QUIET_WAIT_S = 2.0


class _Scope:
    """The block of a call, with the id that the client chooses and sends to the ranks."""

    def __init__(self, call: str) -> None:
        self.call = call


# A weak reference: an interrupt may leave it set, and the next call must not take the id of one that is over.
_scope: ContextVar[weakref.ref[_Scope] | None] = ContextVar("mgraph call", default=None)


def current_call() -> str | None:
    """Return the id of the call that runs here, None outside of one."""
    reference = _scope.get()
    scope = None if reference is None else reference()
    return None if scope is None else scope.call


@contextmanager
def call_scope(call: str | None = None) -> Iterator[str]:
    """Give records of the block the id of a call; by default that of the call around it, or a new one."""
    scope = _Scope(call or current_call() or secrets.token_hex(4))
    before = _scope.set(weakref.ref(scope))
    try:
        yield scope.call
    finally:
        _scope.reset(before)


def _add_call(record: logging.LogRecord) -> bool:
    record.call = getattr(record, "call", None) or current_call()
    return True


LOGGER.addFilter(_add_call)


def log_of(rank: int | None, job: str, call: str | None = None) -> logging.LoggerAdapter:
    """Return the logger of a rank, None in the user's process, for a job; by default of the call that runs here."""
    return logging.LoggerAdapter(LOGGER, {"rank": rank, "job": job, "call": call})


@contextmanager
def logged_failure(log: logging.LoggerAdapter) -> Iterator[None]:
    """Log an error that ends the block."""
    try:
        yield
    except BaseException as error:
        # As text: a record that is kept must not keep the objects of the call.
        log.info("fails: %s", f"{type(error).__name__}: {error}")
        raise


def log_beside_dask() -> None:
    """Give the logger handlers as of Dask's logger, unless records have a handler already.

    A worker has no other log, and what it reports before it ends itself must not be lost. Dask's format has no place
    for rank, job and call.
    """
    of_dask = logging.getLogger("distributed").handlers
    # Where Dask's configuration names this logger, it has given it the handler itself.
    for handler in of_dask:
        LOGGER.removeHandler(handler)
    handlers = (*LOGGER.handlers, *logging.getLogger().handlers)
    if all(isinstance(handler, logging.NullHandler) for handler in handlers):
        for handler in of_dask:
            own = copy.copy(handler)
            own.setFormatter(logging.Formatter(FORMAT))
            LOGGER.addHandler(own)
