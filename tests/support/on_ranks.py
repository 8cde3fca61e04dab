"""Run a rank program on every shard, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mgraph.comm.base import Communicator
from mgraph.comm.threads import open_threads
from mgraph.errors import CommAborted
from mgraph.shard.shard import Shard

# The numbers of ranks on which every algorithm is tested.
RANKS = (1, 2, 3, 4, 7)
# The quick tier runs these where one test loops over all; such a test is marked `widens`.
FEW_RANKS = (1, 3)


def run_on_ranks(program: Callable, shards: Sequence[Shard], *args: Any, parts: Sequence | None = None) -> list:
    """Return [program(shard, comm, *part, *args) of every rank], where parts[r] is a tuple for rank r."""
    comms = open_threads(len(shards), timeout_s=60)
    parts = parts or [()] * len(shards)

    def run(shard: Shard, comm: Communicator, part: tuple) -> Any:
        try:
            return program(shard, comm, *part, *args)
        except BaseException:
            comm.abort()
            raise

    with ThreadPoolExecutor(len(shards)) as pool:
        futures = [pool.submit(run, *of_rank) for of_rank in zip(shards, comms, parts, strict=True)]
    # The error of the rank that failed, not those of ranks that it aborted.
    errors = [future.exception() for future in futures if future.exception()]
    for error in sorted(errors, key=lambda error: isinstance(error, CommAborted)):
        raise error
    return [future.result() for future in futures]
