"""Save a rank's part of a graph to a folder, and put the folder in its place."""

from __future__ import annotations

import pathlib

from mgraph.cluster.base import Rank
from mgraph.shard.shard import Shard
from mgraph.store import folder as folders
from mgraph.store.manifest import Facts, StoredPart
from mgraph.store.save import save_shard


def save_part(rank: Rank, graph: str, path: pathlib.Path, token: str, overwrite: bool) -> tuple[StoredPart, Facts]:
    """Write this rank's files to a temporary folder; return what the manifest says of them."""
    folder = folders.temporary_folder(path, token, graph)
    if rank.index == 0:
        folders.require_target(path, overwrite=overwrite)
        folders.make_temporary(folder)
    rank.comm.barrier()
    folders.require_shared(folder, path, rank.index)
    shard: Shard = rank.objects[graph]
    return save_shard(shard, folder)


def finish_save(rank: Rank, path: pathlib.Path, token: str, graph: str, manifest: bytes, overwrite: bool) -> None:
    """Write the manifest to the temporary folder, and rename this."""
    if rank.index == 0:
        folders.put_in_place(folders.temporary_folder(path, token, graph), path, manifest, overwrite=overwrite)
        discard_save(rank, path, token)


def discard_save(rank: Rank, path: pathlib.Path, token: str) -> None:
    """Delete the temporary folders of a save that failed, or of its attempts before a rebuild."""
    if rank.index == 0:
        for folder in folders.temporary_folders(path, token):
            folders.discard(folder)
