"""Files of every format with bytes changed, cut or repeated: each is read, or refused with an error that names it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from binary_graphs import galois_bytes, gap_bytes, graph500_bytes
from edge_checks import BACKEND, as_source
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from mgraph.comm.threads import open_threads
from mgraph.errors import MgraphError
from mgraph.generate.rmat import Rmat
from mgraph.ingest.read import read_table
from mgraph.io.formats import FORMATS, read_source
from mgraph.io.write import write_edges

ARCS = [(0, 1, 5), (1, 0, 5), (1, 3, 7), (3, 1, 7), (5, 5, 2)]
ENDS = {"sources": [u for u, *_ in ARCS], "targets": [v for _, v, _ in ARCS], "weights": [w for *_, w in ARCS]}
LINES = "".join(f"{u + 1} {v + 1} {w}\n" for u, v, w in ARCS).encode()
PROPERTIES = b"graph.p.directed = true\ngraph.p.meta.vertices = 7\ngraph.p.meta.edges = 5\n"
LDBC = {"p.e": LINES, "p.v": b"".join(b"%d\n" % v for v in range(1, 8)), "p.properties": PROPERTIES}
# File of the corpus -> files beside it, and the one of them that is read in its place.
BESIDE = {
    **{name: ({other: LDBC[other] for other in LDBC if other != name}, name) for name in LDBC},
    "h12.weights": ({"h12": graph500_bytes(ARCS, wide=False)}, "h12"),
}
# Characters that mean something in some text, which a mutation inserts more often than others.
SIGNS = b"0123456789 \t\r\n-+.,;e%#acp\"'\0\xff"


def saved(save, *args, **more):
    file = io.BytesIO()
    save(file, *args, **more)
    return file.getvalue()


def zipped(name, data):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, data)
    return file.getvalue()


def csr_bytes(folder):
    write_edges(folder / "g.csr", Rmat(3))
    return (folder / "g.csr").read_bytes()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Return name of a file -> (its bytes, options)."""
    table = pa.table(ENDS)
    names = {end: [f"Knoten {v}" for v in ENDS[end]] for end in ("sources", "targets")}
    words = pa.table(names | {"weights": ENDS["weights"]})
    coded = pa.table({end: pa.array(values).dictionary_encode() for end, values in names.items()})
    matrix = sp.coo_array((ENDS["weights"], (ENDS["sources"], ENDS["targets"])), shape=(7, 7))
    named = {"weight": "weights"}
    return {
        "g.mtx": (b"%%MatrixMarket matrix coordinate integer general\n%\n7 7 5\n" + LINES, {}),
        "skew.mtx": (b"%%MatrixMarket matrix coordinate real skew-symmetric\n7 7 2\n2 1 5\n4 2 7.5\n", {}),
        "g.npz": (saved(np.savez, **ENDS), {}),
        "packed.npz": (saved(np.savez_compressed, **ENDS), {}),
        "csr.npz": (saved(sp.save_npz, matrix.tocsr(), compressed=False), {}),
        "coo.npz": (saved(sp.save_npz, matrix, compressed=False), {}),
        "bsr.npz": (saved(sp.save_npz, matrix.tobsr((7, 1)), compressed=False), {}),
        "dia.npz": (saved(sp.save_npz, matrix.todia(), compressed=False), {}),
        "g.parquet": (saved(lambda file: pyarrow.parquet.write_table(table, file)), named),
        "g.arrow": (saved(lambda file: pyarrow.feather.write_feather(table, file, compression="uncompressed")), named),
        "words.parquet": (saved(lambda file: pyarrow.parquet.write_table(words, file)), named),
        "words.arrow": (saved(lambda file: pyarrow.feather.write_feather(coded, file, compression="lz4")), {}),
        "g.csr": (csr_bytes(tmp_path_factory.mktemp("csr")), {}),
        "galois.gr": (galois_bytes(ARCS, 7, 1, "float32"), {"weight": "float32", "format": "galois"}),
        "g.sg": (gap_bytes(ARCS, 7, directed=True, weighted=False), {}),
        "g.wsg": (gap_bytes(ARCS, 7, directed=False, weighted=True), {}),
        "g12": (graph500_bytes(ARCS, wide=False), {"format": "graph500-12"}),
        "g16": (graph500_bytes(ARCS, wide=True), {"format": "graph500-16"}),
        "dimacs.gr": (b"c\np sp 7 5\n" + b"".join(b"a " + line + b"\n" for line in LINES.splitlines()), {}),
        "pace.gr": (b"c\np tw 7 2\n1 2\n2 4\n", {}),
        "out.g": (b"% asym weighted\n% 5 7 7\n" + LINES, {"format": "konect"}),
        "g.e": (LINES, {}),
        "g.graph": (b"%\n4 2 011\n1 2 5\n2 1 5 4 7\n\n3 2 7\n", {}),
        "g.wel": (b"# SNAP\n" + LINES, {}),
        "g.csv": (b"src,dst,weight\n0,1,0.5\n1,3,1e3\n", {}),
        "words.csv": (b'src,dst,weight\n"a ""b""",c,0.5\n"#d",\xc3\xa4 e,-1e3\n', {}),
        "words.tsv": (b"a\tb b\nc\t'd\n", {"source": 0, "target": 1}),
        **{name: (data, {}) for name, data in LDBC.items()},
        "h12.weights": (np.array(ENDS["weights"], "<f4").tobytes(), {"format": "graph500-12"}),
        "g.wel.bz2": (bz2.compress(LINES), {}),
        "g.wel.xz": (lzma.compress(LINES), {}),
        "g.wel.zst": (pa.compress(LINES, "zstd", asbytes=True), {}),
        "g.wel.gz": (gzip.compress(LINES, mtime=0), {}),
        "g.zip": (zipped("g.wel", LINES), {"format": "text", "weight": 2}),
    }


def test_corpus_has_every_format(corpus):
    found = {options.get("format") for _, options in corpus.values()}
    suffixes = {name[name.index(".") :] for name in corpus if "." in name}
    missing = [name for name, row in FORMATS.items() if name not in found and not suffixes & set(row.suffixes)]
    assert missing == ["pace"]  # by its first bytes


def read_or_refused(path, data, options) -> bool:
    """Return whether a file with these bytes is read; its edges are then valid, and else its error names it."""
    path.write_bytes(data)
    others, name = BESIDE.get(path.name, ({}, path.name))
    for other, content in others.items():
        path.with_name(other).write_bytes(content)
    path = path.with_name(name)
    try:
        table = read_source(path, **options)
        # Ids as they are, and words as labels.
        source = read_table(table, BACKEND, open_threads(1)[0])[0] if "words" in path.name else as_source(table)
    except MgraphError as error:
        assert path.stem.split(".")[0] in str(error), error  # noqa: PT017  any other exception fails the test
        return False
    if source.num_input_edges and source.num_vertices < 1 << 60:
        chunk = source.chunk(0, 1, BACKEND)
        for ids in (chunk.sources, chunk.targets):
            assert 0 <= int(ids.min()) <= int(ids.max()) < source.num_vertices
        assert chunk.weights is None or (len(chunk.weights) == len(chunk) and np.isfinite(chunk.weights).all())
    return True


def test_files_are_read_as_they_are(corpus, tmp_path):
    for name, (data, options) in corpus.items():
        assert read_or_refused(tmp_path / name, data, options), name


@pytest.mark.ci
def test_files_cut_anywhere_are_read_or_refused(corpus, tmp_path):
    refused = dict.fromkeys(corpus, 0)
    for name, (data, options) in corpus.items():
        for length in range(0, len(data), max(1, len(data) // 150)):
            refused[name] += not read_or_refused(tmp_path / name, data[:length], options)
    # Lines without counts may end anywhere.
    assert [name for name, count in refused.items() if not count] == [], json.dumps(refused)


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["flip", "sign", "insert", "delete", "repeat", "cut"]),
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 255),
        st.integers(1, 40),
    ),
    min_size=1,
    max_size=4,
)


def edited(data: bytes, edits) -> bytes:
    """Return the bytes after some edits, each at a part of their length."""
    for kind, place, value, length in edits:
        at = int(place * len(data))
        sign = SIGNS[value % len(SIGNS) :][:1]
        data = {
            "flip": data[:at] + bytes([data[at] ^ (1 << value % 8)] if data else []) + data[at + 1 :],
            "sign": data[:at] + sign + data[at + 1 :],
            "insert": data[:at] + sign * (1 + value % 3) + data[at:],
            "delete": data[:at] + data[at + length :],
            "repeat": data[: at + length] + data[at:],
            "cut": data[: max(at, 1)],
        }[kind]
    return data


@pytest.mark.timeout(600)
@pytest.mark.widens
@given(which=st.integers(0, 255), edits=EDITS)
@examples(600)
def test_edited_files_are_read_or_refused(corpus, tmp_path_factory, which, edits):
    name = sorted(corpus)[which % len(corpus)]
    content, options = corpus[name]
    path = tmp_path_factory.getbasetemp() / name
    read_or_refused(path, edited(content, edits), options)
