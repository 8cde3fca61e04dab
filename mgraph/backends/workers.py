"""Threads of the host that share the pieces of one rank, whatever its backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend, available_cores
from mgraph.backends.thread_pool import Helpers
from mgraph.errors import CommAborted

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """The calling thread and helpers: as many threads as the backend, or the host of a GPU, has.

    `helpers` may be the backend's own where no function launches a kernel on that backend.
    """

    def __init__(self, backend: Backend, helpers: Helpers | None = None) -> None:
        self._backend = backend
        threads = backend.threads if isinstance(backend, CpuBackend) else available_cores()
        self._helpers = helpers or Helpers(threads - 1)

    def try_each(self, function: Callable[[int], object], numbers: Iterable[int]) -> tuple[int, Exception] | None:
        """Call a function with numbers in their order, until it fails; return the first that fails, with its error."""
        left = iter(numbers)
        failures: dict[int, BaseException] = {}

        def work() -> None:
            # A number is taken after this check and then always tried, in the order of the numbers: those before the
            # first that fails are all tried. next() on a range iterator is one bytecode under the GIL.
            while not failures and (k := next(left, None)) is not None:
                try:
                    if self._backend.stopped is not None:
                        raise CommAborted(self._backend.stopped)
                    function(k)
                except BaseException as error:
                    failures[k] = error
                    if not isinstance(error, Exception):
                        raise

        try:
            self._helpers.run(work)
            first = min(failures, default=None)
            return None if first is None else (first, failures[first])  # type: ignore[return-value]
        finally:
            # The errors' tracebacks refer to it: the cycle would keep files of the input open until it is collected.
            failures.clear()

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return function(item) of every item, in their order; raise the error of the first that fails."""
        results: dict[int, Result] = {}

        def call(i: int) -> None:
            results[i] = function(items[i])

        failure = self.try_each(call, range(len(items)))
        if failure is not None:
            try:
                raise failure[1]
            finally:
                # The error's traceback refers to this frame.
                del failure
        return [results[i] for i in range(len(items))]

    def close(self) -> None:
        """End the helpers."""
        self._helpers.close()
