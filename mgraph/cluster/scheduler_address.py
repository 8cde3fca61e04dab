"""Checks the address of a scheduler, and that one answers there, before a client is created.

Dask's client retries addresses that cannot succeed, waits without a deadline for the first answer of any listening
service, and is left half constructed when that fails.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from concurrent.futures import Future, wait
from typing import Any

import dask
from distributed import Security
from distributed.comm import CommClosedError, connect
from distributed.comm.addressing import get_address_host_port

from mgraph.cluster.log import QUIET_WAIT_S, log_of
from mgraph.config import settings
from mgraph.errors import ClusterError, UsageError

# Dask's settings for TLS, by the field of its Security.
TLS_SETTINGS = {
    "tls_ca_file": "distributed.comm.tls.ca-file",
    "tls_client_cert": "distributed.comm.tls.client.cert",
    "tls_client_key": "distributed.comm.tls.client.key",
}
TLS_ADVICE = (
    "set them in Dask's configuration, or in the environment as DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
    "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"
)


def describe_tls() -> str:
    """Describe whether Dask's configuration protects this user's clusters by TLS."""
    if all(getattr(Security(), name) for name in TLS_SETTINGS):
        return "certificates are set, for addresses such as tls://host:8786"
    address = dask.config.get("scheduler-address", None)
    configured = f"; Dask's scheduler-address {address} is without" if address and "tls://" not in address else ""
    return f"no certificates are set{configured}: whoever reaches a port of Dask runs code as its user"


def read_scheduler_file(path: str) -> str:
    """Return the address in a scheduler file; wait for the file, since a batch job starts both at once."""
    timeout_s = settings.seconds("timeouts.scheduler-file")
    began = time.monotonic()
    is_logged = False
    while True:
        text = ""
        try:
            with open(path) as file:
                text = file.read()
            return str(json.loads(text)["address"])
        except FileNotFoundError:
            pass
        except (OSError, ValueError, LookupError, TypeError):
            # An empty file is still being written.
            if text.strip() or os.path.isdir(path):
                raise UsageError(f"{path} is not a scheduler file: it contains no address") from None
        waited = time.monotonic() - began
        if waited > QUIET_WAIT_S and not is_logged:
            log_of(None, "connect").warning("waits for the scheduler file %s", path)
            is_logged = True
        if waited > timeout_s:
            folder = os.path.dirname(os.path.abspath(path))
            missing = "" if os.path.isdir(folder) else f", nor is its folder {folder}"
            raise ClusterError(
                f"{path} was not there after {timeout_s:g} s{missing}: check that a scheduler runs with "
                f"--scheduler-file {path}, and that this host shares the folder; mgraph.timeouts.scheduler-file waits "
                "longer"
            )
        time.sleep(0.05)


def check_address(address: str) -> str:
    """Return the address with its protocol; refuse an invalid one, which a client would retry for a minute."""
    full = address if "://" in address else f"tcp://{address}"
    try:
        if not full.startswith(("inproc://", "ucx://")):
            get_address_host_port(full, strict=True)
    except ValueError as error:
        raise UsageError(f"{address!r} is not an address of a scheduler, such as tcp://host:8786 ({error})") from None
    return full


def require_scheduler(address: str) -> None:
    """Raise an error unless a scheduler answers at the address before its deadline."""
    if not address.startswith(("tcp://", "tls://")):
        return
    arguments = _connection_arguments(address)
    identity: Future[dict] = Future()
    # In an event loop of its own: the caller's may be running, as in a notebook.
    threading.Thread(target=_probe, args=(address, arguments, identity), name="mgraph-probe", daemon=True).start()
    if not wait([identity], QUIET_WAIT_S).done:
        log_of(None, "connect").warning("waits for an answer of the scheduler at %s", address)
    try:
        kind = identity.result()["type"]
    except ClusterError:
        raise
    # Any error: the first bytes of another service, read as a number of frames, can raise even a MemoryError.
    except Exception as error:
        why = str(error) or repr(error)
        hint = (
            "are the certificates of one authority?"
            if address.startswith("tls://")
            else "if it requires TLS, give tls://"
        )
        raise ClusterError(
            f"what listens at {address} does not answer as a Dask scheduler ({why:.200}): {hint}"
        ) from error
    if kind != "Scheduler":
        raise UsageError(f"{address} is the address of a Dask {kind.lower()}: give that of its scheduler")


def _connection_arguments(address: str) -> dict[str, Any]:
    """Return Dask's arguments for a connection; an error names the settings that TLS lacks."""
    security = Security()
    files = {setting: getattr(security, name) for name, setting in TLS_SETTINGS.items()}
    if not address.startswith("tls://"):
        if security.require_encryption:
            raise UsageError(f"Dask's setting distributed.comm.require-encryption refuses {address}: give tls://...")
        return security.get_connection_args("client")
    for setting, file in files.items():
        # A setting may also contain the text of a certificate.
        if file and "\n" not in file and not os.path.isfile(file):
            raise UsageError(f"{address} requires TLS, but there is no file {file} ({setting})")
    missing = [setting for setting, file in files.items() if not file and not setting.endswith(".key")]
    if missing:
        raise UsageError(f"{address} requires TLS, but these are not set: {' and '.join(missing)}; {TLS_ADVICE}")
    try:
        return security.get_connection_args("client")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the certificates for {address} cannot be read ({error}): see {', '.join(TLS_SETTINGS.values())}"
        ) from error


def _probe(address: str, arguments: dict[str, Any], identity: Future[dict]) -> None:
    try:
        identity.set_result(asyncio.run(_request_identity(address, arguments)))
    except BaseException as error:
        identity.set_exception(error)


async def _request_identity(address: str, arguments: dict[str, Any]) -> dict:
    """Request the identity of the service that listens at an address."""
    connected = None
    timeout_s = settings.seconds("timeouts.scheduler")
    try:
        async with asyncio.timeout(timeout_s):
            try:
                connected = await connect(address, timeout=0.9 * timeout_s, **arguments)
            except CommClosedError:
                raise
            except OSError as error:
                raise ClusterError(f"no scheduler answers at {address} ({error})") from error
            await connected.write({"op": "identity", "reply": True})
            return await connected.read()
    except TimeoutError:
        raise ClusterError(
            f"something listens at {address}, and did not answer as a Dask scheduler within {timeout_s:g} s: "
            "is it one, and not stopped? mgraph.timeouts.scheduler waits longer"
        ) from None
    finally:
        if connected is not None:
            connected.abort()
