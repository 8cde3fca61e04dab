"""Report facts of a process of a Dask cluster: `mgraph doctor` runs this on the scheduler and on workers."""

from __future__ import annotations

import importlib.metadata
import ipaddress
import platform
import socket
from typing import Any

import psutil

import mgraph
from mgraph.cluster.devices import cuda_is_installed, visible_gpus


def process_facts() -> dict[str, Any]:
    """Return versions, the host, the GPU that a rank would use, and addresses that other hosts can reach."""
    gpus = visible_gpus() if cuda_is_installed() else []
    versions = {name: importlib.metadata.version(name) for name in ("numpy", "numba", "dask", "distributed")}
    return {
        "versions": {"mgraph": mgraph.__version__, "python": ".".join(platform.python_version_tuple()[:2])} | versions,
        "host": socket.gethostname(),
        "gpu": gpus[0].uuid if gpus else "",
        "open": open_addresses(),
    }


def open_addresses() -> list[str]:
    """Return the addresses, other than those of the loopback interface, on which this process listens."""
    process = psutil.Process()
    # Renamed in psutil 6.
    connections = getattr(process, "net_connections", None) or process.connections
    listening = {(c.laddr.ip, c.laddr.port) for c in connections("inet") if c.status == psutil.CONN_LISTEN}
    return [f"{ip}:{port}" for ip, port in sorted(listening) if not ipaddress.ip_address(ip).is_loopback]
