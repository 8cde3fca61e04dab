"""Streams of parts from host memory: each part is read whole, wherever the caller ends."""

import numpy as np
import pytest

PART_BYTES = 1 << 20
# A part is read this many times, so that its launches take longer than the copy of the next one.
READS = 32


def make_parts(backend, count):
    """Return parts of one value each, in pinned memory, each a little shorter than the one before."""
    parts = []
    for k in range(count):
        parts.append(backend.link.pinned_bytes(PART_BYTES - 1000 * k))
        parts[-1][:] = k + 1
    return parts


def read_parts(backend, stream, most):
    """Return the length of each part, and the sum of each read; close the stream after `most` parts."""
    lengths = []
    sums = []
    for buffer in stream:
        lengths.append(len(buffer))
        sums += [buffer.sum(dtype=np.int64) for _ in range(READS)]
        if len(lengths) == most:
            break
    stream.close()
    return lengths, [int(value) for value in sums]


def expect(parts):
    """Return what read_parts finds in these parts."""
    return [len(part) for part in parts], [int(part[0]) * len(part) for part in parts for _ in range(READS)]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7])
def test_each_part_is_read_whole(backend, count):
    staging = backend.link.staging(PART_BYTES)
    parts = make_parts(backend, count)
    before = backend.link.streamed_bytes
    assert read_parts(backend, staging.stream(iter(parts)), count + 1) == expect(parts)
    assert backend.link.streamed_bytes - before == sum(map(len, parts))


@pytest.mark.parametrize("ended", [1, 2, 3, 4])
def test_each_part_is_read_whole_after_a_stream_that_ended_early(backend, ended):
    staging = backend.link.staging(PART_BYTES)
    parts = make_parts(backend, 5)
    assert read_parts(backend, staging.stream(parts), ended) == expect(parts[:ended])
    assert read_parts(backend, staging.stream(parts[::-1]), 6) == expect(parts[::-1])


def test_buffers_are_written_after_the_copies_of_a_stream_that_ended_early(backend):
    staging = backend.link.staging(PART_BYTES)
    parts = make_parts(backend, 3)
    read_parts(backend, staging.stream(parts), 1)
    for buffer in staging.buffers:
        buffer[:] = 0
    assert [int(buffer.max()) for buffer in staging.buffers] == [0, 0]


def test_each_part_is_read_whole_after_a_stream_that_was_never_read(backend):
    staging = backend.link.staging(PART_BYTES)
    parts = make_parts(backend, 3)
    staging.stream(parts).close()
    assert read_parts(backend, staging.stream(parts), 4) == expect(parts)


def test_an_error_of_the_parts_leaves_the_buffers_usable(backend):
    def failing():
        yield from parts[:2]
        raise OSError("the part cannot be read")

    staging = backend.link.staging(PART_BYTES)
    parts = make_parts(backend, 4)
    with pytest.raises(OSError, match="the part cannot be read"):
        read_parts(backend, staging.stream(failing()), 4)
    assert read_parts(backend, staging.stream(parts), 5) == expect(parts)
