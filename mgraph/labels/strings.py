"""Many short strings in two arrays, as Arrow stores them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Strings:
    """Strings of UTF-8 bytes: string i is data[offsets[i] : offsets[i + 1]].

    Attributes
    ----------
    offsets
        int64, one more than there are strings; the first need not be 0.
    data
        uint8.
    """

    offsets: np.ndarray
    data: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1
