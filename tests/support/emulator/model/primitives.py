"""Names for the kernels of primitives.cu; test_emulator_model.py computes their results in NumPy."""

from __future__ import annotations

from mgraph.backends.kernel import kernel, persistent


@kernel()
def shuffle(lo, hi, values, out): ...


@kernel(shared_bytes=4096)
def block_sums(lo, hi, values, out): ...


@persistent(block=256)
def rounds(lo, hi, abort, n, state, arrived): ...


@persistent(block=256)
def miss_barrier(lo, hi, abort, passed, arrived): ...


@persistent(block=256)
def pass_on(lo, hi, abort, peer_buffers, buffer, num_rounds, out): ...


@kernel()
def queue_up(lo, hi, values, count, queue, out): ...


@kernel()
def update(lo, hi, values, words, wide, floats): ...


@kernel()
def wait_for_flag(lo, hi, flag, abort, out): ...


@kernel()
def read_own(lo, hi, values, words, out): ...


@persistent(block=256)
def read_after_barrier(lo, hi, abort, values, words, arrived, out): ...


@persistent(block=256)
def read_rewritten_after_barrier(lo, hi, abort, values, words, arrived, out): ...
