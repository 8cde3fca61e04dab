"""Both twins of every kernel give the same results, to the bit, on random arguments.

The CUDA twin runs in the emulator, in an order of threads that Hypothesis draws, and on a GPU if there is one.
The strategy KERNEL in support/twins/STEM.py draws the arguments of KERNEL in mgraph/STEM.py.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util

import numpy as np
import pytest
from emulator.backend import SANITIZE, EmulatedBackend
from emulator.example.lightest import find_lightest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from kernel_files import PACKAGE, loop_test, persistent_stems, stem_of, stems
from tiers import examples
from twins.case import check, cpu

from mgraph.backends.create import make_backend
from mgraph.backends.kernel import Kernel
from mgraph.backends.numba_helpers import weight_sort_key

KERNELS = {"lightest.find_lightest": find_lightest} | {
    f"{stem}.{name}": kernel
    for stem, kernels in stems().items()
    for name, kernel in kernels.items()
    if kernel.source.exists() and not kernel.cooperative
}
# Enough to draw most choices of dtypes; each run draws others.
EXAMPLES = 1 if SANITIZE else 8

emulators = st.builds(
    EmulatedBackend,
    seed=st.integers(0, 2**32),
    block=st.sampled_from([32, 64, 96]),
    blocks=st.integers(1, 3),
)


def strategies_of(kernel: Kernel) -> str:
    """Return the path of the file below twins/ with the kernel's strategy."""
    return stem_of(kernel.source) if PACKAGE in kernel.source.parents else kernel.source.stem


def strategy_of(kernel: Kernel):
    """Return the function that draws a kernel's arguments, None where there is none."""
    name = f"twins.{strategies_of(kernel)}".replace("/", ".")
    return getattr(importlib.import_module(name), kernel.name, None) if importlib.util.find_spec(name) else None


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_has_a_strategy(name):
    kernel = KERNELS[name]
    assert strategy_of(kernel), (
        f"write tests/support/twins/{strategies_of(kernel)}.py: {kernel.name}(draw), which returns a Case"
    )


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint32", "int64", "float32", "float64"])
def test_sort_keys_have_the_order_of_the_weights(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        weights = np.array([-np.inf, -2.5, -1, -1e-40, 0, 1e-40, 0.5, np.inf], dtype)
    else:
        weights = np.array([np.iinfo(dtype).min, 3, 7, np.iinfo(dtype).max], dtype)
    keys = [weight_sort_key(weight) for weight in weights]
    assert keys == sorted(set(keys))
    if dtype.itemsize <= 4:
        assert [np.int32(key) for key in keys] == keys


def test_every_persistent_kernel_has_a_test():
    """A persistent kernel has no twin: its test compares it with the step variant."""
    assert len(persistent_stems()) >= 3
    assert [stem for stem in persistent_stems() if not loop_test(stem).exists()] == []


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("device", ["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", KERNELS)
def test_twins_agree(name, device):
    kernel = KERNELS[name]
    strategy = strategy_of(kernel)
    backends = emulators if device == "emulated" else st.just(make_backend("cuda"))

    @examples(EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def agree(data):
        case = strategy(data.draw)
        cut = data.draw(st.none() | st.integers(case.args["lo"], case.args["hi"]), label="cut")
        check(kernel, dataclasses.replace(case, cut=cut), data.draw(backends, label="backend"))

    agree()
    cpu().synchronize()
