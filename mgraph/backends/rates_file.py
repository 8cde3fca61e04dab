"""What the memory of the device at hand gives: measured once, and kept in the user's cache folder.

Searches choose by it how to take a round, never what comes out. A file that is not there, not readable, or of another
device, driver or measurement is no error: the device is measured again. Where nothing can be written the
measurement serves this process alone. Processes that measure at once each write a whole file; any of them will do.
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

from mgraph.backends.base import FusingBackend
from mgraph.backends.rates import SIZES_MIB, Rates, measure

# To be raised whenever measure() comes to mean something else.
VERSION = 1
SIZES = tuple(size << 20 for size in SIZES_MIB)
# Where a device has no room to be measured, or no rest, it is taken for this one: NVIDIA H200, `bench/rates.py`.
H200 = Rates(
    sizes=SIZES,
    loads=(5780, 6290, 7190, 13160, 19230, 25000),
    atomics=(9620, 9530, 10200, 27030, 46300, 61000),
    stream=245_000,
    meeting=1_100_000_000,
    load_wait=146_000_000,
    atomic_wait=200_000_000,
)


def require_rates(run: FusingBackend) -> Rates:
    """Return the rates of the device, from where an earlier process kept them, or measured now."""
    if run.rates is None:
        run.rates = _kept(run) or _measured(run)
    return run.rates


def rates_file(run: FusingBackend) -> pathlib.Path:
    """Return where the rates of this device are kept."""
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    name = re.sub(r"[^a-z0-9]+", "-", str(run.device_facts()["name"]).lower())
    return folder / "mgraph" / f"rates-{name}-{zlib.crc32(json.dumps(_facts(run)).encode()):08x}.json"


def kept_in(run: FusingBackend) -> pathlib.Path | None:
    """Return the file that has the rates of this device; None where there is none."""
    try:
        path = rates_file(run)
    except RuntimeError:
        return None
    return path if path.exists() else None


def _facts(run: FusingBackend) -> dict[str, str | int]:
    return {"measurement": VERSION, **run.device_facts()}


def _kept(run: FusingBackend) -> Rates | None:
    try:
        found = json.loads(rates_file(run).read_text())
        if found["device"] != _facts(run):
            return None
        words: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in found["rates"].items()}
        rates = Rates(**words)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return rates if rates.is_sound() else None


def _measured(run: FusingBackend) -> Rates:
    # Twice the table: who searches wants some of what is left.
    rates = measure(run, SIZES) if run.free_bytes() >= 2 * SIZES[-1] else None
    run.release()
    if rates is None or not rates.is_sound() or not rates.is_undisturbed():
        return H200
    _keep(run, rates)
    return rates


def _keep(run: FusingBackend, rates: Rates) -> None:
    """Write a file of a name of its own, and then give it the name by which it is found: never half of it."""
    text = json.dumps({"device": _facts(run), "rates": dataclasses.asdict(rates)}, indent=1)
    try:
        path = rates_file(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            new = pathlib.Path(folder) / path.name
            new.write_text(text)
            new.replace(path)
    except (OSError, RuntimeError):
        return
