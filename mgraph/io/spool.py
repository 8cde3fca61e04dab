"""Make temporary copies of inputs that cannot be read in ranges: compressed files, downloads and standard input."""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

from mgraph.errors import InputError
from mgraph.io.compression import DAMAGES, SUFFIXES, compression_of, decompressed, plain_name
from mgraph.io.input_file import InputFile, InputPath, Stdin, UnnamedCopy, Unpacked
from mgraph.io.lines import bounded_lines
from mgraph.io.remote import RemoteFile
from mgraph.io.temporary import require_space

# Bytes copied at a time.
PIECE_BYTES = 1 << 20


def spooled_stdin() -> Stdin:
    """Return a copy of standard input."""
    return Stdin(
        UnnamedCopy(lambda out: _write_within_space(_pieces(sys.stdin.buffer), out, "standard input"), "standard input")
    )


def unpacked(path: InputFile, kind: str = "gzip", *, is_text: bool = True, name: str = "") -> Unpacked:
    """Return a compressed file to be read decompressed, by default under its name without the compression.

    Of text, a line that is too long is refused before the rest is unpacked.
    """
    return Unpacked(path, name or plain_name(path.name), _unpack, kind, is_text)


def downloaded(file: RemoteFile) -> Unpacked:
    """Return a remote file that cannot be read in ranges, to be read from a copy."""
    return Unpacked(file, plain_name(file.name), _download)


def stored(path: InputFile, members: tuple[str, ...]) -> Unpacked:
    """Return members of an .npz file to be read decompressed, in ranges."""
    return Unpacked(path, plain_name(path.name), _store, members)


def sibling(file: InputFile, name: str) -> InputFile | None:
    """Return the file of this name beside another, packed or not, None if there is none."""
    origin: Any = file
    while isinstance(origin, Unpacked):
        origin = origin.path
    for suffix in ("", *SUFFIXES):
        found = _beside(origin, name + suffix)
        if found is not None:
            kind = compression_of(found)
            return found if kind is None else unpacked(found, kind, is_text=False)
    return None


def _beside(file: InputPath, name: str) -> InputPath | None:
    if isinstance(file, Stdin):
        return None
    if isinstance(file, RemoteFile):
        return file.sibling(name)
    beside = file.with_name(name)
    return beside if beside.is_file() else None


def _unpack(path: InputFile, out: IO[bytes], kind: str, is_text: bool) -> None:
    with decompressed(path, kind) as plain:
        pieces = bounded_lines(path, _pieces(plain)) if is_text else _pieces(plain)
        _write_within_space(pieces, out, f"{path} without its compression")


def _download(file: RemoteFile, out: IO[bytes]) -> None:
    with file.stream() as remote:
        _write_within_space(_pieces(remote), out, f"{file}")


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(PIECE_BYTES):
        yield piece


def _write_within_space(pieces: Iterable[bytes], out: IO[bytes], what: str) -> None:
    """Write a copy piece by piece while the disk has space for it.

    `what` is its name in the error. Its size is not known in advance: decompression may expand a file a thousandfold.
    """
    written = 0
    for piece in pieces:
        require_space(len(piece), written, out, what)
        out.write(piece)
        written += len(piece)


def _store(path: InputFile, out: IO[bytes], members: tuple[str, ...]) -> None:
    try:
        with (
            path.open("rb") as raw,
            zipfile.ZipFile(raw) as packed,
            zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as plain,
        ):
            taken = sum(packed.getinfo(name).file_size for name in members)
            require_space(taken, 0, out, f"{path} without its compression")
            for name in members:
                with packed.open(name) as array, plain.open(name, "w", force_zip64=True) as copy:
                    shutil.copyfileobj(array, copy, 1 << 20)
    except DAMAGES as error:
        raise InputError(f"{path} is damaged or truncated: {error}") from None
    except KeyError:
        raise InputError(f"{path} has changed while being read") from None
