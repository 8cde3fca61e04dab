"""Test settings: defaults without Dask, over them files, environment variables and dask.config."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import click
import dask
import pytest

import mgraph as mg
from mgraph.backends.rates_file import rates_file
from mgraph.cli.traverse import bfs
from mgraph.config import settings
from mgraph.generate.rmat import Rmat
from mgraph.io.temporary import spool_folder
from mgraph.planning import placement
from mgraph.planning.placement import place_graph

ROOT = pathlib.Path(__file__).parents[2]
READ = """
import json, sys
from mgraph.config import settings
found = [settings.seconds("timeouts.verb"), settings.folder("spool-folder")]
print(json.dumps([found, "dask" in sys.modules]))
"""


def leaves(tree: dict, path: str = "") -> list[str]:
    """Return the names of all settings."""
    return [
        leaf
        for name, value in tree.items()
        for leaf in (leaves(value, f"{path}{name}.") if isinstance(value, dict) else [path + name])
    ]


NAMES = leaves(settings.defaults()["mgraph"])


def read(tmp_path: pathlib.Path, **environment: str) -> list:
    """Return two settings in a new process, and whether it has imported Dask."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    finished = subprocess.run(
        [sys.executable, "-c", READ],
        env=clean | {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def test_defaults_need_no_dask(tmp_path):
    assert read(tmp_path) == [[300, None], False]
    (tmp_path / "dask.yaml").write_text("distributed:\n  version: 2\n")
    assert read(tmp_path, DASK_CONFIG=str(tmp_path)) == [[300, None], False]


def test_environment_variables_are_read(tmp_path):
    given = {"DASK_MGRAPH__TIMEOUTS__VERB": "5 minutes", "DASK_MGRAPH__SPOOL_FOLDER": str(tmp_path)}
    assert read(tmp_path, **given) == [[300, str(tmp_path)], True]


def test_files_of_dask_are_read(tmp_path):
    (tmp_path / "mine.yaml").write_text(f"mgraph:\n  timeouts:\n    verb: 7\n  spool-folder: {tmp_path}\n")
    assert read(tmp_path, DASK_CONFIG=str(tmp_path)) == [[7, str(tmp_path)], True]
    assert read(tmp_path, DASK_CONFIG=str(tmp_path / "mine.yaml")) == [[7, str(tmp_path)], True]
    assert read(tmp_path, DASK_CONFIG=str(tmp_path), DASK_MGRAPH__TIMEOUTS__VERB="8") == [[8, str(tmp_path)], True]


def test_set_of_dask_is_read_while_it_lasts():
    settings.setting("timeouts.verb")
    with dask.config.set({"mgraph.timeouts.verb": "2s", "mgraph.placement": {"arcs_per_rank": 5}}):
        assert settings.seconds("timeouts.verb") == 2
    assert settings.seconds("timeouts.verb") == 300
    assert settings.count("placement.arcs-per-rank") is None
    assert set(NAMES) <= set(leaves(dask.config.get("mgraph")))


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("timeouts.verb", 0, settings.seconds),
        ("timeouts.verb", "soon", settings.seconds),
        ("timeouts.verb", True, settings.seconds),
        ("timeouts.verb", float("inf"), settings.seconds),
        ("spool-folder", "/no/such/folder", settings.folder),
        ("spool-folder", 5, settings.folder),
        ("progress", "loud", lambda name: settings.choice(name, "auto", "off")),
        ("placement.arcs-per-rank", 0, settings.count),
        ("placement.arcs-per-rank", 1.5, settings.count),
    ],
)
def test_wrong_setting_is_refused_by_its_name_and_variable(name, value, read):
    variable = f"DASK_MGRAPH__{re.sub('[.]', '__', name).replace('-', '_').upper()}"
    message = rf"the setting mgraph\.{name} \({variable}\) is {value!r}: give"
    with dask.config.set({f"mgraph.{name}": value}), pytest.raises(mg.UsageError, match=message):
        read(name)


def test_places_read_their_settings(tmp_path, monkeypatch):
    with dask.config.set({"mgraph.spool-folder": str(tmp_path), "mgraph.cache-folder": str(tmp_path)}):
        assert spool_folder("edges.csv") == str(tmp_path)

        class Device:
            def device_facts(self) -> dict:
                return {"name": "a GPU"}

        assert rates_file(Device()).parent == tmp_path / "mgraph"
    with dask.config.set({"mgraph.timeouts.verb": 7}), mg.connect(backend="cpu") as cluster:
        assert cluster.timeout_s == 7
    source = Rmat(16)
    monkeypatch.setitem(placement.ARCS_PER_RANK, "cpu", 1 << 40)
    assert place_graph(source, 4, "cpu", 1 << 40).num_ranks == 1
    with dask.config.set({"mgraph.placement.arcs-per-rank": source.num_input_edges // 2}):
        assert place_graph(source, 4, "cpu", 1 << 40).num_ranks == 4


def test_options_of_deadlines_name_their_setting_and_its_default():
    options = {"open": "--open-timeout", "verb": "--verb-timeout"}
    others = {"scheduler": "--scheduler", "scheduler-file": "--scheduler-file"}
    defaults = settings.defaults()["mgraph"]["timeouts"]
    assert set(options | others) == set(defaults)
    helps = {option.opts[0]: option.help for option in bfs.params if isinstance(option, click.Option)}
    text = (ROOT / "docs/configuration.md").read_text()
    for name, option in (options | others).items():
        assert f"timeouts.{name}, {defaults[name]}" in helps[option]
    for name, option in options.items():
        assert re.search(rf"^\| `mgraph.timeouts.{name}` .*`{option}`", text, re.MULTILINE)


def test_every_setting_is_documented_with_its_variable_and_default():
    text = (ROOT / "docs/configuration.md").read_text()
    rows = dict(re.findall(r"^\| `mgraph\.([\w.-]+)` \| `(DASK_\w+)` \|", text, re.MULTILINE))
    assert rows == {name: f"DASK_MGRAPH__{name.replace('.', '__').replace('-', '_').upper()}" for name in NAMES}
