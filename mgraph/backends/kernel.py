"""A step kernel is a pair: a Numba function here, a CUDA function of the same name beside it.

    @kernel(vertex_t="targets")
    def expand(lo, hi, frontier, indptr, targets, next_frontier, count): ...

    expand[backend](0, n, frontier, indptr, targets, next_frontier, count)

The first two parameters of every kernel are the range of work items, lo..hi. A backend divides it: the
CPU among its threads, CUDA among the threads of a grid. The other parameters are the same in both twins,
inputs first, then outputs. Scalars are int64 (CUDA: i64) or float64; arrays have dtypes. A keyword
typedef=parameter of `@kernel` makes the dtype of that array a typedef of the CUDA text.

A persistent kernel has the CUDA function alone, in one cooperative launch: all blocks run at once and are
synchronized by grid barriers, so that many supersteps take one launch. It needs a PersistentBackend.
"""

from __future__ import annotations

import copy
import functools
import inspect
import pathlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from mgraph.backends.numba_compile import compiled
from mgraph.errors import CommAborted

# Every typedef that a .cu file may use, with its default where the arguments of a launch do not decide it; and RANKS,
# the number of ranks for which a kernel of for_ranks() is compiled.
TYPEDEFS = {
    "vertex_t": "uint32",
    "dist_t": "float32",
    "weight_t": "float32",
    "id_t": "uint32",
    "out_t": "int64",
    "parent_t": "uint32",
    "RANKS": "8",
}


class Launcher(Protocol):
    """What a kernel needs of a backend; mgraph.backends.base.Backend implements it."""

    stopped: str | None

    def launch(self, kernel: Kernel, args: tuple) -> None:
        """Launch `kernel` over the work items args[0]..args[1]."""


def inline(function: Callable) -> Callable:
    """Compile a helper that kernels call; its CUDA twin is a __device__ function."""
    return compiled(function)


# The address of an array without elements in CUDA kernels, which take null for None; it is never read.
NO_ELEMENTS = 256


class Kernel:
    """A kernel pair or a persistent kernel, ready to be launched on a backend: `kernel[backend](lo, hi, ...)`."""

    def __init__(
        self,
        function: Callable,
        lanes: int,
        block: int,
        shared_bytes: int | Callable[..., int],
        types: dict[str, str],
        *,
        cooperative: bool = False,
        light: int = 1,
    ) -> None:
        self.name = function.__name__
        self.module = function.__module__.removeprefix("mgraph.")
        self.source = pathlib.Path(inspect.getfile(function)).with_suffix(".cu")
        self.parameters = tuple(inspect.signature(function).parameters)
        self.lanes = lanes
        self.block = block
        self._shared_bytes = shared_bytes
        self.types = {typedef: self.parameters.index(name) for typedef, name in types.items()}
        self.light = light
        self.cooperative = cooperative  # a persistent kernel: one cooperative launch, no CPU twin
        self.num_ranks: int | None = None
        self._function = function
        self.__doc__ = function.__doc__

    @functools.cached_property
    def cpu(self) -> Any:
        """The CPU twin, made at its first launch: to make those of all kernels takes a tenth of a second."""
        return None if self.cooperative else inline(self._function)

    def __getitem__(self, backend: Launcher) -> Callable[..., None]:
        def launch(*args: Any) -> None:
            # A single rank calls few verbs of a communicator, where an abort is noticed: without this check a build
            # of minutes would run on after its call was abandoned.
            if backend.stopped is not None:
                raise CommAborted(backend.stopped)
            backend.launch(self, args)

        return launch

    def dtypes(self, args: tuple) -> tuple[np.dtype | None, ...]:
        """Return the dtypes of the typedefs for these arguments: they identify the compiled module."""
        return tuple([None if args[i] is None else args[i].dtype for i in self.types.values()])

    def typedefs(self, dtypes: tuple[np.dtype | None, ...]) -> dict[str, str]:
        """Return the dtype's name for each typedef, the default where no argument decides."""
        decided = zip(self.types, dtypes, strict=True)
        ranks = {} if self.num_ranks is None else {"RANKS": str(self.num_ranks)}
        return TYPEDEFS | ranks | {typedef: dtype.name for typedef, dtype in decided if dtype is not None}

    def shared_bytes(self, args: tuple) -> int:
        """Return how much dynamic shared memory a block needs for these arguments."""
        if isinstance(self._shared_bytes, int):
            return self._shared_bytes
        return self._shared_bytes(**dict(zip(self.parameters, args, strict=True)))

    def __repr__(self) -> str:
        return f"<kernel {self.module}.{self.name}>"


@functools.cache
def for_ranks(kernel: Kernel, num_ranks: int) -> Kernel:
    """Return the kernel compiled for this number of ranks, a compile-time bound of loops over ranks."""
    of_ranks = copy.copy(kernel)
    of_ranks.num_ranks = num_ranks
    return of_ranks


def kernel(
    *, lanes: int = 1, block: int = 256, shared_bytes: int | Callable[..., int] = 0, light: int = 1, **types: str
) -> Callable[[Callable], Kernel]:
    """Make a kernel from a Numba function and its CUDA twin.

    Parameters
    ----------
    lanes
        CUDA threads for one work item: 1, 32 (a warp), or all threads of a block or of several.
    block
        CUDA threads of a block.
    shared_bytes
        Dynamic shared memory of a block: a number, or a function of the kernel's arguments by name.
    light
        The number of its work items that cost a CPU as much as one of a typical kernel.
    **types
        typedef=parameter: the typedef is the dtype of that array.
    """
    return lambda function: Kernel(function, lanes, block, shared_bytes, types, light=light)


def persistent(
    *, lanes: int = 1, block: int = 1024, shared_bytes: int | Callable[..., int] = 0, **types: str
) -> Callable[[Callable], Kernel]:
    """Declare a persistent kernel by a Python function with only a docstring.

    The options are those of `kernel`. A launch has as many blocks as the device holds at once, or fewer if there is
    less work.
    """
    return lambda function: Kernel(function, lanes, block, shared_bytes, types, cooperative=True)
