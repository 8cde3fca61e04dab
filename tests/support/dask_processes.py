"""Starts Dask processes, and inspects them for cluster tests."""

from __future__ import annotations

import contextlib
import datetime
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import psutil
from distributed import Security

ROOT = pathlib.Path(__file__).parents[2]
_PATHS = filter(None, (str(ROOT), str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH")))
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(_PATHS)}


def held(dask_worker) -> int:
    """Count the objects that a worker stores for ranks."""
    return sum(len(objects) for objects in dask_worker.plugins["mgraph"]._objects.values())


def held_keys(dask_worker) -> set[str]:
    """Return the keys of the objects that a worker stores for ranks."""
    return {key for objects in dask_worker.plugins["mgraph"]._objects.values() for key in objects}


def wait_until(condition, timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@contextlib.contextmanager
def dask_process(*command: str, environment=ENVIRONMENT):
    """Run a dask command for the duration of the context."""
    # `python -m` searches its working directory first, which must not contain mgraph.
    running = subprocess.Popen(
        [sys.executable, "-m", "dask", *command],
        env=environment,
        cwd=ROOT / "tests",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield running
    finally:
        running.send_signal(signal.SIGINT)
        try:
            running.wait(10)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


@contextlib.contextmanager
def scheduler_by_hand(folder: pathlib.Path, environment=ENVIRONMENT):
    """Start a scheduler by Dask's command; yield its process and its scheduler file."""
    file = folder / "scheduler.json"
    options = "--port", "0", "--no-dashboard", "--host", "127.0.0.1", "--scheduler-file", str(file)
    with dask_process("scheduler", *options, environment=environment) as process:
        wait_until(lambda: file.exists() and file.read_text())
        yield process, str(file)


def worker_by_hand(file: str, environment=ENVIRONMENT):
    """Start a worker by Dask's command, for the scheduler of a file."""
    options = "--scheduler-file", file, "--nthreads", "1", "--no-dashboard", "--no-nanny"
    return dask_process("worker", *options, environment=environment)


@contextlib.contextmanager
def stopped(pid: int):
    """Stop a process: all its threads, which go on for a moment after the signal, have stopped when this begins."""
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: set(_thread_states(pid)) == {"T"})
        yield
    finally:
        # The nanny may have killed the process meanwhile.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _thread_states(pid: int) -> list[str]:
    """Return R, S, T and so on for each thread; its name, before, may have spaces."""
    return [file.read_text().rpartition(") ")[2][0] for file in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]


def free_ports(count: int) -> list[int]:
    """Return ports on which nothing listens."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def listening(pids) -> set[tuple[str, int]]:
    """Return the addresses and ports on which processes listen."""
    sockets = set()
    for link in (link for pid in pids for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()):
        with contextlib.suppress(OSError):  # closed meanwhile
            sockets.add(os.readlink(link))
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in sockets:
                address, port = local.split(":")
                words = bytes.fromhex(address)
                # Words of 32 bits, each in this machine's byte order.
                packed = b"".join(
                    words[i : i + 4][:: -1 if sys.byteorder == "little" else 1] for i in range(0, len(words), 4)
                )
                found.add((socket.inet_ntop(family, packed), int(port, 16)))
    return found


def processes_below(pid: int) -> list[int]:
    """Return the ids of a process and of all its descendants."""
    process = psutil.Process(pid)
    return [pid, *(child.pid for child in process.children(recursive=True))]


def make_security(folder: pathlib.Path) -> Security:
    """Make a self-signed certificate, and the Security of a Dask cluster that uses it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mgraph test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    files = str(folder / "certificate.pem"), str(folder / "key.pem")
    ends = {
        f"tls_{end}_{what}": file
        for end in ("client", "scheduler", "worker")
        for what, file in zip(("cert", "key"), files, strict=True)
    }
    return Security(tls_ca_file=files[0], require_encryption=True, **ends)
