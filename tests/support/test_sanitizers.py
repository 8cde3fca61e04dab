"""The kernels under AddressSanitizer and UndefinedBehaviorSanitizer, and faults that only those see."""

from __future__ import annotations

import pytest
import tiers
from emulator.sanitizers import run_python
from kernel_files import persistent_stems, test_file_of

PLANTED = """
import numpy as np
from emulator.backend import EmulatedBackend
from emulator.faults import planted
values = np.arange(200, dtype=np.uint32)
planted.{kernel}[EmulatedBackend()](0, 200, values, np.zeros(200, np.uint32))
"""
CAUGHT = {
    "read_past_end": "AddressSanitizer: heap-buffer-overflow",
    "write_past_end": "AddressSanitizer: heap-buffer-overflow",
    "overrun_shared": "AddressSanitizer: global-buffer-overflow",
    "shift_too_far": "runtime error: shift exponent",
}


@pytest.mark.parametrize("kernel", CAUGHT)
def test_a_planted_fault_ends_the_process(kernel):
    done = run_python("-c", PLANTED.format(kernel=kernel), timeout_s=100)
    assert done.returncode, done.stdout
    assert CAUGHT[kernel] in done.stderr
    assert "planted.cu" in done.stderr, "the report names the line"


def look_at(*tests):
    """Run tests under the sanitizers; uncaptured, because a process that they end would take the report with it."""
    options = "-q", "-x", "-s", "-n", "0", "--tier", tiers.CI, "-p", "no:cacheprovider"
    done = run_python("-m", "pytest", *options, *tests, timeout_s=380)
    assert not done.returncode, done.stdout[-4000:] + done.stderr[-4000:]
    assert " passed" in done.stdout


@pytest.mark.ci
@pytest.mark.timeout(400)
def test_no_kernel_has_a_fault():
    look_at("tests/repo/test_twins.py", "tests/support/test_emulator_model.py", "-k", "emulated or model")


# What covers each fused loop and does not take long.
PERSISTENT = {
    "algorithms/bfs/persistent_kernels": "depth or deeper or walked",
    "algorithms/sssp/persistent_kernels": "any_grid and 128-2-1",
    "algorithms/spanning_forest/persistent_kernels": "lists or vertices or way",
    "algorithms/bfs/persistent_multi_gpu_kernels": "depth_limit or told_of or last_few or blocks_offer or more_than_vertices or offers_found",
    "algorithms/sssp/persistent_multi_gpu_kernels": "rounds_beyond",
}


@pytest.mark.ci
@pytest.mark.timeout(400)
@pytest.mark.parametrize("stem", PERSISTENT)
def test_no_fused_loop_has_a_fault(stem):
    look_at(str(test_file_of(stem)), "-k", f"({PERSISTENT[stem]}) and not gpu")


def test_every_fused_loop_is_looked_at():
    assert set(persistent_stems()) == PERSISTENT.keys()
