"""Names and layouts that a persistent kernel and the host share, written once, in Python.

A CUDA file that includes `x.py` receives the C side of each `Shared` of that Python file: an enum for `Names`,
constants for `Constants`, `Offsets` and `ControlLayout`, address functions for `WorkArea`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

ITEM_BYTES = {"u8": 1, "u16": 2, "u32": 4, "i32": 4, "u64": 8, "i64": 8}
# The C type of the items of a work area's part, and their count, which may be a function of the area's sizes.
Part = tuple[str, int | Callable[[Any], Any]]


class Shared(ABC):
    """Names or a layout that CUDA text has too."""

    @abstractmethod
    def c_text(self) -> str:
        """Return the CUDA text."""


class Names(tuple[str, ...], Shared):
    """Consecutive words, or values, in the same order on both sides.

    `Names("Report", "done num_records")` is `enum Report { DONE, NUM_RECORDS, NUM_REPORTS };` in CUDA.
    """

    c_name: str

    def __new__(cls, c_name: str, names: str) -> Names:
        """Split a string of names at its spaces."""
        made = super().__new__(cls, names.split())
        made.c_name = c_name
        return made

    def arranged(self, *, after: int = 0, **values: Any) -> tuple[Any, ...]:
        """Return one value for each name after the first `after`, in the order of the names."""
        names = self[after:]
        if set(names) != values.keys():
            raise TypeError(f"{self.c_name}: {sorted(set(names) ^ values.keys())} are missing or unknown")
        return tuple(values[name] for name in names)

    def c_text(self) -> str:
        """Return the enum as CUDA text."""
        names = ", ".join(name.upper() for name in self)
        return f"enum {self.c_name} {{ {names}, NUM_{self.c_name.upper()}S }};\n"


class Constants(SimpleNamespace, Shared):
    """Integers that have one value on both sides: `x.max_blocks` here is `MAX_BLOCKS` in CUDA."""

    def c_text(self) -> str:
        """Return the constants."""
        return "".join(f"constexpr i64 {name.upper()} = {value};\n" for name, value in vars(self).items())


class Offsets(Shared):
    """The parts of an array of 64-bit words, one after another, by name: the first word of each.

    Attributes
    ----------
    total
        The words of all parts.
    """

    def __init__(self, **lengths: int) -> None:
        *begins, self.total = itertools.accumulate(lengths.values(), initial=0)
        self._begins = dict(zip(lengths, begins, strict=True))

    def __getitem__(self, name: str) -> int:
        return self._begins[name]

    def c_text(self) -> str:
        """Return the offsets as CUDA constants."""
        return "".join(f"constexpr i64 {name.upper()} = {begin};\n" for name, begin in self._begins.items())


class ControlLayout(Shared):
    """The words of a control block: launch parameters, report, trace records, sources.

    Parameters
    ----------
    *parameters
        What the host writes before a launch.
    own
        The first of them, which each search sets; all searches of a shard share the others.
    report
        What the kernel writes at its end.
    record
        The words of one trace record, the first of which says what the superstep did.
    """

    def __init__(self, *parameters: Names, own: str, report: Names, record: Sequence[str]) -> None:
        names = tuple(itertools.chain.from_iterable(parameters))
        self.own = tuple(own.split())
        self.report = report
        self.record = tuple(record)
        self.shared = names[len(self.own) :]
        if names[: len(self.own)] != self.own or len(set(names)) < len(names):
            raise TypeError(f"{own!r} are not the first of {names}, or names repeat")
        self.report_at = len(names)
        self.records_at = self.report_at + len(report)

    def sources_at(self, num_records: int) -> int:
        """Return the first word of the sources, after this many trace records."""
        return self.records_at + num_records * len(self.record)

    def c_text(self) -> str:
        """Return the constants."""
        return f"constexpr i64 REPORT_AT = {self.report_at}, RECORDS_AT = {self.records_at};\n"


class WorkArea(Shared):
    """The parts of a memory block in order, from which both sides compute where each begins.

    Every part is an array: the C type of its items, and their count, an integer or a function of the sizes:

        WORK = WorkArea("Work", "work", counters=("i64", 18), bitmap=("u32", lambda size: 2 * size.words))

    is in CUDA a base of the search that works in the area; `work` is a pointer of that search and `words()` its method:

        template <class S> struct Work {
          __device__ i64* counters() const { return (i64*)(((const S*)this)->work); }
          __device__ u32* bitmap() const { return (u32*)(counters() + 18); }
          __device__ u8* end() const { return (u8*)(bitmap() + (2 * ((const S*)this)->words())); }
        };

    With `start="in + HEAD_BYTES", argument="u8* in"` the functions take the beginning of one of several such areas.
    """

    def __init__(self, c_name: str, start: str, argument: str = "", **parts: Part) -> None:
        self._c_name = c_name
        self._start = start
        self._argument = argument
        self._parts = parts

    def offsets(self, sizes: Mapping[str, int], item_bytes: Mapping[str, int]) -> dict[str, int]:
        """Return the byte at which each part begins, and `end`.

        `item_bytes` has the sizes of C types that depend on the module: vertex_t, dist_t, structs of them.
        """
        bytes_of = {**ITEM_BYTES, **item_bytes}
        at = 0
        begins = {}
        for name, (item, count) in self._parts.items():
            if at % bytes_of[item]:
                raise ValueError(f"{self._c_name}: {name} would begin at byte {at}, between items of {bytes_of[item]}")
            begins[name] = at
            at += bytes_of[item] * (count(SimpleNamespace(**sizes)) if callable(count) else count)
        return {**begins, "end": at}

    def num_bytes(self, sizes: Mapping[str, int], item_bytes: Mapping[str, int]) -> int:
        """Return the bytes of all parts."""
        return self.offsets(sizes, item_bytes)["end"]

    def c_text(self) -> str:
        """Return the struct of address functions."""
        return f"template <class S> struct {self._c_name} {{\n{''.join(self._functions())}}};\n"

    def _functions(self) -> Iterator[str]:
        passed = self._argument.split("*")[-1].strip()
        previous = self._start if passed else f"((const S*)this)->{self._start}"
        for name, (item, count) in (*self._parts.items(), ("end", ("u8", 0))):
            yield f"  __device__ {item}* {name}({self._argument}) const {{ return ({item}*)({previous}); }}\n"
            text = count(_SizeNames()).text if callable(count) else count
            previous = f"{name}({passed}) + {text}"


class _SizeNames:
    """Sizes by name, as C text."""

    def __getattr__(self, name: str) -> _CText:
        return _CText(f"((const S*)this)->{name}()")


class _CText:
    """A count in the making: arithmetic on it gives the C text of that arithmetic."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __mul__(self, other: _CText | int) -> _CText:
        return _CText(f"({self.text} * {_text(other)})")

    def __rmul__(self, other: int) -> _CText:
        return _CText(f"({other} * {self.text})")

    def __add__(self, other: _CText | int) -> _CText:
        return _CText(f"({self.text} + {_text(other)})")

    def __radd__(self, other: int) -> _CText:
        return _CText(f"({other} + {self.text})")

    def __floordiv__(self, other: _CText | int) -> _CText:
        return _CText(f"({self.text} / {_text(other)})")


def _text(count: _CText | int) -> str:
    return count.text if isinstance(count, _CText) else str(count)
