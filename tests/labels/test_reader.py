"""Ids are ranks of labels in sorted order, for any number of ranks, order of pieces, and number of threads."""

from __future__ import annotations

import functools
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from on_ranks import RANKS, run_on_ranks
from tiers import examples

from mgraph.backends.cpu import CpuBackend
from mgraph.errors import InputError
from mgraph.labels import reader as readers
from mgraph.labels.strings import Strings

BACKEND = CpuBackend(2)
INT64 = np.iinfo(np.int64)

# Few letters, so that labels are equal or prefixes of each other, to the ends of words of 8 bytes and beyond.
alphabet = st.sampled_from(["a", "b", "\0", "é", "日", "\U0001f600", "aaaaaaa", "bbbbbbbbbbbbbbbb"])
texts = st.lists(st.lists(alphabet, min_size=1, max_size=5).map("".join), max_size=40)
integers = st.lists(
    st.one_of(st.integers(-3, 3), st.integers(INT64.min + 1, INT64.max), st.sampled_from([-(2**32), 2**32, 255, 256])),
    max_size=40,
)


def as_ids(labels):
    return Strings.of(labels) if labels and isinstance(labels[0], str) else np.array(labels, np.int64)


def as_list(part):
    return part.tolist()


def read(pieces, num_ranks, threads=1):
    """Return the ids of each piece, the labels in order of ids, and one rank's table; rank r reads pieces r, r + p."""

    def program(_, comm):
        reader = readers.LabelReader(BACKEND, comm)
        own = range(comm.rank, len(pieces), comm.size)
        with ThreadPoolExecutor(threads) as pool:
            codes = dict(zip(own, pool.map(lambda k: reader.add(pieces[k]), own), strict=True))
        table, id_of_code = reader.finish()
        return {k: id_of_code[found].tolist() for k, found in codes.items()}, as_list(table.part), table

    parts = run_on_ranks(program, [None] * num_ranks)
    ids = functools.reduce(lambda a, b: a | b, (part[0] for part in parts))
    return [ids[k] for k in range(len(pieces))], [label for part in parts for label in part[1]], parts[0][2]


def in_order(labels):
    """Return the distinct labels in their order."""
    return sorted(set(labels), key=lambda label: label.encode() if isinstance(label, str) else label)


def check(pieces, num_ranks, threads=1):
    everything = list(itertools.chain(*pieces))
    expected = in_order(everything)
    place = {label: i for i, label in enumerate(expected)}
    ids, labels, table = read([as_ids(piece) for piece in pieces], num_ranks, threads)
    assert labels == expected
    assert ids == [[place[label] for label in piece] for piece in pieces]
    assert table.num_vertices == len(expected)
    return table


@given(st.one_of(texts, integers), st.sampled_from(RANKS), st.integers(1, 5), st.randoms(use_true_random=False))
@examples(60)
def test_ids_are_places_in_sorted_order(labels, num_ranks, num_pieces, random):
    pieces = [piece for piece in (labels[k::num_pieces] for k in range(num_pieces)) if piece]
    random.shuffle(pieces)
    check(pieces, num_ranks)


@pytest.mark.covering
@pytest.mark.parametrize("num_ranks", RANKS)
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("kind", ["hashes", "gaps", "names", "long"])
def test_many_labels_are_found_by_several_threads(kind, threads, num_ranks):
    rng = np.random.default_rng(5)
    numbers = {
        "hashes": rng.integers(INT64.min + 1, INT64.max, 4000),
        "gaps": rng.permutation(4000) * 1000 - 5000,
        "names": np.arange(4000),
        "long": np.arange(300),
    }[kind]
    drawn = rng.choice(numbers, 20_000 if kind != "long" else 1000).tolist()
    if kind == "names":
        drawn = [f"user-{number:x}@example.org" for number in drawn]
    elif kind == "long":
        drawn = ["x" * 5000 + str(number) + "y" * (number % 9) for number in drawn]
    check([drawn[k::23] for k in range(23)], num_ranks, threads)


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_dictionary_grows_over_many_labels(num_ranks):
    labels = np.random.default_rng(6).integers(INT64.min + 1, INT64.max, 200_000)
    ids, parts, _ = read([labels[:90_000], labels[90_000:]], num_ranks)
    np.testing.assert_array_equal(parts, np.unique(labels))
    np.testing.assert_array_equal(np.concatenate(ids), np.unique(labels, return_inverse=True)[1])


def test_unsigned_integers_beyond_int64_keep_their_values():
    labels = np.array([2**64 - 2, 0, 2**63, 5], np.uint64)
    for num_ranks in RANKS:
        ids, parts, table = read([labels], num_ranks)
        assert (ids, parts) == ([[3, 0, 2, 1]], [0, 5, 2**63, 2**64 - 2])
        assert (table.part.dtype, table.missing) == (np.uint64, 2**64 - 1)


@pytest.mark.parametrize(("labels", "missing"), [([0, 7], -1), ([-1, 7], INT64.min), ([-9], INT64.min)])
def test_no_label_stands_for_no_vertex(labels, missing):
    assert check([labels], 2).missing == missing


def test_reserved_and_mixed_integers_are_refused():
    for bad, dtype in ((INT64.min, np.int64), (2**64 - 1, np.uint64)):
        with pytest.raises(InputError, match=rf"^id 1: the id {bad} cannot be a label: it means no vertex$"):
            read([np.array([1, bad], dtype)], 1)
    with pytest.raises(InputError, match="some ids are negative and others are above"):
        read([np.array([2**63], np.uint64), np.array([-1])], 2)


def test_empty_string_is_refused_where_it_is():
    ids = Strings.of(["a", "b", ""])

    def program(_, comm):
        readers.LabelReader(BACKEND, comm).add(ids, lambda i: f"line {i + 1}")

    with pytest.raises(InputError, match=r"^line 3: an id is missing: an empty text names no vertex$"):
        run_on_ranks(program, [None])


def test_graph_without_labels_has_no_vertices():
    for num_ranks in RANKS:
        ids, labels, table = read([np.empty(0, np.int64)] * 3, num_ranks)
        assert (ids, labels, table.num_vertices) == ([[], [], []], [], 0)


def test_strings_may_be_a_part_of_others():
    whole = Strings.of(["skip", "b", "a", "b", "skip too"])
    ids, labels, _ = read([whole[1:4]], 2)
    assert (ids, labels) == ([[1, 0, 1]], ["a", "b"])
