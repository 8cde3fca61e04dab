"""Fixtures and options of all tests: backends, tiers, `--require`, and an end for a session that hangs."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import signal
import sys
import threading
import time

import pytest
import tiers
from backends import BACKENDS, available_backends, gpu_count
from requirements import LACKS, TRIED

# How long the interpreter may take to end after the last test, before threads left behind are killed.
EXIT_S = 60
# More processes do not shorten the run: some tests need half a minute.
MAX_PROCESSES = 16
# How many tests were left to higher tiers.
LEFT = pytest.StashKey[int]()
BEGAN = time.monotonic()


def pytest_addoption(parser):
    parser.addoption("--tier", choices=tiers.TIERS, default=tiers.QUICK, help="which tests: quick, those of CI, or all")
    parser.addoption("--beyond", choices=tiers.TIERS[:2], help="without what this tier has done")
    parser.addoption("--run-log", metavar="FILE", help="append a line of JSON that says what the run did")
    parser.addoption(
        "--require", action="append", default=[], choices=[*LACKS, *TRIED],
        help="what must be there: a test that needs it fails, never skips; may be repeated",
    )  # fmt: skip
    parser.addoption("--faults", type=int, metavar="N", help="how many SIGKILLs, and SIGINTs, at random (by tier)")
    parser.addoption("--fault-seed", type=int, help="draw the faults of a run that said so")
    parser.addoption("--fault-log", metavar="FILE", help="append a line of JSON that says what the faults hit")
    parser.addoption("--sanitize", action="store_true", help="allocate without CuPy's pool: for compute-sanitizer")


@pytest.hookimpl(tryfirst=True)  # before xdist starts its processes, and Hypothesis reads its seed
def pytest_cmdline_main(config):
    option = config.option
    if hasattr(config, "workerinput"):  # one of the processes
        return
    # Threads of BLAS, which spin when they start: no test multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    alone = "gpu" in option.require or option.usepdb or all("::" in name for name in config.args)
    if getattr(option, "numprocesses", 0) is None and not option.tx and not alone:
        # Two more than cores: many tests wait for processes of their own.
        option.numprocesses = min(len(os.sched_getaffinity(0)) + 2, MAX_PROCESSES)
    if getattr(option, "numprocesses", 0) and option.dist == "no":
        # Each process has files of its own, so that what a file's tests share is made once.
        option.dist = "worksteal"
    if option.tier == tiers.ALL and option.hypothesis_seed is None:
        option.hypothesis_seed = str(int.from_bytes(os.urandom(3), "big"))


def pytest_configure(config):
    tiers.chosen = config.option.tier
    tiers.beyond = config.option.beyond
    if config.option.faults is None:
        config.option.faults = tiers.faults()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As under nohup or behind `&`: tests interrupt themselves and processes that they start, which inherit this.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in config.option.require:
        if name in LACKS and (lack := LACKS[name]()):
            raise pytest.UsageError(f"--require {name}: {lack}")
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
    beyond = f", without what {config.option.beyond} has done" if config.option.beyond else ""
    return [
        f"tier: {config.option.tier} (of {', '.join(tiers.TIERS)}){beyond}",
        f"backends: {', '.join(available_backends())}; random faults: {faults}",
    ]


def pytest_generate_tests(metafunc):
    if "backend" in metafunc.fixturenames:
        marks = {"cuda": [pytest.mark.gpu]}
        names = [pytest.param(name, marks=marks.get(name, [])) for name in available_backends()]
        metafunc.parametrize("backend", names, indirect=True, scope="session")
    if "gang" in metafunc.fixturenames:
        # One at least, so that a machine without a GPU shows the tests that it skips.
        sizes = [size for size in (2, 3, 4) if size <= gpu_count()] or [2]
        metafunc.parametrize("gang", sizes, indirect=True, scope="module")
    if tiers.INTERLEAVINGS[tiers.chosen] > 1 and metafunc.definition.get_closest_marker("interleavings"):
        metafunc.parametrize("interleaving", range(tiers.INTERLEAVINGS[tiers.chosen]), indirect=True)


@pytest.fixture(autouse=True)
def interleaving(request):
    """Add a number to all seeds of the emulator where a test is repeated with other ones."""
    with contextlib.ExitStack() as stack:
        if repetition := getattr(request, "param", 0):
            from emulator.seeds import shifted

            stack.enter_context(shifted(request.config.option.fault_seed + repetition))
        yield


@pytest.fixture(scope="session", autouse=True)
def all_cpu_ranks():
    """Place the small graphs of tests on all ranks of a cluster of CPUs, unless a test chooses the arcs of a rank."""
    from mgraph.api import graph
    from mgraph.planning.placement import ARCS_PER_RANK, Placement

    chosen = ARCS_PER_RANK["cpu"]
    choose = graph.place_graph

    def place(source, num_ranks, backend, *rest):
        is_open = backend != "cpu" or ARCS_PER_RANK["cpu"] != chosen
        return choose(source, num_ranks, backend, *rest) if is_open else Placement(num_ranks, num_ranks)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(graph, "place_graph", place)
        yield


@pytest.fixture(scope="session")
def backend(request):
    """Each backend that can run here."""
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
    from worker_processes import worker_processes

    with worker_processes() as workers:
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
    from disks import mounted_disk

    with mounted_disk(tmp_path / "small", "1m") as folder:
        yield folder


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


@pytest.fixture
def write(tmp_path):
    """Return a function that writes text or bytes to a new file, and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item, settings):
    """Start the timer of a test in an xdist process, where pytest-timeout's output would be lost."""
    if not hasattr(item.config, "workerinput"):
        return None

    def end_process():
        try:
            capture = item.config.pluginmanager.getplugin("capturemanager")
            capture.suspend_global_capture(in_=True)
            print(*capture.read_global_capture(), file=sys.__stderr__)
            print(f"{item.nodeid} has not ended after {settings.timeout:g} s:", file=sys.__stderr__, flush=True)
            faulthandler.dump_traceback(file=sys.__stderr__)
        finally:
            os._exit(1)

    timer = threading.Timer(settings.timeout, end_process)
    timer.daemon = True
    timer.start()
    item.cancel_timeout = timer.cancel
    return True


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the garbage collector off what modules and tests are: its passes took a quarter of the time to collect."""
    gc.disable()
    try:
        return (yield)
    finally:
        # Nor do later passes look through these objects, nearly a million.
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before -m chooses by marks
def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.get_closest_marker("gpus"):
            item.add_marker("gpu")
        for name in (name for name in LACKS if item.get_closest_marker(name)):
            if lack := LACKS[name]():
                item.add_marker(pytest.mark.skip(reason=lack))
    # One GPU cannot run these, and under `--require gpu` a skip would be a failure.
    apart = [item for item in items if item.get_closest_marker("gpus") and gpu_count() == 1]
    # A test that is named is run, whatever its tier.
    named = bool(config.args) and all("::" in name for name in config.args)
    kept = set(items) if named else tiers.choose(items, config.option.tier, config.option.beyond)
    config.stash[LEFT] = len(set(items) - kept) if config.option.tier != tiers.ALL else 0
    deselected = [item for item in items if item not in kept or item in apart]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item in kept and item not in apart]
    # The longest tests are those of the harness and of random faults: at the end, one process would run them and the
    # others wait for it.
    items.sort(key=lambda item: "support" not in item.path.parts and item.path.stem != "test_random_faults")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if not report.skipped or hasattr(report, "wasxfail"):
        return report
    why = str(call.excinfo.value)
    wanted = item.config.option.require
    if required := [name for name in wanted if item.get_closest_marker(name) or why.startswith(f"{name}: ")]:
        report.outcome = "failed"
        report.longrepr = f"--require {required[0]}: skipped: {why}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    if (required := collector.config.option.require) and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"--require {required[0]}: {collector.nodeid} is skipped whole: {report.longrepr[2]}"
    return report


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = session.config.stash.get(LEFT, 0)


@pytest.hookimpl(optionalhook=True)  # of xdist: all processes collect the same tests
def pytest_testnodedown(node):
    node.config.stash[LEFT] = getattr(node, "workeroutput", {}).get("left", node.config.stash.get(LEFT, 0))


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    if left := config.stash.get(LEFT, 0):
        done = f" or in {config.option.beyond}" if config.option.beyond else ""
        terminalreporter.write_line(
            f"tier {config.option.tier}: {left} tests are in higher tiers{done}; --tier {tiers.ALL} has all"
        )
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, ())]
    tallies = [facts for report in reports for name, facts in report.user_properties if name == "faults"]
    if tallies:
        from faults.log import append, summary

        terminalreporter.section("random faults")
        terminalreporter.write_line(summary(tallies, config.option.fault_seed))
        # Processes that share the tests have each a part, and the first has all.
        if config.option.fault_log and "PYTEST_XDIST_WORKER" not in os.environ:
            append(config.option.fault_log, tallies, config.option.fault_seed)
    if config.option.run_log and "PYTEST_XDIST_WORKER" not in os.environ:
        from run_log import append_run

        recipes = [facts for report in reports for name, facts in report.user_properties if name == "recipe"]
        facts = {"exit": int(exitstatus), "wall_s": round(time.monotonic() - BEGAN), "recipes": recipes}
        append_run(config, terminalreporter.stats, facts)


def pytest_unconfigure():
    # A thread left behind would keep the interpreter from ending; this clock needs no GIL. One of several processes
    # that share the tests has to wait for the others.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        faulthandler.dump_traceback_later(EXIT_S, exit=True, file=sys.__stderr__)
