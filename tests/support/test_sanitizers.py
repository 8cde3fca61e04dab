"""The kernels under AddressSanitizer and UndefinedBehaviorSanitizer, and faults that only those detect."""

from __future__ import annotations

import pytest
import tiers
from emulator.sanitizers import run_python
from kernel_files import loop_test, persistent_stems

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


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("kernel", CAUGHT)
def test_planted_fault_ends_the_process(kernel):
    done = run_python("-c", PLANTED.format(kernel=kernel), timeout_s=100)
    assert done.returncode, done.stdout
    assert CAUGHT[kernel] in done.stderr
    assert "planted.cu" in done.stderr, "the report names the line"


def run_sanitized(*tests):
    """Run tests under the sanitizers, uncaptured: a captured report is lost when a sanitizer ends the process."""
    options = "-q", "-x", "-s", "-n", "0", "--tier", tiers.CI, "-p", "no:cacheprovider"
    done = run_python("-m", "pytest", *options, *tests, timeout_s=380)
    assert not done.returncode, done.stdout[-4000:] + done.stderr[-4000:]
    assert " passed" in done.stdout


@pytest.mark.ci
@pytest.mark.timeout(400)
def test_no_kernel_has_a_fault():
    run_sanitized("tests/repo/test_twins.py", "tests/support/test_emulator_model.py", "-k", "emulated or model")


# Tests that cover each persistent kernel in a short time.
PERSISTENT = {
    "algorithms/bfs/persistent_kernels": "depth or deeper or chunked",
    "algorithms/sssp/persistent_kernels": "grid_or_order and 128-2-1",
    "algorithms/spanning_forest/persistent_kernels": "lists or vertices or path_as",
    "algorithms/bfs/persistent_multi_gpu_kernels": "depth_limit or trace_has or few_unreached or many_blocks"
    " or more_candidates or many_candidates",
    "algorithms/sssp/persistent_multi_gpu_kernels": "rounds_beyond",
    "shard/persistent_delivery_kernels": "few-3 or random-5-2 or lost_rank",
}


@pytest.mark.ci
@pytest.mark.timeout(400)
@pytest.mark.parametrize("stem", PERSISTENT)
def test_no_persistent_kernel_has_a_fault(stem):
    run_sanitized(str(loop_test(stem)), "-k", PERSISTENT[stem], "-m", "not gpu and not gpus")


def test_every_persistent_kernel_is_sanitized():
    assert set(persistent_stems()) == PERSISTENT.keys()
