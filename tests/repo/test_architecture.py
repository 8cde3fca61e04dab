"""The layers, the budgets, a light import; and that their checkers can fail."""

from __future__ import annotations

import importlib
import pathlib
import subprocess
import sys
import textwrap

import budgets
import layers
import pytest

import mgraph

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / "mgraph"
# They import CuPy or NCCL at their head, and are imported only where there is a GPU.
NEEDS_GPU = {
    "mgraph.backends.copies",
    "mgraph.backends.cuda",
    "mgraph.backends.cuda_host_link",
    "mgraph.backends.cuda_split_memory",
    "mgraph.backends.cuda_ipc",
    "mgraph.comm.nccl",
}
MODULES = sorted(
    ".".join(("mgraph", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if path.name != "__main__.py"
)


def run_python(code: str) -> str:
    """Run code in a fresh interpreter at the root of the checkout; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def plant(tmp_path: pathlib.Path, files: dict[str, str]) -> pathlib.Path:
    """Write a package of these files; return its folder."""
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_imports_keep_to_the_layers():
    assert layers.faults(PACKAGE) == []


@pytest.mark.ci
def test_sizes_keep_to_the_budgets():
    assert budgets.faults(ROOT) == []


def test_every_module_is_in_a_layer():
    assert {module.split(".")[1] for module in MODULES if "." in module} <= layers.HEIGHT.keys()


def test_import_mgraph_is_light():
    loaded = run_python(f"import sys, mgraph; print(*(set({layers.HEAVY}) & set(sys.modules)))")
    assert loaded.split() == []


@pytest.mark.ci
def test_all_modules_import_without_cupy():
    modules = [module for module in MODULES if module not in NEEDS_GPU]
    run_python(f"""
        import importlib, sys
        sys.modules.update(dict.fromkeys(["cupy", "nccl", "dask_cuda"]))
        for module in {modules}:
            importlib.import_module(module)
    """)


def test_public_names_resolve():
    for name, home in mgraph._MODULE_OF.items():
        assert getattr(mgraph, name) is getattr(importlib.import_module(home), name)
        assert name in dir(mgraph)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = mgraph.no_such_name


@pytest.mark.parametrize(
    ("path", "code", "fault"),
    [
        ("comm/base.py", "import mgraph.backends.kernel", "comm (layer 2) imports backends"),
        ("generate/rmat.py", "from mgraph import api", "generate (layer 4) imports api"),
        (
            "algorithms/bfs/step.py",
            "def f():\n    from mgraph.cluster import gang",
            "algorithms (layer 7) imports cluster",
        ),
        ("shard/shard.py", "from mgraph.algorithms.bfs.step import bfs", "shard (layer 5) imports algorithms"),
        ("strange.py", "import mgraph.types", "strange is in no layer"),
        ("api/graph.py", "from mgraph.strange import x", "mgraph.strange.x is in no layer"),
        ("api/graph.py", "import mgraph", "mgraph is in no layer"),
        ("api/graph.py", "from .types import x", "relative import"),
        ("api/graph.py", "import distributed", "distributed may be imported in cluster/ only"),
        ("comm/sockets.py", "from distributed import Client", "distributed may be imported in cluster/ only"),
        ("comm/sockets.py", "import distributed.comm", "distributed may be imported in cluster/ only"),
        ("api/graph.py", "import dask.array as da", "dask may be imported in"),
        ("algorithms/bfs/step.py", "def f():\n    import cupy.cuda", "cupy may be imported in"),
        ("io/npz.py", "import cupy", "cupy may be imported in"),
        ("backends/base.py", "from mgraph.backends.cuda import CudaBackend", "mgraph.backends.cuda may be imported in"),
        ("types.py", "try:\n    import mgraph.backends\nexcept ImportError: pass", "types (layer 0) imports backends"),
    ],
)
def test_wrong_import_is_found(tmp_path, path, code, fault):
    (found,) = layers.faults(plant(tmp_path, {path: code}))
    assert fault in found
    assert found.startswith(f"{path}:")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("types.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import mgraph.backends.kernel"),
        ("cluster/connect.py", "from distributed.comm import connect"),
        ("api/graph.py", "def f():\n    import dask.array"),
        ("shard/shard.py", "from mgraph.shard.rows import x"),
        ("cli/main.py", "import mgraph as mg\nfrom mgraph import __version__"),
        ("backends/base.py", "def f():\n    from mgraph.backends.cuda import CudaBackend"),
    ],
)
def test_allowed_import_passes(tmp_path, path, code):
    assert layers.faults(plant(tmp_path, {path: code})) == []


def test_import_cycle_is_found(tmp_path):
    files = {
        "comm/a.py": "from mgraph.comm import b",
        "comm/b.py": "from mgraph.comm.a import x",
        "comm/__init__.py": "",
    }
    (found,) = layers.faults(plant(tmp_path, files))
    assert (
        "import cycle: mgraph.comm.a <- mgraph.comm.b <- mgraph.comm.a" in found
        or "mgraph.comm.b <- mgraph.comm.a" in found
    )


@pytest.mark.parametrize(
    ("path", "text", "fault"),
    [
        ("mgraph/api/graph.py", '"""Doc."""\n' * 501, "501 lines, the budget is 500"),
        ("mgraph/algorithms/bfs/step_kernels.cu", "\n" * 501, "501 lines, the budget is 500"),
        ("tests/repo/test_x.py", "def test():\n" + "    pass\n" * 60, "test has 61 lines, the budget is 60"),
        ("mgraph/a.py", '"""Doc."""\ndef _f(a, b, c, d, e, f, *, g, h) -> int: ...', "_f takes 8 parameters"),
        (
            "mgraph/a.py",
            f'"""Doc."""\n@kernel()\ndef _f({", ".join("abcdefghijklmno")}) -> int: ...',
            "takes 15 parameters",
        ),
        ("mgraph/algorithms/a.cu", 'extern "C" __global__ void f(i64 lo) {\n' + "  x;\n" * 60 + "}", "f has 62 lines"),
        (
            "mgraph/algorithms/a.cuh",
            "struct S {\n  __device__ int f(int a) {\n" + "    x;\n" * 60 + "  }\n};",
            "f has 62 lines",
        ),
        ("mgraph/a.py", "def _f() -> int: ...", "no docstring says what the module is for"),
        ("mgraph/a.py", '"""Doc."""\ndef f() -> int: ...', "public f has no docstring"),
        ("mgraph/a.py", '"""Doc."""\nclass A: ...', "public A has no docstring"),
        ("mgraph/a.py", '"""Doc."""\nclass A:\n    """A."""\n    def f(self) -> int: ...', "public f has no docstring"),
        ("mgraph/a.py", '"""Doc."""\ndef _f(): ...', "_f does not say what it returns"),
        ("mgraph/a.py", '"""Doc."""\nclass _A:\n    def f(self): ...', "f does not say what it returns"),
        ("mgraph/io/__init__.py", "", "no docstring says what belongs in the folder"),
        ("README.md", "\n" * 141, "141 lines, the budget is 140"),
    ],
)
def test_exceeded_budget_is_found(tmp_path, path, text, fault):
    (found,) = budgets.faults(plant(tmp_path, {path: text}))
    assert fault in found


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("mgraph/algorithms/a.py", '"""Doc."""\n@kernel(vertex_t="x")\ndef f(lo, hi, x):\n    """Do."""'),
        ("mgraph/a.py", '"""Doc."""\nclass A(B):\n    """A."""\n    def f(self) -> int: ...'),
        ("mgraph/a.py", '"""Doc."""\nclass A:\n    """A."""\n    @property\n    def f(self) -> int: ...'),
        ("mgraph/a.py", '"""Doc."""\nclass A:\n    """A."""\n    def _f(self, a, b, c, d, e, f, g) -> int: ...'),
        (
            "mgraph/a.py",
            '"""Doc."""\nclass P(Protocol):\n    """P."""\n    def f(self) -> int:\n        """Do."""\n'
            'class A:\n    """A."""\n    def f(self) -> int: ...',
        ),
        ("mgraph/algorithms/a.cu", "__device__ int f(int a) {\n" + "  x;\n" * 58 + "  // why\n\n}"),
        ("mgraph/a.py", '"""Doc."""\n@click.command()\ndef _f(a, b, c, d, e, f, g, h) -> None: ...'),
        ("mgraph/a.py", '"""Doc."""\n@inline\ndef _f(a, b, c, d, e, f, g, h): ...'),
    ],
)
def test_kept_budget_passes(tmp_path, path, text):
    assert budgets.faults(plant(tmp_path, {path: text})) == []
