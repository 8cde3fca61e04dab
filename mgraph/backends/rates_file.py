"""The memory rates of the device: measured once, stored in the user's cache folder.

Searches choose between kernels by the rates; results do not depend on them. A file that is absent, unreadable, or of
another device, driver or measurement is no error: the device is measured again. If the folder cannot be written, the
measurement serves this process alone. Processes that measure at the same time each write a whole file, and any of
them is valid.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import tempfile
import zlib
from typing import Any

from mgraph.backends.base import PersistentBackend
from mgraph.backends.device_model import Rates
from mgraph.backends.rates import SIZES_MIB, measure
from mgraph.config import settings

# Increment when the results of measure() change their meaning: stored files become invalid.
VERSION = 1
SIZES = tuple(size << 20 for size in SIZES_MIB)
# The default for a device without the memory for a measurement, or disturbed by other processes: NVIDIA H200, by
# `bench/rates.py`.
H200 = Rates(
    sizes=SIZES,
    loads=(5780, 6290, 7190, 13160, 19230, 25000),
    atomics=(9620, 9530, 10200, 27030, 46300, 61000),
    stream=245_000,
    grid_barrier=1_100_000_000,
    load_wait=146_000_000,
    atomic_wait=200_000_000,
)


def require_rates(backend: PersistentBackend) -> Rates:
    """Return the rates of the device: read from the cache folder, or measured now."""
    if backend.rates is None:
        backend.rates = _read(backend) or _measure_and_write(backend)
    return backend.rates


def rates_file(backend: PersistentBackend) -> pathlib.Path:
    """Return the path of the file for the rates of this device."""
    chosen = settings.folder("cache-folder") or os.environ.get("XDG_CACHE_HOME")
    folder = pathlib.Path(chosen or pathlib.Path.home() / ".cache")
    name = re.sub(r"[^a-z0-9]+", "-", str(backend.device_facts()["name"]).lower())
    return folder / "mgraph" / f"rates-{name}-{zlib.crc32(json.dumps(_identity(backend)).encode()):08x}.json"


def stored_rates_file(backend: PersistentBackend) -> pathlib.Path | None:
    """Return the existing file with the rates of this device, or None."""
    try:
        path = rates_file(backend)
    except RuntimeError:
        return None
    return path if path.exists() else None


def _identity(backend: PersistentBackend) -> dict[str, str | int]:
    """Return what a stored measurement must agree with."""
    return {"measurement": VERSION, **backend.device_facts()}


def _read(backend: PersistentBackend) -> Rates | None:
    try:
        found = json.loads(rates_file(backend).read_text())
        if found["device"] != _identity(backend):
            return None
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in found["rates"].items()}
        rates = Rates(**fields)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return rates if rates.is_sound() else None


def _measure_and_write(backend: PersistentBackend) -> Rates:
    # Half of the free memory is left for the search.
    rates = measure(backend, SIZES) if backend.free_bytes() >= 2 * SIZES[-1] else None
    backend.release()
    if rates is None or not rates.is_sound() or not rates.is_undisturbed():
        return H200
    _write(backend, rates)
    return rates


def _write(backend: PersistentBackend, rates: Rates) -> None:
    """Write a temporary file and rename it, so that no reader sees a part of it."""
    text = json.dumps({"device": _identity(backend), "rates": dataclasses.asdict(rates)}, indent=1)
    try:
        path = rates_file(backend)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            temporary = pathlib.Path(folder) / path.name
            temporary.write_text(text)
            temporary.replace(path)
    except (OSError, RuntimeError):
        return
