"""Files of checkpoints: values by position and lists of edges, and a manifest that names them, replaced last."""

from __future__ import annotations

import bisect
import contextlib
import json
import os
import pathlib
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mgraph.errors import InputError, UsageError
from mgraph.partition import Partition, common_locals
from mgraph.types import vertex_dtype

MANIFEST = "checkpoint.json"
FORMAT = "mgraph-checkpoint"
VERSION = 1
# Of the files: <prefix><name>-<token>-<rank>.bin.
PREFIX = "kept-"
VALUES = "values"
PROBE = "probe"
# Values or edges that are read at once.
PIECE = 1 << 22


@dataclass(frozen=True)
class Checkpoint:
    """What a manifest says.

    Attributes
    ----------
    about
        The graph, the algorithm and its parameters: a call goes on from the checkpoint of an equal one alone.
    token
        In the names of the files.
    partition
        Of positions to the files of values.
    checksums
        By name of the values and of each list, a CRC-32 of each rank's file.
    cost_s
        What a state has cost the call: the one before, or before the first an estimate.
    """

    about: dict[str, Any]
    token: str
    partition: Partition
    dtype: str
    bound: float | int
    checksums: dict[str, list[int]]
    cost_s: float = 0.0


def require_folder(folder: pathlib.Path) -> None:
    """Make the folder if there is none; refuse one that has other files."""
    try:
        folder.mkdir(exist_ok=True)
        names = os.listdir(folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be a folder of checkpoints: {error.strerror or error}") from error
    if foreign := [name for name in names if not name.startswith((MANIFEST, PREFIX))]:
        raise UsageError(f"{folder} has other files, such as {foreign[0]}: give a folder for this checkpoint alone")


def manifest_bytes(folder: pathlib.Path) -> bytes | None:
    """Return the text of the manifest, None if there is none."""
    try:
        return (folder / MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{folder / MANIFEST} cannot be read: {error.strerror or error}") from error


def parse_manifest(folder: pathlib.Path, text: bytes, about: dict[str, Any]) -> Checkpoint:
    """Return what a manifest says; refuse that of another graph, algorithm or parameter."""
    try:
        body = json.loads(text)
        is_ours = (body.pop("format"), body.pop("version")) == (FORMAT, VERSION)
        partition = Partition(**body.pop("partition"))
        found = Checkpoint(partition=partition, **body)
    except (ValueError, KeyError, TypeError, AttributeError):
        is_ours = False
    if not is_ours:
        raise InputError(f"{folder / MANIFEST} is damaged, or no manifest of a checkpoint that this mgraph reads")
    for name, wanted in about.items():
        if found.about.get(name) != wanted:
            raise UsageError(
                f"{folder} has the checkpoint of another call, which differs in its {name}: give another folder, or "
                "delete this one"
            )
    return found


def time_of_writing(folder: pathlib.Path, rank: int, nbytes: int) -> float:
    """Return the seconds to write a file of `nbytes` to the disk; refuse a folder that cannot be written."""
    data = os.urandom(nbytes)
    path = folder / _file(PROBE, "", rank)
    began = time.monotonic()
    try:
        with _explained(folder), open(path, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return time.monotonic() - began
    finally:
        discard([path])


def write_part(folder: pathlib.Path, name: str, token: str, rank: int, values: np.ndarray) -> int:
    """Write the values or the list of one rank, wait until they are on the disk, and return their CRC-32."""
    data = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
    with _explained(folder), open(folder / _file(name, token, rank), "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return zlib.crc32(data)


def put_manifest(folder: pathlib.Path, checkpoint: Checkpoint) -> None:
    """Replace the manifest, and delete the files of the checkpoint before."""
    body = {"format": FORMAT, "version": VERSION, **asdict(checkpoint)}
    temporary = folder / f"{MANIFEST}-{checkpoint.token}"
    with _explained(folder):
        with open(temporary, "xb") as file:
            file.write(json.dumps(body).encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, folder / MANIFEST)
    discard(path for path in folder.glob(f"{PREFIX}*") if f"-{checkpoint.token}-" not in path.name)


def read_owned(folder: pathlib.Path, found: Checkpoint, partition: Partition, rank: int) -> np.ndarray:
    """Return the values of the positions that a rank owns now."""
    owned = np.empty(partition.num_owned(rank), np.dtype(found.dtype))
    before = found.partition
    for part in range(before.num_ranks):
        first = 0
        theirs, ours = common_locals(before, part, partition, rank)
        places = range(theirs.start, theirs.stop, theirs.step)
        for values in _pieces(folder, found, VALUES, part, owned.dtype, before.num_owned(part)):
            # Those of the places that are in this piece.
            lo, hi = (bisect.bisect_left(places, at) for at in (first, first + len(values)))
            if lo < hi:
                owned[ours][lo:hi] = values[places[lo] - first :: places.step][: hi - lo]
            first += len(values)
    return owned


def read_list(folder: pathlib.Path, found: Checkpoint, name: str, partition: Partition, rank: int) -> np.ndarray:
    """Return the edges of a list whose first position a rank owns now."""
    dtype = place_dtype(partition)
    own = [np.empty((0, 2), dtype)]
    for part in range(found.partition.num_ranks):
        for values in _pieces(folder, found, name, part, dtype):
            edges = values.reshape(-1, 2)
            own.append(edges[partition.owner(edges[:, 0]) == rank])
    return np.concatenate(own)


def place_dtype(partition: Partition) -> np.dtype:
    """Return the dtype of positions, and of places in a row, in lists: the same on any number of ranks."""
    return vertex_dtype(partition.num_positions)


def _pieces(
    folder: pathlib.Path, found: Checkpoint, name: str, part: int, dtype: np.dtype, length: int | None = None
) -> Iterator[np.ndarray]:
    """Yield the values of a file in pieces; raise InputError at its end if it is damaged."""
    path = folder / _file(name, found.token, part)
    left = length
    crc = 0
    try:
        with open(path, "rb") as file:
            while data := file.read(PIECE * dtype.itemsize):
                crc = zlib.crc32(data, crc)
                values = np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype)[:left]
                left = None if left is None else left - len(values)
                # Pairs of a file that was cut are refused below.
                yield values if length is not None else values[: len(values) // 2 * 2]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    if left or crc != found.checksums[name][part]:
        raise InputError(f"{path} is damaged: its checksum is not that of the checkpoint")


def discard_all(folder: pathlib.Path) -> None:
    """Delete the checkpoint, its manifest first, and the folder if that leaves it empty."""
    discard([folder / MANIFEST, *folder.glob(f"{PREFIX}*"), *folder.glob(f"{MANIFEST}-*")])
    with contextlib.suppress(OSError):
        folder.rmdir()


def discard(paths: Iterable[pathlib.Path]) -> None:
    """Delete files."""
    for path in list(paths):
        path.unlink(missing_ok=True)


def _file(name: str, token: str, rank: int) -> str:
    return f"{PREFIX}{name}-{token}-{rank:05}.bin"


@contextlib.contextmanager
def _explained(folder: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"no checkpoint can be written to {folder}: {error.strerror or error}") from error
