"""A graph of labels gives the answers of the graph of their places in sorted order, in labels."""

from __future__ import annotations

import uuid

import numpy as np
import pandas
import pyarrow.parquet
import pytest
from emulator.backend import EmulatedBackend

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster

NUM_VERTICES = 60
RNG = np.random.default_rng(11)
INT64 = np.iinfo(np.int64)
LABELS = {
    "names": [f"{name}-{k * k}" for k, name in enumerate(["ada", "b b", "zoë", "Z", "日本", "0x"] * 10)],
    "uuids": [str(uuid.UUID(bytes=RNG.bytes(16))) for _ in range(NUM_VERTICES)],
    "gaps": [7 + 1000 * k * k for k in range(NUM_VERTICES)],
    "negative": [17 * (k - 40) for k in range(NUM_VERTICES)],
    "hashes": RNG.integers(INT64.min + 1, INT64.max, NUM_VERTICES).tolist(),
}


def in_order(kind):
    """Return the labels in the order of their ids."""
    return sorted(LABELS[kind], key=lambda label: label.encode() if isinstance(label, str) else label)


def places(directed=False):
    """Return edges between places, of two components, in which every vertex has an edge, and their weights."""
    rng = np.random.default_rng(12)
    half = NUM_VERTICES // 2
    u = np.concatenate([np.arange(half - 1), rng.integers(0, half, 60), half + rng.integers(0, half, 20)])
    v = np.concatenate([np.arange(1, half), rng.integers(0, half, 60), half + rng.integers(0, half, 20)])
    rest = np.setdiff1d(np.arange(NUM_VERTICES), np.concatenate([u, v]))
    order = rng.permutation(len(u) + len(rest))
    ends = np.concatenate([u, rest])[order], np.concatenate([v, (rest + 1 - half) % half + half])[order]
    return *ends, rng.integers(1, 9, len(order))


def file_of(kind, suffix, folder):
    names = np.array(in_order(kind), None if kind not in ("names", "uuids") else object)
    u, v, w = places()
    frame = pandas.DataFrame({"weight": w, "target": names[v], "source": names[u]})
    path = folder / f"{kind}{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path, row_group_size=17)
    return path


def missing_of(kind):
    return None if isinstance(LABELS[kind][0], str) else INT64.min if min(LABELS[kind]) < 0 else -1


def assert_same(labelled, numbered, names, missing):
    """Compare a column of vertices of both graphs."""
    assert labelled.missing == missing
    assert labelled.to_numpy().tolist() == [names[i] if i >= 0 else missing for i in numbered.to_numpy().tolist()]
    assert labelled.dtype == labelled.to_numpy().dtype == labelled[:2].dtype
    assert labelled.digest() == numbered.digest()


@pytest.mark.covering(ci=1, every=2)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", LABELS)
def test_answers_are_those_of_the_numbered_graph(kind, suffix, directed, clusters, tmp_path):
    path = file_of(kind, suffix, tmp_path)
    names = in_order(kind)
    missing = missing_of(kind)
    sources = [3, NUM_VERTICES - 5]
    for p in (1, 2, 3, 4):
        for order in ("degree", "natural"):
            how = {"directed": directed, "order": order, "cluster": clusters[p]}
            with mg.read(path, **how) as g, mg.from_edges(*places(), **how) as h:
                assert g.info.labels == ("string" if missing is None else "integer")
                assert f"{NUM_VERTICES} vertices with {g.info.labels} labels" in repr(g), p
                for search in (mg.bfs, mg.sssp):
                    one = search(g, names[3])
                    plain = search(h, 3)
                    mg.validate(one)
                    np.testing.assert_array_equal(one.distances, plain.distances)
                    assert_same(one.predecessors, plain.predecessors, names, missing)
                    assert one.sources == (names[3],)
                    for target in (0, 29, NUM_VERTICES - 1):
                        assert one.path_to(names[target]) == [names[i] for i in plain.path_to(target)]
                        assert one.distances[names[target]] == plain.distances[target]
                    several = search(g, [names[i] for i in sources])
                    assert_same(several.nearest_source, search(h, sources).nearest_source, names, missing)
                    mg.validate(several)
                assert_same(mg.connected_components(g).labels, mg.connected_components(h).labels, names, missing)
                assert [e[:2] for e in zip(*g.edges.to_numpy(), strict=True)] == [
                    (names[u], names[v]) for u, v, _ in zip(*h.edges.to_numpy(), strict=True)
                ]
                if not directed:
                    forest = mg.minimum_spanning_forest(g)
                    plain = mg.minimum_spanning_forest(h)
                    assert_same(forest.sources, plain.sources, names, missing)
                    assert_same(forest.targets, plain.targets, names, missing)
                    np.testing.assert_array_equal(forest.weights, plain.weights)
                    mg.validate(forest)


@pytest.mark.parametrize("kind", ["names", "hashes"])
def test_searches_of_many_roots_take_labels(kind, clusters, tmp_path):
    names = in_order(kind)
    roots = [5, 40, 5]
    u, v, _ = places()
    with mg.read(file_of(kind, ".csv", tmp_path), cluster=clusters[3]) as g, mg.from_edges(u, v) as h:
        many = mg.bfs_many(g, [names[root] for root in roots])
        together = mg.bfs_together(g, [names[root] for root in roots])
        np.testing.assert_array_equal(many.distances, mg.bfs_many(h, roots).distances)
        np.testing.assert_array_equal(together.distances, many.distances)
        assert together.roots == [names[root] for root in roots]
        assert [one.sources for one in many] == [one.sources for one in together] == [(names[root],) for root in roots]
        np.testing.assert_array_equal(together.answer(1).predecessors, many[1].predecessors)


@pytest.mark.parametrize("kind", LABELS)
def test_labels_and_ids_are_looked_up_both_ways(kind, clusters, tmp_path):
    path = file_of(kind, ".parquet", tmp_path)
    names = in_order(kind)
    for cluster in clusters.values():
        with mg.read(path, cluster=cluster) as g:
            assert g.labels.to_numpy().tolist() == names
            assert sum(stats["label_bytes"] for stats in g.build_stats) >= 8 * NUM_VERTICES
            assert (g.labels[0], g.labels[-1], g.labels[7:9].tolist()) == (names[0], names[-1], names[7:9])
            assert g.ids_of(names[::-3]).tolist() == list(range(NUM_VERTICES))[::-3]
            assert g.labels_of([59, 0, 0]).tolist() == [names[59], names[0], names[0]]
            assert (g.ids_of([]).tolist(), g.labels_of([]).tolist()) == ([], [])
            with pytest.raises(mg.UsageError, match="id 60 is not a vertex"):
                g.labels_of([60])


def test_vertices_without_labels_are_called_by_their_ids(clusters):
    with mg.from_edges([0, 1], [1, 2], cluster=clusters[2]) as g:
        assert g.info.labels == ""
        assert g.labels.to_numpy().tolist() == g.labels_of([0, 1, 2]).tolist() == g.ids_of([0, 1, 2]).tolist()
        assert mg.bfs(g, 0).predecessors.missing == -1


def test_wrong_labels_are_named(clusters, tmp_path):
    strings = mg.read(file_of("names", ".csv", tmp_path), cluster=clusters[2])
    integers = mg.read(file_of("gaps", ".csv", tmp_path), cluster=clusters[2])
    result = mg.bfs(strings, "Z-9")
    for call, message in [
        (lambda: mg.bfs(strings, "nobody"), "source 'nobody' is not a vertex: no vertex has this label"),
        (lambda: mg.bfs(strings, ["Z-9", ""]), "source '' is not a vertex: no vertex has this label"),
        (lambda: mg.bfs(strings, "\ud800"), "is not a vertex: no vertex has this label"),
        (lambda: mg.bfs(strings, 3), "source 3 is not a string, and the labels of the vertices are strings"),
        (lambda: mg.bfs(strings, b"Z-9"), "source b'Z-9' is not a string"),
        (lambda: mg.bfs_many(strings, ["Z-9", "zz"]), "root 'zz' is not a vertex"),
        (lambda: result.path_to("zz"), "target 'zz' is not a vertex"),
        (lambda: result.distances["zz"], "vertex 'zz' is not a vertex"),
        (lambda: strings.ids_of(["zz"]), "label 'zz' is not a vertex"),
        (lambda: mg.bfs(integers, 8), "source 8 is not a vertex: no vertex has this label"),
        (lambda: mg.bfs(integers, 2**70), f"source {2**70} is not a vertex"),
        (lambda: mg.bfs(integers, "7"), "source '7' is not an integer"),
    ]:
        with pytest.raises(mg.UsageError) as error:
            call()
        assert message in str(error.value)


def test_results_keep_their_labels_when_the_graph_is_closed(clusters, tmp_path):
    with mg.read(file_of("names", ".csv", tmp_path), cluster=clusters[3]) as g:
        result = mg.bfs(g, "Z-9")
        path = result.path_to("Z-81")
    assert result.path_to("Z-81") == path
    assert result.predecessors["Z-9"] == "Z-9"
    assert result.to_pandas()["vertex"].tolist() == in_order("names")


@pytest.mark.parametrize("kind", ["names", "hashes"])
def test_frames_and_files_have_labels(kind, clusters, tmp_path):
    path = file_of(kind, ".parquet", tmp_path)
    names = in_order(kind)
    for p, cluster in clusters.items():
        with mg.read(path, cluster=cluster) as g, mg.bfs(g, names[3]) as result:
            frame = result.to_pandas()
            assert frame["vertex"].tolist() == names
            unreached = frame["distances"] == -1
            assert unreached.any()
            expected = result.predecessors.to_numpy()[~unreached].tolist()
            for ending in (".csv", ".parquet", ".arrow"):
                result.write(tmp_path / f"out{ending}", overwrite=True)
            result.write(tmp_path / f"parts{p}/")
            readers = {".csv": pandas.read_csv, ".parquet": pandas.read_parquet, ".arrow": pandas.read_feather}
            found = [frame, *(read(tmp_path / f"out{ending}") for ending, read in readers.items())]
            found.append(pyarrow.parquet.read_table(tmp_path / f"parts{p}").to_pandas())
            for other in found:
                assert other["vertex"].tolist() == names
                assert other["predecessors"][~unreached].tolist() == expected
                if kind == "names" or other is not found[1]:  # a text of integers has column.missing
                    assert other["predecessors"].isna().tolist() == unreached.tolist()
            lazy = result.predecessors.to_dask_array().compute(scheduler="sync")
            assert lazy.tolist() == result.predecessors.to_numpy().tolist()
            assert result.to_dask_dataframe().compute(scheduler="sync")["vertex"].tolist() == names


def test_base_is_subtracted_unless_ids_are_labels(clusters, tmp_path):
    path = tmp_path / "base.csv"
    path.write_text("source,target\n1,2\n3,2\n")
    with mg.read(path, base=1, cluster=clusters[2]) as g:
        assert (g.info.labels, g.num_vertices) == ("", 3)
        assert mg.bfs(g, 0).path_to(2) == [0, 1, 2]
    with mg.read(path, base=1, labels=True, cluster=clusters[2]) as g:
        assert mg.bfs(g, 1).path_to(3) == [1, 2, 3]


def test_labels_can_be_demanded_and_refused(clusters, tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("source,target\n0,1\n10,9\n")
    with mg.read(path, labels=False, cluster=clusters[2]) as g:
        assert (g.info.labels, g.num_vertices) == ("", 11)
    with mg.read(path, labels="string", cluster=clusters[2]) as g:
        assert (g.info.labels, g.labels.to_numpy().tolist()) == ("string", ["0", "1", "10", "9"])
    with mg.read(path, labels=True, cluster=clusters[2]) as g:
        assert (g.info.labels, g.labels.to_numpy().tolist()) == ("integer", [0, 1, 9, 10])
    with pytest.raises(mg.UsageError, match="labels 'yes' is not one of"):
        mg.read(path, labels="yes", cluster=clusters[2])


def check_search(g, names):
    """Check a graph of a file of the labels, by one search."""
    u, v, _ = places()
    with mg.bfs(g, names[3]) as result, mg.from_edges(u, v) as h, mg.bfs(h, 3) as plain:
        mg.validate(result)
        assert_same(result.predecessors, plain.predecessors, names, result.predecessors.missing)
        assert result.path_to(names[20]) == [names[i] for i in plain.path_to(20)]
        assert result.to_pandas()["vertex"].tolist() == g.labels.to_numpy().tolist() == names


@pytest.mark.parametrize("kind", ["uuids", "negative"])
def test_labels_are_saved_and_loaded_on_any_number_of_ranks(kind, clusters, tmp_path):
    with mg.read(file_of(kind, ".csv", tmp_path), cluster=clusters[3]) as g:
        g.save(tmp_path / "saved")
        info = g.info
    for cluster in clusters.values():
        with mg.load(tmp_path / "saved", cluster=cluster) as g:
            assert g.info == info
            check_search(g, in_order(kind))


def test_compact_graphs_have_labels(clusters, tmp_path):
    with mg.read(file_of("names", ".csv", tmp_path), cluster=clusters[2], layout="compact") as g:
        result = mg.bfs(g, "Z-9")
        assert result.path_to("Z-9") == ["Z-9"]
        assert g.labels.to_numpy().tolist() == in_order("names")


@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("kind", ["names", "hashes"])
def test_labels_are_mapped_in_the_memory_of_a_gpu(kind, num_ranks, tmp_path):
    made = InProcessCluster(num_ranks, make_backend=lambda: EmulatedBackend(block=32, blocks=2))
    with made as cluster, mg.read(file_of(kind, ".parquet", tmp_path), cluster=cluster) as g:
        check_search(g, in_order(kind))


@pytest.mark.ci
@pytest.mark.parametrize("kind", ["names", "hashes"])
def test_processes_exchange_labels(kind, client, tmp_path):
    with mg.read(file_of(kind, ".csv", tmp_path), cluster=client) as g:
        check_search(g, in_order(kind))
        result = mg.bfs(g, in_order(kind)[3])
        expected = result.predecessors.to_numpy().tolist()
        assert client.compute(result.predecessors.to_dask_array()).result().tolist() == expected
        frame = client.compute(result.to_dask_dataframe()).result()
        assert frame["vertex"].tolist() == in_order(kind)
        assert frame["predecessors"].isna().tolist() == [value == result.predecessors.missing for value in expected]
        with pytest.raises(mg.UsageError, match=r"source .* is not a vertex: no vertex has this label"):
            mg.bfs(g, "nobody" if kind == "names" else 1)
