"""Read settings: the section `mgraph` of Dask's configuration, over the defaults of `mgraph.yaml`.

Dask takes a tenth of a second to import: it is asked only where it is loaded already, or where an environment variable
or a file configures mgraph.
"""

from __future__ import annotations

import functools
import math
import numbers
import os
import pathlib
import site
import sys
from collections.abc import Iterator
from typing import Any

from mgraph.errors import UsageError

SECTION = "mgraph"
# By these variables Dask is given settings of mgraph, or files of settings.
VARIABLES = ("DASK_MGRAPH__", "DASK_INTERNAL_INHERIT_CONFIG")


def setting(name: str) -> Any:
    """Return a setting, such as `timeouts.verb`."""
    default = functools.reduce(dict.__getitem__, name.split("."), defaults()[SECTION])
    # The end of a `with dask.config.set(...)` that began before the defaults were there removes them.
    return _dask_config().get(f"{SECTION}.{name}", default) if _is_configured() else default


def seconds(name: str) -> float:
    """Return a setting that is a positive time."""
    value = setting(name)
    if isinstance(value, str):
        from dask.utils import parse_timedelta

        try:
            value = parse_timedelta(value)
        except (ValueError, KeyError):
            raise _wrong(name, value, "a positive number of seconds, or text such as 5 minutes") from None
    if not _is_positive(value):
        raise _wrong(name, value, "a positive number of seconds")
    return float(value)


def share(name: str) -> float:
    """Return a setting that is a positive share; 1 and more is all."""
    value = setting(name)
    if not _is_positive(value):
        raise _wrong(name, value, "a positive number, such as 0.02")
    return float(value)


def _is_positive(value: Any) -> bool:
    """Return whether a value is a finite number above 0; True and False are none."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and 0 < value < math.inf


def folder(name: str) -> str | None:
    """Return a setting that is an existing folder, or None."""
    value = setting(name)
    if value is not None and not (isinstance(value, str) and os.path.isdir(os.path.expanduser(value))):
        raise _wrong(name, value, "an existing folder")
    return None if value is None else os.path.expanduser(value)


def choice(name: str, *values: str) -> str:
    """Return a setting that is one of some words."""
    value = setting(name)
    # YAML reads the word off as False, as in a variable or a file.
    value = "off" if value is False else value
    if value not in values:
        raise _wrong(name, value, " or ".join(values))
    return value


def count(name: str) -> int | None:
    """Return a setting that is a positive integer, or None."""
    value = setting(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise _wrong(name, value, "a positive integer")
    return value


def num_bytes(name: str) -> int | None:
    """Return a setting that is a positive amount of memory, or None."""
    value = setting(name)
    if isinstance(value, str):
        from dask.utils import parse_bytes

        try:
            value = parse_bytes(value)
        except ValueError:
            raise _wrong(name, value, "a positive number of bytes, or text such as 24 GiB") from None
    if value is not None and not (_is_positive(value) and value >= 1):
        raise _wrong(name, value, "a positive number of bytes, or text such as 24 GiB")
    return None if value is None else int(value)


@functools.cache
def defaults() -> dict[str, Any]:
    """Return the contents of `mgraph.yaml`."""
    import yaml

    return yaml.safe_load(pathlib.Path(__file__).with_name("mgraph.yaml").read_text())


@functools.cache
def _dask_config() -> Any:
    """Return Dask's configuration, once the defaults are in it."""
    import dask.config

    dask.config.update_defaults(defaults())
    return dask.config


def _is_configured() -> bool:
    if "dask.config" in sys.modules or any(name.startswith(VARIABLES) for name in os.environ):
        return True
    return any(SECTION in _text(path) for path in _files())


def _text(path: pathlib.Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        # Dask passes over a file that it cannot read.
        return ""


def _files() -> Iterator[pathlib.Path]:
    """Yield the files from which Dask would read its configuration."""
    given = [os.environ.get("DASK_ROOT_CONFIG", "/etc/dask"), os.environ.get("DASK_CONFIG")]
    prefixes = [f"{prefix}/etc/dask" for prefix in (sys.prefix, *site.PREFIXES)]
    for place in (*given, *prefixes, "~/.config/dask"):
        path = pathlib.Path(os.path.expanduser(place)) if place else None
        if path is not None:
            yield from (path.glob("*.[yj]*") if path.is_dir() else [path])


def _wrong(name: str, value: object, wanted: str) -> UsageError:
    variable = f"DASK_{SECTION}__{name.replace('.', '__').replace('-', '_')}".upper()
    return UsageError(f"the setting {SECTION}.{name} ({variable}) is {value!r}: give {wanted}")
