"""Where no scheduler is, or one that wants TLS, it is said at once and by name; no client is left half made."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading

import pytest
from cli_runs import ENVIRONMENT, start
from dask_processes import dask_process, make_security, scheduler_by_hand, wait_until, worker_by_hand
from distributed import Client

import mgraph as mg
from mgraph.cluster import scheduler_address

CERTIFICATES = {
    "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": "certificate.pem",
    "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT": "certificate.pem",
    "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY": "key.pem",
}
# Far below what a client would take: 20 s and more, or no end.
ENDS_S = 60


@pytest.fixture(scope="module")
def authorities(tmp_path_factory):
    """Make the certificates of two authorities, the scheduler's and another."""
    folders = [tmp_path_factory.mktemp(name) for name in ("own", "other")]
    for folder in folders:
        make_security(folder)
    return folders


@pytest.fixture(scope="module")
def tls_address(authorities, tmp_path_factory):
    folder, file = authorities[0], tmp_path_factory.mktemp("scheduler") / "scheduler.json"
    options = ["--tls-ca-file", "certificate.pem", "--tls-cert", "certificate.pem", "--tls-key", "key.pem"]
    options = [str(folder / word) if word.endswith(".pem") else word for word in options]
    where = ["--protocol", "tls", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file), "--no-dashboard"]
    with dask_process("scheduler", *where, *options):
        wait_until(lambda: file.exists() and file.read_text())
        yield scheduler_address.read_scheduler_file(str(file))


def environment(folder=None, **files: str) -> dict[str, str]:
    """Return what tells a command of the certificates of a folder."""
    given = {name: str(folder / file) for name, file in CERTIFICATES.items()} if folder else {}
    return given | files


def said(address: str, given: dict[str, str], code: int) -> str:
    """Run a command on the scheduler; return the one line that it must end in."""
    process = start("info", "rmat:4", "--scheduler", address, "--open-timeout", "1", env={**ENVIRONMENT, **given})
    _, err = process.communicate(timeout=ENDS_S)
    assert process.returncode == code, err
    assert "Traceback" not in err
    (line,) = err.splitlines()
    return line


def test_tls_without_certificates_says_which_to_give(tls_address):
    line = said(tls_address, environment(), 2)
    assert f"{tls_address} wants TLS, and not set is distributed.comm.tls.ca-file and " in line
    assert "DASK_DISTRIBUTED__COMM__TLS__CA_FILE" in line


def test_certificates_of_another_authority(tls_address, authorities):
    line = said(tls_address, environment(authorities[1]), 4)
    assert f"what listens at {tls_address} does not answer as a Dask scheduler (TLS certificate does not match" in line


def test_a_certificate_that_is_no_file(tls_address, authorities):
    line = said(tls_address, environment(authorities[0], DASK_DISTRIBUTED__COMM__TLS__CA_FILE="/no/such.pem"), 2)
    assert "wants TLS, and there is no file /no/such.pem (distributed.comm.tls.ca-file)" in line


def test_a_certificate_that_is_none(tls_address, authorities):
    line = said(tls_address, environment(authorities[0], DASK_DISTRIBUTED__COMM__TLS__CA_FILE="/etc/passwd"), 2)
    assert f"the certificates for {tls_address} cannot be read" in line


def test_tcp_where_tls_is_wanted(tls_address):
    line = said(tls_address.replace("tls://", "tcp://"), environment(), 4)
    assert "does not answer as a Dask scheduler" in line
    assert "if it wants TLS, give tls://" in line


def test_the_right_certificates_reach_the_scheduler(tls_address, authorities):
    # It has no workers.
    assert "1 worker wanted, 0 there after 1 s" in said(tls_address, environment(authorities[0]), 4)


class Refusing(http.server.BaseHTTPRequestHandler):
    """A server that answers all in HTTP."""

    def log_message(self, *args):
        pass

    def handle_one_request(self):
        self.wfile.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        self.close_connection = True


@contextlib.contextmanager
def http_server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def silent_server():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@contextlib.contextmanager
def no_server():
    # Bound, so that no other process gets the port meanwhile, and without a listener.
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (http_server, "what listens at .* does not answer as a Dask scheduler"),
        (silent_server, "something listens at .*, and did not answer as a Dask scheduler within 1.5 s"),
        (no_server, "no scheduler answers at .*Timed out"),
    ],
)
def test_what_is_no_scheduler_is_named(server, message, monkeypatch):
    monkeypatch.setattr(scheduler_address, "SCHEDULER_S", 1.5)
    clients = set(Client._instances)
    with server() as port, pytest.raises(mg.ClusterError, match=message):
        mg.connect(scheduler=f"tcp://127.0.0.1:{port}")
    assert set(Client._instances) == clients


def test_a_worker_is_no_scheduler(tmp_path):
    with scheduler_by_hand(tmp_path) as (_, file), worker_by_hand(file), Client(scheduler_file=file) as client:
        client.wait_for_workers(1, timeout=30)
        (worker,) = client.scheduler_info()["workers"]
        with pytest.raises(
            mg.UsageError, match=f"{worker} is the address of a Dask worker: give that of its scheduler"
        ):
            mg.connect(scheduler=worker)
