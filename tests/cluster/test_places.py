"""The workers that sessions of a scheduler wait for."""

from __future__ import annotations

import asyncio

import pytest

from mgraph.cluster.places import Places
from mgraph.errors import ClusterError


class Empty:
    """What a scheduler without workers has."""

    def __init__(self) -> None:
        self.workers: dict = {}
        self.worker_plugins: dict = {}


def test_nothing_is_said_of_a_wait_that_has_ended():
    async def program() -> tuple[str, str]:
        places = Places()
        places.install(Empty())
        waiting = asyncio.ensure_future(places.wait_for(5, 0.05))
        await asyncio.sleep(0)
        during = places.describe_wait()
        with pytest.raises(ClusterError, match="5 workers needed, 0 present"):
            await waiting
        return during, places.describe_wait()

    assert asyncio.run(program()) == ("5 workers, and 0 can be ranks", "")
