"""Test `mgraph convert` and `mgraph generate`: every format of edges, folders of parts, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from cli_runs import refused, run

import mgraph as mg
from mgraph.io.write import EDGE_WRITERS, GRAPH_WRITERS, suffix_of

# Files that our readers on this path know; weights are integers, which all of them hold.
ENDINGS = [ending for ending in EDGE_WRITERS | GRAPH_WRITERS if ending not in (".el", ".sg")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ["generate", "convert"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_of_edges_is_written(folder, command, ending):
    if command == "convert":
        run("generate", "rmat:5", "a.npz")
    run(command, "rmat:5" if command == "generate" else "a.npz", f"b{ending}")
    assert (folder / f"b{ending}").stat().st_size > 500
    assert suffix_of(folder / f"b{ending}") == ending
    assert sorted(path.name for path in folder.iterdir()) == ["a.npz"] * (command == "convert") + [f"b{ending}"]


def test_loops_and_parallel_edges_stay_in_lists_of_edges(folder):
    (folder / "a.csv").write_text("source,target,weight\n3,3,1\n1,3,2\n3,1,0.5\n1,3,2\n")
    run("convert", "a.csv", "b.parquet")
    run("convert", "b.parquet", "c.tsv")
    lines = (folder / "c.tsv").read_text().splitlines()
    assert lines == ["source\ttarget\tweight", "3\t3\t1.0", "1\t3\t2.0", "3\t1\t0.5", "1\t3\t2.0"]
    run("convert", "c.tsv", "parts/")
    frame = pandas.read_parquet(folder / "parts" / "part-00000.parquet")
    assert frame["source"].tolist() == [3, 1, 3, 1]
    assert "is not empty" in refused("convert", "c.tsv", "parts/", code=2)
    run("convert", "c.tsv", "parts/", "--overwrite")


def test_vertices_are_numbered_on_demand(folder):
    (folder / "a.csv").write_text("source,target\n3,1\n1,3\n")
    run("convert", "a.csv", "b.mtx", "--vertices", "labels.csv", "--num-vertices", 5)
    assert (folder / "labels.csv").read_text().splitlines() == ["vertex,label", "0,0", "1,1", "2,2", "3,3", "4,4"]
    assert (folder / "b.mtx").read_text().splitlines()[1:] == ["5 5 1", "4 2"]


def test_packed_edges_are_written_by_name(folder):
    run("generate", "rmat:5,weights=float32", "edges", "--to", "graph500-16")
    assert (folder / "edges").stat().st_size == 16 * 512
    weights = np.fromfile(folder / "edges.weights", "<f4")
    assert len(weights) == 512
    assert "edges exists" in refused("generate", "rmat:5", "edges", "--to", "graph500-12", code=2)
    (folder / "edges").rename(folder / "other")
    assert "edges.weights exists" in refused("generate", "rmat:5", "edges", "--to", "graph500-12", code=2)
    run("generate", "rmat:5", "edges", "--to", "graph500-12", "--overwrite")
    assert (folder / "edges").stat().st_size == 12 * 512


def test_what_a_format_does_not_hold_is_refused(folder):
    run("generate", "rmat:5", "a.npz")
    (folder / "half.txt").write_text("0 1 0.5\n")
    for arguments, code, message in [
        (("a.npz", "a.npz"), 2, "a.npz is the input, which would be replaced"),
        (("a.npz", "b.xml"), 2, "'.xml' is not one of .npz, .csv"),
        (("a.npz", "b.el"), 2, "a .el file has no weight for each edge: write .wel, or leave them out (--weight none)"),
        (("a.npz", "b.graph", "--directed"), 3, "a METIS file is undirected"),
        (("half.txt", "b.wsg", "--weight", "2"), 3, "weight 0.5 is no int32"),
        (("a.npz", "b.csv", "--vertices", "none/v.csv"), 2, "there is no folder"),
    ]:
        assert message in refused("convert", *arguments, code=code)
    assert sorted(path.name for path in folder.iterdir()) == ["a.npz", "half.txt"]


def test_help_says_the_endings():
    for command in ("convert", "generate"):
        text = " ".join(run(command, "--help").stdout.split())
        assert "Endings of OUT: .npz, .csv, .csv.gz" in text
        assert ".sg, .wsg, .graph" in text
    assert "a folder of Parquet parts" in " ".join(run("bfs", "--help").stdout.split())


def test_results_are_written_to_folders(folder):
    run("components", "rmat:5", "-o", "labels/", "--workers", 2, "--backend", "cpu", "--order", "degree")
    parts = sorted((folder / "labels").iterdir())
    assert [part.name for part in parts] == ["part-00000.parquet", "part-00001.parquet"]
    with mg.rmat(5) as g, mg.connected_components(g) as found:
        frame = pandas.concat([pandas.read_parquet(part) for part in parts], ignore_index=True)
        pandas.testing.assert_frame_equal(frame, found.to_pandas())
    assert "is not empty" in refused("components", "rmat:5", "-o", "labels/", code=2)
    run("components", "rmat:5", "-o", "labels/", "--overwrite")
    assert len(list((folder / "labels").iterdir())) == 1


def test_labelled_edges_are_numbered_and_their_labels_written_beside(folder):
    (folder / "a.csv").write_text('source,target\n"Rome, IT",Oslo\nOslo,Bern\nBern,Oslo\n')
    run("convert", "a.csv", "b.parquet")
    assert pandas.read_parquet("b.parquet")["source"].tolist() == ["Rome, IT", "Oslo", "Bern"]
    run("convert", "b.parquet", "c.csv")
    assert (folder / "c.csv").read_text() == (folder / "a.csv").read_text()
    for name in ("d.mtx", "d.npz", "d.gr", "d.sg"):
        assert "--vertices FILE writes the string of each number" in refused("convert", "a.csv", name, code=2)
    run("convert", "a.csv", "d.graph", "--vertices", "labels.csv")
    assert (folder / "labels.csv").read_text().splitlines() == ["vertex,label", "0,Bern", "1,Oslo", '2,"Rome, IT"']
    assert (folder / "d.graph").read_text().splitlines() == ["3 2", "2", "1 3", "2"]
    run("convert", "a.csv", "e.mtx", "--vertices", "labels.parquet")
    assert pandas.read_parquet("labels.parquet")["label"].tolist() == ["Bern", "Oslo", "Rome, IT"]


def test_saved_graph_gives_its_edges_with_labels(folder):
    (folder / "edges.csv").write_text("source,target,weight\nb,a,1\na,c,2\n")
    with mg.read("edges.csv") as g:
        g.save("saved")
    run("convert", "saved", "a.csv")
    assert (folder / "a.csv").read_text().splitlines() == ["source,target,weight", "a,b,1", "a,c,2"]
    assert "--vertices FILE writes" in refused("convert", "saved", "a.wsg", code=2)


def test_edges_and_vertices_need_two_files(tmp_path):
    (tmp_path / "a.csv").write_text("source,target\nx,y\n")
    both = str(tmp_path / "b.csv")
    refused = run("convert", str(tmp_path / "a.csv"), both, "--vertices", both, code=2)
    assert "give two files" in refused.stderr
    assert not (tmp_path / "b.csv").exists()
