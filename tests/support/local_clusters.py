"""Clusters of this process: ranks on the CPU, and one rank on an emulated GPU."""

from __future__ import annotations

from typing import Any

from emulator.backend import EmulatedBackend

from mgraph.cluster.in_process import InProcessCluster

GPU = "gpu"


def emulated_gpu() -> EmulatedBackend:
    return EmulatedBackend(block=32, blocks=2)


def local_cluster(kind: int | str, **options: Any) -> InProcessCluster:
    """Return a cluster of so many ranks on the CPU, or of one emulated GPU."""
    if kind == GPU:
        return InProcessCluster(1, make_backend=emulated_gpu, **options)
    return InProcessCluster(int(kind), **options)
