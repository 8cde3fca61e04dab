"""Graph traversal on a Dask cluster of GPUs, or on a laptop with none.

The public names are loaded at first use, so that `import mgraph` is light: no CuPy, Dask, Numba or SciPy.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public name -> the module it comes from.
_HOMES = {
    "MgraphError": "mgraph.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mgraph' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
