"""What every test shares: the backends, `--require gpu`, and an end for a session that hangs."""

from __future__ import annotations

import faulthandler
import sys

import pytest
from backends import BACKENDS, available_backends, has_gpu
from cli_runs import CASE, NO_GPU

# How long the interpreter may take to end after the last test, before threads left behind are killed.
EXIT_S = 60


def pytest_addoption(parser):
    parser.addoption("--require", choices=["gpu"], help="what must be there: a test that wants it fails, never skips")
    parser.addoption("--sanitize", action="store_true", help="allocate without CuPy's pool: for compute-sanitizer")


def pytest_configure(config):
    if config.getoption("require") == "gpu" and not has_gpu():
        raise pytest.UsageError("--require gpu: CuPy sees no CUDA device (`mgraph doctor` says why)")
    if config.getoption("sanitize"):
        import cupy

        # A pool hands out parts of large allocations, in which no sanitizer sees an access out of bounds.
        cupy.cuda.set_allocator(None)


def pytest_report_header():
    return f"backends: {', '.join(available_backends())}"


def pytest_generate_tests(metafunc):
    if "backend" in metafunc.fixturenames:
        marks = {"cuda": [pytest.mark.gpu]}
        names = [pytest.param(name, marks=marks.get(name, [])) for name in available_backends()]
        metafunc.parametrize("backend", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def backend(request):
    """Each backend that can run here, in turn."""
    backend = BACKENDS[request.param].make()
    yield backend
    backend.close()


@pytest.fixture
def no_gpus(monkeypatch):
    """Hide the GPUs from this process and from those that it starts."""
    for name, value in NO_GPU.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with a graph in it."""
    monkeypatch.chdir(tmp_path)
    lines = zip(CASE.sources.tolist(), CASE.targets.tolist(), CASE.weights.tolist(), strict=True)
    (tmp_path / "edges.wel").write_text("".join(f"{u} {v} {w}\n" for u, v, w in lines))
    return tmp_path


def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.get_closest_marker("gpu") and not has_gpu():
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    required = item.config.getoption("require") == "gpu" and item.get_closest_marker("gpu")
    if required and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"--require gpu: skipped: {call.excinfo.value}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    if collector.config.getoption("require") == "gpu" and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"--require gpu: {collector.nodeid} is skipped whole: {report.longrepr[2]}"
    return report


def pytest_unconfigure():
    # A thread left behind would keep the interpreter from ending; this clock needs no GIL.
    faulthandler.dump_traceback_later(EXIT_S, exit=True, file=sys.__stderr__)
