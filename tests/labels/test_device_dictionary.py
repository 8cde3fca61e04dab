"""Labels on a GPU have the ids that they have on the host, also those for which the GPU has no room."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from emulator.backend import EmulatedBackend
from hypothesis import given
from hypothesis import strategies as st
from on_ranks import run_on_ranks
from tiers import examples

from mgraph.backends.cpu import CpuBackend
from mgraph.backends.create import make_backend
from mgraph.errors import InputError
from mgraph.labels import device_dictionary
from mgraph.labels.device_dictionary import DeviceDictionary
from mgraph.labels.reader import LabelReader
from mgraph.labels.strings import Strings

NAMES = [f"user-{k % 97:x}@example.org" for k in range(400)]
TEXTS = st.lists(
    st.lists(st.sampled_from(["a", "b", "\0", "é", "aaaaaaa", "bbbbbbbbbbbbbbbb"]), min_size=1, max_size=4).map(
        "".join
    ),
    max_size=60,
)


class SmallDevice(EmulatedBackend):
    """A GPU with little memory."""

    def __init__(self, free, seed=1):
        super().__init__(seed=seed)
        self.free = free

    def free_bytes(self):
        return self.free


def as_ids(labels):
    if not isinstance(labels, list):
        return labels
    return Strings.of(labels) if labels and isinstance(labels[0], str) else np.array(labels, np.int64)


def read(pieces, make_backend, num_ranks=1, threads=1):
    """Return the ids of each piece, and the labels and reader of each rank."""

    def program(_, comm):
        backend = make_backend(comm.rank)
        reader = LabelReader(backend, comm)
        own = range(comm.rank, len(pieces), comm.size)
        with ThreadPoolExecutor(threads) as pool:
            codes = dict(zip(own, pool.map(lambda k: reader.add(as_ids(pieces[k])), own), strict=True))
        on_device = reader._on_device
        table, id_of_code = reader.finish()
        ids = backend.to_host(id_of_code)
        found = {k: ids[backend.to_host(codes_of)] for k, codes_of in codes.items()}
        return found, table, on_device

    parts = run_on_ranks(program, [None] * num_ranks)
    ids = {k: found for part in parts for k, found in part[0].items()}
    return [ids[k] for k in range(len(pieces))], [part[1] for part in parts], [part[2] for part in parts]


def check(pieces, make_backend, num_ranks=1, threads=1):
    """Compare with the labels that the host reads; return the dictionaries of the devices."""
    ids, tables, on_device = read(pieces, make_backend, num_ranks, threads)
    expected_ids, expected, _ = read(pieces, lambda _: CpuBackend(2), num_ranks)
    for ours, theirs in zip(tables, expected, strict=True):
        parts = ours.part, theirs.part
        assert (ours.num_vertices, ours.kind, ours.missing) == (theirs.num_vertices, theirs.kind, theirs.missing)
        arrays = ([part.offsets, part.data] if isinstance(part, Strings) else [part] for part in parts)
        for mine, wanted in zip(*arrays, strict=True):
            np.testing.assert_array_equal(mine, wanted, strict=True)
    for ours, theirs in zip(ids, expected_ids, strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)
    return on_device


@given(TEXTS, st.sampled_from([1, 2]), st.integers(1, 4), st.integers(0, 99))
@examples(30)
def test_strings_have_the_ids_of_the_host(labels, num_ranks, num_pieces, seed):
    pieces = [labels[k::num_pieces] for k in range(num_pieces) if labels[k::num_pieces]]
    check(pieces, lambda rank: EmulatedBackend(seed=seed + rank), num_ranks)


@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("low", [0, -(2**63) + 1, 2**32])
def test_integers_have_the_ids_of_the_host(low, num_ranks):
    values = np.random.default_rng(1).integers(low, 2**63 - 1, 300)
    drawn = np.concatenate([values, values[::3], [low, low + 1]]).tolist()
    check([drawn[k::5] for k in range(5)], lambda rank: EmulatedBackend(seed=rank), num_ranks)


def test_integers_beyond_int64_keep_their_values():
    values = np.array([2**64 - 2, 0, 2**63, 5, 0], np.uint64)
    backend = EmulatedBackend(seed=2)

    def program(_, comm):
        reader = LabelReader(backend, comm)
        codes = reader.add(values)
        table, ids = reader.finish()
        return table, ids[codes]

    [(table, ids)] = run_on_ranks(program, [None])
    assert (table.part.tolist(), table.part.dtype) == ([0, 5, 2**63, 2**64 - 2], np.uint64)
    assert (ids.tolist(), table.missing) == ([3, 0, 2, 1, 0], 2**64 - 1)


@pytest.mark.parametrize("num_ranks", [1, 2])
@pytest.mark.parametrize("nothing", [Strings.of([]), np.empty(0, np.int64)], ids=["strings", "integers"])
def test_no_labels_are_no_vertices(nothing, num_ranks):
    def program(_, comm):
        reader = LabelReader(EmulatedBackend(seed=1), comm)
        codes = reader.add(nothing)
        table, ids = reader.finish()
        return len(codes), len(ids), table.num_vertices, len(table.part)

    assert run_on_ranks(program, [None] * num_ranks) == [(0, 0, 0, 0)] * num_ranks


@pytest.mark.parametrize("threads", [1, 4])
def test_table_and_records_grow_in_small_batches(monkeypatch, threads):
    monkeypatch.setattr(device_dictionary, "BATCH", 16)
    monkeypatch.setattr(device_dictionary, "BATCH_BYTES", 200)
    labels = [name + "x" * (k % 40) for k, name in enumerate(NAMES)]
    [found] = check([labels[k::7] for k in range(7)], lambda rank: EmulatedBackend(seed=rank), threads=threads)
    assert len(found) == len(set(labels)) > device_dictionary.FIRST_SLOTS
    assert not np.any(found._slots)


def test_labels_of_one_hash_stay_apart(monkeypatch):
    monkeypatch.setattr(device_dictionary, "random_seeds", lambda: np.zeros(4, np.uint64))
    labels = [text + "\0" * k for text in ("a", "b" * 8, "b" * 9, "é") for k in range(12)]
    [found] = check([labels, labels[::2] * 2], lambda rank: EmulatedBackend(seed=rank))
    assert len(found) == len(labels)


@pytest.mark.parametrize("num_ranks", [1, 2])
@pytest.mark.parametrize("room", [0, 600, 3000, 6000, 9000])
@pytest.mark.parametrize("kind", ["strings", "integers"])
def test_labels_without_room_are_read_on_the_host(monkeypatch, kind, room, num_ranks):
    monkeypatch.setattr(device_dictionary, "BATCH", 20)
    labels = NAMES if kind == "strings" else [7 * (k % 97) - 99 for k in range(400)]
    pieces = [labels[k::9] for k in range(9)]
    share = device_dictionary.ROOM_SHARE
    dictionaries = check(pieces, lambda rank: SmallDevice(share * room, rank), num_ranks)
    for found in dictionaries:
        assert found.nbytes <= max(room, 1000)
        assert len(found) > 0 or room < 3000
        assert len(found) < 97 or room > 600


@pytest.mark.parametrize("fails", [1, 2, 3, 5, 8, 13])
def test_allocation_that_fails_leaves_the_rest_to_the_host(monkeypatch, fails):
    monkeypatch.setattr(device_dictionary, "BATCH", 32)

    def make_backend(rank):
        backend = EmulatedBackend(seed=rank)
        xp = backend.xp
        count = 0

        class Failing:
            def __getattr__(self, name):
                return getattr(xp, name)

            def empty(self, *args):
                nonlocal count
                count += 1
                if count >= fails:
                    raise MemoryError
                return xp.empty(*args)

        backend.xp = Failing()
        return backend

    [found] = check([NAMES[k::5] for k in range(5)], make_backend)
    assert found.is_full


def test_sort_without_room_is_done_on_the_host(monkeypatch):
    def no_room(*_, **__):
        raise MemoryError

    monkeypatch.setattr(device_dictionary, "sort_strings", no_room)
    monkeypatch.setattr(device_dictionary, "sort_integers", no_room)
    for labels in (NAMES, [5, -7, 2**62, -7]):
        check([labels, labels[::-1]], lambda rank: EmulatedBackend(seed=rank))


def test_long_strings_are_left_to_the_host(monkeypatch):
    monkeypatch.setattr(device_dictionary, "MAX_LENGTH", 50)
    [found] = check([NAMES[:50], ["x" * 51, "a"], NAMES], lambda rank: EmulatedBackend(seed=rank))
    assert found.is_full
    assert len(found) == 50


def test_wrong_labels_are_refused_where_they_are():
    def program(_, comm, ids, where):
        LabelReader(EmulatedBackend(seed=1), comm).add(ids, where)

    for ids, where, message in (
        (Strings.of(["a", "b", ""]), "line {}".format, "^line 2: an id is missing: an empty text names no vertex$"),
        (np.array([1, 2**64 - 1], np.uint64), "id {}".format, "^id 1: the id 18446744073709551615 cannot be a label"),
    ):
        with pytest.raises(InputError, match=message):
            run_on_ranks(program, [None], ids, where)


def test_dictionary_of_a_device_takes_labels_of_its_memory():
    backend = EmulatedBackend(seed=1)
    found = DeviceDictionary(backend)
    values = np.random.default_rng(1).integers(0, 40, 200)
    codes = backend.to_host(found.encode_integers(backend.to_device(values)))
    assert len(found) == len(np.unique(values)) == len(np.unique(codes))
    assert len(np.unique(codes * 100 + values)) == len(np.unique(values))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["hex", "prefixes", "integers"])
def test_millions_of_labels_on_a_gpu_have_the_ids_of_the_host(kind):
    drawn = np.random.default_rng(7).integers(0, 1 << 20, 3_000_000)
    if kind == "integers":
        pieces = [(drawn[k::24] - 5) * 1_000_003 for k in range(24)]
    else:
        form = "{:016x}" if kind == "hex" else "https://example.org/a/rather/long/path/{:x}"
        pieces = [Strings.of(map(form.format, drawn[k::24].tolist())) for k in range(24)]
    check(pieces, lambda _: make_backend("cuda"), threads=8)
