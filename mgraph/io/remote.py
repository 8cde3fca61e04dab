"""Files at URLs, read through fsspec, which Dask installs: s3://, gs://, https://, memory:// and others."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import pathlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from mgraph.errors import InputError, MgraphError, UsageError

URL = re.compile(r"[a-zA-Z][\w+.-]*(::[^:]+)*://")
# What to install for a protocol, where fsspec does not say so itself.
PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "http": "aiohttp", "https": "aiohttp",
            "abfs": "adlfs", "az": "adlfs", "hf": "huggingface_hub", "sftp": "paramiko", "ssh": "paramiko"}  # fmt: skip

# Where file systems say which version of a file there is.
VERSIONS = ("ETag", "etag", "mtime", "LastModified", "Last-Modified", "updated", "created")


@dataclass(frozen=True)
class RemoteFile:
    """A file at a URL, read in ranges by any rank."""

    url: str
    num_bytes: int
    version: str  # whatever the file system gives to tell a changed file: a tag or a time

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return pathlib.PurePosixPath(self.url.split("?")[0]).name

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return pathlib.PurePosixPath(self.name).stem

    def __str__(self) -> str:
        return self.url

    def open(self, mode: str = "rb", buffering: int = -1) -> Any:
        """Open the file; it is read by requests of ranges."""
        raw = _Ranges(self)
        return raw if buffering == 0 else io.BufferedReader(raw)

    def stat(self) -> Any:
        """Return the size, and an identity of this version."""
        return SimpleNamespace(st_dev=0, st_ino=self.version, st_size=self.num_bytes, st_mtime_ns=0)

    @contextlib.contextmanager
    def stream(self) -> Iterator[Any]:
        """Open the file to be read from its beginning to its end."""
        system, path = file_system(self.url)
        # Without blocks a web server is asked once: one without ranges refuses the second block.
        options = {"block_size": 0} if self.url.startswith("http") else {}
        with _explained(self.url), system.open(path, "rb", **options) as raw:
            yield raw

    def sibling(self, name: str) -> RemoteFile | None:
        """Return the file of this name beside this one, None if there is none."""
        url = self.url.rpartition("/")[0] + "/" + name
        try:
            found = remote_files(url)
        except InputError:
            return None
        return found[0] if len(found) == 1 else None


class _Ranges(io.RawIOBase):
    """Reads ranges of a remote file: each read is a request."""

    def __init__(self, file: RemoteFile) -> None:
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._file.num_bytes}[whence]
        self._at = max(0, origin + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._file.num_bytes)
        if end <= self._at:
            return 0
        system, path = file_system(self._file.url)
        with _explained(self._file.url):
            data = system.cat_file(path, start=self._at, end=end)
        if len(data) > end - self._at:
            raise InputError(f"{self._file} cannot be read in ranges: copy it to a local file first")
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def is_url(path: object) -> bool:
    """Return whether a path is a URL."""
    return isinstance(path, str) and URL.match(path) is not None


def remote_files(url: str) -> list[RemoteFile]:
    """Return the file at a URL, or the files of a folder or glob, sorted by name."""
    system, path = file_system(url)
    with _explained(url):
        if re.search(r"[*?\[]", path) and "http" not in url.split("://")[0]:
            found = sorted(name for name in system.glob(path) if system.info(name)["type"] == "file")
        else:
            about = system.info(path)
            if about["type"] != "directory":
                return [_file(url, system, about)]
            listed = {entry["name"]: entry for entry in system.ls(path, detail=True)}
            found = sorted(name for name, entry in listed.items() if entry["type"] == "file")
            found = [name for name in found if name.rpartition("/")[2][:1] not in (".", "_")]
        if not found:
            raise InputError(f"{url}: there is no file")
        return [_file(system.unstrip_protocol(name), system, system.info(name)) for name in found]


def can_read_ranges(file: RemoteFile) -> bool:
    """Return whether ranges of a file can be requested."""
    return file.num_bytes >= 0


def _file(url: str, system: Any, about: dict[str, Any]) -> RemoteFile:
    size = about.get("size")
    ranges = size is not None and about.get("partial", True) and _offers_ranges(url, system, about["name"], size)
    version = next((str(about[key]) for key in VERSIONS if about.get(key)), "")
    return RemoteFile(url, int(size) if size is not None and ranges else -1, version)


def _offers_ranges(url: str, system: Any, path: str, size: int) -> bool:
    """Return whether ranges can be requested: some web servers send the whole file for each."""
    if not url.startswith("http") or size == 0:
        return True
    try:
        with system.open(path, "rb") as raw:
            raw.seek(size - 1)
            return len(raw.read(1)) == 1
    except (OSError, ValueError):
        return False


@functools.lru_cache(maxsize=64)
def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it."""
    protocol = url.partition("://")[0].partition("::")[0]
    try:
        import fsspec
    except ImportError:
        raise UsageError(f"{url} needs fsspec: pip install fsspec") from None
    try:
        return fsspec.core.url_to_fs(url)
    except ImportError as error:
        package = PACKAGES.get(protocol)
        how = f"pip install {package}" if package else str(error)
        raise UsageError(f"{url} needs a package that is not installed: {how}") from None
    except ValueError as error:
        raise UsageError(f"{url} cannot be opened: {error}") from None


@contextlib.contextmanager
def _explained(url: str) -> Iterator[None]:
    """Turn any failure of a remote file system into an InputError: each has errors of its own."""
    try:
        yield
    except MgraphError:
        raise
    except FileNotFoundError:
        raise InputError(f"{url}: no such file") from None
    except Exception as error:
        raise InputError(f"{url} cannot be read: {error or type(error).__name__}") from error
