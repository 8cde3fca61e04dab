"""Check the folder in which a call keeps its state."""

from __future__ import annotations

from typing import Any

from mgraph.algorithms.common.checkpoints import CheckpointFolder
from mgraph.algorithms.variant import METHODS
from mgraph.algorithms.variants import checkpointing_variants
from mgraph.config import settings
from mgraph.errors import UsageError
from mgraph.store.manifest import folder_of


def checkpoint_folder(algorithm: str, checkpoint: Any, method: str = "auto") -> CheckpointFolder | None:
    """Return a folder of checkpoints, None if none is given.

    A method that keeps none is refused, and so is a folder in no folder.
    """
    if checkpoint is None:
        return None
    names = [variant.short_name for variant in checkpointing_variants(algorithm)]
    if method not in (*METHODS, *names):
        raise UsageError(f"method {method!r} keeps no checkpoints: {', '.join(names)} do, and auto chooses")
    folder = folder_of(checkpoint)
    if not folder.parent.is_dir():
        raise UsageError(f"{folder}: there is no folder {folder.parent}")
    return CheckpointFolder(str(folder), settings.seconds("checkpoint-every"), settings.share("checkpoint-share"))
