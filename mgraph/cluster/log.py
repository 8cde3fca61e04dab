"""Write to the logger `mgraph`: every record has the rank that writes it, and its job."""

from __future__ import annotations

import logging

LOGGER = logging.getLogger("mgraph")
# A longer wait is logged.
QUIET_WAIT_S = 2.0


def log_of(rank: int | None, job: str) -> logging.LoggerAdapter:
    """Return the logger of a rank, None in the user's process, for a job."""
    return logging.LoggerAdapter(LOGGER, {"rank": rank, "job": job})


def log_beside_dask() -> None:
    """Give the logger the handlers of Dask's logger, unless records have a handler already.

    A worker has no other log, and what it reports before it ends itself must not be lost.
    """
    handlers = (*LOGGER.handlers, *logging.getLogger().handlers)
    if all(isinstance(handler, logging.NullHandler) for handler in handlers):
        for handler in logging.getLogger("distributed").handlers:
            LOGGER.addHandler(handler)
