"""Events of what rank 0 does, which clients follow."""

from __future__ import annotations

import pytest
import rank_programs as programs
from dask_processes import wait_until

from mgraph.cluster.watch import TOPIC


@pytest.mark.ci
def test_progress_of_a_long_call_can_be_followed(workers, client, cluster):
    seen = []
    client.subscribe_topic(TOPIC, lambda event: seen.append(event[1]))
    for seconds in (0.2, 3.5):
        cluster.run(programs.rest_in_steps, 10, seconds)
    wait_until(lambda: len(seen) >= 2)
    client.unsubscribe_topic(TOPIC)
    first = min(client.nthreads())
    facts = {(event["job"], event["phase"], event["total"], event["worker"]) for event in seen}
    assert facts == {("rest_in_steps", "resting", 10, first)}, "of rank 0 alone"
    done = [event["done"] for event in seen]
    assert 0 < done[0] < done[-1] < 10
    assert seen[0]["seconds"] >= 1 and len(seen) <= 4
