"""Read edge attributes as numbers, and refuse those that NetworkX and the searches would add differently."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgraph.nx_backend.ranks import LeftToNetworkX


def as_column(values: list[Any]) -> Any:
    """Return values of one type, int or float, as an array; others as they are."""
    kind, *others = set(map(type, values)) or {type(None)}
    is_float = issubclass(kind, (float, np.floating))
    if others or kind is bool or not (is_float or issubclass(kind, (int, np.integer))):
        return values
    column = np.array(values)
    # NumPy reads integers beyond 64 bits as objects, unsigned ones as uint64, and both kinds together as floats.
    return column if column.dtype.kind == ("f" if is_float else "i") else values


def as_python(value: Any) -> Any:
    """Return a value of a column as Python has it."""
    return value.item() if isinstance(value, np.generic) else value


def checked_weights(values: Any, attribute: Any, num_nodes: int) -> np.ndarray | None:
    """Return the lengths of arcs; None if each is the integer 1."""
    refused = f"the attribute {attribute!r} is no length that mgraph adds as NetworkX does: "
    if not isinstance(values, np.ndarray):
        if not values:
            return None
        names = ", ".join(sorted(kind.__name__ for kind in set(map(type, values))))
        raise LeftToNetworkX(f"{refused}its values are of type {names}, not all 64-bit integers or all floats")
    least = values.min()
    greatest = values.max()
    if not least >= 0:
        raise LeftToNetworkX(f"{refused}shortest paths need weights that are not negative, and one is {least}")
    if values.dtype.kind == "f" and greatest > np.finfo(values.dtype).max / num_nodes:
        raise LeftToNetworkX(f"{refused}a sum of {num_nodes} weights up to {greatest} is not finite")
    if values.dtype.kind == "i" and int(greatest) * num_nodes >= np.iinfo(np.int64).max:
        raise LeftToNetworkX(f"{refused}a sum of {num_nodes} weights up to {greatest} is beyond 64 bits")
    if values.dtype.kind == "i" and least == greatest == 1:
        return None
    return values
