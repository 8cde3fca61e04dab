"""The plan of a build against what it takes of a GPU's memory."""

from __future__ import annotations

import pytest

from mgraph.build import build as build_module
from mgraph.comm.threads import open_threads
from mgraph.generate.rmat import Rmat


@pytest.mark.gpu
@pytest.mark.parametrize("weights", ["int", "float32", None])
@pytest.mark.parametrize("num_chunks", [4, 64])
def test_high_water_mark_is_as_planned(monkeypatch, num_chunks, weights):
    import cupy

    from mgraph.kernels.cuda import CudaBackend

    plans = []
    plan_build = build_module.plan_build
    monkeypatch.setattr(build_module, "plan_build", lambda *args: plans.append(plan_build(*args)) or plans[-1])
    backend, comm, pool = CudaBackend(), open_threads(1)[0], cupy.get_default_memory_pool()
    build_module.build(Rmat(10, weights=weights), backend, comm)

    class HighWater(cupy.cuda.MemoryHook):
        name = "high water"
        used = most = pooled = 0

        def malloc_postprocess(self, **event):
            self.used += event["mem_size"]
            self.most = max(self.most, self.used)
            self.pooled = max(self.pooled, pool.total_bytes())

        def free_postprocess(self, **event):
            self.used -= event["mem_size"]

    backend.release()
    before = pool.total_bytes()
    with HighWater() as seen:
        shard = build_module.build(Rmat(22, weights=weights), backend, comm, num_chunks=num_chunks)
    planned = plans[-1].peak_bytes
    ratios = (seen.most / planned, (seen.pooled - before) / planned)
    print(f"chunks {num_chunks}, weights {weights}: used and pooled over the plan", *(f"{r:.3f}" for r in ratios))
    assert abs(ratios[0] - 1) < 0.1
    assert abs(ratios[1] - 1) < 0.1
    # What comes out is the larger part of what it took.
    assert seen.most < 2 * shard.nbytes
