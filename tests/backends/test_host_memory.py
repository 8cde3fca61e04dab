"""Free memory is the least left by the limits of the host, of every control group above, and of the process."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import uuid

import pytest
from cli_runs import ENVIRONMENT
from requirements import skip_for_want_of

from mgraph.backends.host_memory import control_groups, host_memory

MIB = 1 << 20
AVAILABLE = 4096 * MIB
# The value of version 1 for no limit.
UNLIMITED = 9223372036854771712
V1 = "/sys/fs/cgroup/memory"
V2 = "/sys/fs/cgroup"


def write(file: pathlib.Path, text: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")


def host(root: pathlib.Path, cgroup: str, *mounts: str) -> pathlib.Path:
    """Write the files of /proc for a host with these mounts, and a process in these groups."""
    write(root / "proc/meminfo", f"MemTotal:  8388608 kB\nMemFree:  1024 kB\nMemAvailable:  {AVAILABLE >> 10} kB")
    write(root / "proc/self/cgroup", cgroup)
    lines = ["22 1 0:21 / / rw,relatime shared:1 - ext4 /dev/vda rw", *mounts]
    write(root / "proc/self/mountinfo", "\n".join(lines))
    return root


def v2_mount(top: str = "/", folder: str = V2) -> str:
    return f"30 22 0:26 {top} {folder} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"


def v1_mount(top: str = "/", folder: str = V1, controllers: str = "memory") -> str:
    return f"35 22 0:32 {top} {folder} rw,relatime - cgroup cgroup rw,{controllers}"


def v2_group(root: pathlib.Path, group: str, limit: object, used: int = 0, high: object = "max", **stat: int) -> None:
    write(root / group.lstrip("/") / "memory.max", limit)
    write(root / group.lstrip("/") / "memory.high", high)
    write(root / group.lstrip("/") / "memory.current", used)
    write(root / group.lstrip("/") / "memory.stat", "\n".join(f"{name} {value}" for name, value in stat.items()))


def v1_group(root: pathlib.Path, group: str, limit: int = UNLIMITED, used: int = 0, hierarchy: int = 1, **stat: int):
    write(root / group.lstrip("/") / "memory.limit_in_bytes", limit)
    write(root / group.lstrip("/") / "memory.usage_in_bytes", used)
    write(root / group.lstrip("/") / "memory.use_hierarchy", hierarchy)
    write(root / group.lstrip("/") / "memory.stat", "\n".join(f"{name} {value}" for name, value in stat.items()))


def test_host_without_control_groups_has_its_available_memory(tmp_path):
    assert host_memory(host(tmp_path, "0::/")).num_bytes == AVAILABLE
    assert host_memory(host(tmp_path, "0::/")).limit == ""
    (tmp_path / "proc/self/cgroup").unlink()
    assert host_memory(tmp_path).num_bytes == AVAILABLE


@pytest.mark.parametrize("lowest", ["/", "/system.slice", "/system.slice/job.service"])
def test_lowest_limit_of_nested_groups_decides(tmp_path, lowest):
    host(tmp_path, "0::/system.slice/job.service", v2_mount())
    for group in ("/", "/system.slice", "/system.slice/job.service", "/system.slice/other.service"):
        limit = 700 * MIB if group == lowest else "max" if group == "/" else 10 * MIB if "other" in group else 900 * MIB
        v2_group(tmp_path, f"{V2}{group}", limit, used=100 * MIB)
    free = host_memory(tmp_path)
    assert free.num_bytes == 600 * MIB
    assert free.limit == f"the control group {tmp_path}{V2}{lowest} is limited to 700 MiB".replace("/ is", " is")


def test_limit_with_the_least_left_decides(tmp_path):
    host(tmp_path, "0::/a/b", v2_mount())
    v2_group(tmp_path, f"{V2}/a", 1000 * MIB, used=900 * MIB)
    v2_group(tmp_path, f"{V2}/a/b", 500 * MIB, used=100 * MIB)
    assert host_memory(tmp_path).num_bytes == 100 * MIB


def test_page_cache_counts_as_free(tmp_path):
    host(tmp_path, "0::/job", v2_mount())
    stat = {"anon": 10 * MIB, "inactive_file": 200 * MIB, "active_file": 50 * MIB, "slab_reclaimable": 5 * MIB}
    v2_group(tmp_path, f"{V2}/job", 300 * MIB, used=290 * MIB, **stat)
    assert host_memory(tmp_path).num_bytes == (300 - 290 + 255) * MIB


def test_memory_high_limits_before_memory_max(tmp_path):
    host(tmp_path, "0::/job", v2_mount())
    v2_group(tmp_path, f"{V2}/job", 500 * MIB, used=100 * MIB, high=400 * MIB)
    assert host_memory(tmp_path).num_bytes == 300 * MIB


def test_version_1_counts_the_groups_below(tmp_path):
    host(
        tmp_path,
        "9:name=systemd:/\n4:memory,hugetlb:/job/step\n1:cpu:/elsewhere",
        v1_mount(controllers="hugetlb,memory"),
    )
    v1_group(tmp_path, V1)
    v1_group(tmp_path, f"{V1}/job", 400 * MIB, 300 * MIB, inactive_file=1, total_inactive_file=150 * MIB)
    v1_group(tmp_path, f"{V1}/job/step")
    assert host_memory(tmp_path).num_bytes == 250 * MIB
    # The limit of a group without hierarchy does not apply to the groups below.
    v1_group(tmp_path, f"{V1}/job", 400 * MIB, 300 * MIB, hierarchy=0)
    other = tmp_path / "again"
    host(other, "4:memory:/job/step", v1_mount())
    v1_group(other, f"{V1}/job", 400 * MIB, 300 * MIB, hierarchy=0)
    v1_group(other, f"{V1}/job/step", 800 * MIB, 0, hierarchy=0)
    assert host_memory(other).num_bytes == 800 * MIB


def test_hybrid_host_has_limits_in_the_version_with_the_controller(tmp_path):
    host(tmp_path, "4:memory:/job\n0::/job", v1_mount(), v2_mount(folder="/sys/fs/cgroup/unified"))
    (tmp_path / "sys/fs/cgroup/unified/job").mkdir(parents=True)
    v1_group(tmp_path, f"{V1}/job", 400 * MIB, 100 * MIB)
    assert host_memory(tmp_path).num_bytes == 300 * MIB


def test_container_with_only_its_own_groups_mounted_has_its_limit(tmp_path):
    # The mount begins at the container's group; /proc names it relative to the host's root, to itself, or to a parent.
    for i, (cgroup, top) in enumerate(
        (("/docker/a1", "/docker/a1"), ("/", "/"), ("/../../elsewhere", "/"), ("/docker/a1", "/kubepods/b2"))
    ):
        for version, mount, make in (("0:", v2_mount, v2_group), ("4:memory", v1_mount, v1_group)):
            root = host(tmp_path / f"{i}{version[0]}", f"{version}:{cgroup}", mount(top))
            make(root, V2 if make is v2_group else V1, 400 * MIB, 100 * MIB)
            assert host_memory(root).num_bytes == 300 * MIB, (cgroup, top, version)


def test_mount_of_other_groups_is_ignored(tmp_path):
    host(tmp_path, "0::/mine", v2_mount(), v2_mount("/other", "/mnt/other\\040groups"))
    v2_group(tmp_path, f"{V2}/mine", 400 * MIB, 100 * MIB)
    v2_group(tmp_path, "/mnt/other groups", 50 * MIB, 10 * MIB)
    assert host_memory(tmp_path).num_bytes == 300 * MIB
    # A name with a space is found too.
    host(tmp_path, "0::/other/job", v2_mount("/other", "/mnt/other\\040groups"))
    assert host_memory(tmp_path).num_bytes == 40 * MIB


# Real limits, of real processes.


@contextlib.contextmanager
def limited_group(limit: int):
    """Make a control group below that of this process; yield its cgroup.procs, to which a process is added."""
    for group, version in control_groups():
        made = group / f"mgraph-test-{uuid.uuid4().hex}"
        limit_file = made / ("memory.max" if version == 2 else "memory.limit_in_bytes")
        try:
            made.mkdir()
        except OSError:
            continue
        try:
            limit_file.write_text(str(limit))
            yield made / "cgroup.procs"
            return
        except OSError:
            continue
        finally:
            made.rmdir()
    skip_for_want_of("cgroup", "no control group can be made here that limits memory")


FREE = "from mgraph.backends.cpu import CpuBackend; b = CpuBackend(1); print(b.free_bytes(), b.free_memory().limit)"


def test_control_group_of_this_machine_limits_free_memory():
    with limited_group(700 * MIB) as processes:
        join = lambda: processes.write_text(str(os.getpid()))  # noqa: E731
        command = [sys.executable, "-c", FREE]
        out = subprocess.run(
            command, env=ENVIRONMENT, preexec_fn=join, check=True, capture_output=True, text=True
        ).stdout
    free, words = out.split(" ", 1)
    assert 300 * MIB < int(free) < 700 * MIB
    assert "is limited to 700 MiB" in words


LIMITED = """
import os, resource, sys
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # each thread takes some of the memory
from click.testing import CliRunner
import mgraph as mg
from mgraph.cli.main import main
import mgraph.cli.traverse
with mg.rmat(6) as g, mg.bfs(g, 0): pass  # starts threads and compiles kernels
which, counted = getattr(resource, sys.argv[1]), {"RLIMIT_AS": "VmSize", "RLIMIT_DATA": "VmData"}[sys.argv[1]]
used = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(counted))
resource.setrlimit(which, (used + (200 << 20), resource.RLIM_INFINITY))
main(["bfs", sys.argv[2], "--source", "1", "--backend", "cpu"])
"""


@pytest.mark.ci
@pytest.mark.parametrize("name", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_graph_beyond_the_limit_of_its_process_is_refused(name):
    def run(spec):
        command = [sys.executable, "-c", LIMITED, name, spec]
        return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=240)

    refused = run("rmat:21")
    assert refused.returncode == 5, refused.stderr
    assert f"{name} is " in refused.stderr.splitlines()[-1]
    assert "MiB" in refused.stderr.splitlines()[-1]
    assert run("rmat:14").returncode == 0


TIGHT = """
import resource
from mgraph.cli.main import main
import mgraph.cli.traverse
used = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (used + (170 << 20), resource.RLIM_INFINITY))
main(["bfs", "rmat:4", "--source", "1", "--backend", "cpu"])
"""


def test_process_without_room_for_kernels_is_refused():
    """Without the check it hangs in a library."""
    command = [sys.executable, "-c", TIGHT]
    refused = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=100)
    assert refused.returncode == 5, refused.stderr
    (line,) = refused.stderr.splitlines()
    assert line.startswith("mgraph: compiled kernels need 448 MiB before any graph, and ")
    assert " is free: RLIMIT_AS is " in line
