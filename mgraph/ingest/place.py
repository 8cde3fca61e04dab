"""Pass 2 of a build in rows: read the input again, translate it to positions, and give every arc to the builder."""

from __future__ import annotations

from mgraph.backends.cpu import CpuBackend
from mgraph.backends.totals import total
from mgraph.ingest.chunks import begin_phase, parts_of_chunk, read_chunk, steps
from mgraph.ingest.survey import Survey
from mgraph.shard.bucketed_rows import BucketedRows
from mgraph.shard.rows import RowsBuilder
from mgraph.shard.user_ids import translated


def place(survey: Survey, num_chunks: int, builder: RowsBuilder | BucketedRows) -> None:
    """Read the input again, in step with the other ranks, and add every arc to the builder."""
    backend = builder.backend
    source = survey.source
    table = survey.position_of_user
    dtype = builder.partition.dtype
    own = steps(builder.comm, num_chunks)
    for k in begin_phase("placing", source, backend, own, num_chunks).steps(own):
        backend.release()
        u, v, w = read_chunk(source, backend, k, num_chunks, survey.weight_dtype)
        no_loop = u != v
        if total(backend, no_loop) < len(no_loop):
            u = u[no_loop]
            v = v[no_loop]
            w = None if w is None else w[no_loop]
        if table is not None:
            u = translated(backend, u, table)
            v = translated(backend, v, table)
        u = u.astype(dtype, copy=False)
        v = v.astype(dtype, copy=False)
        builder.add(u, v, w)
        if not source.directed:
            builder.add(v, u, w)


def place_in_parallel(survey: Survey, num_chunks: int, builder: BucketedRows) -> None:
    """Read the input again, on the only rank: each thread reads and places chunks of its own."""
    parts = num_chunks * parts_of_chunk(survey.source, builder.backend, num_chunks)
    of_thread = CpuBackend(1)
    phase = begin_phase("placing", survey.source, builder.backend, range(parts), parts)

    def place_part(k: int) -> None:
        edges = read_chunk(survey.source, of_thread, k, parts, survey.weight_dtype)
        builder.add_edges(*edges, survey.position_of_user, survey.source.directed)
        phase.step()

    builder.workers.map(place_part, range(parts))
