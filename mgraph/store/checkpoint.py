"""Files of checkpoints: the distances of each rank by position, and a manifest that names them, replaced last."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mgraph.errors import InputError, UsageError
from mgraph.partition import Partition

MANIFEST = "checkpoint.json"
FORMAT = "mgraph-checkpoint"
VERSION = 1
# Of the files of distances.
PREFIX = "distances-"
# Values that are read at once.
PIECE = 1 << 22


@dataclass(frozen=True)
class Checkpoint:
    """What a manifest says.

    Attributes
    ----------
    about
        The graph, the algorithm and its parameters: a search goes on from the checkpoint of an equal one alone.
    token
        In the names of the files of distances.
    partition
        Of positions to these files.
    checksums
        A CRC-32 of each file.
    """

    about: dict[str, Any]
    token: str
    partition: Partition
    dtype: str
    bound: float | int
    checksums: list[int]


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
                f"{folder} has the checkpoint of another search, which differs in its {name}: give another folder, or "
                "delete this one"
            )
    return found


def write_part(folder: pathlib.Path, token: str, rank: int, values: np.ndarray) -> int:
    """Write the values of one rank, wait until they are on the disk, and return their CRC-32."""
    data = np.ascontiguousarray(values).view(np.uint8).data
    with _explained(folder), open(folder / _name(token, rank), "xb") as file:
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
    for part, checksum in enumerate(found.checksums):
        path = folder / _name(found.token, part)
        first = 0
        crc = 0
        try:
            with open(path, "rb") as file:
                while data := file.read(PIECE * owned.itemsize):
                    crc = zlib.crc32(data, crc)
                    values = np.frombuffer(data[: len(data) // owned.itemsize * owned.itemsize], owned.dtype)
                    locals_before = np.arange(first, min(first + len(values), before.num_owned(part)))
                    positions = locals_before * before.multiplier + before.offset(part)
                    mine = partition.owner(positions) == rank
                    owned[partition.local(positions[mine])] = values[: len(mine)][mine]
                    first += len(values)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
        if first != before.num_owned(part) or crc != checksum:
            raise InputError(f"{path} is damaged: its checksum is not that of the checkpoint")
    return owned


def discard_all(folder: pathlib.Path) -> None:
    """Delete the checkpoint, its manifest first, and the folder if that leaves it empty."""
    discard([folder / MANIFEST, *folder.glob(f"{PREFIX}*"), *folder.glob(f"{MANIFEST}-*")])
    with contextlib.suppress(OSError):
        folder.rmdir()


def discard(paths: Iterable[pathlib.Path]) -> None:
    """Delete files."""
    for path in list(paths):
        path.unlink(missing_ok=True)


def _name(token: str, rank: int) -> str:
    return f"{PREFIX}{token}-{rank:05}.bin"


@contextlib.contextmanager
def _explained(folder: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"no checkpoint can be written to {folder}: {error.strerror or error}") from error
