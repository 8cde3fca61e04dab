"""Results that ranks write into each other's peer buffers equal those that they exchange by a verb, to the bit."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from emulator.backend import EmulatedBackend
from naive_shard import build_shards
from on_ranks import run_on_ranks
from zoo import make_case, random_case

from mgraph.comm.peer_memory import require_peer_buffers
from mgraph.errors import CommAborted
from mgraph.shard.persistent_delivery import Delivery, delivery_bytes
from mgraph.shard.user_ids import translate_results, users_of_states
from mgraph.types import none_of, unreached_of

pytestmark = pytest.mark.interleavings

# Some ranks own one vertex or none, and send nothing to some others.
FEW = make_case("few", 70, [(0, 69), (7, 8)])


def on_emulated_gpu(shard, comm, seed):
    return replace(
        shard,
        backend=EmulatedBackend(seed=10 * seed + comm.rank, block=32 << seed % 2, blocks=1 + (seed + comm.rank) % 3),
    )


def tree_of(shard, dtype):
    """Return distances and predecessors of a rank's vertices, some of them unreached."""
    random = np.random.default_rng(shard.rank)
    n = shard.num_owned
    distances = random.integers(0, 200, n).astype(dtype)
    parents = random.integers(0, shard.partition.num_positions, n).astype(shard.partition.dtype)
    unreached = random.random(n) < 0.3
    distances[unreached] = unreached_of(np.dtype(dtype))
    parents[unreached] = none_of(parents.dtype)
    return distances, parents


def deliver_both_ways(shard, comm, dtype, seed):
    shard = on_emulated_gpu(shard, comm, seed)
    distances, parents = tree_of(shard, dtype)
    given = ((distances, parents), (None, parents), (distances, None))
    wanted = [translate_results(shard, comm, *columns) for columns in given]
    assert comm.peer_buffers is None
    num_bytes = delivery_bytes(shard, comm, np.dtype(dtype).itemsize)
    assert require_peer_buffers(comm, shard.backend, num_bytes) is not None
    sent = []
    # Twice in the same buffers: values of the first must not be found in the second.
    for columns, expected in 2 * list(zip(given, wanted, strict=True)):
        before = comm.bytes_sent
        found = translate_results(shard, comm, *columns)
        sent.append(comm.bytes_sent - before)
        for column, of_verb in zip(found, expected, strict=True):
            assert column.dtype == of_verb.dtype
            np.testing.assert_array_equal(column, of_verb)
    # No verb sends anything, and these count what others receive.
    counts = shard.result_routing.counts
    num = counts[comm.rank].sum() - counts[comm.rank, comm.rank]
    widths = [distances.itemsize + 4, 4, distances.itemsize]
    assert sent == 2 * [num * width for width in widths]


@pytest.mark.covering(every=2, ci=1)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint16", "float32", "float64"])
@pytest.mark.parametrize("num_ranks", [2, 3, 4])
@pytest.mark.parametrize("case", [FEW, random_case(5, 300)], ids=lambda case: case.name)
def test_results_written_to_peers_equal_those_exchanged(case, num_ranks, dtype):
    run_on_ranks(deliver_both_ways, build_shards(case, num_ranks, "degree"), dtype, num_ranks)


def open_buffers(shard, comm):
    shard = on_emulated_gpu(shard, comm, 0)
    users = users_of_states(shard, comm)
    assert require_peer_buffers(comm, shard.backend, delivery_bytes(shard, comm, 4)) is not None
    return shard, users


def test_lost_rank_ends_the_wait_of_the_others():
    def deliver_without_rank_1(shard, comm):
        shard, _ = open_buffers(shard, comm)
        if comm.rank == 1:
            threading.Timer(0.3, comm.abort, ("rank 1 is gone",)).start()
            return
        with pytest.raises(CommAborted, match="rank 1 is gone"):
            translate_results(shard, comm, *tree_of(shard, "int32"))

    run_on_ranks(deliver_without_rank_1, build_shards(FEW, 3, "degree"))


def test_delivery_with_an_ended_wait_raises():
    """The abort word alone is set: the communicator has no error to raise."""

    def end_the_waits(shard, comm):
        shard, users = open_buffers(shard, comm)
        comm.peer_buffers.bound[0][:] = 1
        if comm.rank == 1:
            comm.barrier()
            return
        delivery = Delivery(shard, comm, *tree_of(shard, "int32"), users)
        with pytest.raises(CommAborted, match="was ended while its ranks waited"):
            delivery.wait()

    run_on_ranks(end_the_waits, build_shards(FEW, 2, "degree"))


def test_values_wider_than_the_peer_buffers_are_exchanged():
    """Those of a search that needed narrower ones: every rank decides alike, by the rank that receives most."""

    def deliver_wide(shard, comm):
        shard, _ = open_buffers(shard, comm)
        narrow, parents = tree_of(shard, "int32")
        before = comm.peer_buffers.own.copy()
        wide = narrow.astype(np.int64)
        wide[narrow == unreached_of(narrow.dtype)] = unreached_of(wide.dtype)
        found = translate_results(shard, comm, wide, parents)
        comm.barrier()
        assert (comm.peer_buffers.own == before).all()
        for column, of_peers in zip(found, translate_results(shard, comm, narrow, parents), strict=True):
            np.testing.assert_array_equal(column, of_peers)

    run_on_ranks(deliver_wide, build_shards(random_case(5, 300), 3, "degree"))
