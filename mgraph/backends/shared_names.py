"""Names that a persistent kernel and the host share: written once, in Python, from where the CUDA text has them.

A CUDA file that includes `x.py` gets what the Python file beside it defines of these: an enum for each `Names`,
constants for each `Offsets`.
"""

from __future__ import annotations

import itertools
from typing import Any


class Names(tuple[str, ...]):
    """Consecutive words, or values, that have one order on both sides.

    `Names("Report", "done num_rows")` is `enum Report { DONE, NUM_ROWS, NUM_REPORTS };` in CUDA.
    """

    c_name: str

    def __new__(cls, c_name: str, names: str) -> Names:
        """Make them of names separated by spaces."""
        made = super().__new__(cls, names.split())
        made.c_name = c_name
        return made

    def arranged(self, *, behind: int = 0, **values: Any) -> tuple[Any, ...]:
        """Return the values in order; they are those of all names but the first `behind`, each given once."""
        wanted = self[behind:]
        if set(wanted) != values.keys():
            raise TypeError(f"{self.c_name}: {sorted(set(wanted) ^ values.keys())} are missing or unknown")
        return tuple(values[name] for name in wanted)

    def c_text(self) -> str:
        """Return the enum."""
        names = ", ".join(name.upper() for name in self)
        return f"enum {self.c_name} {{ {names}, NUM_{self.c_name.upper()}S }};\n"


class Offsets:
    """The parts of an array of 64-bit words, one behind the other, by name: where each begins.

    Attributes
    ----------
    total
        How many words they have together.
    """

    def __init__(self, **lengths: int) -> None:
        *begins, self.total = itertools.accumulate(lengths.values(), initial=0)
        self._begins = dict(zip(lengths, begins, strict=True))

    def __getitem__(self, name: str) -> int:
        return self._begins[name]

    def c_text(self) -> str:
        """Return the constants."""
        return "".join(f"constexpr i64 {name.upper()} = {begin};\n" for name, begin in self._begins.items())
