"""What every test shares: the backends, `--require gpu`, and an end for a session that hangs."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys

import pytest
from backends import BACKENDS, available_backends, gpu_count, has_gpu

# How long the interpreter may take to end after the last test, before threads left behind are killed.
EXIT_S = 60


def pytest_addoption(parser):
    parser.addoption("--require", choices=["gpu"], help="what must be there: a test that wants it fails, never skips")
    parser.addoption("--faults", type=int, default=20, metavar="N", help="how many SIGKILLs, and SIGINTs, at random")
    parser.addoption("--fault-seed", type=int, help="draw the faults of a run that said so")
    parser.addoption("--fault-log", metavar="FILE", help="append a line of JSON that says what the faults hit")
    parser.addoption("--sanitize", action="store_true", help="allocate without CuPy's pool: for compute-sanitizer")


def pytest_configure(config):
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As under nohup or behind `&`: tests interrupt themselves and processes that they start, which inherit this.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("require") == "gpu" and not has_gpu():
        raise pytest.UsageError("--require gpu: CuPy sees no CUDA device (`mgraph doctor` says why)")
    if config.getoption("sanitize"):
        import cupy

        # A pool hands out parts of large allocations, in which no sanitizer sees an access out of bounds.
        cupy.cuda.set_allocator(None)
    # Processes that share the tests have this environment, and so the seed.
    drawn = os.environ.setdefault("MGRAPH_FAULT_SEED", str(int.from_bytes(os.urandom(3), "big")))
    if config.option.fault_seed is None:
        config.option.fault_seed = int(drawn)


def pytest_report_header(config):
    faults = f"{config.option.faults} of each kind (--fault-seed {config.option.fault_seed})"
    return f"backends: {', '.join(available_backends())}; random faults: {faults}"


def pytest_generate_tests(metafunc):
    if "backend" in metafunc.fixturenames:
        marks = {"cuda": [pytest.mark.gpu]}
        names = [pytest.param(name, marks=marks.get(name, [])) for name in available_backends()]
        metafunc.parametrize("backend", names, indirect=True, scope="session")
    if "gang" in metafunc.fixturenames:
        # One at least, so that a machine without a GPU shows the tests that it skips.
        sizes = [size for size in (2, 3, 4) if size <= gpu_count()] or [2]
        metafunc.parametrize("gang", sizes, indirect=True, scope="module")


@pytest.fixture(scope="session")
def backend(request):
    """Each backend that can run here, in turn."""
    backend = BACKENDS[request.param].make()
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def clusters():
    """In-process clusters of each number of ranks, by that number."""
    import on_ranks

    import mgraph as mg

    made = {p: mg.connect(num_ranks=p, backend="cpu") for p in on_ranks.RANKS}
    yield made
    for cluster in made.values():
        cluster.close()


@pytest.fixture(scope="module")
def workers():
    """Two workers in processes of their own."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as workers:
        yield workers


@pytest.fixture(scope="module")
def client(workers):
    from distributed import Client

    with Client(workers, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def gang(request):
    """Start processes with a GPU each, over NCCL."""
    from comm_ranks import Gang

    gang = Gang("nccl", request.param, 60.0)
    yield gang
    gang.kill()


@pytest.fixture
def small_disk(tmp_path):
    """Mount a file system of one MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, text=True)
    if mount.returncode:
        pytest.skip(f"no file system can be mounted here: {mount.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def no_gpus(monkeypatch):
    """Hide the GPUs from this process and from those that it starts."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with a graph in it."""
    from cli_runs import CASE

    monkeypatch.chdir(tmp_path)
    lines = zip(CASE.sources.tolist(), CASE.targets.tolist(), CASE.weights.tolist(), strict=True)
    (tmp_path / "edges.wel").write_text("".join(f"{u} {v} {w}\n" for u, v, w in lines))
    return tmp_path


@pytest.hookimpl(tryfirst=True)  # before -m chooses by marks
def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.get_closest_marker("gpus"):
            item.add_marker("gpu")
        if item.get_closest_marker("gpu") and not has_gpu():
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
    # On one GPU these have nothing to run on, and under `--require gpu` a skip would be a failure.
    apart = [item for item in items if item.get_closest_marker("gpus") and gpu_count() == 1]
    if apart:
        config.hook.pytest_deselected(items=apart)
        items[:] = [item for item in items if not item.get_closest_marker("gpus")]


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


def pytest_terminal_summary(terminalreporter, config):
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, ())]
    tallies = [facts for report in reports for name, facts in report.user_properties if name == "faults"]
    if tallies:
        from faults.log import append, summary

        terminalreporter.section("random faults")
        terminalreporter.write_line(summary(tallies, config.option.fault_seed))
        # Processes that share the tests have each a part, and the first has all.
        if config.option.fault_log and "PYTEST_XDIST_WORKER" not in os.environ:
            append(config.option.fault_log, tallies, config.option.fault_seed)


def pytest_unconfigure():
    # A thread left behind would keep the interpreter from ending; this clock needs no GIL. One of several processes
    # that share the tests has to wait for the others.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        faulthandler.dump_traceback_later(EXIT_S, exit=True, file=sys.__stderr__)
