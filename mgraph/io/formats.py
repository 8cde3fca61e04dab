"""Read files of edges: the table of formats, and the choice of a reader by first bytes and suffix."""

from __future__ import annotations

import inspect
import pathlib
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from mgraph.backends.cpu import available_cores
from mgraph.edges import EdgeTable
from mgraph.errors import InputError, UnknownFormat, UsageError
from mgraph.io.arrow import FEATHER_1, STREAM, read_arrow
from mgraph.io.arrow import MAGIC as ARROW
from mgraph.io.checks import as_column, as_flag, check_base, check_labels
from mgraph.io.columns import Columns
from mgraph.io.compression import compression_of, first_bytes, name_of_member, plain_name
from mgraph.io.csr import MAGIC, read_csr
from mgraph.io.dimacs import read_dimacs
from mgraph.io.galois import MAGICS, read_galois
from mgraph.io.gap import read_gap
from mgraph.io.graph500 import read_graph500, read_graph500_wide
from mgraph.io.input_file import InputFile, Stdin
from mgraph.io.konect import HEADER, read_konect
from mgraph.io.ldbc import read_ldbc
from mgraph.io.metis import read_metis
from mgraph.io.mtx import BANNER, read_mtx
from mgraph.io.npz import read_npz
from mgraph.io.parquet import read_parquet
from mgraph.io.paths import input_files, name_of
from mgraph.io.several import as_one_table
from mgraph.io.spool import unpacked
from mgraph.io.text import read_text


@dataclass(frozen=True)
class Format:
    """A format of files: how it is known, and what it says of a graph."""

    read: Callable[..., EdgeTable]
    about: str
    suffixes: tuple[str, ...] = ()
    first: re.Pattern[bytes] | None = None  # what its first bytes match
    begins: str = ""  # the same in words
    weights: str = "none"
    directed: str = "no"
    base: int = 0
    is_text: bool = False  # of lines that are not long


def _begins(*texts: bytes) -> re.Pattern[bytes]:
    return re.compile(b"|".join(map(re.escape, texts)))


def _problem(*kinds: str) -> re.Pattern[bytes]:
    return re.compile(rb"(?:(?:c[^\n]*)?\n)*p (?:%s) " % "|".join(kinds).encode())


# A file is of the first format that its first bytes match; else its suffix decides.
FORMATS = {
    "mtx": Format(
        read_mtx, "Matrix Market, coordinate", (".mtx",), _begins(BANNER.encode()), f"`{BANNER}`",
        "the values, but of `pattern`", "`general`, and `skew-symmetric` with weights", 1, is_text=True,
    ),
    "npz": Format(
        read_npz, "arrays `sources` and `targets` of `numpy.savez`; or of `scipy.sparse.save_npz`", (".npz",),
        _begins(b"PK\x03\x04"), "`PK`", "array `weights`; SciPy's values", "array `directed`",
    ),
    "parquet": Format(
        read_parquet, "Apache Parquet, by pyarrow", (".parquet", ".pq"), _begins(b"PAR1"), "`PAR1`",
        "a column", "metadata of mgraph",
    ),
    "arrow": Format(
        read_arrow, "Arrow and Feather files, by pyarrow", (".arrow", ".feather", ".ipc"),
        _begins(ARROW, FEATHER_1, STREAM), "`ARROW1`", "a column", "metadata of mgraph",
    ),
    "csr": Format(
        read_csr, "rows of mgraph's benchmarks, below", (".csr",), _begins(MAGIC), f"`{MAGIC.decode()}`",
        "float32, if the header says so", "a flag",
    ),
    "galois": Format(
        read_galois, "Galois binary, version 1 and 2", (".sgr",), _begins(*MAGICS), "1 or 2 in 64 bits",
        "of the dtype that `weight=` names", "yes, but `.sgr`",
    ),
    "gap": Format(
        read_gap, "serialized graphs of the GAP Benchmark Suite", (".sg", ".wsg"), weights="int32 in `.wsg`",
        directed="a flag",
    ),
    "graph500-12": Format(
        read_graph500, "packed edges of Graph500, 12 bytes each", weights="float32 in `FILE.weights` beside",
    ),
    "graph500-16": Format(
        read_graph500_wide, "edges of Graph500, two int64 each", weights="float32 in `FILE.weights` beside",
    ),
    "dimacs": Format(
        read_dimacs, "DIMACS 9 and GTgraph: lines `a SOURCE TARGET WEIGHT`", (".gr",), _problem("sp"), "`p sp`",
        "third column", "yes", 1, is_text=True,
    ),
    "pace": Format(
        read_dimacs, "PACE: pairs", (), _problem("tw", "td", "ds"), "`p tw`, `p td` or `p ds`", base=1, is_text=True,
    ),
    "konect": Format(
        read_konect, "KONECT, files `out.*`", (), HEADER, "`% sym` or `% asym`, and the kind",
        "third column, but of `unweighted` and `positive`", "`asym`", 1, is_text=True,
    ),
    "ldbc": Format(
        read_ldbc, "LDBC Graphalytics; any of the three files", (".e", ".v", ".properties"),
        weights="third column", directed="`FILE.properties`", is_text=True,
    ),
    "metis": Format(
        read_metis, "METIS, Chaco and DIMACS 10", (".graph", ".metis"), weights="if the first line says so", base=1,
    ),
    "text": Format(
        read_text, "edge lists, SNAP, CSV and TSV", (".txt", ".el", ".wel", ".csv", ".tsv"),
        weights="a column; the third of `.wel`", is_text=True,
    ),
}  # fmt: skip
READERS = {name: row.read for name, row in FORMATS.items()}
SUFFIXES = {suffix: name for name, row in FORMATS.items() for suffix in row.suffixes}

# Files that other libraries read: suffix -> how.
ELSEWHERE = {
    ".graphml": "networkx.read_graphml({path!r})",
    ".gml": "networkx.read_gml({path!r})",
    ".gexf": "networkx.read_gexf({path!r})",
    ".net": "networkx.read_pajek({path!r})",
}
REFUSED = {
    ".pkl": "pickles can run any code and are not loaded: if you trust it, load it yourself, then mg.from_networkx(G)",
    ".xlsx": "mg.from_pandas(pandas.read_excel({path!r})) reads a sheet",
}
REFUSED |= dict.fromkeys((".pickle", ".gpickle"), REFUSED[".pkl"])
REFUSED |= {suffix: f"mg.from_networkx({how}) reads it" for suffix, how in ELSEWHERE.items()}


OPTIONS = ("source", "target", "weight", "directed", "num_vertices", "labels", "base", "sep")


def read_source(path: Any, *, format: str | None = None, ends_only: bool = False, **options: Any) -> EdgeTable:
    """Return the edges of one or several files as a table.

    Parameters
    ----------
    path
        A file, a list of files, a folder, a pattern such as `part-*.csv`, a URL, or "-" for standard input, which is
        copied first. Several files are one table: they have one format and the same columns.
    format
        A name in FORMATS; None means by the first bytes, else by the suffix.
    ends_only
        Whether weights are left out unless `weight` names them.
    source, target
        The columns of the ends, by name or by number from 0; None means a known pair of names such as source and
        target, or the first two of columns without names.
    weight
        The column of the weights (by name, or by number from 0) or the array; None means the usual one if
        there is one, False means none. Required for a table with columns besides the ends of its edges of
        which none is called weight.
    directed
        Whether (u, v) and (v, u) are two arcs; None means as the file declares, else undirected.
    num_vertices
        None means as the file declares, else one more than the largest id.
    labels
        "auto" (the default) maps strings, and integers if any is negative or the largest is more than twice the number
        of distinct ids; "string" reads ids of a text as strings; True maps all, False refuses what is not 0..n-1.
    base
        The id of the first vertex of a text or a table, 0 by default. Other formats have their own, which cannot be
        chosen: Matrix Market has 1.
    sep
        The character between fields of a text; None means what the first line has outside of quotes: of a .tsv file a
        tab, else a comma, of a .csv file a tab, else blanks.
    """
    if format is not None and format not in READERS:
        raise UsageError(f"format {format!r} is not one of {', '.join(READERS)}")
    given = _checked(options)
    try:
        return _read(path, format, given, ends_only)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that the user gives, without those that are None; refuse unknown ones and wrong values."""
    if unknown := [name for name in options if name not in OPTIONS]:
        raise UsageError(f"{unknown[0]!r} is no option of reading a file: {', '.join(OPTIONS)} are")
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("source", "target", "weight"):
        if name in given and not (name == "weight" and isinstance(given[name], bool)):
            given[name] = as_column(given[name], name)
    if "directed" in given:
        given["directed"] = as_flag(given["directed"], "directed")
    if "base" in given:
        given["base"] = check_base(given["base"])
    if "labels" in given:
        given["labels"] = check_labels(given["labels"])
    return given


def reader_options(
    read: Callable[..., Any], given: dict[str, Any], path: object, ends_only: bool = False
) -> dict[str, Any]:
    """Return the options for a reader, its columns as one; refuse those that its format does not have."""
    accepted = inspect.signature(read).parameters
    options = dict(given)
    if "columns" in accepted:
        given_columns = {name: options.pop(name, None) for name in ("source", "target", "weight")}
        options["columns"] = Columns(**given_columns, ends_only=ends_only)
    elif options.get("labels") == "string":
        raise UsageError(f"{path} is of a format in which ids are integers: labels='string' applies to text")
    elif ends_only:
        options.setdefault("weight", False)
    if unknown := [name for name in options if name not in accepted]:
        raise UsageError(f"{path} is of a format in which {unknown[0]}= cannot be chosen")
    return options


def _read(path: Any, format: str | None, given: dict[str, Any], ends_only: bool) -> EdgeTable:
    """Read all files that a path means, several at a time, by the format of the first."""
    files = input_files(path)
    found, first = _recognized(files[0], format)

    def read(file: InputFile) -> EdgeTable:
        name, file = (found, first) if file is files[0] else _recognized(file, format)
        if name != found:
            raise InputError(f"{file} is {name}, and {files[0]} is {found}: all files of a graph have one format")
        return FORMATS[name].read(file, **reader_options(FORMATS[name].read, given, file, ends_only))

    if len(files) == 1:
        tables = [read(files[0])]
    else:
        with ThreadPoolExecutor(available_cores()) as pool:
            tables = list(pool.map(read, files))
    return as_one_table(tables, files, name_of(path, files))


def _recognized(file: InputFile, format: str | None) -> tuple[str, InputFile]:
    """Return the format of a file, and the file to be read decompressed; first bytes decide before the suffix."""
    name = plain_name(file.name)
    suffix = _suffix(name)
    if format is None:
        _refuse_other_formats(file, suffix)
    kind = compression_of(file)
    if kind == "zip" and suffix not in SUFFIXES:
        member = name_of_member(file)
        if _suffix(member) in SUFFIXES | REFUSED:
            name = member
            suffix = _suffix(member)
        if format is None:
            _refuse_other_formats(file, suffix)
    first = first_bytes(file, kind)
    found = format or _by_name_alone(suffix) or _by_first_bytes(first)
    if found is None:
        found = "text" if isinstance(file, Stdin) else SUFFIXES.get(suffix)
    if found is None:
        if first[257:262] == b"ustar":
            raise UnknownFormat(f"{file} is a tar archive: unpack it, and read the file of edges in it")
        raise UnknownFormat(
            f"{file} is of no format known by name ({', '.join(SUFFIXES)}) or by its first bytes: name it by format= "
            "(--format)"
        )
    return found, unpacked(file, kind, is_text=FORMATS[found].is_text, name=name) if kind else file


def _suffix(name: str) -> str:
    return pathlib.PurePath(name).suffix.lower()


def _refuse_other_formats(file: InputFile, suffix: str) -> None:
    """Refuse a file that another library reads, with how."""
    if suffix in REFUSED:
        raise UnknownFormat(f"{file}: {REFUSED[suffix].format(path=str(file))}")


def _by_name_alone(suffix: str) -> str | None:
    """Return a format of files that may begin with any bytes, by its suffix."""
    found = SUFFIXES.get(suffix, "text")
    return None if found == "text" or FORMATS[found].first else found


def _by_first_bytes(first: bytes) -> str | None:
    return next((name for name, row in FORMATS.items() if row.first and row.first.match(first)), None)
