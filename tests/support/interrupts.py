"""Interrupts for tests: one at a chosen instruction of a caller, and real signals from another process."""

from __future__ import annotations

import dis
import itertools
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).parents[2]
# Python checks for signals neither before it returns a value nor before it cleans up after an error.
WITHOUT_SIGNALS = {"RETURN_VALUE", "RERAISE", "POP_EXCEPT", "COPY", "PUSH_EXC_INFO"}


def interrupted_at(step: int, call: Callable[[], object], files: tuple[str, ...], *, by_line: bool = False) -> bool:
    """Run `call` with a SIGINT at a step of this thread in `files`; return whether it was interrupted.

    A step is an instruction, or with `by_line` a line.
    """
    steps = itertools.count()

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(files):
            return None
        frame.f_trace_opcodes = not by_line
        if event == ("line" if by_line else "opcode"):
            at = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if at not in WITHOUT_SIGNALS and next(steps) == step:
                # Calls its handler at once.
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    # Python 3.12 traces instructions only if a frame requests it before tracing begins.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def of_package(*names: str) -> tuple[str, ...]:
    """Return the paths of modules of the package, or of the whole package."""
    return tuple(str(ROOT / "mgraph" / name) for name in names or ("",))


# The interrupted program: `setup` runs once, then `work` repeatedly for `times` interrupts; `check` fails
# if something is left. Interrupts outside of `work` are ignored, since they would end the loop.
PROGRAM = """
import gc, signal, sys, time
import mgraph as mg
is_armed = False

def interrupt(number, frame):
    global is_armed
    if is_armed:
        is_armed = False
        raise KeyboardInterrupt

{setup}
signal.signal(signal.SIGINT, interrupt)
print("ready", flush=True)
for count in range({times}):
    try:
        is_armed = True
        while True:
            {work}
    except KeyboardInterrupt:
        print(count, flush=True)
signal.signal(signal.SIGINT, signal.SIG_IGN)
{work}
gc.collect()
{check}
print("done", flush=True)
"""


def interrupt_often(setup: str, work: str, check: str, *, times: int, hang_s: float = 30.0) -> None:
    """Run the program and interrupt it at random times until it is done; fail if it makes no progress."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    code = PROGRAM.format(setup=setup, work=work, check=check, times=times)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-X", "faulthandler", "-c", code]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        try:
            _interrupt_until_done(process, draw, hang_s)
            error = process.stderr.read().decode()
            assert (process.wait(hang_s), error) == (0, "")
        finally:
            process.kill()


def _interrupt_until_done(process: subprocess.Popen, draw: random.Random, hang_s: float) -> None:
    out = process.stdout.fileno()
    seen = b""
    last = time.monotonic()
    while not seen.endswith(b"done\n"):
        wait_s = draw.uniform(0.0005, 0.006) if b"ready" in seen else hang_s
        if select.select([out], [], [], wait_s)[0]:
            new = os.read(out, 1 << 16)
            if not new:
                return
            seen = (seen + new)[-(1 << 12) :] if b"ready" not in seen else b"ready" + new[-64:]
            last = time.monotonic()
        elif time.monotonic() - last > hang_s:
            # Makes faulthandler print all stacks to stderr.
            process.send_signal(signal.SIGABRT)
            raise AssertionError(f"no progress after {seen[-20:]!r}: {process.stderr.read().decode()}")
        else:
            process.send_signal(signal.SIGINT)
