"""Loads what Numba loads when a process first compiles a function, or takes one from the cache: half a second."""

from numba.core.registry import cpu_target

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
