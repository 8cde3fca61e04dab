"""Arguments for the kernels of io/device_text_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten

from mgraph.io.device_text_kernels import POWERS, TILE_BYTES

FIELDS = st.one_of(
    st.integers(-(10**19), 10**19).map(str),
    st.integers(0, 999).map(str),
    st.floats(allow_nan=True).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.text("0123456789+-.eE", max_size=24),
    st.sampled_from(["", '"1"', "x", "1_0", "1e400", "9007199254740993", "-0", "1\r2", "\x00", "00012"]),
)
SEPARATORS = st.sampled_from([" ", "\t", ",", ", ", "  ", ",,", " , ", ";", " \t"])


def texts(draw: st.DrawFn) -> np.ndarray:
    """Draw some lines, mostly of two or three numbers."""
    lines = []
    for _ in range(draw(st.integers(0, 12))):
        start = draw(st.sampled_from(["", "", "", "", " ", "#", "% "]))
        separator = draw(SEPARATORS)
        end = draw(st.sampled_from(["\n", "\n", "\n", "\r\n", " \n", "\r"]))
        lines.append(start + separator.join(draw(st.lists(FIELDS, max_size=4))) + end)
    text = "".join(lines)
    if draw(st.booleans()):
        text = text.rstrip("\n")
    return np.frombuffer(text.encode(), np.uint8).copy()


def count_line_feeds(draw: st.DrawFn) -> Case:
    text = texts(draw)
    tiles = -(-len(text) // TILE_BYTES)
    return Case({"lo": 0, "hi": tiles, "text": text, "size": len(text), "counts": Unwritten(tiles, np.int64)})


def list_line_begins(draw: st.DrawFn) -> Case:
    text = texts(draw)
    feeds = np.add.reduceat(text == 10, np.arange(0, len(text), TILE_BYTES)) if len(text) else np.zeros(0, np.int64)
    before = np.concatenate([[0], np.cumsum(feeds)])[:-1].astype(np.int64) if len(text) else np.zeros(0, np.int64)
    begins = Unwritten(int(feeds.sum()) + 1, np.int64)
    return Case({"lo": 0, "hi": len(feeds), "text": text, "size": len(text), "before": before, "begins": begins})


def parse_plain_lines(draw: st.DrawFn) -> Case:
    text = texts(draw)
    feeds = np.flatnonzero(text == 10) + 1
    begins = np.unique(np.concatenate([[0], feeds, [len(text)]])).astype(np.int64)
    num_lines = len(begins) - 1
    num_fields = draw(st.integers(2, 3))
    order = draw(st.permutations(range(num_fields)))
    weighted = num_fields == 3 and draw(st.booleans())
    fields = num_fields | order[0] << 8 | order[1] << 16 | (order[2] if weighted else 255) << 24
    fields |= draw(st.sampled_from([0, ord(","), ord("\t"), ord(";")])) << 32
    args = {
        "lo": 0,
        "hi": num_lines,
        "text": text,
        "begins": begins,
        "fields": fields,
        "powers": POWERS,
        "sources": Unwritten(num_lines, np.int64),
        "targets": Unwritten(num_lines, np.int64),
        "weights": Unwritten(num_lines, np.float64) if weighted else None,
        "kinds": Unwritten(num_lines, np.uint8),
        "num_floats": np.zeros(1, np.int64),
    }
    return Case(args)
