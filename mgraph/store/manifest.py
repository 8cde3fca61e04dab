"""The manifest of a store: one JSON file that says what the files beside it are."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import sys
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.errors import InputError, UsageError
from mgraph.partition import Partition
from mgraph.shard.shard import BlockShape, GraphInfo

MANIFEST = "mgraph.json"
FORMAT = "mgraph-graph"
# The newest version of the format; all up to this one are read.
VERSION = 1
# Bytes of a file under one checksum.
CHUNK_BYTES = 1 << 20
# A piece of the rows, which a load on another number of ranks reads and deals at once, has at most this many arcs, and
# rows. A multiple of the bytes of a chunk, so that pieces of arcs are whole chunks.
PIECE_ARCS = 1 << 20


@dataclass(frozen=True)
class StoredArray:
    """One array of one part: its length, and a CRC-32 of each chunk of its file."""

    count: int
    checksums: np.ndarray


@dataclass(frozen=True)
class StoredPart:
    """What one of the ranks that saved the graph has stored.

    Attributes
    ----------
    cuts
        (arc, row, skip) where pieces of the rows begin: at this arc, in this row, after `skip` of the row's arcs. The
        last cut is the end.
    shape
        Of the edge blocks; None in the layout of rows.
    """

    arrays: dict[str, StoredArray]
    cuts: list[tuple[int, int, int]]
    shape: BlockShape | None


@dataclass(frozen=True)
class Facts:
    """What the manifest says of all parts in addition to the facts of the graph.

    Attributes
    ----------
    dtypes
        The names of the arrays' dtypes, by the arrays' names.
    missing_label
        Of labels: the integer that means no vertex.
    """

    num_positions: int
    dtypes: dict[str, str]
    missing_label: int | None = None


@dataclass(frozen=True, eq=False)
class StoredGraph:
    """A saved graph: an edge source with shards that are read, not built from chunks.

    Attributes
    ----------
    partition
        Of positions to parts.
    dtypes
        Of the arrays, by name.
    """

    path: pathlib.Path
    name: str
    info: GraphInfo
    partition: Partition
    dtypes: dict[str, np.dtype]
    parts: list[StoredPart]
    missing_label: int | None = None

    @property
    def num_vertices(self) -> int:
        return self.info.num_vertices

    @property
    def directed(self) -> bool:
        return self.info.directed

    @property
    def is_text(self) -> bool:
        """Whether labels are strings."""
        return self.info.labels == "string"

    @property
    def weight_dtype(self) -> np.dtype | None:
        return None if self.info.weight_dtype is None else np.dtype(self.info.weight_dtype)

    @property
    def max_weight(self) -> float | int:
        return self.info.max_weight

    @property
    def num_input_edges(self) -> int:
        return self.info.num_edges

    def expected_connected(self) -> int:
        """Return the number of vertices with edges."""
        return self.info.num_vertices - self.info.num_isolated

    @property
    def layouts(self) -> tuple[str, ...]:
        """The layouts in which a load can hold the graph, first rows or the layout of blocks that it was saved in."""
        if self.info.has_rows:
            return ("rows", "split")
        return ("compact", "host") if self.info.layout == "compact" else ("host", "compact")

    def held_in(self, layout: str) -> str:
        """Return the layout that a load takes: the given one where it can, else as saved."""
        return layout if layout in self.layouts else self.info.layout

    def count(self, array: str) -> int:
        """Return the length of an array over all parts."""
        return sum(part.arrays[array].count for part in self.parts)


def file_name(array: str, part: int) -> str:
    """Return the name of the file of an array's part."""
    return f"{array}-{part:05}.bin"


def folder_of(path: Any) -> pathlib.Path:
    """Return the folder that a user has named, as an absolute path."""
    if not isinstance(path, (str, os.PathLike)):
        raise UsageError(f"path {path!r:.80} is not the name of a folder")
    return pathlib.Path(path).expanduser().absolute()


def is_store(path: str | os.PathLike) -> bool:
    """Return whether there is a saved graph in the folder `path`."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def manifest_text(name: str, info: GraphInfo, facts: Facts, parts: list[StoredPart]) -> bytes:
    """Return the text of a manifest: JSON that ends with the CRC-32 of all lines before the last."""
    body = {
        "format": FORMAT,
        "version": VERSION,
        "byte_order": sys.byteorder,
        "name": name,
        # Rows are stored alike wherever they are held.
        "graph": dataclasses.asdict(info) | ({"layout": "rows"} if info.has_rows else {}),
        **dataclasses.asdict(facts),
        "parts": [
            {
                "arrays": {
                    array: {"count": stored.count, "crc32": stored.checksums.tolist()}
                    for array, stored in part.arrays.items()
                },
                "cuts": part.cuts,
                "shape": None if part.shape is None else dataclasses.asdict(part.shape),
            }
            for part in parts
        ],
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in body.items()]
    text = "".join(["{\n", *lines]).encode()
    return text + _last_line(text) + b"\n"


def _last_line(text: bytes) -> bytes:
    """Return the last line of a manifest, which has the checksum of the text before it."""
    return f'"crc32": {zlib.crc32(text)}}}'.encode()


def open_store(path: str | os.PathLike, name: str | None = None) -> StoredGraph:
    """Read the manifest of a saved graph, and check it."""
    folder = folder_of(path)
    file = folder / MANIFEST
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        why = "no such folder" if not folder.exists() else f"no saved graph: it has no {MANIFEST}"
        raise InputError(f"{folder}: {why}") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    body = _checked(file, text)
    try:
        info = GraphInfo(**body["graph"])
        partition = Partition(int(body["num_positions"]), len(body["parts"]), info.order == "degree")
        dtypes = {array: np.dtype(dtype) for array, dtype in body["dtypes"].items()}
        parts = [_part(part) for part in body["parts"]]
        missing = None if body["missing_label"] is None else int(body["missing_label"])
        store = StoredGraph(folder, str(name or body["name"]), info, partition, dtypes, parts, missing)
        _check_counts(store)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"{file} is no manifest of a saved graph: {type(error).__name__} {error}") from None
    return store


def _checked(file: pathlib.Path, text: bytes) -> dict[str, Any]:
    """Return what the text of a manifest says, once format, version, byte order and checksum are checked."""
    head, _, last = text.rstrip(b"\n").rpartition(b"\n")
    try:
        body = json.loads(text)
        is_ours = body["format"] == FORMAT
        version = int(body["version"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{file} is damaged, or no manifest of a saved graph: it is not as it was written") from None
    if not is_ours:
        raise InputError(f"{file} is of the format {body['format']!r:.40}, not {FORMAT!r}")
    if version > VERSION:
        raise InputError(
            f"{file} is of version {version} of the format, and this mgraph reads up to {VERSION}: use a newer one"
        )
    if last != _last_line(head + b"\n"):
        raise InputError(f"{file} is damaged: its checksum is not that of its text")
    if body.get("byte_order") != sys.byteorder:
        raise InputError(
            f"{file}: the graph was saved in {body.get('byte_order')!r:.20} byte order, and this machine has "
            f"{sys.byteorder!r}: save it on a machine of this byte order"
        )
    return body


def _part(body: dict[str, Any]) -> StoredPart:
    arrays = {
        array: StoredArray(int(stored["count"]), np.array(stored["crc32"], np.uint32))
        for array, stored in body["arrays"].items()
    }
    cuts = [(int(arc), int(row), int(skip)) for arc, row, skip in body["cuts"]]
    return StoredPart(arrays, cuts, None if body["shape"] is None else BlockShape(**body["shape"]))


def _check_counts(store: StoredGraph) -> None:
    """Raise ValueError unless the lengths of the arrays are those of the graph."""
    info = store.info
    partition = store.partition
    for number, part in enumerate(store.parts):
        if part.arrays.keys() != store.dtypes.keys():
            raise ValueError(f"part {number} has the arrays {', '.join(part.arrays)}")
        if part.arrays["lengths"].count != partition.num_owned(number):
            raise ValueError(f"part {number} has {part.arrays['lengths'].count} rows, not those of its positions")
        for array, stored in part.arrays.items():
            num_bytes = stored.count * store.dtypes[array].itemsize
            if stored.count < 0 or len(stored.checksums) != -(-num_bytes // CHUNK_BYTES):
                raise ValueError(f"array {array} of part {number} has {len(stored.checksums)} checksums")
    arcs = info.num_arcs if info.has_rows else info.num_edges
    expected = {"targets": arcs, "words": arcs, "weights": arcs, "users": partition.num_positions}
    expected |= dict.fromkeys(("positions", "labels", "label_lengths"), info.num_vertices)
    for array in store.dtypes.keys() & expected.keys():
        if store.count(array) != expected[array]:
            raise ValueError(f"{array} has {store.count(array)} values, not {expected[array]}")
