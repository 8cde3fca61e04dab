"""Test that the examples of docs/networkx.md run, and that its table is that of the thresholds."""

from __future__ import annotations

import re

import nx_install
import pytest

from mgraph.nx_backend.thresholds import CALLS_BEFORE_CONVERSION, MIN_ARCS

TEXT = (nx_install.ROOT / "docs" / "networkx.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
RUN_ALL = "import sys; [exec(compile(text, 'docs/networkx.md', 'exec'), {}) for text in sys.argv[1:]]"


@pytest.mark.ci
def test_examples_run(tmp_path):
    assert len(EXAMPLES) == 4
    done = nx_install.run_python(nx_install.install(tmp_path), "-c", RUN_ALL, *EXAMPLES, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 7, done.stdout


def test_the_table_has_the_thresholds_of_every_function():
    rows = re.findall(r"^\| (`.*`.*) \| (\w+) \| (\w+) \|$", TEXT, re.MULTILINE)
    listed = {}
    for names, *columns in rows:
        found = tuple(None if text == "never" else int(text) for text in columns)
        # What follows a semicolon is served as the functions before it.
        listed |= dict.fromkeys(re.findall(r"`(\w+)`", names.partition(";")[0]), found)
    assert listed == MIN_ARCS
    assert CALLS_BEFORE_CONVERSION == 4 and "at the fifth such call" in TEXT
