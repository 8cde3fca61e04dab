"""Define the command `mgraph doctor`."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import pathlib
import platform
import sys
import tempfile
from dataclasses import dataclass, field

import click

import mgraph
from mgraph.backends.base import PersistentBackend
from mgraph.backends.cpu import CpuBackend, available_cores
from mgraph.backends.create import make_backend
from mgraph.backends.rates_file import H200, require_rates, stored_rates_file
from mgraph.cli.options import json_option, print_json, print_table, scheduler_options
from mgraph.cluster.devices import cuda_is_installed, visible_gpus
from mgraph.errors import ClusterError
from mgraph.formatting import readable_bytes

PACKAGES = ("numpy", "numba", "dask", "distributed")
OPTIONAL_PACKAGES = ("matplotlib", "networkx", "pandas", "pyarrow", "scipy")
GPU_PACKAGES = ("cupy-cuda13x", "cupy-cuda12x", "nccl4py", "cuda-bindings", "dask-cuda")
CUDA_ADVICE = "pip install 'dask-mgraph[cuda13]', or with CUDA 12 'dask-mgraph[cuda12]'"


@dataclass
class Findings:
    """Collect facts about the installation or the cluster, problems, and warnings."""

    facts: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@click.command()
@scheduler_options
@json_option
def doctor(scheduler: str | None, scheduler_file: str | None, as_json: bool) -> None:
    """Report packages, GPUs and their links, the ranks that would be used, and problems.

    With --scheduler or --scheduler-file it is about that cluster, with a warning where others can reach it. Exit code 4
    if there is a problem.
    """
    found = Findings()
    _check_packages(found)
    _check_tls(found)
    if scheduler is not None or scheduler_file is not None:
        from mgraph.cli.doctor_cluster import check_cluster

        check_cluster(found, scheduler, scheduler_file)
    else:
        _check_cpu(found)
        gpus = _check_gpus(found)
        _check_choice(found, gpus)
    if as_json:
        print_json(dataclasses.asdict(found))
    else:
        print_table("mgraph doctor", ["what", "found"], [[name, fact] for name, fact in found.facts.items()])
        for warning in found.warnings:
            click.echo(f"warning: {warning}")
        for problem in found.problems:
            click.echo(f"problem: {problem}")
        click.echo("no problems" if not found.problems else f"{len(found.problems)} problem(s)")
    if found.problems:
        sys.exit(ClusterError.exit_code)


def _check_packages(found: Findings) -> None:
    found.facts["python"] = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    found.facts["mgraph"] = mgraph.__version__
    versions = installed_versions()
    found.facts |= versions
    found.problems += [f"{name} is not installed: pip install {name}" for name in PACKAGES if name not in versions]
    if cuda_is_installed() and _version("dask-cuda") and _version("dask") and _version("distributed") is None:
        found.problems.append("dask-cuda is installed without distributed")


def _check_cpu(found: Findings) -> None:
    host = CpuBackend(threads=1)
    found.facts["cpu"] = f"{available_cores()} cores, {readable_bytes(host.free_bytes())} of memory free"
    # Numba caches compiled kernels beside their code, in any folder of the package, or in NUMBA_CACHE_DIR.
    beside = pathlib.Path(__file__).parents[1]
    cache = pathlib.Path(os.environ.get("NUMBA_CACHE_DIR", beside))
    try:
        with tempfile.TemporaryFile(dir=cache):
            found.facts["kernel cache"] = str(cache)
    except OSError:
        found.facts["kernel cache"] = "in the user's cache folder"


def _check_tls(found: Findings) -> None:
    if _version("distributed") is not None:
        from mgraph.cluster.scheduler_address import describe_tls

        found.facts["tls"] = describe_tls()


def _check_gpus(found: Findings) -> int:
    """Report every GPU, its memory and its links; return the number of usable ones."""
    gpus = visible_gpus()
    if not gpus:
        found.facts["gpus"] = "none found"
        return 0
    import pynvml

    pynvml.nvmlInit()
    found.facts["driver"] = str(pynvml.nvmlSystemGetDriverVersion())
    for gpu in gpus:
        handle = pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        links = _active_links(pynvml, handle)
        found.facts[f"gpu {gpu.index}"] = (
            f"{pynvml.nvmlDeviceGetName(handle)}, {readable_bytes(memory.free)} of "
            f"{readable_bytes(memory.total)} free, {links} NVLinks"
        )
    if not cuda_is_installed():
        found.problems.append(f"{len(gpus)} GPU(s) found, but CuPy is not installed: {CUDA_ADVICE}")
        return 0
    return len(gpus) if _check_kernel(found) else 0


def _active_links(pynvml: object, handle: object) -> int:
    count = 0
    for link in range(getattr(pynvml, "NVML_NVLINK_MAX_LINKS", 18)):
        try:
            count += bool(pynvml.nvmlDeviceGetNvLinkState(handle, link))  # type: ignore[attr-defined]
        except pynvml.NVMLError:  # type: ignore[attr-defined]
            break
    return count


def _check_kernel(found: Findings) -> bool:
    """Compile and run a kernel on the first GPU: this detects most broken installations."""
    import cupy

    try:
        double = cupy.RawKernel('extern "C" __global__ void twice(int* x) { x[0] *= 2; }', "twice")
        x = cupy.full(1, 21, cupy.int32)
        double((1,), (1,), (x,))
        works = int(x[0]) == 42
    except Exception as error:
        found.problems.append(f"a kernel cannot run: {type(error).__name__}: {str(error).splitlines()[0]}")
        return False
    version = cupy.cuda.runtime.runtimeGetVersion()
    found.facts["cuda"] = f"runtime {version // 1000}.{version % 1000 // 10}"
    if not works:
        found.problems.append("a kernel ran and returned a wrong result")
    else:
        _check_rates(found)
    return works


def _check_rates(found: Findings) -> None:
    """Report the memory rates of the first GPU, and their file."""
    try:
        backend = make_backend("cuda")
        assert isinstance(backend, PersistentBackend)
        rates = require_rates(backend)
        kept = stored_rates_file(backend)
        backend.close()
    except Exception as error:
        found.problems.append(f"the GPU cannot be measured: {type(error).__name__}: {str(error).splitlines()[0]}")
        return
    if rates is H200:
        found.facts["rates"] = "not measured, for lack of free memory or an idle GPU: those of an NVIDIA H200 are used"
        return
    found.facts.update(rates.described())
    found.facts["rates kept in"] = str(kept or "this process alone")


def _check_choice(found: Findings, gpus: int) -> None:
    """Report what `connect()` would choose on this host."""
    if gpus <= 1:
        found.facts["would use"] = "one CUDA rank in this process" if gpus else "one CPU rank in this process"
        return
    try:
        import nccl.core

        found.facts["nccl"] = str(nccl.core.get_version())
    except Exception as error:
        found.problems.append(f"{gpus} GPUs, but NCCL cannot be loaded ({error}): pip install nccl4py nvidia-nccl-cu13")
        return
    if _version("dask-cuda") is None:
        found.problems.append(f"{gpus} GPUs, but only one would be used without dask-cuda: pip install dask-cuda")
        found.facts["would use"] = "one CUDA rank in this process"
        return
    found.facts["would use"] = f"{gpus} CUDA ranks on a LocalCUDACluster, connected by NCCL"


def installed_versions() -> dict[str, str]:
    """Return the versions of the packages that mgraph uses, of those that are installed."""
    found = {name: _version(name) for name in (*PACKAGES, *OPTIONAL_PACKAGES, *GPU_PACKAGES)}
    return {name: version for name, version in found.items() if version is not None}


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
