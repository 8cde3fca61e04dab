"""The emulator detects faults that are planted in kernels, and compiles no invalid CUDA."""

from __future__ import annotations

import re

import numpy as np
import pytest
from emulator.backend import POISONS, EmulatedBackend, EmulationError
from emulator.compile import CompileError, build
from emulator.faults import planted

N = 200
PLANTED = planted.read_past_end.source


def with_source(message: str) -> str:
    """Replace `planted.cu:LINE` by the source line, so that tests need no line numbers."""
    lines = PLANTED.read_text().splitlines()
    return re.sub(r"planted\.cu:(\d+)", lambda m: lines[int(m[1]) - 1] + ":", message)


def launch(kernel, *, n=N, values=None, out=None, **options):
    """Run a planted kernel on 0..n-1 and return what it wrote."""
    backend = EmulatedBackend(**options)
    values = np.arange(n, dtype=np.uint32) if values is None else values
    out = backend.xp.empty(n, np.uint32) if out is None else out
    kernel[backend](0, n, values, out)
    return out


CAUGHT = {
    planted.read_past_end: r"values\[i \+ 1\];: reads 4 bytes at byte 800 of values, which has 800 bytes: out",
    planted.write_past_end: r"out\[i \+ 1\] = .*: writes 4 bytes at byte 800 of out, which has 800 bytes: out",
    planted.miss_barrier: r"tile\[.*: (reads|writes) static shared memory.*tile\[.*: a race",
    planted.miss_syncwarp: r"own\[.*: (reads|writes) static shared memory.*own\[.*: a race",
    planted.read_unwritten: r"out\[i\].*: reads byte \d+ of out, which was not written",
    planted.read_unwritten_shared: r"dynamic\[.*: reads byte \d+ of dynamic shared memory, which was not written",
    planted.part_at_barrier: r"no thread can go on: .* waits in __sync",
}


@pytest.mark.parametrize("kernel", CAUGHT, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("seed", range(3))
def test_planted_fault_is_caught_and_its_line_named(kernel, seed):
    with pytest.raises(EmulationError) as caught:
        launch(kernel, seed=seed)
    assert re.search(CAUGHT[kernel], with_source(str(caught.value)))
    assert f"replay: launch 1 of EmulatedBackend(seed={seed}, block=64" in str(caught.value)


@pytest.mark.parametrize("seed", range(3))
def test_lost_updates_are_a_race(seed):
    with pytest.raises(EmulationError, match=r"planted.cu:\d+ (reads|writes) out\[0\].*planted.cu:\d+ .*: a race"):
        launch(planted.lose_updates, seed=seed, out=np.zeros(1, np.uint32))


def test_read_of_unwritten_shared_memory_is_caught():
    with pytest.raises(EmulationError, match=r"of static shared memory, which was not written"):
        launch(planted.read_unwritten_shared, values=np.ones(N, np.uint32))


def test_unwritten_bytes_give_results_that_differ_by_poison():
    values = np.arange(N, dtype=np.uint32)
    results = []
    for poison in POISONS:
        backend = EmulatedBackend(poison=poison)
        out = backend.xp.empty(N, np.uint8)
        planted.read_unwritten_bytes[backend](0, N, values, out)
        results.append(out)
    assert (results[0] != results[1]).any()


def test_write_to_memory_of_the_read_only_path_is_caught():
    with pytest.raises(EmulationError, match="read-only path"):
        launch(planted.write_read_only, out=np.full(N, 1000, np.uint32))


def test_shuffle_with_returned_lanes_is_caught():
    # 200 items: in the last warp 24 lanes have no work.
    with pytest.raises(EmulationError, match=r"planted.cu:\d+ .*waits for lane \d+ .*has returned|no thread can go on"):
        launch(planted.shuffle_with_absent, blocks=4)


def test_endless_wait_is_caught():
    with pytest.raises(EmulationError, match=r"still running after 0.2 s"):
        launch(planted.wait_forever, values=np.zeros(2, np.uint32), n=2, limit_s=0.2)


@pytest.mark.parametrize("kernel", [planted.miss_barrier, planted.miss_syncwarp, planted.lose_updates])
def test_orders_of_threads_give_different_results_without_the_check_for_races(kernel):
    """The orders differ enough to show a missing barrier, and each one can be repeated."""

    def result(seed):
        return launch(kernel, n=192, seed=seed, races=False, out=np.zeros(192, np.uint32)).tobytes()

    results = [result(seed) for seed in range(12)]
    assert len(set(results)) > 1
    assert results == [result(seed) for seed in range(12)]


def test_wrong_arguments_are_refused():
    backend = EmulatedBackend()
    values = np.arange(N, dtype=np.uint32)
    out = np.zeros(N, np.uint32)
    for message, args in {
        "values is an array of int64, the CUDA function declares cu4": (0, N, values.astype(np.int64), out),
        "values is not contiguous": (0, N // 2, values[::2], out),
        "out is np.int64(3), the CUDA function declares an array": (0, N, values, 3),
        "hi is a float64, the CUDA function declares i8": (0, float(N), values, out),
        "takes 4 arguments, not 3": (0, N, values),
    }.items():
        with pytest.raises(EmulationError, match=re.escape(message)):
            planted.read_past_end[backend](*args)


def test_none_is_the_null_pointer():
    with pytest.raises(EmulationError, match=r"reads 4 bytes at (0x[0-9a-f]+|\(nil\)), far from every array"):
        planted.read_past_end[EmulatedBackend()](0, N, None, np.zeros(N, np.uint32))


def test_uninitialized_local_variable_does_not_compile():
    text = 'extern "C" __global__ void f(long long lo, int* out) { int x; out[lo] = x; }'
    with pytest.raises(CompileError, match="uninitialized"):
        build(text)


KERNEL = 'extern "C" __global__ void both(long long lo, long long* out) { out[lo] = (long long)%s; }'


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("template <class T> __device__ T* of_block() { __shared__ T value; return &value; }", "of_block<int>()"),
        (
            "template <class T> struct Of { __device__ T* block() { __shared__ T value; return &value; } };",
            "Of<int>().block()",
        ),
    ],
)
def test_shared_memory_in_a_template_is_refused(function, call):
    with pytest.raises(CompileError, match=r"::value would .* no __shared__ memory in templates"):
        build(f"{function}\n{KERNEL % call}")


def test_shared_memory_beside_parameters_of_a_template_is_compiled():
    rows = "template <class T> struct Rows { T* targets; };"
    first = "__device__ int* first(Rows<int> rows) { __shared__ int value; value = *rows.targets; return &value; }"
    assert build("\n".join((rows, first, KERNEL % "first({(int*)out})"))).exists()
