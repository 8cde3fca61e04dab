"""A SLURM of several nodes on this machine: munged, slurmctld, and a slurmd for each node."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from dask_processes import free_ports, wait_until
from requirements import PATH

NODES = ("left", "right", "gpus")
# Devices that SLURM takes for GPUs, and passes on their numbers: each is like /dev/null.
GPUS = 3
NULL_DEVICE = os.makedev(1, 3)
CONFIGURATION = """
ClusterName=mgraph
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
KillWait=10
# Each node has all cores of this machine.
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=DEFAULT CPUs={cores} RealMemory=8000
NodeName=left,right NodeHostname={host} NodeAddr=127.0.0.1 Port={left},{right}
NodeName=gpus NodeHostname={host} NodeAddr=127.0.0.1 Port={gpus} Gres=gpu:{count}
PartitionName=cpus Nodes=left,right Default=YES
PartitionName=gpus Nodes=gpus
"""


@dataclass(frozen=True)
class Slurm:
    """A SLURM that runs, and the folder in which jobs are submitted."""

    submission: pathlib.Path
    environment: dict[str, str]

    def run(self, *command: str, **environment: str) -> str:
        """Run a command of SLURM's in the folder of submissions, and return what it prints."""
        return subprocess.run(
            command, cwd=self.submission, env=self.environment | environment, text=True, timeout=60,
            check=True, capture_output=True,
        ).stdout  # fmt: skip

    def submit(self, *arguments: str, **environment: str) -> str:
        """Submit a job, whose output goes to a file named after it; return its number."""
        return self.run("sbatch", "--parsable", "--output=%j.out", *arguments, **environment).strip()

    def state(self, job: str) -> dict[str, str]:
        """Return what SLURM knows of a job."""
        return dict(
            pair.split("=", 1) for pair in self.run("scontrol", "show", "job", "-o", job).split() if "=" in pair
        )

    def output(self, job: str) -> str:
        """Return what a job has printed."""
        file = self.submission / f"{job}.out"
        return file.read_text() if file.exists() else ""

    def wait(self, job: str, timeout_s: float = 100.0) -> tuple[int, str]:
        """Wait for a job's end; return its exit code and its output, and remove the file of the output."""
        wait_until(lambda: self.state(job)["JobState"] not in ("PENDING", "RUNNING", "COMPLETING"), timeout_s)
        output = self.output(job)
        (self.submission / f"{job}.out").unlink()
        return int(self.state(job)["ExitCode"].split(":")[0]), output

    def version(self) -> str:
        return self.run("sinfo", "--version").split()[-1]


@contextlib.contextmanager
def slurm_cluster(folder: pathlib.Path) -> Iterator[Slurm]:
    """Start SLURM in a folder, wait until its nodes are idle, and end its daemons."""
    ports = dict(zip(("controller", *NODES), free_ports(4), strict=True))
    facts = {
        "host": socket.gethostname(),
        "folder": folder,
        "cores": len(os.sched_getaffinity(0)),
        "count": GPUS,
        **ports,
    }
    for name in ("state", *NODES, "submission"):
        (folder / name).mkdir(parents=True)
    (folder / "slurm.conf").write_text(CONFIGURATION.format(**facts))
    (folder / "gres.conf").write_text(f"NodeName=gpus Name=gpu File={folder}/gpu[0-{GPUS - 1}]\n")
    for index in range(GPUS):
        os.mknod(folder / f"gpu{index}", stat.S_IFCHR | 0o600, NULL_DEVICE)
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf"), "PYTHON": sys.executable}
    munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    commands = {
        "munged": [*munge, f"--socket={folder}/munge.socket", "--foreground", "--force"],
        "slurmctld": ["-D"],
        **{f"slurmd {node}": ["-D", "-N", node] for node in NODES},
    }
    with contextlib.ExitStack() as running:
        for name, options in commands.items():
            running.enter_context(_daemon([name.split()[0], *options], folder / f"{name}.log", environment))
            if name == "munged":
                wait_until((folder / "munge.socket").exists)
        slurm = Slurm(folder / "submission", environment)
        wait_until(lambda: _states(slurm) == ["idle"] * len(NODES))
        running.callback(wait_until, lambda: not slurm.run("squeue", "--noheader"))
        running.callback(slurm.run, "scancel", "--user=root")
        yield slurm


def _states(slurm: Slurm) -> list[str]:
    """Return the states of all nodes; none before the controller answers."""
    try:
        return slurm.run("sinfo", "--noheader", "--Node", "--format=%t").split()
    except subprocess.CalledProcessError:
        return []


@contextlib.contextmanager
def _daemon(command: list[str], log: pathlib.Path, environment: dict[str, str]) -> Iterator[None]:
    with log.open("w") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
