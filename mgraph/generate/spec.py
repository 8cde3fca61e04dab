"""Parse specs such as rmat:20 or grid:4096x4096,drop=0.2, the command line's names of generated graphs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from mgraph.edges import EdgeSource
from mgraph.errors import UsageError
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.generate.ssca2 import Ssca2
from mgraph.generate.uniform import FixedOutDegree, Uniform

# Kind -> (generator, usage, maximal number of values between colons).
KINDS: dict[str, tuple[Callable[..., EdgeSource], str, int]] = {
    "rmat": (Rmat, "rmat:SCALE[:EDGE_FACTOR]", 2),
    "uniform": (Uniform, "uniform:VERTICES:DEGREE", 2),
    "fixed": (FixedOutDegree, "fixed:VERTICES:OUT_DEGREE", 2),
    "grid": (Grid, "grid:ROWSxCOLUMNS[:DROP]", 3),
    "ssca2": (Ssca2, "ssca2:SCALE[:MAX_CLIQUE]", 2),
}
TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
WORDS_FOR_NONE = ("none", "no")


def is_spec(text: str) -> bool:
    """Return whether `text` begins as a spec, and so is not a path."""
    return text.partition(":")[0] in KINDS and ":" in text


def parse_spec(text: str) -> EdgeSource:
    """Return the generator that a spec describes.

    A kind, its sizes between colons, then options after commas, each a field of the generator:
    `rmat:20`, `rmat:20:8`, `rmat:20,edge_factor=8,seed=3,weights=float32`, `uniform:2^24:16`,
    `grid:4096x4096,drop=0.2`, `ssca2:16`, `fixed:1000000:5`. Numbers may be powers such as 2^24.
    """
    head, *options = text.split(",")
    kind, *values = head.split(":")
    if kind not in KINDS:
        raise UsageError(f"{text!r} is no spec, which begins with {', '.join(KINDS)}")
    make, usage, max_values = KINDS[kind]
    if kind == "grid" and values:
        values = [*values[0].split("x"), *values[1:]]
    fields = {field.name: field for field in dataclasses.fields(make)}  # type: ignore[arg-type]
    required = [name for name, field in fields.items() if field.default is dataclasses.MISSING]
    if len(values) > max_values:
        raise UsageError(f"{text!r}: expected {usage}")
    given = dict(zip(fields, values, strict=False))
    for option in options:
        name, equals, value = option.strip().partition("=")
        if not equals or name not in fields:
            raise UsageError(f"{text!r}: {option.strip()!r} is not NAME=VALUE with a name of {', '.join(fields)}")
        if name in given:
            raise UsageError(f"{text!r}: {name} is given twice")
        given[name] = value
    if missing := [name for name in required if name not in given]:
        raise UsageError(f"{text!r}: {missing[0]} is missing, expected {usage}")
    try:
        return make(**{name: _value(name, str(fields[name].type), value.strip()) for name, value in given.items()})
    except UsageError as error:
        raise UsageError(f"{text!r}: {error}") from None


def _value(name: str, kind: str, text: str) -> Any:
    """Return the value of a field with the annotation `kind`."""
    if name == "weights":
        return None if text in WORDS_FOR_NONE else text
    if kind == "bool":
        if text not in TRUTHS:
            raise UsageError(f"{name} {text!r} is not one of {', '.join(TRUTHS)}")
        return TRUTHS[text]
    if power := re.fullmatch(r"(\d{1,20})\^(\d{1,2})", text):
        return int(power[1]) ** int(power[2])
    try:
        return int(text) if re.fullmatch(r"[+-]?\d+", text) or "float" not in kind else float(text)
    except ValueError:
        raise UsageError(f"{name} {text!r} is not a {'number' if 'float' in kind else 'whole number'}") from None
