"""Parse lines of edges between strings, in compiled code."""

from __future__ import annotations

from mgraph.backends.kernel import inline
from mgraph.io.parse import (
    AT,
    DONE,
    EDGE,
    EMPTY,
    FULL,
    OK,
    SLOW,
    STOP,
    ZERO_BYTE,
    after_blanks,
    end_line,
    ends_line,
    line_head,
    next_field,
    store_weight,
)

_QUOTE = 34


@inline
def store_string(text, begin, end, edge, offsets, data):
    """Append text[begin:end], with doubled quotes as one if it is in quotes; return the problem."""
    at = offsets[edge]
    is_quoted = text[begin - 1] == _QUOTE if begin > 0 else False
    problem = OK
    i = begin
    while i < end:
        byte = text[i]
        if byte == 0:
            problem = ZERO_BYTE
        data[at] = byte
        at += 1
        i += 2 if is_quoted and byte == _QUOTE else 1
    offsets[edge + 1] = at
    return problem


@inline
def parse_strings(
    text, size, syntax, skipped, source_offsets, sources, target_offsets, targets, integers, floats, slow, state
):
    """Parse whole lines from state[AT] to `size`, or until state[STOP] says why not.

    String i of an end is data[offsets[i] : offsets[i + 1]]; the data have room for the whole text.
    """
    num_fields, source_field, target_field, weight_field, separator = syntax[:5]
    state[STOP] = DONE
    capacity = len(source_offsets) - 1
    while state[AT] < size and state[STOP] == DONE:
        edge = state[EDGE]
        if edge == capacity or state[SLOW] == slow.shape[1]:
            state[STOP] = FULL
            break
        line = state[AT]
        i = line_head(text, size, syntax, skipped, state)
        if i < 0:
            continue
        field = 0
        while True:
            begin, end, i, problem = next_field(text, i, size, separator)
            if problem == OK:
                if begin == end and (field in (source_field, target_field, weight_field)):
                    problem = EMPTY
                elif field == source_field:
                    problem = store_string(text, begin, end, edge, source_offsets, sources)
                elif field == target_field:
                    problem = store_string(text, begin, end, edge, target_offsets, targets)
                elif field == weight_field:
                    store_weight(text, begin, end, state, integers, floats, slow)
            if problem != OK:
                break
            field += 1
            if i >= size or ends_line(text[i]):
                break
            if separator != 0:
                i = after_blanks(text, i + 1, separator)
        end_line(text, size, line, i, state, field, num_fields, problem, begin, end)
