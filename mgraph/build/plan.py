"""How much memory a build takes, before it takes it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mgraph.kernels.backend import Backend
from mgraph.partition import Partition
from mgraph.types import EdgeSource, vertex_dtype


def gib(num_bytes: float) -> str:
    """Return a number of bytes as people read it."""
    for unit in ("B", "KiB", "MiB"):
        if abs(num_bytes) < 1024:
            return f"{num_bytes:.3g} {unit}"
        num_bytes /= 1024
    return f"{num_bytes:.1f} GiB"


@dataclass(frozen=True)
class Plan:
    """Bytes on the fullest rank, by what they are for."""

    num_ranks: int
    held: dict[str, int] = field(default_factory=dict)  # from before pass 2 to the end of the build
    rows: int = 0  # this rank's rows with parallel arcs, kept
    place: int = 0  # for one chunk while arcs are placed
    sort: int = 0  # for one batch while rows are sorted

    @property
    def peak_bytes(self) -> int:
        """The build's high-water mark."""
        return sum(self.held.values()) + self.allocated_bytes

    @property
    def allocated_bytes(self) -> int:
        """What pass 2 still has to allocate."""
        return self.rows + max(self.place, self.sort)

    def refusal(self, free_bytes: int) -> str:
        """Say how much is needed, how much there is, and what would fit."""
        more = -(-self.allocated_bytes * self.num_ranks // max(free_bytes, 1))
        return (
            f"the graph needs {gib(self.allocated_bytes)} more on each of {self.num_ranks} rank(s), "
            f"but one has {gib(free_bytes)} free: use at least {max(more, self.num_ranks + 1)} ranks of this size"
        )


def plan_build(
    source: EdgeSource,
    partition: Partition,
    backend: Backend,
    num_chunks: int,
    row_arcs: int,
    weight_dtype: np.dtype | None,
) -> Plan:
    """Plan the build of a graph whose vertices and arcs are counted."""
    n, owned = source.num_vertices, partition.num_owned(0)
    id_bytes, vertex_bytes = vertex_dtype(n).itemsize, partition.dtype.itemsize
    given_bytes = 0 if source.weight_dtype is None else source.weight_dtype.itemsize
    weight_bytes = 0 if weight_dtype is None else weight_dtype.itemsize
    edges = source.num_input_edges
    chunk = -(-edges // num_chunks) if edges is not None else -(-row_arcs * partition.num_ranks // num_chunks)
    batch = min(max(backend.batch_arcs, 1), row_arcs)
    degrees_bytes = 4 * n * (2 if source.directed else 1)
    held = {"degrees": degrees_bytes}
    if partition.cyclic:
        held["positions of user ids"] = id_bytes * n
        held["user ids of positions"] = id_bytes * owned
    # An edge while it is placed: as read, translated, and its row beside; on several ranks also sent and received.
    edge = 2 * (id_bytes + vertex_bytes) + 2 * given_bytes + 1 + vertex_bytes
    if partition.num_ranks > 1:
        edge += 8 + 3 * (2 * vertex_bytes + weight_bytes)
    # An arc while it is sorted: its key twice, and with weights its place and its weight.
    arc = 8 + 8 + 1 + (8 + 8 if weight_bytes else 0) + weight_bytes
    return Plan(
        partition.num_ranks,
        held,
        rows=8 * (2 * owned + 1) + row_arcs * (vertex_bytes + weight_bytes),
        place=chunk * edge,
        sort=batch * arc,
    )
