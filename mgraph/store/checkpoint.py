"""Files of checkpoints: values by position, lists of edges, and from each rank a manifest of its files, written last.

A state is whole once the manifests of all ranks are there. No rank deletes the state before until all know that.
"""

from __future__ import annotations

import bisect
import contextlib
import json
import os
import pathlib
import re
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from concurrent.futures import CancelledError
from dataclasses import asdict, dataclass, replace
from typing import IO, Any

import numpy as np

from mgraph.errors import InputError, UsageError
from mgraph.partition import Partition, common_locals
from mgraph.types import vertex_dtype

FORMAT = "mgraph-checkpoint"
VERSION = 1
# Of the files: <prefix><name>-<token>-<rank>.bin, and <prefix>manifest-<token>-<rank>-of-<ranks>.json.
PREFIX = "kept-"
VALUES = "values"
MANIFEST = "manifest"
PROBE = "probe"
# Under this name until it is whole.
NEW = ".new"
# Values or edges that are read at once.
PIECE = 1 << 22
# Bytes after which a file is synchronized: so long goes on a writer that is stopped.
SYNCED_BYTES = 1 << 25

_NAME = re.compile(rf"{PREFIX}(?P<name>[a-z]+)-(?P<token>[0-9a-f]+)-(?P<rank>\d+)(-of-(?P<ranks>\d+)\.json|\.bin)")


@dataclass(frozen=True)
class Checkpoint:
    """What the manifests of a state say.

    Attributes
    ----------
    about
        The graph, the algorithm and its parameters: a call goes on from the checkpoint of an equal one alone.
    token
        In the names of the files; that of a later state is larger.
    partition
        Of positions to the files of values.
    checksums
        By name of the values and of each list, a CRC-32 of each rank's file; in a manifest, of that rank's alone.
    cost_s
        What the state has cost the call, on the slowest rank.
    """

    about: dict[str, Any]
    token: int
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
    if foreign := [name for name in names if not name.startswith(PREFIX)]:
        raise UsageError(f"{folder} has other files, such as {foreign[0]}: give a folder for this checkpoint alone")


def newest_token(folder: pathlib.Path) -> int:
    """Return the token of the newest state that is whole, 0 if there is none."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror or error}") from error
    missing: dict[int, int] = defaultdict(int)
    for found in filter(None, map(_NAME.fullmatch, names)):
        if found["ranks"]:
            token = int(found["token"], 16)
            missing[token] = (missing[token] or int(found["ranks"])) - 1
    return max((token for token, left in missing.items() if not left), default=0)


def read_manifests(folder: pathlib.Path, token: int, about: dict[str, Any]) -> Checkpoint:
    """Return what the manifests of a state say; refuse that of another graph, algorithm or parameter."""
    of_ranks = [_read_manifest(path) for path in sorted(folder.glob(f"{PREFIX}{MANIFEST}-{token:016x}-*.json"))]
    if not of_ranks:
        raise InputError(f"{folder}: the checkpoint was deleted while it was read")
    found = of_ranks[0]
    for name, wanted in about.items():
        if found.about.get(name) != wanted:
            raise UsageError(
                f"{folder} has the checkpoint of another call, which differs in its {name}: give another folder, or "
                "delete this one"
            )
    checksums = {name: [crc for one in of_ranks for crc in one.checksums[name]] for name in found.checksums}
    return replace(found, checksums=checksums, cost_s=max(one.cost_s for one in of_ranks))


def _read_manifest(path: pathlib.Path) -> Checkpoint:
    try:
        body = json.loads(path.read_bytes())
        is_ours = (body.pop("format"), body.pop("version")) == (FORMAT, VERSION)
        partition = Partition(**body.pop("partition"))
        found = Checkpoint(partition=partition, **body)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError):
        is_ours = False
    if not is_ours:
        raise InputError(f"{path} is damaged, or no manifest of a checkpoint that this mgraph reads")
    return found


def time_of_writing(folder: pathlib.Path, rank: int, nbytes: int) -> float:
    """Return the seconds that a thread computes to write `nbytes`; refuse a folder that cannot be written."""
    data = np.frombuffer(os.urandom(nbytes), np.uint8)
    path = folder / _file(PROBE, 0, rank)
    # Of a rank that was killed here.
    path.unlink(missing_ok=True)
    began = time.thread_time()
    try:
        write_part(folder, PROBE, 0, rank, data)
        return time.thread_time() - began
    finally:
        path.unlink(missing_ok=True)


def write_part(
    folder: pathlib.Path,
    name: str,
    token: int,
    rank: int,
    values: np.ndarray,
    is_stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Write the values or the list of one rank, wait until they are on the disk, and return their CRC-32.

    Raise CancelledError in a piece of the file if the writer is stopped.
    """
    data = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
    crc = 0
    with _explained(folder), open(folder / _file(name, token, rank), "xb") as file:
        for lo in range(0, len(data), SYNCED_BYTES):
            if is_stopped():
                raise CancelledError
            piece = data[lo : lo + SYNCED_BYTES]
            crc = zlib.crc32(piece, crc)
            _write(file, piece)
    return crc


def put_manifest(folder: pathlib.Path, rank: int, part: Checkpoint) -> None:
    """Write the manifest of a rank, which says that its files are on the disk."""
    body = {"format": FORMAT, "version": VERSION, **asdict(part)}
    path = folder / f"{PREFIX}{MANIFEST}-{part.token:016x}-{rank:05}-of-{part.partition.num_ranks:05}.json"
    new = path.with_name(path.name + NEW)
    with _explained(folder):
        with open(new, "xb") as file:
            _write(file, json.dumps(body).encode())
        os.replace(new, path)
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write(file: IO[bytes], data: bytes | memoryview) -> None:
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


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


def discard_all_but(folder: pathlib.Path, tokens: Container[int], rank: int, num_ranks: int) -> None:
    """Delete all files but those of some states: a rank its own, and its share of those of any further ranks."""
    with _explained(folder):
        found = [match for match in map(_NAME.match, os.listdir(folder)) if match]
        others = [match for match in found if int(match["rank"]) % num_ranks == rank]
        discard(folder / match.string for match in others if int(match["token"], 16) not in tokens)


def discard_part(folder: pathlib.Path, token: int, rank: int) -> None:
    """Delete one rank's files of a state, its manifest first."""
    discard(sorted(folder.glob(f"{PREFIX}*-{token:016x}-{rank:05}*"), key=lambda path: MANIFEST not in path.name))


def discard_all(folder: pathlib.Path) -> None:
    """Delete the checkpoint, manifests first, and the folder if that leaves it empty."""
    discard(sorted(folder.glob(f"{PREFIX}*"), key=lambda path: MANIFEST not in path.name))
    with contextlib.suppress(OSError):
        folder.rmdir()


def discard(paths: Iterable[pathlib.Path]) -> None:
    """Delete files."""
    for path in paths:
        path.unlink(missing_ok=True)


def _file(name: str, token: int, rank: int) -> str:
    return f"{PREFIX}{name}-{token:016x}-{rank:05}.bin"


@contextlib.contextmanager
def _explained(folder: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"no checkpoint can be written to {folder}: {error.strerror or error}") from error
