"""Define the manifest of a job: what was computed from which input, and the checksums of what was written.

It is written whole after every run. Before the outputs of a run are written, an entry without them is: if the process
is killed then, what it has written may be replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import mgraph
from mgraph.api.results import Result
from mgraph.cli.algorithm_command import OUTPUTS, CommandResult
from mgraph.cli.doctor import installed_versions
from mgraph.cli.job_file import Job, Run
from mgraph.cli.options import plain
from mgraph.errors import UsageError
from mgraph.generate.spec import is_spec
from mgraph.io.paths import SAVED, input_files
from mgraph.io.remote import RemoteFile, file_system, is_url, remote_files
from mgraph.io.replace import replacing
from mgraph.store.manifest import is_store

FORMAT = "mgraph-job"

Manifest = dict[str, Any]


def new_manifest(job: Job) -> Manifest:
    """Return a manifest without runs, of the job's graph and input as they are now."""
    return {
        "format": FORMAT,
        "graph": plain(job.file.table["graph"]),
        "input": _identity(job.options["input"]),
        "runs": [],
    }


def read_manifest(path: pathlib.Path) -> Manifest | None:
    """Return the manifest in a file; None if there is no file."""
    try:
        found = json.loads(path.read_bytes())
        has_keys = [{"graph", "input"} <= found.keys()]
        has_keys += [{"parameters", "outputs"} <= entry.keys() for entry in found["runs"]]
        if found["format"] == FORMAT and all(has_keys):
            return found
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    raise UsageError(f'{path} is no manifest of a job, and is not replaced: name another one, as manifest = "job.json"')


def write_manifest(path: pathlib.Path, manifest: Manifest) -> None:
    """Write a manifest, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(manifest, indent=1, allow_nan=False) + "\n")


def entry_of(manifest: Manifest, run: Run) -> dict[str, Any] | None:
    """Return the entry of a run; None if there is none with these parameters."""
    return next((entry for entry in manifest["runs"] if entry["parameters"] == plain(run.table)), None)


def set_entry(manifest: Manifest, run: Run, found: CommandResult | None) -> None:
    """Set the entry of a run: of its result, or that its outputs are going to be written."""
    entry: dict[str, Any] = {"parameters": plain(run.table), "outputs": None}
    if found is not None:
        entry |= {
            "outputs": checksums(run),
            "summary": found.summary,
            **plain(found.facts),
            "info": plain(found.result.graph.info),
            "versions": {"mgraph": mgraph.__version__} | installed_versions(),
        }
        if isinstance(found.result, Result):
            stats = found.result.stats
            entry["stats"] = plain(stats) | {"supersteps": len(stats.supersteps)}
    others = [other for other in manifest["runs"] if other["parameters"] != entry["parameters"]]
    manifest["runs"] = [*others, entry]


def is_interrupted(entry: dict[str, Any] | None) -> bool:
    """Return whether a run ended while its outputs were written: these may be replaced."""
    return entry is not None and entry["outputs"] is None


def is_done(entry: dict[str, Any] | None, run: Run) -> bool:
    """Return whether the outputs of a run are those of its entry."""
    return entry is not None and entry["outputs"] == checksums(run)


def outputs_of(run: Run) -> list[str]:
    """Return the names of the files and folders that a run writes."""
    return [run.options[name] for name in OUTPUTS if run.options.get(name) is not None]


def checksums(run: Run) -> list[dict[str, Any]]:
    """Return the files of a run's outputs that exist, with size and SHA-256."""
    return [{"file": str(file), **_checksum(file)} for output in outputs_of(run) for file in _files(output)]


def _files(output: str) -> Sequence[pathlib.Path | RemoteFile]:
    """Return the files of an output, none if it does not exist."""
    if is_url(output):
        return remote_files(output) if _is_there(output) else []
    path = pathlib.Path(output)
    return sorted(path.iterdir()) if path.is_dir() else [path] if path.exists() else []


def _is_there(url: str) -> bool:
    system, path = file_system(url)
    return bool(system.exists(path))


def _checksum(file: pathlib.Path | RemoteFile) -> dict[str, Any]:
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
        return {"bytes": opened.seek(0, os.SEEK_END), "sha256": digest}


def _identity(text: str) -> list[dict[str, Any]]:
    """Return the files of an input with size, and time of change or version; a spec has none."""
    if is_spec(text):
        return []
    if is_url(text):
        return [{"file": str(file), **_version(file)} for file in remote_files(text)]
    # A saved graph is written whole, its manifest last.
    files = input_files(os.path.join(text, SAVED) if is_store(text) else text)
    return [{"file": str(file), **_version(file)} for file in files]


def _version(file: Any) -> dict[str, Any]:
    if isinstance(file, RemoteFile):
        return {"bytes": file.num_bytes, "version": file.version}
    found = file.stat()
    return {"bytes": found.st_size, "modified_ns": found.st_mtime_ns}
