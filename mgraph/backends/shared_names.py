"""Names that kernels and host code share: written once, in Python, from which the CUDA text is generated.

A CUDA file that includes "x.py" receives an enum for each `Names` of the Python file beside it, and constants for
each `Offsets`.
"""

from __future__ import annotations

import itertools
from typing import Any


class Names(tuple[str, ...]):
    """The names of consecutive words or values, in the same order in Python and CUDA.

    `Names("Report", "done num_rows")` is `enum Report { DONE, NUM_ROWS, NUM_REPORTS };` in CUDA.
    """

    c_name: str

    def __new__(cls, c_name: str, names: str) -> Names:
        """Split a string of names at its spaces."""
        made = super().__new__(cls, names.split())
        made.c_name = c_name
        return made

    def arranged(self, *, behind: int = 0, **values: Any) -> tuple[Any, ...]:
        """Return one value for each name after the first `behind`, in the order of the names."""
        names = self[behind:]
        if set(names) != values.keys():
            raise TypeError(f"{self.c_name}: {sorted(set(names) ^ values.keys())} are missing or unknown")
        return tuple(values[name] for name in names)

    def c_text(self) -> str:
        """Return the enum as CUDA text."""
        names = ", ".join(name.upper() for name in self)
        return f"enum {self.c_name} {{ {names}, NUM_{self.c_name.upper()}S }};\n"


class Offsets:
    """Offsets of the named parts of an array of 64-bit words.

    Attributes
    ----------
    total
        The number of words of all parts.
    """

    def __init__(self, **lengths: int) -> None:
        *begins, self.total = itertools.accumulate(lengths.values(), initial=0)
        self._begins = dict(zip(lengths, begins, strict=True))

    def __getitem__(self, name: str) -> int:
        return self._begins[name]

    def c_text(self) -> str:
        """Return the offsets as CUDA constants."""
        return "".join(f"constexpr i64 {name.upper()} = {begin};\n" for name, begin in self._begins.items())
