"""Find the labels of a graph: a dictionary on each rank while the input is read, then one sort over all ranks.

Every label becomes one record on one rank: splitters from a sample of all ranks divide the labels, each rank sorts what
it receives and counts the distinct ones, and so an id is the number of labels on lower ranks plus a place. The ids go
back to the ranks that asked; the labels go to the ranks that serve the results of their ids.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.kernel import inline
from mgraph.comm.base import Communicator
from mgraph.errors import InputError
from mgraph.labels.device_dictionary import DeviceDictionary
from mgraph.labels.dictionary import Dictionary
from mgraph.labels.sort import divide, sort_labels, sort_run
from mgraph.labels.spread import Spread, spread_over
from mgraph.labels.strings import Strings
from mgraph.labels.table import LabelKind, LabelTable, exchange_labels, stride_of
from mgraph.labels.words import address_of, code_of, header_of, length_of, load_word, word_of_record, words_of
from mgraph.types import Array, vertex_dtype

# Sampled labels of each rank, and how many bytes of them: longer labels may share a splitter.
SAMPLE = 1 << 10
SAMPLE_WORDS = 32

INTEGER = 1
STRING = 2
SIGN = np.uint64(1 << 63)
SMALLEST = np.iinfo(np.int64).min
LARGEST = np.iinfo(np.uint64).max


class LabelReader:
    """Gives labels provisional codes while pieces of the input are read, and at last their ids.

    Every rank has one. `add` may be called by several threads at a time. On a GPU the labels are in its memory; those
    for which it has no room are in host memory, with codes after those of the GPU.
    """

    def __init__(self, backend: Backend, comm: Communicator) -> None:
        self._backend = backend
        self._comm = comm
        self._on_device = None if backend.xp is np else DeviceDictionary(backend)
        self._dictionary = Dictionary()
        self._kind = 0
        # Whether an integer is negative, and whether one is beyond int64.
        self._signs = [False, False]

    def add(self, ids: Array | Strings, where: Callable[[int], str] = "id {}".format) -> Array:
        """Return a code for each label, uint32 in any memory: equal codes are equal labels of this rank.

        `where` names a label in an error, such as an empty string.
        """
        # Threads that read are not those of the backend.
        self._backend.enter_thread()
        if isinstance(ids, Strings):
            self._kind = STRING
        else:
            self._kind = INTEGER
            if not len(ids):
                return np.empty(0, np.uint32)
            ids = self._checked(ids, where)
        on_device = self._on_device
        codes = None
        if on_device is not None and not on_device.is_full:
            is_text = isinstance(ids, Strings)
            codes = on_device.encode_strings(ids, where) if is_text else on_device.encode_integers(ids)
        if codes is None:
            codes = self._encoded_on_host(ids, where)
            codes += np.uint32(0 if on_device is None else len(on_device))
        return codes

    def _encoded_on_host(self, ids: Array | Strings, where: Callable[[int], str]) -> np.ndarray:
        if isinstance(ids, Strings):
            return self._dictionary.encode_strings(ids, where)
        return self._dictionary.encode_integers(self._backend.to_host(ids))

    def _checked(self, values: Array, where: Callable[[int], str]) -> Array:
        """Return integers as 64 bits, and note their signs; refuse the one that means no vertex."""
        wide = values if values.dtype.itemsize == 8 else values.astype(np.int64)
        reserved = LARGEST if wide.dtype.kind == "u" else SMALLEST
        low = int(wide.min())
        high = int(wide.max())
        if reserved in (low, high):
            i = int((wide == reserved).argmax())
            raise InputError(f"{where(i)}: the id {reserved} cannot be a label: it means no vertex")
        self._signs[0] |= low < 0
        self._signs[1] |= high > np.iinfo(np.int64).max
        return wide

    def finish(self) -> tuple[LabelTable, Array]:
        """Return the table of all labels, and the id of each code of this rank, in any memory; collective."""
        comm = self._comm
        agreed = comm.allreduce(np.array([self._kind, *self._signs], np.int64), "max")
        kind, negative, beyond = agreed.tolist()
        if negative and beyond:
            raise InputError("some ids are negative and others are above 2^63 - 1: no integer of 64 bits holds both")
        signed = kind != STRING and not beyond
        spread = spread_over(self._backend)
        ids, part = self._sorted(kind, spread, signed=signed)
        num_vertices = comm.sum(len(part))[0]
        part = _rebalanced(part, num_vertices, comm)
        missing = SMALLEST if negative else LARGEST if beyond else -1
        name: LabelKind = "string" if kind == STRING else "integer"
        dtype = vertex_dtype(num_vertices)
        return LabelTable(num_vertices, name, part, int(missing), spread), ids.astype(dtype, copy=False)

    def _sorted(self, kind: int, spread: Spread, *, signed: bool) -> tuple[Array, np.ndarray | Strings]:
        """Return the id of each code, and the distinct labels that this rank has sorted; drop the dictionaries."""
        on_device = self._on_device
        self._on_device = None
        if on_device is not None:
            on_device.close(signed=signed)
            if self._comm.size == 1 and not len(self._dictionary):
                with contextlib.suppress(MemoryError):  # then the host sorts them
                    return on_device.sort_strings() if kind == STRING else on_device.sort_integers(signed=signed)
        flip = SIGN if signed else np.uint64(0)
        first_code = 0 if on_device is None else len(on_device)
        addresses, num_codes, arrays = self._dictionary.records(flip, first_code, spread)
        self._dictionary = Dictionary()
        if on_device is not None:
            first, words = on_device.records()
            addresses = np.concatenate([first, addresses])
            arrays.append(words)
            del on_device, words
        if self._comm.size == 1:
            ids, labels = sort_labels(addresses, num_codes, spread)
        else:
            ids, labels = _sort_over_ranks(addresses, num_codes, arrays, self._comm, spread)
        if kind == STRING:
            return ids, labels
        integers = labels.data.view(">u8").astype(np.uint64) ^ flip
        return ids, integers.view(np.int64) if signed else integers


def _sort_over_ranks(
    addresses: np.ndarray, num_codes: int, arrays: list[np.ndarray], comm: Communicator, spread: Spread
) -> tuple[np.ndarray, Strings]:
    """Return the id of each code, and the distinct labels that this rank has sorted."""
    splitters, sampled = _splitters(addresses, comm)
    if not len(splitters):  # on all ranks: there is no label
        return np.zeros(num_codes, np.int64), Strings.of([])
    ordered, bounds, _ = divide(addresses, splitters, spread)
    codes = codes_of(ordered)
    # A code that is no label's has any id.
    ids = np.zeros(num_codes, np.int64)
    parts = [_packed(ordered[lo:hi]) for lo, hi in itertools.pairwise(bounds)]
    counts = [int(n[0]) for n in comm.alltoallv([np.array([hi - lo]) for lo, hi in itertools.pairwise(bounds)])]
    arrays.clear()
    del addresses, sampled, ordered
    received = comm.alltoallv([part.view(np.int64) for part in parts])
    parts.clear()
    ends = np.concatenate([[0], np.cumsum(counts)])
    there = np.empty(int(ends[-1]), np.uint64)
    for part, lo, hi in zip(received, ends, ends[1:], strict=False):
        _walk(part.view(np.uint64), lo, there[lo:hi])
    places, labels = sort_labels(there, len(there), spread)
    received.clear()
    distinct = np.zeros(comm.size, np.int64)
    comm.allgather(np.array([len(labels)], np.int64), distinct)
    first = int(distinct[: comm.rank].sum())
    answers = [places[lo:hi].astype(np.int64) + first for lo, hi in itertools.pairwise(ends)]
    for r, found in enumerate(comm.alltoallv(answers)):
        ids[codes[bounds[r] : bounds[r + 1]]] = found
    return ids, labels


def _splitters(addresses: np.ndarray, comm: Communicator) -> tuple[np.ndarray, np.ndarray]:
    """Return one splitter less than there are ranks, the same on all, and the array that has their records.

    None if no rank has a label.
    """
    (num_labels,) = comm.sum(len(addresses))
    drawn = addresses[:: max(num_labels // (SAMPLE * comm.size), 1)]
    own = _truncated(drawn)
    sampled = np.concatenate(comm.alltoallv([own.view(np.int64)] * comm.size)).view(np.uint64)
    num = sum(int(n[0]) for n in comm.alltoallv([np.array([len(drawn)])] * comm.size))
    samples = np.empty(num, np.uint64)
    _walk(sampled, 0, samples)
    sort_run(samples)
    return samples[np.arange(1, comm.size) * num // comm.size] if num else samples, sampled


def _truncated(addresses: np.ndarray) -> np.ndarray:
    words = np.empty(len(addresses) * (1 + SAMPLE_WORDS), np.uint64)
    return words[: truncate_records(addresses, words)].copy()


@inline
def truncate_records(addresses, words):
    """Copy the beginnings of records; return how many words they take."""
    end = 0
    for i in range(len(addresses)):
        length = min(length_of(load_word(addresses[i])), 8 * SAMPLE_WORDS)
        words[end] = header_of(length, 0)
        for d in range(words_of(length)):
            words[end + 1 + d] = word_of_record(addresses[i], d)
        end += 1 + words_of(length)
    return end


def _packed(addresses: np.ndarray) -> np.ndarray:
    """Return some records, one after another."""
    words = np.empty(count_words(addresses), np.uint64)
    pack_records(addresses, words)
    return words


@inline
def codes_of(addresses):
    """Return the codes of records."""
    codes = np.empty(len(addresses), np.int64)
    for i in range(len(addresses)):
        codes[i] = code_of(load_word(addresses[i]))
    return codes


@inline
def count_words(addresses):
    """Return how many words some records take."""
    count = 0
    for i in range(len(addresses)):
        count += 1 + words_of(length_of(load_word(addresses[i])))
    return count


@inline
def pack_records(addresses, words):
    """Copy records, one after another."""
    end = 0
    for i in range(len(addresses)):
        size = 1 + words_of(length_of(load_word(addresses[i])))
        for d in range(size):
            words[end + d] = word_of_record(addresses[i], d - 1)
        end += size


def _walk(words: np.ndarray, first: int, addresses: np.ndarray) -> None:
    """Write the addresses of records that lie one after another; give them the codes from `first` on."""
    walk_records(words, address_of(words), first, addresses)


@inline
def walk_records(words, base, first, addresses):
    """Write the address of each record, and its code into it."""
    place = 0
    for i in range(len(addresses)):
        length = length_of(words[place])
        words[place] = header_of(length, first + i)
        addresses[i] = base + np.uint64(8 * place)
        place += 1 + words_of(length)


def _rebalanced(labels: np.ndarray | Strings, num_vertices: int, comm: Communicator) -> np.ndarray | Strings:
    """Send sorted labels to the ranks that serve their ids; return this rank's."""
    if comm.size == 1:
        return labels
    counts = np.zeros(comm.size, np.int64)
    comm.allgather(np.array([len(labels)], np.int64), counts)
    first = int(counts[: comm.rank].sum())
    stride = stride_of(num_vertices, comm.size)
    cuts = np.clip(np.arange(comm.size + 1) * stride - first, 0, len(labels)).tolist()
    return exchange_labels(comm, [labels[lo:hi] for lo, hi in itertools.pairwise(cuts)])
