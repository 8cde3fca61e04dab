"""Fields, checks and output arrays that all generators share."""

from __future__ import annotations

import math
from typing import Any, Literal, Protocol, get_args

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.kernel import Kernel
from mgraph.edges import EdgeChunk
from mgraph.errors import UsageError
from mgraph.types import none_of, vertex_dtype

# Edges are numbered in int64, and the index of a kernel's loop may exceed the last edge by the size of a grid.
MAX_EDGES = 1 << 62
LARGEST_WEIGHT = 2**32 - 1
Weights = Literal["int", "float32", "float64", "graph500"]
WEIGHT_CHOICES = (*get_args(Weights), None)
DEFAULT_MAX_WEIGHT = 255
# Graph500's weights are the multiples 0 .. 1 - 2^-24 of 2^-24, each of them a float32.
GRAPH500_STEPS = 1 << 24


class Weighted(Protocol):
    """The fields of every generator.

    `weights` is "int" (integers 1 .. max_weight in the smallest unsigned dtype), "float32" or
    "float64" (the same integers as floats), "graph500" (float32 in [0, 1), as its specification has them), or None.
    """

    @property
    def seed(self) -> int: ...
    @property
    def weights(self) -> str | None: ...
    @property
    def max_weight(self) -> int: ...


def check_weighted(generator: Weighted) -> None:
    """Refuse a seed or weights that the kernels do not support."""
    check_integer("seed", generator.seed, 0, 2**63 - 1)
    if generator.weights not in WEIGHT_CHOICES:
        raise UsageError(f"weights {generator.weights!r} is not one of {', '.join(map(str, WEIGHT_CHOICES))}")
    check_integer("max_weight", generator.max_weight, 1, LARGEST_WEIGHT)
    if generator.weights == "graph500" and generator.max_weight != DEFAULT_MAX_WEIGHT:
        raise UsageError(f"max_weight {generator.max_weight}: weights graph500 are in [0, 1)")


def check_integer(name: str, value: Any, low: int, high: int) -> None:
    """Refuse a value that is not an integer in low..high."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise UsageError(f"{name} {value!r} is not an integer")
    if not low <= value <= high:
        raise UsageError(f"{name} {value} is not in {low}..{high}")


def check_real(name: str, value: Any, low: float, high: float) -> None:
    """Refuse a value that is not a number in low..high."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)) or math.isnan(value):
        raise UsageError(f"{name} {value!r} is not a number")
    if not low <= value <= high:
        raise UsageError(f"{name} {value} is not in {low}..{high}")


def check_num_edges(num_edges: int) -> None:
    """Refuse more edges than can be numbered."""
    if num_edges > MAX_EDGES:
        raise UsageError(f"{num_edges} edges are more than the {MAX_EDGES} that can be numbered")


def weight_dtype(generator: Weighted) -> np.dtype | None:
    """Return the dtype of a generator's weights."""
    if generator.weights == "int":
        return np.min_scalar_type(generator.max_weight)
    if generator.weights == "graph500":
        return np.dtype(np.float32)
    return None if generator.weights is None else np.dtype(generator.weights)


def name_of(generator: Weighted, stem: str, **options: tuple[Any, Any]) -> str:
    """Return a graph's name: its stem, and every option (value, default) that differs from its default."""
    scramble = int(getattr(generator, "scramble", True))
    options |= {"seed": (generator.seed, 1), "scramble": (scramble, 1), "w": (generator.max_weight, DEFAULT_MAX_WEIGHT)}
    unusual = [f"{option}{value}" for option, (value, usual) in options.items() if value != usual]
    kind = [] if generator.weights == "int" else [generator.weights or "unweighted"]
    return "-".join((stem, *unusual, *kind))


class Output:
    """The arrays of a chunk, which a generator's kernel fills in one launch."""

    def __init__(self, generator: Any, backend: Backend, num_edges: int) -> None:
        dtype = vertex_dtype(generator.num_vertices)
        empty = backend.xp.empty
        self.sources = empty(num_edges, dtype)
        self.targets = empty(num_edges, dtype)
        self.weights = None if generator.weights is None else empty(num_edges, generator.weight_dtype)
        self.none = none_of(dtype)
        self.backend = backend
        self.graph500 = generator.weights == "graph500"
        self.max_weight = GRAPH500_STEPS if self.graph500 else generator.max_weight

    def fill(self, kernel: Kernel, *args: int) -> Output:
        """Launch the kernel over the work items lo..hi (its first two arguments) to fill these arrays."""
        kernel[self.backend](*args, self.sources, self.targets, self.weights)
        return self

    def chunk(self) -> EdgeChunk:
        """Return all edges."""
        return EdgeChunk(self.sources, self.targets, self._scaled(self.weights))

    def present(self) -> EdgeChunk:
        """Return the edges with a source other than `none`, by which kernels mark missing edges."""
        is_edge = self.sources != self.none
        weights = None if self.weights is None else self.weights[is_edge]
        return EdgeChunk(self.sources[is_edge], self.targets[is_edge], self._scaled(weights))

    def _scaled(self, weights: Any) -> Any:
        """Return the weights; Graph500's are made of the kernel's integers in place, exactly."""
        if self.graph500:
            weights -= np.float32(1)
            weights *= np.float32(1 / GRAPH500_STEPS)
        return weights
