"""How a search begins on ranks whose kernels reach each other's memory: a launch a rank finds where its sources stand.

What drove it: links between GPUs that sleep wake one after the other in a verb of NCCL, which takes 500 us then, and
ranks leave it up to 150 us apart, for which the first meeting of the search waits (four H200). Woken all at once they
take 100 us, and ranks leave a meeting in a kernel within a few us of each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgraph.comm.base import Communicator
from mgraph.comm.peers import require_done, wait_for_ranks
from mgraph.kernels.backend import GIVEN_WINDOWS, FusingBackend
from mgraph.kernels.sources_peers import find_sources_on_ranks
from mgraph.shard import Shard, once_a_shard

# Four are found a meeting: one reduction over NCCL finds more of them sooner.
FEW_SOURCES = 64


def sources_peers(shard: Shard, comm: Communicator, users: Sequence[int]) -> list[int]:
    """Return the positions of one or a few user ids, as positions_of() does, on all ranks at the same time."""
    run, windows = shard.backend, comm.windows
    assert isinstance(run, FusingBackend) and windows is not None, "who calls has asked"
    num = len(users)
    sources = _one_source(shard) if num == 1 else _Sources(shard, num)
    sources.on_host[:num], sources.on_host[num] = users, 0
    sources.launch(*windows.given)
    wait_for_ranks(comm, run)
    *positions, done = sources.on_host[: num + 1].tolist()
    require_done(comm, done)
    return positions


class _Sources:
    """What looking up so many sources of a shard takes: all but which they are, and the windows.

    `launch` takes what windows give; in `on_host` stand the user ids, then their positions, and behind them whether
    that was done.
    """

    def __init__(self, shard: Shard, num: int) -> None:
        run, (lo, hi) = shard.backend, shard.user_range
        words, self.on_host = run.host_words(num + 1)
        self.launch = run.prepared(
            find_sources_on_ranks, 0, num, *GIVEN_WINDOWS,
            shard.position_of_user, lo, hi - lo, words,
        )  # fmt: skip


@once_a_shard
def _one_source(shard: Shard) -> _Sources:
    return _Sources(shard, 1)
