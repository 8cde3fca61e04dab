"""Serve the files of a folder by HTTPS, and read them by fsspec as its own file system does, which needs aiohttp."""

from __future__ import annotations

import contextlib
import http.server
import io
import os
import pathlib
import re
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

BLOCK_BYTES = 1 << 10


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serve whole files, as `python -m http.server` does, or ranges."""

    has_ranges = True

    def send_head(self) -> Any:
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        path = pathlib.Path(self.translate_path(self.path))
        if not (self.has_ranges and asked and path.is_file()):
            return super().send_head()
        first, last = map(int, asked.groups())
        part = path.read_bytes()[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{path.stat().st_size}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        return io.BytesIO(part)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def served(folder: os.PathLike, security: Any = None, *, has_ranges: bool) -> Iterator[str]:
    """Yield the URL at which the files of a folder are served, if need be with a certificate."""
    handler = type("Handler", (Handler,), {"has_ranges": has_ranges})
    make = lambda *args: handler(*args, directory=os.fspath(folder))  # noqa: E731
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), make) as server:
        if security is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(security.tls_scheduler_cert, security.tls_scheduler_key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http{'' if security is None else 's'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Https(AbstractFileSystem):
    """Ask a web server for sizes and ranges, and refuse a file in place of a later range, as fsspec's own does."""

    protocol = "https"
    cachable = False
    context: ssl.SSLContext

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def ask(self, url: str, method: str = "GET", **headers: str) -> Any:
        request = urllib.request.Request(url, method=method, headers=headers)
        try:
            return urllib.request.urlopen(request, context=self.context, timeout=10)
        except urllib.error.HTTPError as error:
            error.close()
            raise FileNotFoundError(url) if error.code == 404 else error from None

    def info(self, path: str, **_: Any) -> dict:
        with self.ask(path, "HEAD") as answer:
            about = {"Last-Modified": answer.headers["Last-Modified"]}
            return {"name": path, "size": int(answer.headers["Content-Length"]), "type": "file", **about}

    def cat_file(self, path: str, start: int = 0, end: int | None = None, **_: Any) -> bytes:
        with self.ask(path, Range=f"bytes={start}-{end - 1}") as answer:
            if answer.status != 206 and start > 0:
                raise ValueError("The HTTP server doesn't appear to support range requests")
            return answer.read(end - start)

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **_: Any) -> Any:
        if block_size == 0:
            return self.ask(path)
        return Blocks(self, path, mode, block_size=BLOCK_BYTES, size=self.info(path)["size"])


class Blocks(AbstractBufferedFile):
    """A file read in blocks, each by a request."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.cat_file(self.path, start, end)
