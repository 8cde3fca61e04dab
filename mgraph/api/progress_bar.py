"""Draw a bar on a terminal or in a notebook for what lasts over a second: its phase, per cent, rate and time left.

One thread other than the callers draws, and sleeps while there is no call; a call costs some microseconds more. It
reads what rank 0 writes down: the ranks have equal shares, and nothing waits for the bar.
"""

from __future__ import annotations

import contextvars
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import timedelta
from queue import SimpleQueue
from typing import TYPE_CHECKING

from mgraph.backends.progress import Phase
from mgraph.cluster.base import Cluster
from mgraph.config import settings
from mgraph.formatting import readable_bytes
from mgraph.signals import locked_lock, wait_for

if TYPE_CHECKING:
    from rich.console import Console

DELAY_S = 1.0
PERIOD_S = 0.1
# Without a bar for so long, the thread that draws sleeps until one begins.
AWAKE_S = 2.0
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
        The phase of the caller, such as 3 of 64 searches; where there is one, those of rank 0 are not shown.
    """

    def __init__(self, headline: str) -> None:
        self.headline = headline
        self.own: Phase | None = None
        self.ident = threading.get_ident()
        self.began = time.monotonic()
        # Taken by the thread that draws, or else at the end; the second one comes too late.
        self._is_claimed = threading.Lock()
        self._over = locked_lock()
        self._is_gone = locked_lock()
        self._of_rank: Callable[[], Phase | None] = lambda: None
        self._num_ranks = 1
        self._most: tuple[Phase | None, int] = None, 0

    @contextmanager
    def watching(self, cluster: Cluster, own: Phase | None) -> Iterator[None]:
        """Show what a cluster's ranks do in the block, but not what they have done before, or the caller's phase."""
        outer = self._of_rank, self._num_ranks, self.own
        self._of_rank = cluster.watch()
        self._num_ranks = cluster.num_ranks
        self.own = self.own or own
        try:
            yield
        finally:
            self._of_rank, self._num_ranks, self.own = outer

    def end(self) -> None:
        """Remove the bar; the terminal is as it was."""
        # Each line is atomic: an interrupt leaves nothing locked that the thread waits for.
        self._over.release()
        if not self._is_claimed.acquire(blocking=False):
            wait_for(self._is_gone)

    def draw(self) -> None:
        """Draw until the end, unless that has come already."""
        if not self._is_claimed.acquire(blocking=False):
            return
        try:
            # A terminal may be closed meanwhile.
            with suppress(OSError, ValueError):
                if console := _find_console():
                    self._draw(console)
        finally:
            self._is_gone.release()

    def _draw(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        width = max(console.width - OTHER_COLUMNS, MIN_HEADLINE)

        def cut(headline: str) -> str:
            return headline if len(headline) <= width else headline[: width - 3] + "..."

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[facts]}", markup=False),
        )
        with Progress(
            *columns,
            console=console,
            auto_refresh=False,
            transient=True,
            # Standard output stays where it goes: it may be a pipe while the bar is on the terminal.
            redirect_stdout=False,
            redirect_stderr=False,
        ) as progress:
            task = progress.add_task(cut(self.headline), total=None, facts="")
            while True:
                phase, done = self._newest()
                headline = cut(self.headline)
                num_ranks = 1 if phase is self.own else self._num_ranks
                progress.update(
                    task,
                    description=f"{headline}: {phase.name}" if phase and phase.name else headline,
                    completed=done,
                    facts=facts_of(phase, done, num_ranks) if phase else "",
                )
                # By itself, as None in update() means unchanged.
                progress.tasks[0].total = phase.total if phase and phase.total else None
                progress.refresh()
                if self._over.acquire(timeout=PERIOD_S):
                    return

    def _newest(self) -> tuple[Phase | None, int]:
        """Return the phase to show, and its steps: never fewer than before, nor more than there are."""
        phase = self.own or self._of_rank()
        if phase is None:
            return None, 0
        before = self._most[1] if self._most[0] is phase else 0
        done = max(before, min(phase.done, phase.total) if phase.total else phase.done)
        self._most = phase, done
        return self._most


class _Drawer:
    """The thread that draws the bars of this process, one at a time."""

    def __init__(self) -> None:
        self.current: Bar | None = None
        self._pid = 0
        self._is_awake = False
        self._wake: SimpleQueue[None] = SimpleQueue()

    def begin(self, bar: Bar) -> None:
        """Draw a bar if it lasts."""
        self.current = bar
        if self._pid != os.getpid():
            # At first, and in a forked child, where the thread does not exist.
            self._pid = os.getpid()
            self._is_awake = True
            threading.Thread(target=self._run, name="mgraph-progress", daemon=True).start()
        elif not self._is_awake:
            self._is_awake = True
            self._wake.put(None)

    def _run(self) -> None:
        while True:
            seen = time.monotonic()
            while time.monotonic() - seen < AWAKE_S:
                time.sleep(PERIOD_S)
                if (bar := self.current) is not None:
                    seen = time.monotonic()
                    if seen - bar.began >= DELAY_S:
                        # In a context of its own: in a notebook a widget keeps the cell that it is in there.
                        contextvars.Context().run(bar.draw)
            # `begin` sets `current`, then reads `_is_awake`: one of the two sees what the other has set.
            self._is_awake = False
            if self.current is None:
                self._wake.get()
            self._is_awake = True


_drawer = _Drawer()
# A process has one terminal.
_is_taken = threading.Lock()


@contextmanager
def bar(headline: str = "") -> Iterator[Bar | None]:
    """Draw a bar while the block lasts; yield None where there is nothing to draw on, or another bar."""
    if not _may_draw() or not _is_taken.acquire(blocking=False):
        yield None
        return
    try:
        begun = Bar(headline)
        _drawer.begin(begun)
        try:
            yield begun
        finally:
            _drawer.current = None
            begun.end()
    finally:
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


def shown(headline: str, cluster: Cluster, own: Phase | None = None) -> AbstractContextManager[None]:
    """Show what the ranks of a cluster do in the block, in the bar of this thread if it has one.

    With `own`, a phase that the caller counts is shown instead.
    """
    return _shown(headline, cluster, own) if _may_draw() else nullcontext()


@contextmanager
def _shown(headline: str, cluster: Cluster, own: Phase | None) -> Iterator[None]:
    outer = _drawer.current
    if outer is not None and outer.ident == threading.get_ident():
        with outer.watching(cluster, own):
            yield
        return
    with bar(headline) as begun:
        if begun is None:
            yield
            return
        with begun.watching(cluster, own):
            yield


def facts_of(phase: Phase, done: int, num_ranks: int) -> str:
    """Return per cent, rate and time left of a phase, as far as they are known, or else how much it has done."""
    seconds = time.monotonic() - phase.began
    count = done * phase.per_step * num_ranks
    facts = [f"{100 * done // phase.total}%"] if phase.total else [_amount(count, phase.unit)] if done else []
    if done and seconds > 0:
        facts.append(f"{_amount(count / seconds, phase.unit)}/s")
        if phase.total:
            left = timedelta(seconds=round((phase.total - done) * seconds / done))
            facts.append(f"{left} left")
    return ", ".join(facts)


def _amount(count: float, unit: str) -> str:
    if unit == "bytes":
        return readable_bytes(count)
    for suffix, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f}{suffix} {unit}"
    return f"{count:.3g} {unit}" if count == int(count) else f"{count:.1f} {unit}"


def is_terminal() -> bool:
    """Return whether standard error is a terminal."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def _may_draw() -> bool:
    """Return whether there may be a terminal or a notebook; it takes about a microsecond where there is none."""
    return (is_terminal() or _is_interactive()) and settings.choice("progress", "auto", "off") != "off"


def _is_interactive() -> bool:
    """Return whether this process runs the cells of a notebook, or the lines of a prompt of IPython."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython, "get_ipython", lambda: None)() is not None


def _find_console() -> Console | None:
    """Return the terminal or the notebook, None if standard error is neither."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_jupyter:
        # Rich draws there with widgets.
        return console if importlib.util.find_spec("ipywidgets") else None
    return console if is_terminal() and not console.is_dumb_terminal else None
