"""The test session: hung tests end, and with `--require gpu` no GPU test is skipped."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import backends
import pytest
import tiers
from backends import BACKENDS, available_backends

# The harness of the tests; a newcomer seldom changes it.
pytestmark = pytest.mark.ci

HERE = pathlib.Path(__file__).parent
TESTS = HERE.parent
HELPERS = pathlib.Path(tiers.__file__).parent
# Appended to a test: half the time of a run is to import mgraph.
WITHOUT_MGRAPH = """
import pytest

@pytest.fixture(scope="session", autouse=True)
def all_cpu_ranks():
    pass
"""
# Appended to the copy of backends.py: it reports this number of GPUs to the session.
PRETEND = "\ndef has_gpu():\n    return True\n\ndef gpu_count():\n    return {}\n"


def run_pytest(
    tmp_path: pathlib.Path, test: str, *options: str, gpus: int = 0, before: tuple[str, ...] = (), function: str = ""
) -> subprocess.CompletedProcess:
    """Run one test file under this suite's settings and conftest, in a folder of its own."""
    pretended = PRETEND.format(gpus) if gpus else ""
    (tmp_path / "backends.py").write_text(pathlib.Path(backends.__file__).read_text() + pretended)
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(textwrap.dedent(test) + WITHOUT_MGRAPH)
    # A copy of pyproject.toml: the same settings, with other paths.
    shutil.copy(TESTS.parent / "pyproject.toml", tmp_path)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-o",
        f"pythonpath={tmp_path} {TESTS.parent} {HELPERS}",
    ]
    # Options of this session, such as several processes, do not apply to that one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [*before, *command, *options, f"test_it.py{function}"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


def run_alone(tmp_path: pathlib.Path, test: str, *options: str, gpus: int = 0) -> subprocess.CompletedProcess:
    """Run one test file in one process."""
    return run_pytest(tmp_path, test, "-n", "0", *options, gpus=gpus)


# Each blocks its process: in Python, where another thread can run, and in a call that holds the GIL.
SLEEPS = "import time\ndef test_hang():\n    time.sleep(80)\n"
HOLDS_THE_GIL = "import ctypes\ndef test_hang():\n    ctypes.PyDLL(None).sleep(80)\n"
OTHERS = "import pytest\n@pytest.mark.parametrize('k', range(20))\ndef test_other(k):\n    pass\n"
CLOCKS = {SLEEPS: ("-o", "timeout=2"), HOLDS_THE_GIL: ("-o", "timeout=2", "-o", "faulthandler_timeout=3")}


@pytest.mark.parametrize("hang", CLOCKS, ids=["sleeps", "holds the GIL"])
def test_hung_test_fails_alone_with_its_stack(tmp_path, hang):
    done = run_pytest(tmp_path, hang + OTHERS, "-n", "2", *CLOCKS[hang])
    assert done.returncode == 1
    assert "1 failed, 20 passed" in done.stdout
    assert "crashed while running 'test_it.py::test_hang'" in done.stdout
    assert "in test_hang" in done.stderr


@pytest.mark.parametrize("hang", CLOCKS, ids=["sleeps", "holds the GIL"])
def test_hung_test_ends_the_run_of_one_process_with_its_stack(tmp_path, hang):
    done = run_alone(tmp_path, hang, *CLOCKS[hang])
    assert done.returncode == 1
    assert "in test_hang" in done.stdout + done.stderr


INTERRUPTED = """
    import os, signal, subprocess, sys
    import pytest
    CHILD = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('went on')"

    def test_itself():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)

    def test_a_process_that_it_starts():
        done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True)
        assert (done.stdout, done.stderr.splitlines()[-1]) == ("", "KeyboardInterrupt")
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_tests_can_interrupt_if_interrupts_were_ignored(tmp_path, processes):
    """As under nohup, or behind a script's `&`."""
    ignoring = "sh", "-c", 'trap "" INT; exec "$@"', "sh"
    done = run_pytest(tmp_path, INTERRUPTED, "-n", processes, before=ignoring)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


MARKED = """
    import pytest, tiers
    from hypothesis import given, strategies as st
    @pytest.mark.ci
    def test_slow(): pass
    @pytest.mark.long
    def test_slowest(): pass
    @pytest.mark.covering
    @pytest.mark.parametrize("a", range(3))
    @pytest.mark.parametrize("b", range(4))
    def test_covering(a, b): pass
    @pytest.mark.covering(every=3)
    @pytest.mark.parametrize("a", range(6))
    def test_some(a): pass
    @pytest.mark.covering(every=2, ci=1)
    @pytest.mark.parametrize("a", range(3))
    @pytest.mark.parametrize("b", range(4))
    def test_wide(a, b): pass
    @pytest.mark.covering(every=3, ci_every=2)
    @pytest.mark.parametrize("a", range(6))
    def test_some_in_ci(a): pass
    @tiers.examples(10)
    @given(st.integers())
    def test_drawn(x): pass
    def test_plain(): pass
"""


@pytest.mark.covering(ci=1)
@pytest.mark.parametrize(
    ("options", "outcome", "left"),
    [
        ((), "12 passed", 28),
        (("--tier", "ci"), "29 passed", 11),
        (("--tier", "ci", "--beyond", "quick"), "18 passed", 22),
        (("--tier", "all"), "40 passed", 0),
    ],
)
@pytest.mark.parametrize("processes", ["0", "2"])
def test_tests_left_to_higher_tiers_are_reported(tmp_path, options, outcome, left, processes):
    done = run_pytest(tmp_path, MARKED, "-n", processes, *options)
    assert outcome in done.stdout
    tier = options[1] if options else "quick"
    assert f"tier: {tier} (of quick, ci, all)" in done.stdout
    assert (f"tier {tier}: {left} tests are in" in done.stdout) == bool(left), done.stdout
    if left and processes == "0":
        assert f"{left} deselected" in done.stdout


@pytest.mark.parametrize(("beyond", "count"), [([], 10), (["--beyond", "quick"], 8)])
def test_run_beyond_a_tier_draws_what_is_left(tmp_path, beyond, count):
    test = """
        import pytest, tiers
        from hypothesis import given, strategies as st
        drawn = []
        @tiers.examples(10)
        @given(st.integers())
        def test_drawn(x): drawn.append(x)
        @pytest.mark.widens
        def test_count(request): print("drawn", len(drawn), "faults", request.config.option.faults)
    """
    done = run_alone(tmp_path, test, "--tier", "ci", *beyond, "-s")
    assert f"drawn {count} faults {2 * count}" in done.stdout, done.stdout


def test_highest_tier_repeats_tests_with_other_seeds(tmp_path):
    test = """
        import pytest
        from emulator.backend import EmulatedBackend
        from hypothesis import given, strategies as st

        @pytest.mark.interleavings
        def test_it(request):
            print("seed", EmulatedBackend(seed=3).seed)

        @pytest.mark.interleavings
        @given(st.none())
        def test_drawn(x):
            pass
    """
    done = run_alone(tmp_path, test, "--tier", "all", "--fault-seed", "100", "-s")
    assert "20 passed" in done.stdout, done.stdout
    seeds = [int(line.split()[-1]) for line in done.stdout.splitlines() if "seed " in line and "fault" not in line]
    assert seeds == [3, *range(104, 113)]


def test_run_is_recorded_with_its_seeds(tmp_path):
    test = "def test_it():\n    pass\ndef test_wrong():\n    assert False"
    for processes in ("0", "2"):
        run_pytest(tmp_path, test, "-n", processes, "--tier", "all", "--run-log", "log.jsonl", "--fault-seed", "7")
    for line in (tmp_path / "log.jsonl").read_text().splitlines():
        facts = json.loads(line)
        assert (facts["bench"], facts["tier"], facts["passed"], facts["failed"]) == ("suite", "all", 1, 1)
        assert (facts["failures"], facts["faults"], facts["fault_seed"]) == (["test_it.py::test_wrong"], 200, 7)
        assert int(facts["hypothesis_seed"]) >= 0
        assert {"date", "commit", "machine", "versions", "wall_s", "exit"} <= facts.keys()
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 2


def test_named_test_runs_in_any_tier(tmp_path):
    test = "import pytest\n@pytest.mark.long\ndef test_it():\n    pass"
    assert "1 passed" in run_pytest(tmp_path, test, function="::test_it").stdout


CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(("options", "processes"), [((), CORES + 2), (("--pdb",), 1), (("-n1",), 1)])
def test_tests_are_spread_over_the_cores(tmp_path, options, processes):
    done = run_pytest(tmp_path, OTHERS, *options)
    assert "20 passed" in done.stdout
    assert (f"{min(processes, 16)} workers" in done.stdout) == (processes > 1)


def test_pytest_without_xdist_runs_them_in_one_process(tmp_path):
    assert "20 passed" in run_pytest(tmp_path, OTHERS, "-p", "no:xdist").stdout


def test_leftover_thread_ends_the_run(tmp_path):
    test = """
        import conftest, threading, time
        conftest.EXIT_S = 1
        def test_leave():
            threading.Thread(target=time.sleep, args=(50,)).start()
    """
    done = run_alone(tmp_path, test)
    assert done.returncode == 1
    assert "1 passed" in done.stdout
    assert "Timeout (0:00:01)!" in done.stderr


def test_warning_is_an_error(tmp_path):
    done = run_alone(tmp_path, "import warnings\ndef test_warn():\n    warnings.warn('old', DeprecationWarning)")
    assert done.returncode == 1
    assert "1 failed" in done.stdout


GPU_TESTS = {
    "mark": "import pytest\n@pytest.mark.gpu\n@pytest.mark.skip(reason='why not')\ndef test_it():\n    pass",
    "call": "import pytest\n@pytest.mark.gpu\ndef test_it():\n    pytest.skip('why not')",
    "module": "import pytest\npytest.skip('why not', allow_module_level=True)",
}


@pytest.mark.parametrize("test", GPU_TESTS.values(), ids=GPU_TESTS)
def test_required_gpu_tests_may_not_skip(tmp_path, test):
    done = run_alone(tmp_path, test, "--require", "gpu", gpus=1)
    assert done.returncode in (1, 2)
    assert "--require gpu" in done.stdout
    assert "why not" in done.stdout


def test_skip_without_gpu_mark_is_no_failure_under_require_gpu(tmp_path):
    test = "import pytest\n@pytest.mark.skip(reason='why not')\ndef test_it():\n    pass"
    assert run_alone(tmp_path, test, "--require", "gpu", gpus=1).returncode == 0


def test_require_gpu_without_one_is_refused(tmp_path):
    (tmp_path / "cupy.py").write_text("def is_available():\n    return False\n")
    done = run_alone(tmp_path, "def test_it():\n    pass", "--require", "gpu")
    assert done.returncode == 4
    assert "CuPy sees no CUDA device" in done.stderr


@pytest.mark.parametrize(("name", "lack"), [("slurm", "no munged"), ("sshd", "no sshd")])
def test_servers_that_are_required_must_be_there(tmp_path, name, lack):
    test = f"import pytest\n@pytest.mark.{name}\ndef test_it():\n    assert False"
    hidden = "env", "PATH=/none", sys.executable, "-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
    (tmp_path / "requirements.py").write_text((HELPERS / "requirements.py").read_text().replace("/usr/sbin", "/none"))
    done = run_pytest(tmp_path, test, "-n", "0", before=hidden)
    assert "SKIPPED [1] test_it.py" in done.stdout and lack in done.stdout
    done = run_pytest(tmp_path, test, "-n", "0", "--require", "gpu", "--require", name, gpus=1, before=hidden)
    assert done.returncode == 4
    assert f"--require {name}: {lack}" in done.stderr


def test_what_only_an_attempt_shows_may_be_required_too(tmp_path):
    test = "from requirements import skip_for_want_of\ndef test_it():\n    skip_for_want_of('mount', 'no rights')"
    done = run_pytest(tmp_path, test, "-n", "0", "--require", "cgroup")
    assert done.returncode == 0 and "mount: no rights" in done.stdout
    done = run_pytest(tmp_path, test, "-n", "0", "--require", "mount")
    assert done.returncode == 1 and "--require mount: skipped: mount: no rights" in done.stdout


def test_gpu_tests_skip_visibly_without_one(tmp_path):
    (tmp_path / "cupy.py").write_text("def is_available():\n    return False\n")
    done = run_alone(tmp_path, "import pytest\n@pytest.mark.gpu\ndef test_it():\n    assert False")
    assert done.returncode == 0
    assert "SKIPPED [1] test_it.py" in done.stdout
    assert "no CUDA device" in done.stdout


@pytest.mark.parametrize(("gpus", "outcome"), [(0, "2 skipped"), (1, "1 passed, 1 deselected"), (2, "2 passed")])
def test_tests_of_several_gpus_are_skipped_on_one(tmp_path, gpus, outcome):
    (tmp_path / "cupy.py").write_text("def is_available():\n    return False\n")
    test = "import pytest\n@pytest.mark.gpus\ndef test_apart():\n    pass\n@pytest.mark.gpu\ndef test_one():\n    pass"
    for options in (["-m", "gpu"], ["--require", "gpu"] if gpus else []):
        done = run_alone(tmp_path, test, *options, gpus=gpus)
        assert done.returncode == 0
        assert outcome in done.stdout


def test_every_backend_has_its_name(backend):
    assert backend.name in available_backends()
    assert backend.name in BACKENDS
