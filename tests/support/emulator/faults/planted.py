"""Names for the kernels of planted.cu. They have no CPU twins: each has a fault."""

from __future__ import annotations

from mgraph.backends.kernel import Kernel, kernel


def _planted(name: str, shared_bytes: int = 0) -> Kernel:
    def twin(lo, hi, values, out): ...

    twin.__name__ = name
    return kernel(shared_bytes=shared_bytes)(twin)


read_past_end = _planted("read_past_end")
write_past_end = _planted("write_past_end")
miss_barrier = _planted("miss_barrier")
miss_syncwarp = _planted("miss_syncwarp")
lose_updates = _planted("lose_updates")
read_unwritten = _planted("read_unwritten")
read_unwritten_bytes = _planted("read_unwritten_bytes")
read_unwritten_shared = _planted("read_unwritten_shared", shared_bytes=4096)
write_read_only = _planted("write_read_only")
shuffle_with_absent = _planted("shuffle_with_absent")
part_at_barrier = _planted("part_at_barrier")
wait_forever = _planted("wait_forever")
overrun_shared = _planted("overrun_shared")
shift_too_far = _planted("shift_too_far")
