"""How much memory this process can still take: what the host has, what control groups leave, its own limits.

A container, a batch job or a service is a control group, and so is what it lies in: each may have a limit. What a
group uses counts the files that the kernel keeps in memory, and gives back as soon as memory is wanted.
"""

from __future__ import annotations

import functools
import re
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mgraph.formatting import readable_bytes

# Their names in memory.stat: what the kernel gives back under pressure. Version 1 of control groups says `total_` of
# what includes the groups below, and does not count slabs there.
RECLAIMABLE = ("inactive_file", "active_file", "slab_reclaimable")
# A process's own limits: what /proc/self/status calls the memory that each of them bounds.
OWN_LIMITS = (
    ("RLIMIT_AS", resource.RLIMIT_AS, "VmSize", "ulimit -v"),
    ("RLIMIT_DATA", resource.RLIMIT_DATA, "VmData", "ulimit -d"),
)


@dataclass(frozen=True)
class FreeMemory:
    """Bytes that can still be taken, and in words the limit that leaves no more: empty if it is the host's memory."""

    num_bytes: int
    limit: str = ""

    def shared_by(self, sharers: int) -> FreeMemory:
        """Return an even share of it."""
        return FreeMemory(max(self.num_bytes, 0) // sharers, self.limit)


# What leaves a process less than its host: None while it does not.
OwnLimit = Callable[[], FreeMemory | None]


def free_memory(sharers: int, sharers_of_process: int, own_limit: OwnLimit | None = None) -> FreeMemory:
    """Return one rank's share of what is free: of the host's among `sharers`, of the process's among its own ranks."""
    own = [*process_limits(), *filter(None, [own_limit() if own_limit else None])]
    shares = [host_memory().shared_by(sharers), *(limit.shared_by(sharers_of_process) for limit in own)]
    return min(shares, key=lambda free: free.num_bytes)


def host_memory(root: Path = Path("/")) -> FreeMemory:
    """Return what the host and every control group above this process leave free, the least of them."""
    free = FreeMemory(_kilobytes(root / "proc/meminfo", "MemAvailable"))
    for group, version in control_groups(root):
        free = min([free, *_left_in(group, version, free.num_bytes)], key=lambda free: free.num_bytes)
    return free


def process_limits() -> Iterator[FreeMemory]:
    """Yield what this process's own limits leave it, of those that it has."""
    for name, which, counted, command in OWN_LIMITS:
        soft, _ = resource.getrlimit(which)
        if soft != resource.RLIM_INFINITY:
            used = _kilobytes(Path("/proc/self/status"), counted)
            yield FreeMemory(soft - used, f"{name} is {readable_bytes(soft)} for this process ({command})")


def control_groups(root: Path = Path("/")) -> list[tuple[Path, int]]:
    """Return the folders of the control groups that bound this process's memory, and their version.

    Its own group and all above it, as far as they are mounted. Where a namespace hides which of the mounted groups is
    its own, the topmost that can be seen stands for it.
    """
    try:
        # A process may be moved to other groups, while mounts stay.
        return list(_groups(root, (root / "proc/self/cgroup").read_text()))
    except OSError:
        return []


@functools.lru_cache(maxsize=8)
def _groups(root: Path, of_process: str) -> tuple[tuple[Path, int], ...]:
    mounted = (root / "proc/self/mountinfo").read_text().splitlines()
    mounts, groups = list(filter(None, map(_group_mount, mounted))), []
    for line in of_process.splitlines():
        number, controllers, path = line.split(":", 2)
        version = 2 if number == "0" and not controllers else 1 if "memory" in controllers.split(",") else 0
        there = [(top, folder) for found, top, folder in mounts if found == version]
        # A mount of other groups than its own says nothing of it.
        within = [(parts, folder) for top, folder in there if (parts := _below(path, top)) is not None]
        for parts, folder in within or [((), folder) for _, folder in there]:
            mount = root / folder.lstrip("/")
            for depth in range(len(parts), -1, -1):
                group = mount.joinpath(*parts[:depth])
                # Groups of version 1 may count only their own processes.
                if depth < len(parts) and _number(group / "memory.use_hierarchy") == 0:
                    break
                groups.append((group, version))
    return tuple(groups)


def _group_mount(line: str) -> tuple[int, str, str] | None:
    """Return version, topmost group and folder of a line of mountinfo that mounts groups which bound memory."""
    place, _, kind = line.partition(" - ")
    fields, (kind, _, options) = place.split(), (kind.split() + 3 * [""])[:3]
    version = 2 if kind == "cgroup2" else 1 if kind == "cgroup" and "memory" in options.split(",") else None
    return None if version is None or len(fields) < 5 else (version, _unescaped(fields[3]), _unescaped(fields[4]))


def _unescaped(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), path)


def _below(path: str, top: str) -> tuple[str, ...] | None:
    """Return the names that lead from one group to another, None where it is not below it or that cannot be known."""
    names, above = [tuple(name for name in group.split("/") if name) for group in (path, top)]
    return names[len(above) :] if names[: len(above)] == above and ".." not in names else None


def _left_in(group: Path, version: int, least: int) -> list[FreeMemory]:
    """Return what the limit of one group leaves, if that is less than `least`: asking for all of it takes longer."""
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
    """Return the number in a file; None where there is none, as in `max`."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _kilobytes(file: Path, name: str) -> int:
    """Return the bytes of a line such as `MemAvailable:   12 kB`."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", file.read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"{file} does not tell {name}")
    return int(found[1]) << 10


def _statistics(file: Path) -> dict[str, int]:
    """Return the numbers of lines such as `inactive_file 12`, by name."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return {}
    return {name: int(value) for name, _, value in (line.partition(" ") for line in lines) if value.isdigit()}
