"""The recipes for SLURM run on a real one: its daemons are started here, and its nodes are all this machine."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import textwrap
import time

import psutil
import pytest
from dask_processes import wait_until
from slurm_cluster import GPUS, slurm_cluster

ROOT = pathlib.Path(__file__).parents[2]
JOB = str(ROOT / "deploy" / "slurm" / "job.sbatch")
pytestmark = [pytest.mark.long, pytest.mark.slurm, pytest.mark.timeout(600)]


def interface() -> str:
    """Return the name of a network interface that is not the loopback one, or of that if there is no other."""
    addresses = psutil.net_if_addrs()
    return next((name for name in addresses if name != "lo" and _address(name)), "lo")


def _address(name: str) -> str | None:
    return next((each.address for each in psutil.net_if_addrs()[name] if each.family.name == "AF_INET"), None)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@pytest.fixture(autouse=True)
def clean(slurm):
    """Check that a job leaves no file and no process behind."""
    yield
    wait_until(lambda: not slurm.run("squeue", "--noheader"))
    assert list(slurm.submission.iterdir()) == []
    wait_until(lambda: not [line for line in map(command_line, psutil.process_iter()) if str(slurm.submission) in line])


def command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.fixture
def recipe(slurm, record_property):
    """Return a function that adds the facts of a recipe that ran to the record of the session."""
    began = time.monotonic()

    def record(name: str) -> None:
        facts = {"recipe": name, "slurm": slurm.version(), "test_s": round(time.monotonic() - began)}
        record_property("recipe", facts)

    return record


@pytest.mark.parametrize(
    ("name", "options", "up"),
    [
        ("slurm, one node", (), "1 cpu workers on 1 node(s) are up"),
        ("slurm, two nodes", ("--interface", interface()), "2 cpu workers on 2 node(s) are up"),
    ],
)
def test_smoke_job_runs_on_all_nodes_of_the_job(slurm, recipe, name, options, up):
    nodes = "2" if options else "1"
    code, output = slurm.wait(slurm.submit(f"--nodes={nodes}", JOB, *options), timeout_s=300)
    assert code == 0, output
    assert up in output
    assert "all validated" in output
    recipe(name)


FACTS = """
    import json, os, pathlib
    from distributed import Client, Security
    from dask_processes import listening, processes_below

    def of_worker(dask_worker):
        pids = [os.getpid(), os.getppid()]  # and its nanny
        return [os.environ["SLURMD_NODENAME"], sorted({address for address, _ in listening(pids)})]

    def of_scheduler(dask_scheduler):
        return sorted({address for address, _ in listening([os.getpid()])})

    with Client(scheduler_file=os.environ["MGRAPH_SCHEDULER_FILE"]) as client:
        nodes, listens = zip(*client.run(of_worker).values())
        listens = [*listens, client.run_on_scheduler(of_scheduler)]
        workers = [*client.nthreads()]
        address = client.scheduler.address
    outsiders = [(address.replace("tls://", "tcp://"), Security()), (address, Security.temporary())]
    refused = 0
    for place, security in outsiders:
        security.require_encryption = False
        try:
            Client(place, security=security, timeout=3).close()
        except OSError:
            refused += 1
    folder = pathlib.Path(os.environ["MGRAPH_SCHEDULER_FILE"]).parent
    print(json.dumps({
        "nodes": sorted(nodes), "listens": sorted({one for each in listens for one in each}), "workers": workers,
        "refused": refused, "mode": oct(folder.stat().st_mode & 0o777),
    }))
    raise SystemExit(7)
"""


@pytest.mark.parametrize("nodes", [1, 2])
def test_cluster_is_encrypted_and_listens_on_one_interface(slurm, tmp_path, nodes):
    program = tmp_path / "facts.py"
    program.write_text(textwrap.dedent(FACTS))
    options = ("--interface", interface()) if nodes == 2 else ()
    support = {"PYTHONPATH": str(ROOT / "tests" / "support")}
    job = slurm.submit(f"--nodes={nodes}", JOB, *options, "--", sys.executable, str(program), **support)
    code, output = slurm.wait(job)
    assert code == 7, output  # the command's
    assert "the job ended with 7; the end of the cluster's log:" in output
    facts = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    assert facts["nodes"] == ["left", "right"][:nodes]
    assert {*facts["listens"]} == {"127.0.0.1", _address(interface()) if nodes == 2 else "127.0.0.1"}
    assert all(address.startswith("tls://") for address in facts["workers"])
    assert facts["refused"] == 2
    assert facts["mode"] == "0o700"


def test_certificates_that_are_given_are_used(slurm, tmp_path):
    make = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=given -keyout key.pem -out cert.pem"
    subprocess.run(make.split(), cwd=tmp_path, check=True, capture_output=True)
    given = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(tmp_path / "cert.pem")}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        given[f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT"] = str(tmp_path / "cert.pem")
        given[f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY"] = str(tmp_path / "key.pem")
    listing = 'ls "$(dirname "$MGRAPH_SCHEDULER_FILE")"'
    code, output = slurm.wait(slurm.submit(JOB, "--", "sh", "-c", listing, **given))
    assert code == 0, output
    assert "scheduler.json" in output and "key.pem" not in output


def test_cancelled_job_stops_in_order(slurm):
    job = slurm.submit("--nodes=2", JOB, "--interface", interface(), "--", "sleep", "1000")
    wait_until(lambda: "are up" in slurm.output(job), 60)
    slurm.run("scancel", job)
    _, output = slurm.wait(job)
    assert "the job ended with 143" in output


def test_job_at_its_time_limit_stops_in_order(slurm):
    # SLURM counts the limit in minutes, and sends the signal a minute before it.
    code, output = slurm.wait(slurm.submit("--time=1", "--signal=B:TERM@50", JOB, "--", "sleep", "1000"))
    assert code == 143, output
    assert "the job ended with 143" in output


def test_workers_that_cannot_start_end_the_job(slurm, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ncase "$*" in *" worker "*) exit 3 ;; esac\nexec {sys.executable} "$@"')
    python.chmod(0o755)
    code, output = slurm.wait(slurm.submit(JOB, PYTHON=str(python)), timeout_s=30)
    assert code == 1
    assert "the scheduler or all workers ended before the job, with 3" in output


def test_worker_that_does_not_come_is_named(slurm, tmp_path):
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *" worker "*) [ "$SLURMD_NODENAME" = left ] || exec sleep 1000 ;; esac\n'
        f'exec {sys.executable} "$@"'
    )
    python.chmod(0o755)
    waiting = {"PYTHON": str(python), "DASK_MGRAPH__TIMEOUTS__OPEN": "10"}
    code, output = slurm.wait(slurm.submit("--nodes=2", JOB, "--interface", interface(), **waiting))
    assert code == 1
    assert "2 workers needed, 1 present after 10 s" in output


def test_folder_that_a_node_does_not_see_is_refused(slurm, tmp_path):
    """In place of a node that lacks the folder, a program that finds no file there."""
    (tmp_path / "test").write_text('#!/bin/sh\n[ "$SLURMD_NODENAME" = left ]')
    (tmp_path / "test").chmod(0o755)
    path = f"{tmp_path}:{slurm.environment['PATH']}"
    code, output = slurm.wait(slurm.submit("--nodes=2", JOB, "--interface", interface(), PATH=path))
    assert code == 2
    assert "a node does not see" in output and "--folder" in output


def test_each_gpu_of_a_node_has_a_worker(slurm, tmp_path):
    """Dask-cuda itself needs a GPU: a fake interpreter records its command line and its devices."""
    python = tmp_path / "python"
    recorded = tmp_path / "words"
    python.write_text(
        f"""#!/bin/sh
        case "$*" in
            *" scheduler "*) exec sleep 100 ;;
            *" worker "*) echo "$* $CUDA_VISIBLE_DEVICES" >{recorded}; exec sleep 100 ;;
        esac
        until [ -s {recorded} ]; do sleep 0.1; done
        echo "$MGRAPH_WORKERS $NCCL_SOCKET_IFNAME" """
    )
    python.chmod(0o755)
    code, output = slurm.wait(slurm.submit("--partition=gpus", JOB, "--", "true", PYTHON=str(python)))
    assert code == 0, output
    assert f"{GPUS} =lo" in output
    assert f"{GPUS} cuda workers on 1 node(s) are up" in output
    assert "dask cuda worker --host 127.0.0.1 --protocol tls" in recorded.read_text()
    assert recorded.read_text().split()[-1] == ",".join(map(str, range(GPUS)))


def test_workers_of_jobqueue_run_the_smoke_job(slurm, recipe, tmp_path):
    jobqueue = pytest.importorskip("dask_jobqueue", reason="no dask-jobqueue (the extra deploy has it)")
    settings = {"CORES": "2", "MEMORY": "1GiB", "INTERFACE": interface(), "SHARED_TEMP_DIRECTORY": str(tmp_path)}
    environment = slurm.environment | {f"DASK_JOBQUEUE__SLURM__{name}": value for name, value in settings.items()}
    environment["DASK_JOBQUEUE__SLURM__LOG_DIRECTORY"] = str(tmp_path)
    command = [sys.executable, str(ROOT / "deploy" / "jobqueue" / "job.py")]
    ways = {"cwd": slurm.submission, "env": environment, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run(command, **ways, check=False)
    assert done.returncode == 0, done.stderr + "".join(log.read_text() for log in tmp_path.glob("*.err"))
    assert "2 cpu ranks" in done.stdout
    assert "all validated" in done.stdout
    recipe(f"dask-jobqueue {jobqueue.__version__}, two jobs")
