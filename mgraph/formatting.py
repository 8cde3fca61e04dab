"""Format numbers for people: counts with their nouns, bytes and seconds."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 vertex, 2,048 vertices."""
    plural = {"vertex": "vertices", "search": "searches"}.get(noun, f"{noun}s")
    return f"{count:,} {noun if count == 1 else plural}"


def readable_bytes(num_bytes: float) -> str:
    """Return a number of bytes with a binary unit: 1.5 GiB."""
    for unit in ("B", "KiB", "MiB"):
        if abs(num_bytes) < 1024:
            return f"{num_bytes:.0f} {unit}" if abs(num_bytes) >= 100 else f"{num_bytes:.3g} {unit}"
        num_bytes /= 1024
    for unit in ("GiB", "TiB", "PiB"):
        if abs(num_bytes) < 1024:
            return f"{num_bytes:.1f} {unit}"
        num_bytes /= 1024
    return f"{num_bytes:,.1f} EiB"


def readable_seconds(seconds: float) -> str:
    """Return a time with its unit: 20 us, 3.1 ms, 12 s."""
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds * 1e6:.3g} us"
