"""Build small graphs in the layout host, with a chosen share of their blocks on the device."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from builds import BACKEND, CaseEdges, shrink_passes
from on_ranks import run_on_ranks
from sweep_checks import TINY

from mgraph.ingest import compact
from mgraph.ingest.host import build_host
from mgraph.ingest.host_plan import HostPlan, InUse
from mgraph.ingest.survey import make_survey
from mgraph.shard import host_blocks, unit_runs

# None of the blocks on the device, some, and all.
SHARES = (0.0, 0.4, 1.0)
# Numbers of ranks, with the share of their blocks on the device.
RANKS_AND_SHARES = ((1, 0.0), (2, 0.4), (3, 1.0))
# Readings of the input for the blocks in host memory.
STRETCHES = 3


@contextmanager
def resident_share(share, shape=TINY):
    """Let builds keep a share of a rank's blocks on the device, and cut the others into small parts.

    Some of their units have many edges, which are few here.
    """
    with pytest.MonkeyPatch.context() as patch:
        shrink_passes(patch)
        patch.setattr(compact, "choose_shape", lambda backend, state_bytes: shape)
        patch.setattr(HostPlan, "resident_bytes", lambda plan, free_bytes: int(share * plan.blocks))
        patch.setattr(HostPlan, "edges_at_once", lambda plan, free_bytes: -(-plan.num_edges // STRETCHES))
        patch.setattr(host_blocks, "MIN_PARTS", 1 << 40)
        for name in ("MIN_PARTS_ON_DEVICE", "PARTS_ON_DEVICE"):
            patch.setattr(host_blocks, name, 1 << 40)
        patch.setattr(unit_runs, "FEW_EDGES", shape.unit_size - 1)
        yield


def build_host_on(case, num_ranks, share, order="degree", backend=BACKEND, num_chunks=5):
    """Return the shards of a build in the layout host."""

    def program(_, comm):
        survey, _ = make_survey(CaseEdges(case), backend, comm, order, num_chunks)
        return build_host(survey, backend, comm, num_chunks, InUse(0, 0))

    with resident_share(share):
        return run_on_ranks(program, [None] * num_ranks)
