"""A step kernel is a pair: a Numba function here, a CUDA function of the same name beside it.

    @kernel(vertex_t="targets")
    def expand(lo, hi, frontier, indptr, targets, next_frontier, count): ...

    expand[backend](0, n, frontier, indptr, targets, next_frontier, count)

The first two parameters of every kernel are the range of work items, lo..hi. A launcher cuts it: the
CPU among its threads, CUDA among the threads of a grid. The rest are the same in both twins, inputs
first, then outputs. Scalars are int64 (CUDA: i64) or float64; arrays carry their dtypes, and the
keywords of `@kernel` name the parameter from which the CUDA text takes each typedef.

A fused loop, named by `@fused`, has the CUDA function alone: all blocks of its launch run at once and
meet at barriers, so that many supersteps take one launch. A FusingBackend can launch it.
"""

from __future__ import annotations

import copy
import functools
import inspect
import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from mgraph.errors import CommAborted

if TYPE_CHECKING:
    from mgraph.backends.base import Backend

# Every typedef a .cu file may use, and what it is where no argument of a launch decides; and RANKS, for how many ranks
# a kernel of for_ranks() is.
TYPEDEFS = {
    "vertex_t": "uint32",
    "dist_t": "float32",
    "weight_t": "float32",
    "id_t": "uint32",
    "out_t": "int64",
    "parent_t": "uint32",
    "RANKS": "8",
}


def inline(function: Callable) -> Callable:
    """Compile a helper that kernels call; its CUDA twin is a __device__ function."""
    return numba.njit(nogil=True, cache=True, error_model="numpy")(function)


class Kernel:
    """A pair, ready to be launched on a backend: `kernel[backend](lo, hi, ...)`."""

    def __init__(
        self,
        function: Callable,
        lanes: int,
        block: int,
        shared_bytes: int | Callable[..., int],
        types: dict[str, str],
        *,
        cooperative: bool = False,
    ) -> None:
        self.name = function.__name__
        self.module = function.__module__.removeprefix("mgraph.")
        self.source = pathlib.Path(inspect.getfile(function)).with_suffix(".cu")
        self.parameters = tuple(inspect.signature(function).parameters)
        self.lanes = lanes
        self.block = block
        self._shared_bytes = shared_bytes
        self.types = {typedef: self.parameters.index(name) for typedef, name in types.items()}
        self.cooperative = cooperative  # all blocks of a launch run at once, and there is no CPU twin
        self.num_ranks: int | None = None
        self.cpu: Any = None if cooperative else inline(function)
        self.__doc__ = function.__doc__

    def __getitem__(self, backend: Backend) -> Callable[..., None]:
        def launch(*args: Any) -> None:
            # A rank alone calls few verbs: a build of minutes would go on that long after its call was given up.
            if backend.stopped is not None:
                raise CommAborted(backend.stopped)
            backend.launch(self, args)

        return launch

    def dtypes(self, args: tuple) -> tuple[np.dtype | None, ...]:
        """Return the dtypes that these arguments give the typedefs: what decides which module is wanted."""
        return tuple([None if args[i] is None else args[i].dtype for i in self.types.values()])

    def typedefs(self, dtypes: tuple[np.dtype | None, ...]) -> dict[str, str]:
        """Return the name of the dtype behind each typedef; one that no argument decides is as usual."""
        given = zip(self.types, dtypes, strict=True)
        ranks = {} if self.num_ranks is None else {"RANKS": str(self.num_ranks)}
        return TYPEDEFS | ranks | {typedef: dtype.name for typedef, dtype in given if dtype is not None}

    def shared_bytes(self, args: tuple) -> int:
        """Return how much dynamic shared memory a block needs for these arguments."""
        if isinstance(self._shared_bytes, int):
            return self._shared_bytes
        return self._shared_bytes(**dict(zip(self.parameters, args, strict=True)))

    def __repr__(self) -> str:
        return f"<kernel {self.module}.{self.name}>"


@functools.cache
def for_ranks(kernel: Kernel, num_ranks: int) -> Kernel:
    """Return the kernel compiled for so many ranks: loops over them are as long, and the compiler knows."""
    of_ranks = copy.copy(kernel)
    of_ranks.num_ranks = num_ranks
    return of_ranks


def kernel(
    *, lanes: int = 1, block: int = 256, shared_bytes: int | Callable[..., int] = 0, **types: str
) -> Callable[[Callable], Kernel]:
    """Make a pair of a Numba function and its CUDA twin.

    Parameters
    ----------
    lanes
        CUDA threads that share one work item: 1, 32 (a warp) or as many as a block has.
    block
        CUDA threads of a block.
    shared_bytes
        Dynamic shared memory of a block: a number, or a function of the kernel's arguments by name.
    **types
        typedef=parameter: the array whose dtype the typedef stands for.
    """
    return lambda function: Kernel(function, lanes, block, shared_bytes, types)


def fused(
    *, lanes: int = 1, block: int = 1024, shared_bytes: int | Callable[..., int] = 0, **types: str
) -> Callable[[Callable], Kernel]:
    """Name a fused loop, whose Python function has a docstring alone; the options are those of `kernel`.

    A launch has as many blocks as the device holds at once, or fewer where there is less work.
    """
    return lambda function: Kernel(function, lanes, block, shared_bytes, types, cooperative=True)
