"""Plan the host memory of labels, from the reading of the input until the graph is closed.

How many ids of a table are the same is known only after it was read: every edge is assumed to have two labels of its
own, or as many as the bytes of its columns suffice for. A graph of higher degree needs less.
"""

from __future__ import annotations

from dataclasses import dataclass

from mgraph.backends.cpu import available_cores
from mgraph.io.lines import MAX_LINE_BYTES
from mgraph.types import vertex_dtype

LABELS = "labels"
LABELS_READ = "while labels are read"
LABELS_SORTED = "while labels are sorted"
# What the names of these parts end with where a graph is in the memory of GPUs.
ON_HOST = " on the host"
# Arrays of a dictionary (mgraph/labels/dictionary.py) that grow are at most this much longer than what they hold, for
# a label: records by half, and slots, of which at most two thirds are used, by a factor of three.
RECORDS_GROWTH = 1.5
SLOTS = 3
DICTIONARY_BYTES = 1 << 19
# The parts of a dictionary are not quite equally full, and codes are numbered by the fullest.
FULLEST = 1.2
# Bytes of an edge of a piece that is read, in addition to six times those of a label: its text with a weight, offsets
# of both ends, records, hashes.
READ_BYTES = 60


@dataclass(frozen=True)
class PlannedLabels:
    """What is known of the labels of a table before it is read."""

    most: int  # the number of distinct ones, at most
    mean_bytes: float
    is_text: bool

    def parts(self, num_edges: int, num_pieces: int, num_ranks: int, most_kept: int) -> dict[str, int]:
        """Return the bytes on each rank, by purpose; up to `most_kept` bytes of codes are kept in memory."""
        ends = -(-2 * num_edges // num_ranks)
        own = min(self.most, ends)
        of_label = self.mean_bytes
        # Padded to whole words: half a word for labels of any length.
        record = 8 * (1 + max(-(-of_label // 8), of_label / 8 + (0.5 if self.is_text else 0)))
        records = RECORDS_GROWTH * record
        number = vertex_dtype(self.most).itemsize
        # Integers are kept too, until all are read and are found to be labels.
        codes = min(4 * ends, most_kept)
        integers = 0 if self.is_text else min(8 * ends, most_kept)
        pieces = min(available_cores(), -(-num_pieces // num_ranks))
        reading = pieces * (-(-num_edges // num_pieces) * (6 * of_label + READ_BYTES) + MAX_LINE_BYTES)
        # In addition to records: addresses, labels in order, their buckets, ids, and the sorted strings with their
        # offsets.
        sorting = records + FULLEST * 8 + 18 + 2 * number + of_label
        if num_ranks > 1:
            # Records are packed to be sent, and received; codes and ids wait for the answers. Strings are copied once
            # more if ranks have had the same.
            found = 48 + record + 2 * number + 2 * of_label
            sorting = max(FULLEST * 8 + 16 + records + record, 16 + 2 * record, found)
        return {
            LABELS: int((8 + of_label if self.is_text else 8) * (self.most // num_ranks + 1)),
            LABELS_READ: int((records + 8 * SLOTS) * own + codes + integers + reading) + DICTIONARY_BYTES,
            LABELS_SORTED: int(sorting * own + codes) + DICTIONARY_BYTES,
        }
