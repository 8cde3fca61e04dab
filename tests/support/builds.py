"""Build graphs of the zoo on ranks of this process, in both layouts."""

from __future__ import annotations

from dataclasses import dataclass

from on_ranks import run_on_ranks
from sweep_checks import TINY
from zoo import GraphCase

from mgraph.backends.cpu import CpuBackend
from mgraph.edges import EdgeChunk
from mgraph.ingest import compact_plan, keys
from mgraph.ingest.build import build
from mgraph.ingest.compact import build_compact
from mgraph.ingest.survey import make_survey
from mgraph.shard.in_rows import require_in_rows
from mgraph.types import vertex_dtype

BACKEND = CpuBackend(threads=1)


@dataclass(frozen=True)
class CaseEdges:
    """A graph of the zoo as an edge source."""

    case: GraphCase

    @property
    def name(self):
        return self.case.name

    @property
    def num_vertices(self):
        return self.case.num_vertices

    @property
    def directed(self):
        return self.case.directed

    @property
    def weight_dtype(self):
        return None if self.case.weights is None else self.case.weights.dtype

    @property
    def num_input_edges(self):
        return len(self.case.sources)

    def chunk(self, k, num_chunks, backend):
        m = self.num_input_edges
        part = slice(m * k // num_chunks, m * (k + 1) // num_chunks)
        dtype = vertex_dtype(self.case.num_vertices)
        columns = [self.case.sources[part].astype(dtype), self.case.targets[part].astype(dtype)]
        weights = None if self.case.weights is None else backend.to_device(self.case.weights[part])
        return EdgeChunk(*map(backend.to_device, columns), weights)


def build_on(case, num_ranks, order, num_chunks=None):
    """Return the shards of a build, with in-rows."""

    def program(_, comm):
        shard = build(CaseEdges(case), BACKEND, comm, order=order, num_chunks=num_chunks)
        require_in_rows(shard, comm)
        return shard

    return run_on_ranks(program, [None] * num_ranks)


def shrink_passes(monkeypatch):
    """Patch the limits so that a small graph has several buckets, batches and passes."""
    monkeypatch.setattr(compact_plan, "MIN_BUFFER_KEYS", 3)
    monkeypatch.setattr(compact_plan, "MIN_BATCH_ARCS", 4)
    monkeypatch.setattr(keys, "EDGES_PER_BUCKET", 2)


def build_compact_on(case, num_ranks, order="degree", shape=TINY, backend=BACKEND, num_chunks=5):
    """Return the shards of a compact build."""

    def program(_, comm):
        survey, _ = make_survey(CaseEdges(case), backend, comm, order, num_chunks)
        return build_compact(survey, backend, comm, num_chunks, shape)

    return run_on_ranks(program, [None] * num_ranks)
