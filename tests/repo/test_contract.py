"""Every kernel has both twins, they agree, and every .cu compiles: no GPU, no CuPy."""

from __future__ import annotations

import json
import pathlib
import re

import contract
import pytest
import tiers
from kernel_files import INCLUDED, SOURCES, source_of, stem_of, stems, text_of, typedefs_of
from nvrtc import check_text, compile_text
from registers import ARCHITECTURES, RECORD, assemble, differing, key, modules, recorded, typedefs_assembled

from mgraph.algorithms.bfs import persistent_multi_gpu_kernels as bfs_multi_gpu
from mgraph.algorithms.bfs.persistent_kernels import MAX_ARCS, MAX_QUEUED
from mgraph.algorithms.common import multi_gpu_search as multi_gpu_search
from mgraph.algorithms.common.unit_flags_kernels import MARKED_PAIRS
from mgraph.algorithms.sssp import persistent_multi_gpu_kernels as sssp_multi_gpu
from mgraph.algorithms.sssp.delta_stepping import LAST_SHARE, TAIL_SHARE
from mgraph.backends.cuda_source import module_text
from mgraph.backends.kernel import TYPEDEFS, kernel
from mgraph.backends.numba_helpers import WEIGHT_CLASSES
from mgraph.backends.shared_names import ControlLayout, Names, Offsets, WorkArea
from mgraph.comm import peer_memory
from mgraph.shard.block_headers import MAX_SEGMENT_BITS, UNIT_SIZE, WORD_BITS

# Registers of a multiprocessor, on all architectures.
REGISTERS = 1 << 16


def test_pairs_of_marked_states_fit_shared_memory_and_their_words():
    """A warp has shared memory for as many pairs as it holds, and a pair has an edge and its end in 32 bits."""
    text = text_of("backends/device/tiles")
    depth = int(re.search(r"TEST_DEPTH = (\d+)", text)[1])
    assert "MARKED_PAIRS = 32 * (1 + TEST_DEPTH)" in text
    assert 32 * (1 + depth) == MARKED_PAIRS
    assert UNIT_SIZE << MAX_SEGMENT_BITS <= 1 << WORD_BITS


def test_there_are_kernels():
    assert sum(map(len, stems().values())) >= len(SOURCES) > 0


@pytest.mark.parametrize("stem", stems())
def test_twins_agree(stem):
    assert contract.stem_faults(source_of(stem), stems()[stem]) == []


# The prelude may contain constructs that other files must not.
@pytest.mark.parametrize("path", [p for p in INCLUDED if p.stem != "prelude"], ids=stem_of)
def test_included_files_hold_to_the_rules_of_kernel_files(path):
    assert contract.forbidden(path.read_text()) == []


@pytest.mark.parametrize("stem", stems())
def test_kernels_name_known_typedefs(stem):
    for each in stems()[stem].values():
        assert each.types.keys() <= TYPEDEFS.keys(), each


def constant(name: str, text: str) -> int:
    """Return the value of a constant in a CUDA text."""
    return int(re.search(rf"constexpr [^;]*\b{name} = (\d+)", text)[1])


def test_names_shared_with_a_kernel_have_one_order():
    names = Names("Report", "done num_records")
    assert names.c_text() == "enum Report { DONE, NUM_RECORDS, NUM_REPORTS };\n"
    assert names.arranged(num_records=2, done=1) == (1, 2)
    assert names.arranged(after=1, num_records=2) == (2,)
    with pytest.raises(TypeError, match="done"):
        names.arranged(num_records=2)
    with pytest.raises(TypeError, match="rows"):
        names.arranged(num_records=2, done=1, rows=3)


def test_parts_of_an_array_are_contiguous():
    parts = Offsets(asked=16, found=3, sources=0)
    assert (parts["asked"], parts["found"], parts["sources"], parts.total) == (0, 16, 19, 19)
    assert parts.c_text() == "constexpr i64 ASKED = 0;\nconstexpr i64 FOUND = 16;\nconstexpr i64 SOURCES = 19;\n"


def test_control_block_has_its_parts_in_order():
    layout = ControlLayout(
        Names("Parameter", "source width"), own="source", report=Names("Report", "done"), record=("a", "b")
    )
    assert (layout.shared, layout.report_at, layout.records_at, layout.sources_at(10)) == (("width",), 2, 3, 23)
    assert layout.c_text() == "constexpr i64 REPORT_AT = 2, RECORDS_AT = 3;\n"
    with pytest.raises(TypeError, match="width"):
        ControlLayout(Names("Parameter", "source width"), own="width", report=Names("Report", "done"), record=())


def test_work_area_has_its_parts_in_order():
    area = WorkArea("Work", "work", counters=("i64", 3), bits=("u32", lambda size: 2 * size.words), ids=("id_t", 5))
    assert area.offsets({"words": 4}, {"id_t": 4}) == {"counters": 0, "bits": 24, "ids": 56, "end": 76}
    assert area.num_bytes({"words": 4}, {"id_t": 8}) == 96
    assert "u32* bits() const { return (u32*)(counters() + 3); }" in area.c_text()
    assert "id_t* ids() const { return (id_t*)(bits() + (2 * ((const S*)this)->words())); }" in area.c_text()
    with pytest.raises(ValueError, match="ids would begin at byte 28"):
        WorkArea("Work", "work", bits=("u32", 7), ids=("i64", 1)).num_bytes({}, {})


@pytest.mark.parametrize("stem", [stem for stem in stems() if re.search(r"\bBLOCK = ", text_of(stem))])
def test_launch_has_the_block_size_of_its_kernel(stem):
    assert {each.block for each in stems()[stem].values()} == {constant("BLOCK", text_of(stem))}


def test_weights_have_one_number_of_classes():
    assert constant("WEIGHT_CLASSES", text_of("backends/device/prelude")) == WEIGHT_CLASSES


def test_shares_of_tail_and_last_bucket_are_equal():
    assert constant("TAIL_SHARE", text_of("backends/device/frontiers")) == TAIL_SHARE
    assert constant("LAST_SHARE", text_of("backends/device/frontiers")) == LAST_SHARE


def test_queue_counts_fit_beside_its_arcs():
    bits = constant("ARC_BITS", text_of("backends/device/frontiers"))
    assert 1 << (63 - bits) == MAX_QUEUED
    assert 1 << bits == MAX_ARCS


def test_peer_buffers_have_one_head():
    assert constant("MAX_RANKS", text_of("backends/device/ranks")) == peer_memory.MAX_RANKS
    assert constant("HEAD_BYTES", text_of("backends/device/ranks")) == peer_memory.HEAD_BYTES
    assert constant("MAX_SHARED_SOURCES", text_of("backends/device/ranks")) == multi_gpu_search.MAX_SHARED_SOURCES
    assert bfs_multi_gpu.SIZES.num_buffers == peer_memory.MAX_RANKS
    for kernels in bfs_multi_gpu, sssp_multi_gpu:
        assert constant("TRACE_WORDS", text_of("backends/device/frontiers")) == len(kernels.LAYOUT.record)
        assert kernels.LAYOUT.report[:2] == ("done", "num_records")


@pytest.mark.covering(every=3)
@pytest.mark.widens
@pytest.mark.parametrize("source", SOURCES, ids=stem_of)
def test_compiles_without_a_warning(source):
    for typedefs in tiers.by_tier([TYPEDEFS], typedefs_of(source)):
        assert check_text(module_text(source, typedefs)) == "", typedefs


# The slow part: not all dtypes, and in CI only what the record lacks.
@pytest.mark.ci
@pytest.mark.widens
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("stem", [stem_of(path) for path in SOURCES])
def test_is_assembled_for_its_blocks(stem, architecture):
    kernels = stems()[stem]
    for typedefs in typedefs_assembled(stem, architecture):
        text = module_text(source_of(stem), typedefs)
        built = (compile_text if tiers.chosen == tiers.ALL else assemble)(text, architecture)
        assert recorded(text, architecture) in (None, built.registers)
        assert built.log == "", typedefs
        assert built.registers.keys() == kernels.keys()
        for name, registers in built.registers.items():
            # Registers are allocated to a warp in units of 256; a launch with too few for a block is refused.
            assert -(-registers // 8) * 8 * kernels[name].block <= REGISTERS, (name, typedefs)


@pytest.mark.parametrize("path", INCLUDED, ids=stem_of)
def test_included_files_compile_by_themselves(path):
    """Every included file includes all that it uses, so that no file depends on the order of includes."""
    assert check_text(module_text(path, TYPEDEFS)) == ""


@pytest.mark.ci
def test_record_of_registers_is_of_these_kernels():
    """The record has one line for each module; a line may be out of date."""
    lines = map(json.loads, RECORD.read_text().splitlines())
    assert [(line["module"], line["architecture"], line["typedefs"]) for line in lines] == [
        (stem, architecture, differing(typedefs)) for stem, architecture, typedefs in modules()
    ]


def test_text_that_the_record_lacks_is_assembled(tmp_path):
    text = module_text(plant(tmp_path, GOOD), TYPEDEFS)
    assert set(assemble(text, "sm_90").registers) == {"relax"}
    assert key(text, "sm_90") == key(text.replace("  for", "  // every row\n  for"), "sm_90")
    assert len({key(text, "sm_90"), key(text, "sm_75"), key(text.replace("i < hi", "i <= hi"), "sm_90")}) == 3


# ---- the checkers can fail -------------------------------------------------------------------------
GOOD = """#include "prelude.cuh"
// extern "C" __global__ void commented_out(int x) { #include
extern "C" __global__ void __launch_bounds__(256) relax(i64 lo, i64 hi, const i64* __restrict__ indptr, double limit,
                                                        const vertex_t *targets, dist_t* dist, i64* count) {
  for (i64 i = lo + thread_index(); i < hi; i += thread_count()) {
    if (dist[i] > limit) atomic_add(count, (i64)targets[indptr[i]]);
  }
}
"""


def test_kernel_is_parsed():
    (function,) = contract.functions(GOOD)
    assert (function.name, function.line, function.length) == ("relax", 3, 6)
    assert [(p.name, p.type, p.is_array, p.is_output) for p in function.parameters] == [
        ("lo", "i64", False, False),
        ("hi", "i64", False, False),
        ("indptr", "i64", True, False),
        ("limit", "double", False, False),
        ("targets", "vertex_t", True, False),
        ("dist", "dist_t", True, True),
        ("count", "i64", True, True),
    ]
    assert contract.text_faults(GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("i64 lo, i64 hi", "i64 hi, i64 lo", "relax: the first two parameters are not `i64 lo, i64 hi`"),
        ("i64 lo,", "int lo,", "relax: the first two parameters are not"),
        (
            "dist_t* dist, i64* count",
            "dist_t* dist, const i64* count",
            "relax: count is an input after the output dist",
        ),
        ("dist_t* dist, i64* count", "dist_t* dist, i64 count", "relax: count is an input after the output dist"),
        ("dist_t* dist, i64* count", "const dist_t* dist, i64 count", "relax: no array is written"),
        ("double limit", "float limit", "relax: scalar limit is float"),
        ("double limit", "u32 limit", "relax: scalar limit is u32"),
        ("\nextern", "\n#include <cuda_fp16.h>\nextern", "#include"),
        ("\nextern", "\n # include<cuda_fp16.h>\nextern", "#include"),
        ("  for", '  asm volatile("nop;");\n  for', "inline PTX"),
        ("  for", "  extern __shared__ int tile[];\n  for", "bare `extern __shared__`"),
        ("  for", "  auto twice = [&](auto v) { return 2 * v; };\n  for", "generic lambda"),
        ('extern "C" __global__ void __launch', "__global__ void __launch", "1 functions are __global__, 0 read as"),
        ("double limit", "Pair<int> limit", "relax: scalar Pair<int> limit is unreadable"),
    ],
)
def test_fault_in_the_text_is_found(old, new, fault):
    assert GOOD.count(old) == 1 or old == "  for"
    assert any(found.startswith(fault) for found in contract.text_faults(GOOD.replace(old, new, 1)))


@kernel(vertex_t="targets")
def relax(lo, hi, indptr, limit, targets, dist, count):
    """Relax arcs as the kernel of GOOD does."""
    for i in range(lo, hi):
        if dist[i] > limit + 0.0:
            dist[i] = limit
            count[0] += targets[indptr[i]]


def plant(tmp_path: pathlib.Path, text: str, name: str = "stem.cu") -> pathlib.Path:
    """Write a .cu file."""
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_twins_that_agree_pass(tmp_path):
    assert contract.stem_faults(plant(tmp_path, GOOD), {"relax": relax}) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (
            "const i64* __restrict__ indptr, double limit",
            "double limit, const i64* indptr",
            "the CUDA twin (lo, hi, limit, indptr",
        ),
        ("double limit", "double bound", "the Python twin takes (lo, hi, indptr, limit"),
        (", i64* count", "", "the CUDA twin (lo, hi, indptr, limit, targets, dist)"),
        (
            "const vertex_t *targets",
            "const u32* targets",
            "vertex_t is taken from targets, which is not a pointer to it",
        ),
        ("double limit", "const double* limit", "limit is a number in Python, an array in CUDA"),
        ("const i64* __restrict__ indptr", "i64 indptr", "indptr is an array in Python, a scalar in CUDA"),
        ("dist_t* dist", "const dist_t* dist", "dist is written in Python, const in CUDA"),
        ("const vertex_t *targets", "vertex_t* targets", "targets is an output in CUDA, never written in Python"),
        ("relax", "relaxed", "relaxed: no Python twin"),
        ("relax", "relaxed", "relax: no CUDA twin"),
    ],
)
def test_twins_that_differ_are_found(tmp_path, old, new, fault):
    assert old in GOOD
    found = contract.stem_faults(plant(tmp_path, GOOD.replace(old, new)), {"relax": relax})
    assert any(fault in each for each in found), found


def test_missing_file_is_found(tmp_path):
    assert contract.stem_faults(tmp_path / "stem.cu", {"relax": relax}) == ["relax: no CUDA twin, stem.cu is missing"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("targets[indptr[i]]", "targets[", "broken.cu(6): error"),
        ("atomic_add(count, (i64)targets", "atomic_add(limit, (i64)targets", "broken.cu(6): error"),
        ("  for", "  int unused;\n  for", "broken.cu(5): warning"),
    ],
)
def test_compiler_names_file_and_line(tmp_path, old, new, message):
    source = plant(tmp_path, GOOD.replace(old, new, 1), "broken.cu")
    text = module_text(source, TYPEDEFS)
    assert message in compile_text(text, "sm_90").log
    assert message in check_text(text)


def test_file_is_included_once_and_errors_keep_their_lines(tmp_path):
    plant(tmp_path, "constexpr int HALF = 21;\n", "low.cuh")
    plant(tmp_path, '#include "low.cuh"\nconstexpr int WHOLE = 2 * HALF;\n', "high.cuh")
    text = '#include "high.cuh"\n#include "low.cuh"\nstatic_assert(WHOLE == 42, "");\nconstexpr int BROKEN = MISSING;\n'
    log = compile_text(module_text(plant(tmp_path, text), TYPEDEFS), "sm_90").log
    assert re.findall(r"(\w+\.cuh?)\((\d+)\): error", log) == [("stem.cu", "4")]


def test_missing_include_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.cuh"):
        module_text(plant(tmp_path, '#include "absent.cuh"\n'), TYPEDEFS)


def test_compiler_lists_the_kernels_of_a_module(tmp_path):
    built = compile_text(module_text(plant(tmp_path, GOOD), TYPEDEFS), "sm_75")
    assert (built.log, set(built.registers)) == ("", {"relax"})
