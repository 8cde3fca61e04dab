"""What tests need of the machine, beside Python: `--require` names it, and a test that lacks it then fails."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from typing import NoReturn

import backends
import pytest

# Daemons are not in every user's PATH.
PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin"))


def lack_of_gpu() -> str | None:
    """Return why no GPU is used here, None if one is."""
    return None if backends.has_gpu() else "CuPy sees no CUDA device (`mgraph doctor` says why)"


def lack_of_slurm() -> str | None:
    """Return why no SLURM can be started here, None if it can."""
    missing = [
        name for name in ("munged", "slurmctld", "slurmd", "sbatch", "srun") if not shutil.which(name, path=PATH)
    ]
    if missing:
        return f"no {', '.join(missing)} (Debian's slurm-wlm and munge have them)"
    return "only root starts the daemons of a SLURM" if os.geteuid() else None


def lack_of_sshd() -> str | None:
    """Return why no SSH server can be started here, None if it can."""
    if not shutil.which("sshd", path=PATH):
        return "no sshd (Debian's openssh-server has it)"
    return None if importlib.util.find_spec("asyncssh") else "no asyncssh (the extra deploy has it)"


# By mark: why its tests cannot run here.
LACKS: dict[str, Callable[[], str | None]] = {"gpu": lack_of_gpu, "slurm": lack_of_slurm, "sshd": lack_of_sshd}
# What only an attempt shows, within a test or a fixture.
TRIED = ("mount", "cgroup", "operator")


def skip_for_want_of(name: str, why: str) -> NoReturn:
    """Skip the running test, which has tried what TRIED names and could not.

    By the name at the beginning of the reason, conftest.py turns the skip into a failure under `--require NAME`.
    """
    assert name in TRIED, f"--require would not know {name!r}"
    pytest.skip(f"{name}: {why}")
