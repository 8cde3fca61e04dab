"""Run a notebook in a kernel of Jupyter: tables for graphs, results and stats, and a bar that comes and goes."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SLOW = """
import time
from mgraph.generate.rmat import Rmat

class Slow(Rmat):
    def chunk(self, k, num_chunks, backend):
        time.sleep(0.15)
        return super().chunk(k, num_chunks, backend)

mg.Graph.from_source(Slow(6), num_chunks=10).close()
"""
AGAIN = "mg.Graph.from_source(Slow(6), num_chunks=10).close()"
CELLS = ("import mgraph as mg\ng = mg.rmat(6)\ng", "found = mg.bfs(g, 1)\nfound", "found.stats", SLOW, AGAIN)
STYLES = re.compile(r"\x1b\[[\d;]*m")
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """Run the cells; return all that the kernel sent for each."""
    import nbformat
    from nbclient import NotebookClient

    sent: list[list[dict[str, Any]]] = [[] for _ in CELLS]

    class Client(NotebookClient):
        def process_message(self, message, cell, index):
            sent[index].append({"kind": message["msg_type"], **message["content"]})
            return super().process_message(message, cell, index)

        # What is drawn in a widget is not given to that widget, but seen above.
        def register_output_hook(self, *_):
            pass

        def remove_output_hook(self, *_):
            pass

    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name)))
        client = Client(
            nbformat.v4.new_notebook(cells=cells),
            kernel_name="python3",
            timeout=100,
            resources={"metadata": {"path": ROOT}},
        )
        client.execute()
        yield sent


@pytest.mark.ci
@pytest.mark.parametrize(("cell", "caption"), [(0, "Graph rmat6"), (1, "bfs of rmat6 from 1"), (2, "Stats")])
def test_value_of_a_cell_is_a_table(notebook, cell, caption):
    (shown,) = of_kind(notebook[cell], "execute_result")
    text = shown["data"]["text/html"]
    assert text.startswith("<table") and caption in text


@pytest.mark.ci
@pytest.mark.parametrize("cell", [3, 4])
def test_long_build_shows_a_widget_in_its_cell_until_it_ends(notebook, cell):
    sent = notebook[cell]
    displayed = [shown["data"] for shown in of_kind(sent, "display_data")]
    (view,) = (shown[WIDGET]["model_id"] for shown in displayed if WIDGET in shown)
    assert view in {opened["comm_id"] for opened in of_kind(sent, "comm_open")}
    assert view in {closed["comm_id"] for closed in of_kind(sent, "comm_close")}
    drawn = STYLES.sub("", "".join(shown.get("text/plain", "") for shown in displayed))
    assert re.search(r"building rmat6: placing.* \d+%, [\d.]+k? edges/s, 0:00:0\d left", drawn)


def of_kind(sent: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [message for message in sent if message["kind"] == kind]
