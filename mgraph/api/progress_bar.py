"""Draw a bar on a terminal or in a notebook for what lasts over a second: its phase, per cent, rate and time left.

A thread beside the caller reads what rank 0 writes down: the ranks have equal shares, and nothing waits for the bar.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from mgraph import config
from mgraph.backends.progress import Phase
from mgraph.cluster.base import Cluster
from mgraph.formatting import readable_bytes
from mgraph.signals import locked_lock

if TYPE_CHECKING:
    from rich.console import Console

DELAY_S = 1.0
PERIOD_S = 0.1
# The width, at most, of all columns but the headline: phase, bar, per cent, rate and time left.
OTHER_COLUMNS = 90
MIN_HEADLINE = 20


class Bar:
    """A bar of one thread's calls.

    Attributes
    ----------
    headline
        What the caller does, in words.
    own
        The phase of the caller, such as 3 of 64 searches; shown unless rank 0 has one.
    """

    def __init__(self, console: Console) -> None:
        self.headline = ""
        self.own: Phase | None = None
        self.ident = threading.get_ident()
        self._console = console
        self._over = locked_lock()
        self._of_rank: Callable[[], Phase | None] = lambda: None
        self._num_ranks = 1
        self._most: tuple[Phase | None, int] = None, 0
        self._thread = threading.Thread(target=self._run, name="mgraph-progress", daemon=True)

    @contextmanager
    def watching(self, cluster: Cluster) -> Iterator[None]:
        """Show what a cluster's ranks do in the block, but not what they have done before."""
        earlier = cluster.phase()

        def of_rank() -> Phase | None:
            phase = cluster.phase()
            return None if phase is earlier else phase

        self._num_ranks = cluster.num_ranks
        self._of_rank = of_rank
        try:
            yield
        finally:
            self._of_rank = lambda: None

    def start(self) -> None:
        """Start the thread that draws."""
        self._thread.start()

    def end(self) -> None:
        """Remove the bar; the terminal is as it was."""
        # Releasing is atomic: an interrupt leaves nothing locked that the thread waits for.
        self._over.release()
        self._thread.join()

    def _run(self) -> None:
        # A terminal may be closed meanwhile.
        with suppress(OSError, ValueError):
            if not self._over.acquire(timeout=DELAY_S):
                self._draw()

    def _draw(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        width = max(self._console.width - OTHER_COLUMNS, MIN_HEADLINE)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[facts]}", markup=False),
        )
        with Progress(
            *columns,
            console=self._console,
            auto_refresh=False,
            transient=True,
            # Standard output stays where it goes: it may be a pipe while the bar is on the terminal.
            redirect_stdout=False,
            redirect_stderr=False,
        ) as progress:
            task = progress.add_task("", total=None, facts="")
            while True:
                phase, done = self._newest()
                headline = self.headline if len(self.headline) <= width else self.headline[: width - 3] + "..."
                progress.update(
                    task,
                    description=f"{headline}: {phase.name}" if phase and phase.name else headline,
                    completed=done,
                    facts=facts_of(phase, done, self._num_ranks) if phase else "",
                )
                # By itself, as None in update() means unchanged.
                progress.tasks[0].total = phase.total if phase and phase.total else None
                progress.refresh()
                if self._over.acquire(timeout=PERIOD_S):
                    return

    def _newest(self) -> tuple[Phase | None, int]:
        """Return the phase to show, and its steps: never fewer than before, nor more than there are."""
        phase = self._of_rank() or self.own
        if phase is None:
            return None, 0
        before = self._most[1] if self._most[0] is phase else 0
        done = max(before, min(phase.done, phase.total) if phase.total else phase.done)
        self._most = phase, done
        return self._most


# The bar that is drawn; a process has one terminal.
_current: Bar | None = None
_is_taken = threading.Lock()


@contextmanager
def bar() -> Iterator[Bar | None]:
    """Draw a bar while the block lasts; yield None where there is nothing to draw on, or another bar."""
    global _current
    console = _find_console()
    if console is None or not _is_taken.acquire(blocking=False):
        yield None
        return
    try:
        _current = Bar(console)
        _current.start()
        try:
            yield _current
        finally:
            _current.end()
    finally:
        _current = None
        _is_taken.release()


@contextmanager
def no_bar() -> Iterator[None]:
    """Draw no bar while the block lasts."""
    is_first = _is_taken.acquire(blocking=False)
    try:
        yield
    finally:
        if is_first:
            _is_taken.release()


@contextmanager
def shown(headline: str, cluster: Cluster) -> Iterator[None]:
    """Show what the ranks of a cluster do in the block, in the bar of this thread if it has one."""
    outer = _current
    if outer is not None and outer.ident == threading.get_ident():
        with outer.watching(cluster):
            yield
        return
    with bar() as own:
        if own is None:
            yield
            return
        own.headline = headline
        with own.watching(cluster):
            yield


def facts_of(phase: Phase, done: int, num_ranks: int) -> str:
    """Return per cent, rate and time left of a phase, as far as they are known."""
    seconds = time.monotonic() - phase.began
    facts = [f"{100 * done // phase.total}%"] if phase.total else []
    if done and seconds > 0:
        facts.append(f"{_rate(done * phase.per_step * num_ranks / seconds, phase.unit)}/s")
        if phase.total:
            left = timedelta(seconds=round((phase.total - done) * seconds / done))
            facts.append(f"{left} left")
    return ", ".join(facts)


def _rate(count: float, unit: str) -> str:
    if unit == "bytes":
        return readable_bytes(count)
    for suffix, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f}{suffix} {unit}"
    return f"{count:.1f} {unit}"


def is_terminal() -> bool:
    """Return whether standard error is a terminal."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def _find_console() -> Console | None:
    """Return a terminal or a notebook, None if standard error is neither or the setting is off."""
    if not (is_terminal() or "IPython" in sys.modules) or config.choice("progress", "auto", "off") == "off":
        return None
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_jupyter:
        # Rich draws there with widgets.
        return console if importlib.util.find_spec("ipywidgets") else None
    return console if is_terminal() and not console.is_dumb_terminal else None
