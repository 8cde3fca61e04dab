"""Free memory for this process: the least of the host's, its control groups' and its own limits.

A container, a batch job or a service is a control group, within other groups: each may have a limit. The usage of a
group includes the page cache, which the kernel reclaims under memory pressure.
"""

from __future__ import annotations

import functools
import re
import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mgraph.errors import WouldNotFit
from mgraph.formatting import readable_bytes

# Names in memory.stat of what the kernel reclaims under pressure. In version 1 of control groups the numbers that
# include the groups below begin with `total_`, and slabs are not among them.
RECLAIMABLE = ("inactive_file", "active_file", "slab_reclaimable")
# A process's own limits: name, resource, the line of /proc/self/status that it bounds, the shell's command, and what
# the libraries of compiled kernels take of it before any graph: 380 and 142 MiB on two cores, with some room.
OWN_LIMITS = (
    ("RLIMIT_AS", resource.RLIMIT_AS, "VmSize", "ulimit -v", 448 << 20),
    ("RLIMIT_DATA", resource.RLIMIT_DATA, "VmData", "ulimit -d", 192 << 20),
)
# Is imported before the first kernel is compiled or loaded, and then imports SciPy.
LAST_LIBRARY = "numba.np.arraymath"


@dataclass(frozen=True)
class FreeMemory:
    """Bytes that can still be allocated, and a description of the limit that decides.

    The description is empty for the host's memory. `host_bytes` are a device's host's, where they are known.
    """

    num_bytes: int
    limit: str = ""
    host_bytes: int | None = None

    def shared_by(self, sharers: int) -> FreeMemory:
        """Return one sharer's equal share."""
        return FreeMemory(max(self.num_bytes, 0) // sharers, self.limit)


# Returns a further limit of a process's memory; None while there is none.
OwnLimit = Callable[[], FreeMemory | None]


def free_memory(sharers: int, sharers_of_process: int, own_limit: OwnLimit | None = None) -> FreeMemory:
    """Return one rank's share: of the host's free memory among `sharers`, of the process's among its own ranks."""
    own = [*process_limits(), *filter(None, [own_limit() if own_limit else None])]
    shares = [host_memory().shared_by(sharers), *(limit.shared_by(sharers_of_process) for limit in own)]
    return min(shares, key=lambda free: free.num_bytes)


def host_memory(root: Path = Path("/")) -> FreeMemory:
    """Return the least of what the host and every control group of this process leave free."""
    free = FreeMemory(_kilobytes(root / "proc/meminfo", "MemAvailable"))
    for group, version in control_groups(root):
        free = min([free, *_left_in(group, version, free.num_bytes)], key=lambda free: free.num_bytes)
    return free


def process_limits() -> Iterator[FreeMemory]:
    """Yield what each of this process's own limits leaves free, for those that are set."""
    return (free for free, _ in _own_limits())


def require_room_for_kernels() -> None:
    """Raise WouldNotFit if the process's own limits leave too little for the libraries of compiled kernels.

    They survive no lack of memory: OpenBLAS, which SciPy loads, asks for its buffers again for ever.
    """
    for free, needed in () if LAST_LIBRARY in sys.modules else _own_limits():
        if free.num_bytes < needed:
            raise WouldNotFit(
                f"compiled kernels need {readable_bytes(needed)} before any graph, and "
                f"{readable_bytes(max(free.num_bytes, 0))} is free: {free.limit}"
            )


def _own_limits() -> Iterator[tuple[FreeMemory, int]]:
    for name, which, counted, command, needed in OWN_LIMITS:
        soft, _ = resource.getrlimit(which)
        if soft != resource.RLIM_INFINITY:
            used = _kilobytes(Path("/proc/self/status"), counted)
            yield FreeMemory(soft - used, f"{name} is {readable_bytes(soft)} for this process ({command})"), needed


def control_groups(root: Path = Path("/")) -> list[tuple[Path, int]]:
    """Return folder and version of each control group that bounds this process's memory.

    These are its own group and all above it, as far as they are mounted. If a namespace hides which of the mounted
    groups is its own, the topmost visible group is used.
    """
    try:
        # A process may be moved to other groups, while mounts stay: so the group is part of the cache's key.
        return list(_groups(root, (root / "proc/self/cgroup").read_text()))
    except OSError:
        return []


@functools.lru_cache(maxsize=8)
def _groups(root: Path, of_process: str) -> tuple[tuple[Path, int], ...]:
    mounted = (root / "proc/self/mountinfo").read_text().splitlines()
    mounts = list(filter(None, map(_group_mount, mounted)))
    groups = []
    for line in of_process.splitlines():
        number, controllers, path = line.split(":", 2)
        version = 2 if number == "0" and not controllers else 1 if "memory" in controllers.split(",") else 0
        of_version = [(top, folder) for found, top, folder in mounts if found == version]
        # A mount that does not contain the process's group is ignored, unless there is no other.
        within = [(parts, folder) for top, folder in of_version if (parts := _below(path, top)) is not None]
        for parts, folder in within or [((), folder) for _, folder in of_version]:
            mount = root / folder.lstrip("/")
            for depth in range(len(parts), -1, -1):
                group = mount.joinpath(*parts[:depth])
                # A group of version 1 without hierarchy counts only its own processes.
                if depth < len(parts) and _number(group / "memory.use_hierarchy") == 0:
                    break
                groups.append((group, version))
    return tuple(groups)


def _group_mount(line: str) -> tuple[int, str, str] | None:
    """Return version, topmost group and folder if a line of mountinfo mounts memory control groups, else None."""
    mount, _, kind = line.partition(" - ")
    fields = mount.split()
    (kind, _, options) = (kind.split() + 3 * [""])[:3]
    version = 2 if kind == "cgroup2" else 1 if kind == "cgroup" and "memory" in options.split(",") else None
    return None if version is None or len(fields) < 5 else (version, _unescaped(fields[3]), _unescaped(fields[4]))


def _unescaped(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), path)


def _below(path: str, top: str) -> tuple[str, ...] | None:
    """Return the path of a group relative to `top`, None if it is not below `top` or hidden by a namespace ("..")."""
    names, above = [tuple(name for name in group.split("/") if name) for group in (path, top)]
    return names[len(above) :] if names[: len(above)] == above and ".." not in names else None


def _left_in(group: Path, version: int, least: int) -> list[FreeMemory]:
    """Return what the limit of one group leaves free, or nothing if that is not below `least`.

    memory.stat, which is slow to read, is read only if the limit less all usage is below `least`.
    """
    names = ("memory.max", "memory.high") if version == 2 else ("memory.limit_in_bytes",)
    limits = [limit for name in names if (limit := _number(group / name)) is not None]
    used = _number(group / ("memory.current" if version == 2 else "memory.usage_in_bytes"))
    if not limits or used is None or min(limits) - used >= least:
        return []
    prefix = "" if version == 2 else "total_"
    stat = _statistics(group / "memory.stat")
    reclaimable = sum(stat.get(prefix + name, 0) for name in RECLAIMABLE)
    left = min(limits) - max(used - reclaimable, 0)
    return [FreeMemory(left, f"the control group {group} is limited to {readable_bytes(min(limits))}")]


def _number(file: Path) -> int | None:
    """Return the number in a file; None if it has none, as in `max`."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _kilobytes(file: Path, name: str) -> int:
    """Return the bytes of a line such as `MemAvailable:   12 kB`."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", file.read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"{file} has no line {name}")
    return int(found[1]) << 10


def _statistics(file: Path) -> dict[str, int]:
    """Return the numbers of lines such as `inactive_file 12`, by name."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return {}
    return {name: int(value) for name, _, value in (line.partition(" ") for line in lines) if value.isdigit()}
