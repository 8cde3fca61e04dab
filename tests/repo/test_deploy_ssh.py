"""The recipe for SSH runs on two addresses of this machine, which an SSH server of the test listens on."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

import psutil
import pytest
from dask_processes import free_ports, make_security, wait_until
from requirements import PATH

ROOT = pathlib.Path(__file__).parents[2]
JOB = str(ROOT / "deploy" / "ssh" / "job.py")
pytestmark = [pytest.mark.long, pytest.mark.sshd, pytest.mark.timeout(300)]
SERVER = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
PasswordAuthentication no
UsePAM no
PidFile none
"""
CLIENT = """
Host 127.0.0.1
    Port {port}
    IdentityFile {folder}/user
    UserKnownHostsFile {folder}/known_hosts
"""


@pytest.fixture
def home(tmp_path):
    """Start an SSH server; yield a home folder from which its hosts are reached."""
    (port,) = free_ports(1)
    for name in ("host", "user"):
        make = "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)
        subprocess.run(make, check=True)
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{port} {(tmp_path / 'host.pub').read_text()}")
    (tmp_path / "sshd_config").write_text(SERVER.format(port=port, folder=tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(CLIENT.format(port=port, folder=tmp_path))
    pathlib.Path("/run/sshd").mkdir(exist_ok=True)  # sshd separates its privileges there
    command = [shutil.which("sshd", path=PATH), "-D", "-e", "-f", str(tmp_path / "sshd_config")]
    with (tmp_path / "sshd.log").open("w") as log, contextlib.ExitStack() as running:
        server = subprocess.Popen(command, stderr=log)
        running.callback(server.wait)
        running.callback(server.terminate)
        wait_until(lambda: "Server listening" in (tmp_path / "sshd.log").read_text())
        yield tmp_path


def run(home: pathlib.Path, **settings: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "HOME": str(home), **settings}
    environment["DASK_TEMPORARY_DIRECTORY"] = str(home / "scratch")
    command = [sys.executable, JOB, "lo", "127.0.0.1", "127.0.0.1"]
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=250, check=False)


def test_smoke_job_runs_over_ssh_and_leaves_nothing(home, record_property):
    make_security(home)
    files = {"CERT": str(home / "certificate.pem"), "KEY": str(home / "key.pem")}
    settings = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": files["CERT"]}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        settings |= {f"DASK_DISTRIBUTED__COMM__TLS__{role}__{what}": file for what, file in files.items()}
    began = time.monotonic()
    before = dask_processes()
    done = run(home, **settings)
    assert done.returncode == 0, done.stderr
    assert "2 cpu ranks" in done.stdout
    assert "all validated" in done.stdout
    wait_until(lambda: dask_processes() <= before)
    version = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=True).stderr.split()[0].rstrip(",")
    record_property("recipe", {"recipe": "ssh, two workers", "ssh": version, "test_s": round(time.monotonic() - began)})


def dask_processes() -> set[int]:
    """Return the ids of processes that SSHCluster starts."""
    found = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if "distributed.cli.dask_spec" in process.cmdline():
                found.add(process.pid)
    return found


def test_cluster_without_certificates_is_refused(home):
    done = run(home)
    assert done.returncode == 1
    assert done.stderr == "set the certificates of Dask's TLS, which docs/deploy-ssh.md shows how to make\n"
