"""Write to the logger `mgraph`: every record has the rank that writes it, its job, and the id of its call."""

from __future__ import annotations

import copy
import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LOGGER = logging.getLogger("mgraph")
# Of a worker's log.
FORMAT = "%(asctime)s - %(name)s - %(levelname)s - call %(call)s - rank %(rank)s - %(job)s - %(message)s"
# A longer wait is logged.
QUIET_WAIT_S = 2.0
# Of the call that runs in this context: the client chooses it, and sends it to the ranks.
_call_id: ContextVar[str | None] = ContextVar("mgraph call", default=None)


def current_call() -> str | None:
    """Return the id of the call that runs here, None outside of one."""
    return _call_id.get()


@contextmanager
def call_scope(call: str | None = None) -> Iterator[str]:
    """Give records of the block the id of a call; by default that of the call around it, or a new one."""
    call = call or _call_id.get() or secrets.token_hex(4)
    before = _call_id.set(call)
    try:
        yield call
    finally:
        _call_id.reset(before)


def _add_call(record: logging.LogRecord) -> bool:
    record.call = getattr(record, "call", None) or _call_id.get()
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
