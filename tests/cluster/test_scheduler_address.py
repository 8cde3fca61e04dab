"""Addresses without a scheduler, or with one that requires TLS, raise a named error at once and leave no client."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading

import dask
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
# A client alone would take 20 s and more, or hang.
ENDS_S = 60


@pytest.fixture(scope="module")
def authorities(tmp_path_factory):
    """Make the certificates of two authorities: the scheduler's and another."""
    folders = [tmp_path_factory.mktemp(name) for name in ("own", "other")]
    for folder in folders:
        make_security(folder)
    return folders


@pytest.fixture(scope="module")
def tls_address(authorities, tmp_path_factory):
    folder = authorities[0]
    file = tmp_path_factory.mktemp("scheduler") / "scheduler.json"
    options = ["--tls-ca-file", "certificate.pem", "--tls-cert", "certificate.pem", "--tls-key", "key.pem"]
    options = [str(folder / word) if word.endswith(".pem") else word for word in options]
    place = ["--protocol", "tls", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file), "--no-dashboard"]
    with dask_process("scheduler", *place, *options):
        wait_until(lambda: file.exists() and file.read_text())
        yield scheduler_address.read_scheduler_file(str(file))


def environment(folder=None, **files: str) -> dict[str, str]:
    """Return the environment variables that configure the certificates of a folder."""
    variables = {name: str(folder / file) for name, file in CERTIFICATES.items()} if folder else {}
    return variables | files


def error_line(address: str, variables: dict[str, str], code: int) -> str:
    """Run a command on the scheduler that must fail; return its only line of output."""
    process = start("info", "rmat:4", "--scheduler", address, "--open-timeout", "1", env={**ENVIRONMENT, **variables})
    _, err = process.communicate(timeout=ENDS_S)
    assert process.returncode == code, err
    assert "Traceback" not in err
    (line,) = err.splitlines()
    return line


@pytest.mark.ci
def test_tls_without_certificates_names_the_missing_settings(tls_address):
    line = error_line(tls_address, environment(), 2)
    assert f"{tls_address} requires TLS, but these are not set: distributed.comm.tls.ca-file and " in line
    assert "DASK_DISTRIBUTED__COMM__TLS__CA_FILE" in line


@pytest.mark.ci
def test_certificates_of_another_authority_are_refused(tls_address, authorities):
    line = error_line(tls_address, environment(authorities[1]), 4)
    assert f"what listens at {tls_address} does not answer as a Dask scheduler (TLS certificate does not match" in line


def test_missing_certificate_file_is_named(tls_address, authorities):
    line = error_line(tls_address, environment(authorities[0], DASK_DISTRIBUTED__COMM__TLS__CA_FILE="/no/such.pem"), 2)
    assert "requires TLS, but there is no file /no/such.pem (distributed.comm.tls.ca-file)" in line


@pytest.mark.ci
def test_file_that_is_no_certificate_is_refused(tls_address, authorities):
    line = error_line(tls_address, environment(authorities[0], DASK_DISTRIBUTED__COMM__TLS__CA_FILE="/etc/passwd"), 2)
    assert f"the certificates for {tls_address} cannot be read" in line


@pytest.mark.ci
def test_tcp_address_of_a_tls_scheduler_is_refused(tls_address):
    line = error_line(tls_address.replace("tls://", "tcp://"), environment(), 4)
    assert "does not answer as a Dask scheduler" in line
    assert "if it requires TLS, give tls://" in line


def test_matching_certificates_connect_to_the_scheduler(tls_address, authorities):
    # The error is that the scheduler has no workers.
    assert "1 worker needed, 0 present after 1 s" in error_line(tls_address, environment(authorities[0]), 4)


class Refusing(http.server.BaseHTTPRequestHandler):
    """A server that replies to everything in HTTP."""

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
    ("server", "message", "waits"),
    [
        (http_server, "what listens at .* does not answer as a Dask scheduler", False),
        (silent_server, "something listens at .*, and did not answer as a Dask scheduler within 1.5 s", True),
        (no_server, "no scheduler answers at .*Timed out", True),
    ],
)
def test_address_without_a_scheduler_is_named(server, message, waits, monkeypatch, caplog):
    monkeypatch.setattr(scheduler_address, "QUIET_WAIT_S", 1.0)
    clients = set(Client._instances)
    soon = dask.config.set({"mgraph.timeouts.scheduler": "1500ms"})
    with soon, server() as port, pytest.raises(mg.ClusterError, match=message):
        mg.connect(scheduler=f"tcp://127.0.0.1:{port}")
    assert set(Client._instances) == clients
    said = f"waits for an answer of the scheduler at tcp://127.0.0.1:{port}"
    assert [record.getMessage() for record in caplog.records if record.name == "mgraph"] == [said] * waits


@pytest.mark.ci
def test_address_of_a_worker_is_refused(tmp_path):
    with scheduler_by_hand(tmp_path) as (_, file), worker_by_hand(file), Client(scheduler_file=file) as client:
        client.wait_for_workers(1, timeout=30)
        (worker,) = client.nthreads()
        with pytest.raises(
            mg.UsageError, match=f"{worker} is the address of a Dask worker: give that of its scheduler"
        ):
            mg.connect(scheduler=worker)
