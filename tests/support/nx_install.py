"""The backend of NetworkX in processes of their own, installed as by `pip install -e .`: with its entry points."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).parents[2]


def install(folder: pathlib.Path) -> dict[str, str]:
    """Write what an installation tells about the checkout into a folder; return an environment that has it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    told = folder / f"{project['name'].replace('-', '_')}-0.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0\n")
    groups = project["entry-points"].items()
    lines = [line for group, of in groups for line in (f"[{group}]", *(f"{name} = {ref}" for name, ref in of.items()))]
    (told / "entry_points.txt").write_text("\n".join(lines))
    # Of two installations with one name, Python takes the first.
    path = os.pathsep.join(map(str, (folder, ROOT, ROOT / "tests" / "support")))
    chosen = {name: value for name, value in os.environ.items() if not name.startswith("NETWORKX_")}
    return {**chosen, "PYTHONPATH": path}


def run_python(environment: dict[str, str], *arguments: str, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Run Python with arguments in a folder."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
