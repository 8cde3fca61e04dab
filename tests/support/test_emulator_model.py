"""Every CUDA primitive gives NumPy's result in the emulator, in every order of threads."""

from __future__ import annotations

import pathlib
import re
import threading

import numpy as np
import pytest
from emulator.backend import ORDERS, EmulatedBackend
from emulator.model import primitives

N = 192  # three blocks of two warps


@pytest.fixture(params=range(6), ids=lambda seed: f"seed{seed}")
def emulator(request):
    return EmulatedBackend(seed=request.param)


@pytest.fixture
def values():
    return np.random.default_rng(1).integers(0, 1000, N).astype(np.uint32)


def test_shuffles_and_votes(emulator, values):
    out = emulator.xp.empty((N, 8), np.int64)
    primitives.shuffle[emulator](0, N, values, out.reshape(-1))
    warps = values.reshape(-1, 32).astype(np.int64)
    lane = np.arange(32)
    expected = np.stack(
        [
            np.repeat(warps[:, 5:6], 32, axis=1),
            warps[:, lane ^ 3],
            warps[:, np.where(lane < 2, lane, lane - 2)],
            warps[:, np.where(lane % 8 >= 6, lane, lane + 2)],
            warps[:, lane // 4 * 4 + 1],
            np.repeat(warps.sum(axis=1, keepdims=True), 32, axis=1),
            np.repeat(np.stack([_ballot(warps[:, :16]), _ballot(warps[:, 16:]) << 16], axis=1), 16, axis=1),
            np.repeat(
                (warps == 7).any(axis=1, keepdims=True) + 2 * (warps < 1000).all(axis=1, keepdims=True) + 4, 32, axis=1
            ),
        ],
        axis=-1,
    )
    np.testing.assert_array_equal(out, expected.reshape(N, 8))


def _ballot(warps):
    return ((warps & 1) << np.arange(warps.shape[1])).sum(axis=1)


def test_each_block_has_its_own_shared_memory(emulator, values):
    out = emulator.xp.empty(N, np.int64)
    primitives.block_sums[emulator](0, N, values, out)
    blocks = values.reshape(3, 64).astype(np.int64)
    sums = blocks.sum(axis=1, keepdims=True)
    odd = (blocks & 1).sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(out.reshape(3, 64), np.roll(blocks, -1, axis=1) + 1000 * sums + 10**9 * odd)


def test_grid_barrier_orders_rounds(emulator, values):
    state = np.concatenate([values, np.zeros_like(values)])
    primitives.rounds[emulator](0, N, np.zeros(1, np.uint32), N, state, np.zeros(1, np.int64))
    expected = values
    for _ in range(5):
        expected = expected + np.roll(expected, -1)
    np.testing.assert_array_equal(state[N:], expected)


@pytest.mark.parametrize("is_set", [True, False], ids=["flag", "abort"])
def test_wait_ends_by_the_flag_or_the_abort_word(is_set):
    """The flag or the abort word is set from outside the launch."""
    emulator = EmulatedBackend(limit_s=30)
    flag = np.zeros(1, np.uint32)
    abort = np.zeros(1, np.uint32)
    setter = threading.Timer(0.05, (flag if is_set else abort).fill, (1,))
    setter.start()
    out = emulator.xp.empty(1, np.uint32)
    primitives.wait_for_flag[emulator](0, N, flag, abort, out)
    setter.join()
    assert out[0] == is_set


def test_queue_places_and_integer_functions(emulator, values):
    count = np.zeros(1, np.int64)
    queue = emulator.xp.empty(N, np.uint32)
    out = emulator.xp.empty(N, np.uint64)
    primitives.queue_up[emulator](0, N, values, count, queue, out)
    expected = np.sort(values[values % 3 == 0])
    np.testing.assert_array_equal(np.sort(queue[: count[0]]), expected)
    np.testing.assert_array_equal(out, [_integers(int(v)) for v in values])


def _integers(v):
    wide = v * 0x9E3779B97F4A7C15 % 2**64
    return (
        (wide * wide >> 64)
        ^ wide.bit_count()
        ^ ((64 - wide.bit_length()) << 8)
        ^ ((wide & -wide).bit_length() << 16)
        ^ (int(f"{v:032b}"[::-1], 2) << 24)
    )


def test_atomics(emulator, values):
    words = np.array([2**32 - 1, 0, 0, 0, 2**32 - 1, 0, 0, 0, 0, 0], np.uint32)
    wide = np.zeros(2, np.int64)
    floats = np.full(1, np.inf, np.float32)
    primitives.update[emulator](0, N, values, words, wide, floats)
    folded = [np.bitwise_or.reduce(values), np.bitwise_and.reduce(values | 0xFF00), np.bitwise_xor.reduce(values)]
    total = values.sum(dtype=np.uint32)
    expected = [values.min(), values.max(), total, *folded, np.uint32(-int(total) % 2**32), N, 0, N]
    np.testing.assert_array_equal(words, np.array(expected, np.uint32))
    np.testing.assert_array_equal(wide, [-int(values.max()), values.sum(dtype=np.int64)])
    assert floats[0] == values.min()


@pytest.mark.parametrize("order", ORDERS)
def test_concurrent_launches_are_separate(order, values):
    """Four CPU threads in one module: no launch shares fibers or shared variables with another."""
    results = [None] * 4

    def rank(k):
        emulator = EmulatedBackend(seed=k, order=order)
        for _ in range(10):
            results[k] = emulator.xp.empty(N, np.int64)
            primitives.block_sums[emulator](0, N, values + np.uint32(k), results[k])

    threads = [threading.Thread(target=rank, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        alone = np.empty(N, np.int64)
        primitives.block_sums[EmulatedBackend(blocks=3)](0, N, values + np.uint32(k), alone)
        np.testing.assert_array_equal(results[k], alone)


def test_example_of_the_guide_runs():
    guide = pathlib.Path(__file__).parents[2] / "docs" / "kernel_pair.md"
    (example,) = re.findall(r"^```python\n(.*?)^```$", guide.read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(example, guide.name, "exec"), {})


def test_stale_load_returns_the_own_write_and_old_or_new_words_of_others(values):
    seen = set()
    for seed in range(6):
        emulator = EmulatedBackend(seed=seed)
        words = np.full(N, 5000, np.uint32)
        out = emulator.xp.empty(2 * N, np.uint32)
        primitives.read_own[emulator](0, N, values, words, out)
        np.testing.assert_array_equal(out[::2], values)
        new = out[1::2] == np.roll(values, -1)
        assert (new | (out[1::2] == 5000)).all()
        seen |= {*new.tolist()}
    assert seen == {True, False}


def test_stale_load_returns_the_value_at_the_barrier_or_a_later_one(values):
    seen = set()
    for seed in range(6):
        emulator = EmulatedBackend(seed=seed)
        words = np.full(N, 5000, np.uint32)
        out = emulator.xp.empty(N, np.uint32)
        arrived = np.zeros(1, np.int64)
        primitives.read_rewritten_after_barrier[emulator](0, N, emulator.abort_word, values, words, arrived, out)
        since = out - np.roll(values, -1)
        assert set(since.tolist()) <= {0, 1}
        seen |= set(since.tolist())
    assert seen == {0, 1}


@pytest.mark.parametrize("seed", range(6))
def test_stale_load_is_not_older_than_the_last_barrier(values, seed):
    emulator = EmulatedBackend(seed=seed)
    words = np.full(N, 5000, np.uint32)
    out = emulator.xp.empty(N, np.uint32)
    arrived = np.zeros(1, np.int64)
    primitives.read_after_barrier[emulator](0, N, emulator.abort_word, values, words, arrived, out)
    np.testing.assert_array_equal(out, np.roll(values, -1))
