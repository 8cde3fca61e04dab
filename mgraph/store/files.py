"""Write and read the files of arrays: pieces in parallel, each chunk with its checksum, straight from or to arrays."""

from __future__ import annotations

import os
import pathlib
import socket
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend, available_cores
from mgraph.backends.progress import Phase
from mgraph.backends.thread_pool import Helpers
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted, InputError
from mgraph.store import manifest
from mgraph.store.manifest import StoredArray, StoredGraph, file_name
from mgraph.types import Array

# Chunks that a thread writes or reads at once. A piece of host memory this long is all that a thread holds in addition
# to the arrays themselves.
PIECE_CHUNKS = 4
# The most threads of a rank; more do not read faster from a page cache.
MAX_THREADS = 16

Convert = Callable[[Array], Array]
# Arrays by name: their values, their dtype in the file, and how they are converted.
Stored = dict[str, tuple["Array | Joined", np.dtype, Convert]]


class Joined:
    """Arrays one after another, in memory of the device and of the host; its slices are in the host's."""

    def __init__(self, backend: Backend, pieces: Sequence[Array]) -> None:
        self.backend = backend
        self.pieces = pieces
        self.dtype: np.dtype = pieces[0].dtype
        self.ends = np.cumsum([len(piece) for piece in pieces])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, wanted: slice) -> np.ndarray:
        """Return the values of a range without a step."""
        first, last, _ = wanted.indices(len(self))
        parts = [np.empty(0, self.dtype)]
        for number in range(int(np.searchsorted(self.ends, first, side="right")), len(self.pieces)):
            piece = self.pieces[number]
            begin = int(self.ends[number]) - len(piece)
            if begin >= last:
                break
            parts.append(self.backend.to_host(piece[max(first - begin, 0) : last - begin]))
        return parts[1] if len(parts) == 2 else np.concatenate(parts)


def unchanged(values: Array) -> Array:
    """Return the values themselves."""
    return values


def num_threads(backend: Backend) -> int:
    """Return how many threads of this rank read and write files."""
    return min(backend.threads if isinstance(backend, CpuBackend) else available_cores(), MAX_THREADS)


def host_backend(backend: Backend, comm: Communicator) -> Backend:
    """Return what reads arrays into the memory of the host, whatever the backend of the rank."""
    return backend if backend.xp is np else CpuBackend(num_threads(backend), sharers=comm.size)


def staging_bytes(store: StoredGraph, backend: Backend) -> int:
    """Return the bytes of host memory for pieces that are not read in place, with what converting them takes."""
    largest = max((store.count(array) * dtype.itemsize for array, dtype in store.dtypes.items()), default=0)
    return 4 * num_threads(backend) * min((PIECE_CHUNKS + 1) * manifest.CHUNK_BYTES, largest)


def in_threads(backend: Backend, name: str, pieces: Iterable[Any], work: Callable[[Any], None]) -> None:
    """Call work(piece) for every piece from several threads, as a phase; stop early after an error or abort."""
    left = deque(pieces)
    backend.phase = phase = Phase(name, len(left), "bytes", PIECE_CHUNKS * manifest.CHUNK_BYTES)
    helpers = Helpers(max(min(num_threads(backend), len(left)), 1) - 1)

    def run() -> None:
        backend.enter_thread()
        while True:
            try:
                piece = left.popleft()
            except IndexError:
                return
            try:
                if backend.stopped is not None:
                    raise CommAborted(backend.stopped)
                work(piece)
                phase.step()
            except BaseException:
                left.clear()
                raise

    try:
        helpers.run(run)
    finally:
        helpers.close()


def write_array(
    path: pathlib.Path, array: Array | Joined, dtype: np.dtype, backend: Backend, convert: Convert = unchanged
) -> StoredArray:
    """Write the converted values of an array to a new file, and wait until they are on the disk."""
    step = PIECE_CHUNKS * manifest.CHUNK_BYTES // dtype.itemsize
    checksums = np.zeros(-(-len(array) * dtype.itemsize // manifest.CHUNK_BYTES), np.uint32)
    backend.synchronize()

    def write(first: int) -> None:
        piece = backend.to_host(convert(array[first : first + step]).astype(dtype, copy=False))
        data = np.ascontiguousarray(piece).view(np.uint8).data
        at = first * dtype.itemsize
        number = at // manifest.CHUNK_BYTES
        for k, chunk in enumerate(_chunks(data)):
            checksums[number + k] = zlib.crc32(chunk)
        while data:
            written = os.pwrite(file, data, at)
            data = data[written:]
            at += written

    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        in_threads(backend, "writing", range(0, len(array), step), write)
        os.fsync(file)
    finally:
        os.close(file)
    return StoredArray(len(array), checksums)


class Extent(NamedTuple):
    """Values begin .. end of one part of an array."""

    part: int
    begin: int
    end: int


def extents_of(store: StoredGraph, array: str, begin: int, end: int) -> list[Extent]:
    """Return the extents that make values begin .. end of all parts, one after another."""
    found = []
    first = 0
    for number, part in enumerate(store.parts):
        last = first + part.arrays[array].count
        if max(begin, first) < min(end, last):
            found.append(Extent(number, max(begin, first) - first, min(end, last) - first))
        first = last
    return found


def read_array(
    store: StoredGraph,
    array: str,
    extents: Iterable[Extent],
    backend: Backend,
    dtype: np.dtype | None = None,
    convert: Convert = unchanged,
) -> Array:
    """Return the converted values of extents, one after another, as an array of `dtype`."""
    extents = list(extents)
    into = backend.xp.empty(sum(extent.end - extent.begin for extent in extents), dtype or store.dtypes[array])
    read_into(into, store, array, extents, backend, convert)
    return into


def read_into(
    into: Array,
    store: StoredGraph,
    array: str,
    extents: list[Extent],
    backend: Backend,
    convert: Convert = unchanged,
) -> None:
    """Write the converted values of extents, one after another, into an array of their number."""
    in_place = backend.xp is np and into.dtype == store.dtypes[array] and convert is unchanged
    stagings = threading.local()
    most = max((part.arrays[array].count for part in store.parts), default=0) * store.dtypes[array].itemsize

    def read(piece: tuple[Extent, int]) -> None:
        extent, at = piece
        count = extent.end - extent.begin
        reader = ChunkReader(store, array, extent.part)
        if in_place and reader.is_aligned(extent):
            reader.read(extent, into[at : at + count].view(np.uint8))
            return
        if not hasattr(stagings, "bytes"):
            stagings.bytes = np.empty(min((PIECE_CHUNKS + 1) * manifest.CHUNK_BYTES, most), np.uint8)
        values = backend.to_device(reader.values(extent, stagings.bytes)).astype(into.dtype, copy=False)
        into[at : at + count] = convert(values)
        # The staging buffer is written again by the next piece.
        backend.synchronize()

    in_threads(backend, "reading", _pieces(store, array, extents), read)


def _pieces(store: StoredGraph, array: str, extents: list[Extent]) -> Iterator[tuple[Extent, int]]:
    """Cut extents at whole pieces of their files; yield each with its place in the result."""
    step = PIECE_CHUNKS * manifest.CHUNK_BYTES // store.dtypes[array].itemsize
    at = 0
    for part, begin, end in extents:
        for first in range(begin // step * step, end, step):
            piece = Extent(part, max(first, begin), min(first + step, end))
            yield piece, at + piece.begin - begin
        at += end - begin


class ChunkReader:
    """Reads whole chunks of the file of one part of an array, and compares their checksums."""

    def __init__(self, store: StoredGraph, array: str, part: int) -> None:
        self.path = store.path / file_name(array, part)
        self.stored = store.parts[part].arrays[array]
        self.dtype = store.dtypes[array]
        self.num_bytes = self.stored.count * self.dtype.itemsize

    def is_aligned(self, extent: Extent) -> bool:
        """Return whether an extent is whole chunks."""
        begin = extent.begin * self.dtype.itemsize
        end = extent.end * self.dtype.itemsize
        return begin % manifest.CHUNK_BYTES == 0 and (end % manifest.CHUNK_BYTES == 0 or end == self.num_bytes)

    def values(self, extent: Extent, staging: np.ndarray) -> np.ndarray:
        """Return the values of an extent, read to the staging buffer with the rest of their chunks."""
        size = self.dtype.itemsize
        begin = extent.begin * size // manifest.CHUNK_BYTES * manifest.CHUNK_BYTES
        end = min(-(-extent.end * size // manifest.CHUNK_BYTES) * manifest.CHUNK_BYTES, self.num_bytes)
        self.read(Extent(extent.part, begin // size, end // size), staging[: end - begin])
        return staging[extent.begin * size - begin : extent.end * size - begin].view(self.dtype)

    def read(self, extent: Extent, into: np.ndarray) -> None:
        """Read an extent of whole chunks to `into`, an array of bytes."""
        at = extent.begin * self.dtype.itemsize
        self._fill(into.data, at)
        number = at // manifest.CHUNK_BYTES
        for k, chunk in enumerate(_chunks(into.data)):
            if zlib.crc32(chunk) != self.stored.checksums[number + k]:
                begin = (number + k) * manifest.CHUNK_BYTES
                raise InputError(
                    f"{self.path}: bytes {begin} to {begin + len(chunk) - 1} are not those that were saved: the file "
                    "is damaged, or was replaced: copy or save the graph again"
                )

    def _fill(self, view: memoryview, at: int) -> None:
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                found = os.fstat(file).st_size
                if found != self.num_bytes:
                    raise InputError(
                        f"{self.path} has {found} bytes, and was saved with {self.num_bytes}: "
                        f"it was {'truncated' if found < self.num_bytes else 'replaced'}: copy or save the graph again"
                    )
                while view:
                    # 0 at the end of a file that has been truncated since.
                    if not (count := os.preadv(file, [view], at)):
                        raise InputError(f"{self.path} ends at byte {at}: it has been truncated while it was read")
                    view = view[count:]
                    at += count
            finally:
                os.close(file)
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be read on {socket.gethostname()}: {error.strerror or error}: every rank must see "
                "the whole folder of a saved graph"
            ) from error


def _chunks(data: memoryview) -> Iterator[memoryview]:
    """Yield the chunks of bytes that begin at a chunk."""
    for first in range(0, len(data), manifest.CHUNK_BYTES):
        yield data[first : first + manifest.CHUNK_BYTES]
