"""Labels that writers of text must quote, and readers must give back."""

from __future__ import annotations

import numpy as np

from mgraph.labels.strings import Strings

ODD = ["a", "b,c", "", 'x"y', "né", "new\nline", "cr\rlf", "#c", "%d", " blank ", "tab\there", "a;b", "17", "ok"]


def strings(texts) -> Strings:
    encoded = [text.encode() for text in texts]
    return Strings(np.cumsum([0, *map(len, encoded)]), np.frombuffer(b"".join(encoded), np.uint8))
