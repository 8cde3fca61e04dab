"""The third backend: CUDA kernels on this machine's CPU, under checks and in orders drawn from a seed.

    backend = EmulatedBackend(seed=7)
    expand[backend](0, n, ...)

A fault raises EmulationError, which says where and how to run the same order again. What is emulated, and
what cannot be, is said in cuda_model.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import pathlib
import re
import shutil
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from emulator.compile import CACHE, build, source_line

from mgraph.backends.base import Limits, PersistentBackend
from mgraph.backends.cuda_source import module_text
from mgraph.backends.host_link import HostLink
from mgraph.backends.kernel import NO_ELEMENTS
from mgraph.backends.rates_file import H200

if TYPE_CHECKING:
    from mgraph.backends.kernel import Kernel

# Set in the environment of a process that runs with libasan loaded: see sanitize.py.
SANITIZE = os.environ.get("MGRAPH_EMULATOR_SANITIZE") == "1"

# The pattern of unwritten memory: as float32 and float64 not a number, as an index far outside, as
# bytes neither 0 nor 255. Two, because one byte has too few values to be distinguished from data.
POISONS = (0xFFF5A5F5, 0x7FF3C9B1)
ORDERS = {"seeded": -1, "random": 0, "stack": 1, "queue": 2}
# Bytes of the smallest numbers in peer buffers, levels: each has a writer of its own.
PEER_BUFFER_GRANULE = 1
MAX_THREADS = 1 << 14
MAX_IDLE_STACKS = 1 << 13
SHADOW_SIZES = 21
MAX_IDLE_SHADOWS = 64
WARP = 32
# The width that kernels declare for a Python number, and the null pointer for None.
WIDEN: dict[type, Callable] = {type(None): lambda _: np.intp(0), bool: np.int64, int: np.int64, float: np.float64}


class EmulationError(Exception):
    """A kernel did what CUDA does not allow, or was launched with what it does not take."""


class _Array(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("num_bytes", ctypes.c_int64),
        ("itemsize", ctypes.c_int64),
        ("name", ctypes.c_char_p),
    )


class _Stacks(ctypes.Structure):
    """runtime.h: EmuStacks."""

    _fields_ = (("lock", ctypes.c_uint32), ("num_idle", ctypes.c_uint32), ("idle", ctypes.c_void_p * MAX_IDLE_STACKS))


class _Shadows(ctypes.Structure):
    """runtime.h: EmuShadows."""

    _fields_ = (
        ("num_threads", ctypes.c_uint64),
        ("lock", ctypes.c_uint32),
        ("num_idle", ctypes.c_uint32 * SHADOW_SIZES),
        ("idle", ctypes.c_void_p * MAX_IDLE_SHADOWS * SHADOW_SIZES),
    )


# Of all launches: to map and to unmap them, and to touch new pages, took more time than most kernels.
STACKS = _Stacks()
SHADOWS = _Shadows()


class _Launch(ctypes.Structure):
    """runtime.h: EmuLaunch."""

    _fields_ = (
        ("body", ctypes.c_void_p),
        ("args", ctypes.c_void_p),
        ("num_blocks", ctypes.c_int64),
        ("block_size", ctypes.c_int64),
        ("dynamic_shared_bytes", ctypes.c_int64),
        ("seed", ctypes.c_uint64),
        ("order", ctypes.c_int64),
        ("preempt", ctypes.c_int64),
        ("poison", ctypes.c_int64),
        ("races", ctypes.c_int64),
        ("limit_s", ctypes.c_double),
        ("arrays", ctypes.c_void_p),
        ("num_arrays", ctypes.c_int64),
        ("report", ctypes.c_char_p),
        ("report_bytes", ctypes.c_int64),
        ("stacks", ctypes.c_void_p),
        ("shadows", ctypes.c_void_p),
    )


class PoisonedNumpy:
    """NumPy, except that `empty` holds a pattern that kernels are caught reading."""

    def __init__(self, pattern: int) -> None:
        self.pattern = pattern

    def empty(self, shape: Any, dtype: Any = float) -> np.ndarray:
        return poisoned(shape, dtype, self.pattern)

    def empty_like(self, array: np.ndarray, dtype: Any = None) -> np.ndarray:
        return poisoned(array.shape, dtype or array.dtype, self.pattern)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def poisoned(shape: Any, dtype: Any, pattern: int = POISONS[0]) -> np.ndarray:
    """Return an unwritten array."""
    array = np.empty(shape, dtype)
    if array.size:
        raw = array.reshape(-1).view(np.uint8)
        raw[:] = np.resize(np.array([pattern], "<u4").view(np.uint8), raw.size)
    return array


class EmulatedBackend(PersistentBackend):
    """CUDA on the CPU.

    Parameters
    ----------
    seed
        Decides the order in which threads run, together with the number of the launch on this backend.
    block, blocks
        Threads of a block (whole warps), most blocks of a grid: small, so that small inputs cross their edges.
    order
        "seeded" draws one per launch: "random", "stack" (one thread goes as far as it can), "queue" (one by one).
    races
        Whether two unordered accesses to the same bytes, one of them a plain write, are an error.
    poison
        The 32-bit pattern of unwritten memory.
    limit_s
        How long a launch may take before it is an error.
    """

    name = "emulated"
    # Small, so that small inputs need several chunks, batches, segments and windows.
    limits = Limits(chunk_edges=1 << 7, batch_arcs=1 << 7, sort_scratch_bytes=24, mask_scratch_bytes=8)
    shared_bytes = 1 << 8
    cache_bytes = 1 << 10
    competes_with_host = False  # it runs on the host, some thousand times slower than a device

    def __init__(
        self,
        *,
        seed: int = 0,
        block: int = 64,
        blocks: int = 3,
        order: str = "seeded",
        races: bool = True,
        poison: int = POISONS[0],
        limit_s: float = 60.0,
    ) -> None:
        if block % WARP or not 0 < block <= 1024 or not 0 < block * blocks <= MAX_THREADS:
            raise EmulationError(f"block={block}, blocks={blocks}: a block has whole warps, up to 1024 threads")
        super().__init__()
        self.seed = seed
        self.block = block
        self.blocks = blocks
        self.order = order
        self.races = races
        self.poison = poison
        self.limit_s = limit_s
        self.xp = PoisonedNumpy(poison)
        self.link = HostLink(self.xp)
        self.abort_word = np.zeros(1, np.uint32)
        self.arrived = np.zeros(1, np.int64)
        self.peer_buffers: dict[int, int] = {}  # bytes at an address that kernels may touch beside their arguments
        self.shared: list[np.ndarray] = []
        self.launches = 0
        self.rates = H200  # not to be measured: nothing here takes the time that it takes on a device

    def __repr__(self) -> str:
        return (
            f"EmulatedBackend(seed={self.seed}, block={self.block}, blocks={self.blocks}, order={self.order!r}, "
            f"races={self.races}, poison={self.poison:#x})"
        )

    def enter_thread(self) -> None:
        """Do nothing: all threads see the same memory."""

    def borrow_thread(self) -> Callable[[], object]:
        return lambda: None

    def launch(self, kernel: Kernel, args: tuple) -> None:
        if len(args) != len(kernel.parameters):
            raise EmulationError(f"{kernel} takes {len(kernel.parameters)} arguments, not {len(args)}")
        if args[1] <= args[0]:
            return
        module = load_module(module_text(kernel.source, kernel.typedefs(kernel.dtypes(args))))
        # Where a whole block of threads takes an item, a smaller block does too.
        lanes = self.block if kernel.lanes == kernel.block else kernel.lanes
        grid = min(-(-(args[1] - args[0]) * lanes // self.block), self.blocks)
        self.launches += 1
        report = module.launch(kernel, args, self, grid)
        if report:
            raise EmulationError(f"{kernel}: {report}\nreplay: launch {self.launches} of {self!r}")

    def device_facts(self) -> dict[str, str | int]:
        return {"name": "Emulated device", "driver": 1}

    def synchronize(self) -> None:
        """Return at once: a launch ends before it returns."""

    def to_host(self, array: np.ndarray) -> np.ndarray:
        """Return a copy, as from a device: writes into it leave the array unchanged."""
        return np.array(array)

    def to_device(self, array: np.ndarray) -> np.ndarray:
        """Return a copy, as on a device."""
        return np.array(array)

    def host_words(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        words = np.zeros(count, np.int64)
        return words, words

    def share(self, num_bytes: int) -> tuple[np.ndarray, bytes]:
        """Ranks are threads: an address is as good a name as any."""
        array = np.zeros(num_bytes // 8 + 1, np.int64).view(np.uint8)[:num_bytes]
        self.peer_buffers[array.ctypes.data] = num_bytes
        self.shared.append(array)
        return array, struct.pack("=qq", os.getpid(), array.ctypes.data)

    def reach(self, name: bytes, num_bytes: int) -> int | None:
        process, address = struct.unpack("=qq", name)
        if process != os.getpid():
            return None
        self.peer_buffers[address] = num_bytes
        return address

    def leave(self, addresses: list[int]) -> None:
        for address in addresses:
            del self.peer_buffers[address]

    def host_word(self) -> tuple[np.ndarray, np.ndarray]:
        word = np.zeros(1, np.uint32)
        return word, word

    def release(self) -> None:
        """Do nothing: there is no pool."""

    def close(self) -> None:
        """Do nothing: there is no pool."""

    def free_bytes(self) -> int:
        return 1 << 40

    @contextlib.contextmanager
    def high_water(self) -> Iterator[Callable[[], int]]:
        """Yield a function that returns 0: this memory is not planned."""
        yield lambda: 0


_loading = threading.Lock()


def load_module(text: str) -> Module:
    """Return the module of a text, compiled where it was not yet."""
    # Two ranks that both find the cache empty would load one file twice, and share its state.
    with _loading:
        return _module(text)


@functools.cache
def _module(text: str) -> Module:
    return Module(build(text, sanitize=SANITIZE))


class Module:
    """A compiled module. Its state (fibers, shared variables) is one a loaded copy: a launch takes one for itself."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        # The first is the file itself, in which debuggers and sanitizers find lines.
        self.idle: list[ctypes.CDLL] = [ctypes.CDLL(str(path))]
        self.lock = threading.Lock()

    @contextlib.contextmanager
    def copy(self) -> Iterator[ctypes.CDLL]:
        """Lend a copy that no other launch uses: ranks are threads that launch at once."""
        with self.lock:
            library = self.idle.pop() if self.idle else None
        library = library or self._load_another()
        yield library
        with self.lock:
            self.idle.append(library)

    def _load_another(self) -> ctypes.CDLL:
        # The loader knows a file by its inode: another copy needs another file, which may go once it is loaded.
        with tempfile.NamedTemporaryFile(dir=CACHE, suffix=".so") as copy:
            shutil.copyfile(self.path, copy.name)
            return ctypes.CDLL(copy.name)

    def launch(self, kernel: Kernel, given: tuple, how: EmulatedBackend, grid: int) -> str:
        """Run one grid; return what went wrong, empty if nothing did."""
        args = tuple([WIDEN[type(a)](a) if type(a) in WIDEN else a for a in given])
        with self.copy() as library:
            check_arguments(kernel, args, signature(library, kernel.name))
            report = ctypes.create_string_buffer(2048)
            arrays = guarded(kernel, args, how.peer_buffers)
            values = [(a.ctypes.data if a.size else NO_ELEMENTS) if isinstance(a, np.ndarray) else a for a in args]
            cells = [np.array([v]) for v in values]
            pointers = (ctypes.c_void_p * len(cells))(*(c.ctypes.data for c in cells))
            body = ctypes.cast(getattr(library, f"emu_call_{kernel.name}"), ctypes.c_void_p)
            launch = _Launch(
                body=body.value,
                args=ctypes.addressof(pointers),
                num_blocks=grid,
                block_size=how.block,
                dynamic_shared_bytes=kernel.shared_bytes(given),
                seed=how.seed * 1_000_003 + how.launches,
                order=ORDERS[how.order],
                preempt=-1,
                poison=how.poison,
                races=how.races,
                limit_s=how.limit_s,
                arrays=ctypes.addressof(arrays),
                num_arrays=len(arrays),
                report=ctypes.cast(report, ctypes.c_char_p),
                report_bytes=len(report),
                stacks=ctypes.addressof(STACKS),
                shadows=ctypes.addressof(SHADOWS),
            )
            failed = library.emu_launch(ctypes.byref(launch))
        text = report.value.decode() if failed else ""
        return re.sub(r"@([0-9a-f]+)@", lambda m: source_line(self.path, int(m[1], 16)), text)


def signature(library: ctypes.CDLL, name: str) -> list[str]:
    """Return what each parameter of a CUDA function is: `i8` a scalar, `pf4` a pointer, `cu1` a pointer to const."""
    function = getattr(library, f"emu_signature_{name}")
    function.restype = ctypes.c_char_p
    return function().decode().split()


def check_arguments(kernel: Kernel, args: tuple, declared: list[str]) -> None:
    """Refuse what a real launch would take for something else: the wrong width, kind or stride."""
    if len(declared) != len(args):
        raise EmulationError(f"{kernel}: the CUDA function has {len(declared)} parameters, not {len(args)}")
    for name, arg, wanted in zip(kernel.parameters, args, declared, strict=True):
        given = arg.dtype.kind.replace("b", "u") + str(arg.dtype.itemsize)
        if isinstance(arg, np.ndarray):
            if wanted[0] not in "pc" or wanted[1:] != given:
                raise EmulationError(
                    f"{kernel}: {name} is an array of {arg.dtype}, the CUDA function declares {wanted}"
                )
            if not arg.flags.c_contiguous:
                raise EmulationError(f"{kernel}: {name} is not contiguous; a kernel sees no strides")
        elif wanted[0] in "pc":
            if type(arg) is not np.intp or arg != 0:
                raise EmulationError(f"{kernel}: {name} is {arg!r}, the CUDA function declares an array ({wanted})")
        elif wanted != given:
            raise EmulationError(f"{kernel}: {name} is a {arg.dtype}, the CUDA function declares {wanted}")


def guarded(kernel: Kernel, args: tuple, peer_buffers: dict[int, int]) -> ctypes.Array:
    """Return the memory that a launch may touch; arguments that overlap become one piece."""
    pieces: list[tuple[int, int, int, str]] = []
    arrays = [
        (a.ctypes.data, a.nbytes, a.itemsize, n)
        for n, a in zip(kernel.parameters, args, strict=True)
        if isinstance(a, np.ndarray)
    ]
    arrays += [
        (address, num_bytes, PEER_BUFFER_GRANULE, "a peer buffer") for address, num_bytes in peer_buffers.items()
    ]
    for data, num_bytes, itemsize, name in sorted(arrays):
        if pieces and data < (last := pieces[-1])[0] + last[1]:
            end = max(last[0] + last[1], data + num_bytes)
            pieces[-1] = (last[0], end - last[0], min(last[2], itemsize), f"{last[3]}/{name}")
        else:
            pieces.append((data, num_bytes, itemsize, name))
    return (_Array * len(pieces))(*((d, b, s, n.encode()) for d, b, s, n in pieces))
