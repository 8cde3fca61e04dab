"""Import pyarrow where it is used: it takes a tenth of a second, and only the extra `io` installs it."""

from __future__ import annotations

import importlib
from typing import Any

from mgraph.errors import UsageError


def require_pyarrow(what_needs: str, *modules: str) -> Any:
    """Return pyarrow with these modules of it, or refuse with how to install it; `what_needs` is as "Parquet needs"."""
    try:
        for name in ("pyarrow", *(f"pyarrow.{module}" for module in modules)):
            importlib.import_module(name)
    except ImportError:
        raise UsageError(f"{what_needs} pyarrow: pip install pyarrow") from None
    return importlib.import_module("pyarrow")
