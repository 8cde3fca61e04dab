"""Memory rates of a device: measured once, stored whole or not at all, and never able to change a result."""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from emulator.backend import EmulatedBackend

from mgraph.algorithms.common.cost_model import bfs_costs, sssp_costs
from mgraph.backends import rates_file as rates
from mgraph.backends.create import make_backend
from mgraph.backends.rates import measure
from mgraph.backends.rates_file import H200, SIZES, rates_file, require_rates

SMALL = (1 << 12, 1 << 16, 1 << 18)


@pytest.fixture
def device(tmp_path, monkeypatch):
    """Use an empty cache folder and a stub of measure(); return the list of its calls."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(rates, "SIZES", SMALL)
    measured = []
    monkeypatch.setattr(rates, "measure", lambda backend, sizes: measured.append(sizes) or H200)
    return measured


def new_backend():
    backend = EmulatedBackend()
    backend.rates = None
    return backend


def test_measure_launches_the_kernel_as_often_as_requested():
    backend = EmulatedBackend(block=64, blocks=2)
    found = measure(backend, SMALL, launches=2)
    assert backend.launches == 2
    assert found.sizes == SMALL and len(found.loads) == len(found.atomics) == len(SMALL)


def test_rates_are_measured_once_for_all_backends_of_a_device(device):
    first = new_backend()
    assert require_rates(first) == require_rates(first) == H200
    assert require_rates(new_backend()) == H200
    assert device == [SMALL]
    assert [path.name for path in rates_file(first).parent.iterdir()] == [rates_file(first).name]
    assert rates_file(first).name.startswith("rates-emulated-device-")


def changed_driver(found):
    found["device"]["driver"] = 2


def changed_measurement(found):
    found["device"]["measurement"] -= 1


def a_missing_size(found):
    found["rates"]["loads"].pop()


def a_negative_rate(found):
    found["rates"]["stream"] = -1


def a_word_for_a_number(found):
    found["rates"]["grid_barrier"] = "1 us"


def an_unknown_field(found):
    found["rates"]["clock"] = 1


def missing_rates(found):
    del found["rates"]


SPOILT = (
    changed_driver,
    changed_measurement,
    a_missing_size,
    a_negative_rate,
    a_word_for_a_number,
    an_unknown_field,
    missing_rates,
)


@pytest.mark.parametrize("spoil", SPOILT)
def test_device_is_measured_again_if_the_stored_rates_are_invalid(device, spoil):
    require_rates(new_backend())
    path = rates_file(new_backend())
    found = json.loads(path.read_text())
    spoil(found)
    path.write_text(json.dumps(found))
    assert require_rates(new_backend()) == H200
    assert device == [SMALL, SMALL]
    assert json.loads(path.read_text())["rates"]["loads"] == list(H200.loads)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff\xfe", b"null"])
def test_device_is_measured_again_if_the_file_is_unreadable(device, text):
    path = rates_file(new_backend())
    path.parent.mkdir()
    path.write_bytes(text)
    assert require_rates(new_backend()) == H200
    assert require_rates(new_backend()) == H200
    assert device == [SMALL]


def test_rates_serve_one_process_if_the_folder_cannot_be_written(device, tmp_path):
    (tmp_path / "mgraph").write_text("a file where the folder would be")
    backend = new_backend()
    assert require_rates(backend) == require_rates(backend) == H200
    assert require_rates(new_backend()) == H200
    assert device == [SMALL, SMALL]


def test_unknown_home_folder_is_no_error(device, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("pathlib.Path.home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert require_rates(new_backend()) == H200
    assert device == [SMALL]


def test_rates_file_is_whole_under_concurrent_writes(device):
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: require_rates(new_backend()), range(32))) == {H200}
    folder = rates_file(new_backend()).parent
    assert [path.name for path in folder.iterdir()] == [rates_file(new_backend()).name]


def test_h200_rates_are_assumed_if_memory_is_short(device, monkeypatch):
    backend = new_backend()
    monkeypatch.setattr(backend, "free_bytes", lambda: SMALL[-1])
    assert require_rates(backend) is H200
    assert not device and not rates_file(backend).exists()


WRONG = {
    "aborted": None,
    "a clock that stops": dataclasses.replace(H200, grid_barrier=0),
    "another process": dataclasses.replace(H200, loads=(H200.loads[-1] + 1, *H200.loads[1:])),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_implausible_measurement_is_not_stored(device, monkeypatch, wrong):
    monkeypatch.setattr(rates, "measure", lambda *_: wrong)
    assert require_rates(new_backend()) is H200
    assert not rates_file(new_backend()).exists()


def test_rates_are_interpolated_between_sizes():
    for size, larger, load, slower in zip(SIZES, SIZES[1:], H200.loads, H200.loads[1:], strict=False):
        assert H200.load(size) == load
        assert load < H200.load((size * larger) ** 0.5) < slower
    assert H200.load(0) == H200.loads[0]
    assert H200.atomic(1 << 50) == H200.atomics[-1]


@pytest.mark.parametrize("num", [0, 1, 1 << 20, 1 << 24, 1 << 32])
def test_costs_are_positive_integers(num):
    """A kernel multiplies them in 64 bits by numbers of arcs, which may exceed 2^36."""
    for cost in (*bfs_costs(H200, num, 4), *sssp_costs(H200, num, 4)):
        assert type(cost) is int
        assert cost > 0
    for costs in (bfs_costs(H200, num, 8)[2:], sssp_costs(H200, num, 8)):
        assert max(costs) < 1 << 26


def test_bfs_has_more_parts_if_less_fits_the_cache():
    parts = [bfs_costs(H200, 1 << scale, 4)[0] for scale in (16, 22, 24)]
    assert parts == [1, 1, 2]


@pytest.mark.gpu
def test_measurement_of_a_gpu_is_sound():
    backend = make_backend("cuda")
    found = measure(backend, SIZES)
    assert found.is_sound()
    assert require_rates(backend).is_undisturbed()
    backend.close()
