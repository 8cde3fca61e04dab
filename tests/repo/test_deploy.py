"""The scripts in deploy/: the smoke job runs on a cluster of processes, and nothing is left behind."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import psutil
import pytest
from dask_processes import listening, processes_below, wait_until

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def start(tmp_path):
    """Start a script; its processes are recognized by the temporary folder in their command lines."""
    started = []

    def start(script: str, *options: str, start_new_session: bool = False, **environment: str) -> subprocess.Popen:
        env = {
            **os.environ,
            "TMPDIR": str(tmp_path),
            "PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
            "CUDA_VISIBLE_DEVICES": "",
            **environment,
        }
        pipe = subprocess.PIPE
        # A shell cannot trap a signal that was ignored when it started, as SIGINT is if tests run in the background.
        command = ["env", "--default-signal=INT,TERM", "bash", f"deploy/{script}", *options]
        ways = {"stdout": pipe, "stderr": pipe, "text": True, "start_new_session": start_new_session}
        started.append(subprocess.Popen(command, cwd=ROOT, env=env, **ways))
        return started[-1]

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=60)
    assert left_behind(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def left_behind(folder: pathlib.Path) -> list[str]:
    """Return the command lines that contain the folder, after waiting for processes that are ending."""
    deadline_s = time.monotonic() + 10
    while (found := _command_lines_with(folder)) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    return found


def _command_lines_with(folder: pathlib.Path) -> list[str]:
    lines = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:  # it ended meanwhile
            continue
    return [line for line in lines if str(folder) in line]


def test_script_passes_the_scheduler_file_to_its_job_and_returns_the_exit_code(start):
    job = "import os, json; print(json.load(open(os.environ['MGRAPH_SCHEDULER_FILE']))['type']); raise SystemExit(7)"
    out, err = (process := start("local.sh", "--workers", "1", "--", sys.executable, "-c", job)).communicate(
        timeout=100
    )
    assert process.returncode == 7, err
    assert out.splitlines() == ["1 cpu workers are up", "Scheduler"]
    assert "the job ended with 7" in err


@pytest.mark.ci
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_stops_all_processes_of_the_script(start, number, code):
    process = start("local.sh", "--workers", "2", "--", "sleep", "100")
    assert process.stdout.readline() == "2 cpu workers are up\n"
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == code


@pytest.mark.ci
@pytest.mark.parametrize("whole_group", [False, True])
def test_killed_script_leaves_no_process_and_no_file(start, tmp_path, whole_group):
    process = start("local.sh", "--workers", "2", "--", "sleep", "1000", start_new_session=True)
    assert process.stdout.readline() == "2 cpu workers are up\n"
    below = [psutil.Process(pid) for pid in processes_below(process.pid)]
    assert any("spawn_main" in part for each in below for part in each.cmdline())
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    wait_until(lambda: not any(is_alive(each) for each in below), timeout_s=60)
    wait_until(lambda: not list(tmp_path.iterdir()))


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs: its pid was not reused, and it is no zombie."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.ci
def test_nothing_listens_on_other_interfaces(start):
    process = start("local.sh", "--workers", "2", "--", "sleep", "100")
    assert process.stdout.readline() == "2 cpu workers are up\n"
    assert {address for address, _ in listening(processes_below(process.pid))} == {"127.0.0.1"}


@pytest.mark.parametrize("program", ["dask worker", "dask cuda worker"])
def test_cpu_and_gpu_workers_are_started_on_the_loopback_address(start, tmp_path, program):
    """Checked in the command line, since dask-cuda itself needs a GPU."""
    python = tmp_path / "python"
    recorded = tmp_path / "words"
    # A fake interpreter: in place of the scheduler, of the workers, and of the wait for them, which fails.
    python.write_text(
        f"""#!/bin/sh
        case "$*" in
            *" scheduler "*) exec sleep 100 ;;
            *" worker "*) echo "$*" >{recorded}; exec sleep 100 ;;
        esac
        until [ -s {recorded} ]; do sleep 0.1; done
        exit 1"""
    )
    python.chmod(0o755)
    kind, devices = ("cpu", "") if program == "dask worker" else ("cuda", "0,1")
    options = "--workers", "2", "--backend", kind
    start("local.sh", *options, PYTHON=str(python), CUDA_VISIBLE_DEVICES=devices).communicate(timeout=60)
    command_line = recorded.read_text()
    for option in (program, "--host 127.0.0.1", "--dashboard-address 127.0.0.1:0"):
        assert option in command_line
    for file in (python, recorded):
        file.unlink()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--workers", "none"), "--workers none is not a positive number"),
        (("--backend", "tpu"), "--backend tpu is not one of auto, cpu, cuda"),
        (("--backend", "cuda", "--workers", "1"), "there are 0 GPUs"),
        (("--strange",), "unknown option --strange"),
        (("--scale",), "deploy/local.sh [--workers N]"),
    ],
)
def test_invalid_options_are_refused(start, options, message):
    process = start("local.sh", *options)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert message in err


@pytest.mark.parametrize(
    ("nodes", "options", "message"),
    [
        ("", (), "this is no SLURM job: start it by sbatch"),
        ("1", ("--interface", "ib0"), "--interface ib0 is for several nodes, and this job has one"),
        ("2", (), "this job has 2 nodes: name the network between them by --interface"),
        ("1", ("--nodes=2",), "unknown option --nodes=2: options of sbatch go before the script"),
    ],
)
def test_slurm_job_with_the_wrong_number_of_nodes_is_refused(start, nodes, options, message):
    process = start("slurm/job.sbatch", *options, SLURM_JOB_NUM_NODES=nodes)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert err.startswith(message)
    assert len(err.splitlines()) == 1


@pytest.mark.ci
@pytest.mark.timeout(320)
def test_smoke_job_runs_on_a_cluster(start):
    process = start("local.sh", "--workers", "2", "--scale", "4")
    # Kernels may have to be compiled, on a machine that does other things too.
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "2 cpu workers are up" in out
    assert "rmat4" in out
    assert "all validated" in out


@pytest.mark.ci
def test_script_returns_the_exit_code_of_a_failing_smoke_job(start):
    process = start("local.sh", "--workers", "1", "--scale", "99")
    _, err = process.communicate(timeout=110)
    assert process.returncode == 2
    assert "--scale" in err
