"""Build small graphs in the layout split, with a chosen share of their arcs on the device."""

from __future__ import annotations

import math
from contextlib import contextmanager

import pytest

from mgraph.ingest.split_plan import SplitPlan

# None of the rows on the device (of a load, the last arc), some, and all.
SHARES = (0.0, 0.4, 1.0)
# Readings of the input for the arcs in host memory, at least.
RANGES = 3


@contextmanager
def device_share(share):
    """Let builds keep a share of a rank's arcs on the device, and build as many as a third at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SplitPlan, "device_arcs", lambda plan, free_bytes: int(share * plan.num_arcs))
        patch.setattr(SplitPlan, "arcs_at_once", lambda plan, free_bytes: math.ceil(plan.num_arcs / RANGES))
        yield
