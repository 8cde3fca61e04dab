"""Valid results pass on any number of ranks; every kind of corruption is caught, by the rule it violates."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import oracles
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from naive_shard import build_shards, distance_parts, positions_of, predecessor_parts
from on_ranks import FEW_RANKS, RANKS, run_on_ranks
from strategies import graphs_and_sources, orders, rank_counts
from tiers import by_tier, examples
from zoo import CASES, ZOO, chain_of_cliques, make_case, random_case, zoo_sources

from mgraph.errors import ValidationFailed
from mgraph.types import none_of, unreached_of
from mgraph.validation import traversal
from mgraph.validation.traversal import Violation, ensure_valid, validate_traversal


@pytest.fixture(autouse=True, scope="module")
def small_pieces():
    """Let every rank check its vertices in several pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traversal, "PIECE", 3)
        yield


# Cached, as it is the slow part of many tests; no test changes a shard.
shards_of = functools.lru_cache(maxsize=16)(build_shards)


class Result:
    """A result by the oracles, in user ids, to be corrupted and validated."""

    def __init__(self, case, sources, *, weighted, order="degree", limit=None):
        self.case = case
        self.sources = sources
        self.weighted = weighted
        self.order = order
        self.limit = limit
        self.dist = oracles.sssp(case, sources, limit) if weighted else oracles.bfs(case, sources, limit)
        position = oracles.positions(case, order)
        self.pred = oracles.predecessors(case, self.dist, sources, position, weighted=weighted)
        floats = self.dist.dtype.kind == "f"
        self.dtype = self.dist.dtype if floats else np.dtype(np.int64 if weighted else np.int32)
        connected = {end for arc in oracles.arcs_of(case) for end in arc}
        self.with_state = sorted(connected) if order == "degree" else list(range(case.num_vertices))

    def violations(self, num_ranks=3, dist_parts=None, pred_parts=None):
        """Return the violations, which must be equal on all ranks."""
        shards = shards_of(self.case, num_ranks, self.order)
        # In degree order a source without arcs has no state.
        num_positions = shards[0].partition.num_positions
        sources = [p for p in positions_of(shards)[self.sources].tolist() if p < num_positions]
        dist = dist_parts or distance_parts(shards, self.dist, self.dtype)
        pred = pred_parts or predecessor_parts(shards, self.pred)
        parts = [(sources, *part) for part in zip(dist, pred, strict=True)]
        first, *others = run_on_ranks(validate_traversal, shards, self.weighted, self.limit, parts=parts)
        assert all(other == first for other in others), "the ranks disagree"
        return first

    def rules(self, **options):
        return {violation.rule for violation in self.violations(**options)}

    def is_valid(self):
        """Return by the oracles alone whether the result is valid, with any valid predecessors."""
        case = self.case
        sources = self.sources
        right = (oracles.sssp if self.weighted else oracles.bfs)(case, sources, self.limit)
        if not np.array_equal(self.dist, right):
            return False
        arcs = oracles.arcs_of(case, weighted=self.weighted)
        for v in range(case.num_vertices):
            u = int(self.pred[v])
            if v in sources or right[v] in (-1, np.inf):
                if u != (v if v in sources else -1):
                    return False
            elif (u, v) not in arcs or right[u] + right.dtype.type(arcs[u, v]) != right[v]:
                return False
        try:
            return {*oracles.nearest_sources(self.pred).tolist()} <= {*sources, -1}
        except AssertionError:  # a cycle
            return False


@pytest.mark.widens
@pytest.mark.covering
@pytest.mark.parametrize("weighted", [False, True], ids=["bfs", "sssp"])
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *(random_case(seed) for seed in range(6))], ids=lambda case: case.name)
def test_valid_results_pass_on_any_number_of_ranks(case, order, weighted):
    for sources in zoo_sources(case):
        result = Result(case, sources, weighted=weighted, order=order)
        for num_ranks in by_tier(FEW_RANKS, RANKS):
            assert result.violations(num_ranks) == []


@pytest.mark.covering
@pytest.mark.parametrize("weighted", [False, True], ids=["bfs", "sssp"])
@pytest.mark.parametrize("limit", [0, 1, 2, 2.5, np.inf])
@pytest.mark.parametrize("name", ["path", "grid", "rounding", "many-ties", "unreachable-part", "large-sums"])
def test_limited_results_pass_with_their_limit_only(name, limit, weighted):
    result = Result(ZOO[name], [0], weighted=weighted, limit=limit)
    assert result.violations() == []
    whole = Result(ZOO[name], [0], weighted=weighted)
    result.limit = None
    assert (result.rules() == {4}) == (not np.array_equal(result.dist, whole.dist))
    whole.limit = limit
    beyond = [v.count for v in whole.violations() if v.text == f"the distance is beyond the limit {limit}"]
    assert sum(beyond) == (result.dist != whole.dist).sum()


@pytest.mark.parametrize(("dtype", "limit"), [(np.uint8, 254), (np.uint16, 31743)])
def test_distances_at_the_top_of_their_dtype_are_refused(dtype, limit):
    weighted = dtype == np.uint16
    case = make_case("far", 80, [(v, v + 1, 1000) for v in range(79)]) if weighted else chain_of_cliques()
    result = Result(case, [0], weighted=weighted, limit=limit)
    result.limit = None
    result.dtype = np.dtype(dtype)
    assert result.rules() == {4}


def test_levels_of_uint8_pass():
    result = Result(ZOO["grid"], [0], weighted=False)
    result.dtype = np.dtype(np.uint8)
    assert result.violations() == []


def test_edges_without_weights_have_weight_one():
    result = Result(ZOO["path"].unweighted, [3], weighted=True)
    assert result.violations() == []
    assert Result(ZOO["no-edges"].unweighted, [3], weighted=True).violations() == []


def test_any_valid_predecessor_passes():
    result = Result(ZOO["cycle"], [0], weighted=False)
    other = {2: 4, 4: 2}[result.pred[3]]
    result.pred[3] = other
    assert result.violations() == []


# ---- each rule catches its violations ------------------------------------------------------------------


def corrupt(**entries):
    """Return distances on 0 -- 1 -- .. -- 6, 7, 8 from 0, some entries replaced: dist={v: d}, pred={v: u}."""
    result = Result(replace(ZOO["path"], num_vertices=9), [0], weighted=True, order="natural")
    for v, value in entries.get("dist", {}).items():
        result.dist[v] = value
    for v, value in entries.get("pred", {}).items():
        result.pred[v] = value
    return result


@pytest.mark.parametrize(
    ("rule", "vertex", "entries"),
    [
        (1, 0, {"dist": {0: 1}}),
        (1, 0, {"dist": {0: np.inf}}),
        (1, 0, {"pred": {0: 1}}),
        (1, 0, {"pred": {0: -1}}),
        (1, 3, {"pred": {3: 3}}),
        (1, 8, {"dist": {8: 0}, "pred": {8: 8}}),
        (2, 3, {"dist": {3: -3}}),
        (2, 3, {"dist": {3: np.nan}}),
        (2, 6, {"pred": {6: -1}}),
        (2, 6, {"dist": {6: np.inf}}),
        (2, 8, {"pred": {8: 6}}),
        (2, 7, {"dist": {7: 7}, "pred": {7: 8}}),
        (2, 7, {"dist": {7: 7}}),
        (3, 6, {"pred": {6: 4}}),
        (3, 5, {"pred": {5: 6}}),
        (3, 6, {"dist": {6: 5.5}}),
        (3, 8, {"dist": {8: 7}, "pred": {8: 6}}),
        (4, 6, {"dist": {6: 7}}),
        (4, 6, {"dist": {6: np.inf}, "pred": {6: -1}}),
        (4, 5, {"dist": {5: np.inf, 6: np.inf}, "pred": {5: -1, 6: -1}}),
    ],
)
def test_each_corruption_is_caught_by_its_rule(rule, vertex, entries):
    result = corrupt(**entries)
    for num_ranks in (1, 3):
        found = {violation.rule: violation for violation in reversed(result.violations(num_ranks))}
        assert rule in found
        assert found[rule].vertex == vertex
        assert found[rule].count >= 1


def test_uncorrupted_path_passes():
    assert corrupt().violations() == []


@pytest.mark.parametrize("num_ranks", RANKS)
@pytest.mark.parametrize(
    ("name", "source", "pred"),
    [
        ("zero-triangle", 2, [1, 0, 2]),  # two explain each other: doubling closes at once
        ("all-zero", 7, [1, 2, 0, 4, 5, 6, 7, 7]),  # a cycle of three, beside a chain
        ("zero-cycle", 4, [1, 2, 3, 0, 4, 1, 5]),  # a cycle of four, with a tail
        ("absorbed", 0, [0, 2, 1, 0, 2]),  # weights that float32 absorbs
    ],
)
def test_cycles_that_explain_every_distance_break_rule_5_alone(name, source, pred, num_ranks):
    result = Result(ZOO[name], [source], weighted=True)
    result.pred[:] = pred
    assert result.rules(num_ranks=num_ranks) == {5}


def test_long_chains_are_followed_to_their_end_and_long_cycles_found():
    # 300 zero-weight steps, closed to a ring with one entry from outside.
    n = 300
    ring = replace(
        ZOO["path"],
        num_vertices=n + 1,
        sources=np.arange(n + 1, dtype=np.uint32),
        targets=np.array([*range(1, n), 0, 0], np.uint32),
        weights=np.array([0] * n + [1], np.float32),
    )
    result = Result(ring, [n], weighted=True)
    assert result.violations() == []
    result.pred[:n] = np.roll(np.arange(n), 1)
    (violation,) = result.violations()
    assert (violation.rule, violation.count, violation.vertex) == (5, n, 0)


def test_counts_are_over_all_ranks_and_the_first_offender_is_by_user_id():
    result = Result(ZOO["star"], [0], weighted=False)
    result.dist[[69, 5, 33]] = 2
    for num_ranks in RANKS:
        found = {violation.rule: violation for violation in result.violations(num_ranks)}
        assert set(found) == {3, 4}
        assert (found[3].count, found[3].vertex) == (3, 5)
        assert (found[4].count, found[4].vertex) == (3, 5)


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_values_out_of_range_are_refused_and_not_used_as_indices(num_ranks):
    result = Result(ZOO["grid"], [0], weighted=False)
    shards = build_shards(result.case, num_ranks)
    num_positions = shards[0].partition.num_positions

    pred = predecessor_parts(shards, result.pred)
    pred[0][-1] = num_positions  # the first id that is no vertex
    pred[-1][0] = none_of(pred[0].dtype) - 1
    texts = {v.text: v.count for v in result.violations(num_ranks, pred_parts=pred)}
    assert texts["the predecessor is not a vertex"] == 2

    dist = distance_parts(shards, result.dist, np.int32)
    dist[0][-1] = num_positions  # longer than any path
    dist[-1][-2] = unreached_of(np.int32) - 1
    dist[-1][-3] = np.iinfo(np.int32).min
    texts = {v.text: v.count for v in result.violations(num_ranks, dist_parts=dist)}
    assert texts["the distance is negative, not a number or longer than any path"] == 3


def test_distances_are_added_in_a_wider_dtype_if_sums_may_overflow():
    # The distance fits 32 bits, but plus the weight of the same edge it would wrap around to a smaller value.
    result = Result(make_case("heavy", 2, [(0, 1, 2**31 - 2)], np.int32), [0], weighted=True)
    result.dtype = np.dtype(np.int32)
    assert result.violations() == []
    result.dist[1] -= 1
    assert result.rules() == {3}


@pytest.mark.parametrize("num_ranks", FEW_RANKS)
def test_vertex_without_a_distance_behind_a_reached_one_is_refused_though_floats_overflow(num_ranks):
    case = make_case("overflow", 4, [(0, 1, 3e38), (1, 2, 3e38), (2, 3, 1)], np.float32)
    # The oracle adds as the searches do: vertices 2 and 3 are at infinity.
    with np.errstate(over="ignore"):
        assert Result(case, [0], weighted=True).rules(num_ranks=num_ranks) == {4}
        assert Result(case, [0], weighted=True, limit=3.2e38).rules(num_ranks=num_ranks) == set()
    assert Result(case, [1], weighted=True).rules(num_ranks=num_ranks) == set()


# ---- any single corruption --------------------------------------------------------------------------------


@examples(150)
@given(graphs_and_sources(), orders, rank_counts, st.booleans(), st.sampled_from([None, None, 1, 3]))
def test_results_of_random_graphs_pass(drawn, order, num_ranks, weighted, limit):
    result = Result(*drawn, weighted=weighted, order=order, limit=limit)
    assert result.is_valid()
    assert result.violations(num_ranks) == []


@examples(400)
@given(graphs_and_sources(max_vertices=8), orders, rank_counts, st.booleans(), st.sampled_from([None, 2]), st.data())
def test_corrupted_entry_is_caught_unless_the_result_is_still_valid(drawn, order, num_ranks, weighted, limit, data):
    result = Result(*drawn, weighted=weighted, order=order, limit=limit)
    assume(result.with_state)
    for _ in range(data.draw(st.integers(1, 2), "corruptions")):
        v = data.draw(st.sampled_from(result.with_state), "vertex")
        if data.draw(st.booleans(), "corrupt the predecessor"):
            result.pred[v] = data.draw(st.integers(-1, result.case.num_vertices - 1), "predecessor")
        else:
            others = [*result.dist.tolist(), 0, 1, 2, 3]
            result.dist[v] = data.draw(st.sampled_from(others), "distance")
    found = result.violations(num_ranks)
    assert (found == []) == result.is_valid(), found


@examples(60)
@given(st.integers(0, 50), rank_counts, st.booleans(), st.data())
def test_one_wrong_entry_among_many_is_caught(seed, num_ranks, weighted, data):
    case = random_case(seed, 200)
    result = Result(case, [seed, 2 * seed], weighted=weighted)
    reached = [v for v in result.with_state if result.pred[v] >= 0]
    assume(reached)
    v = data.draw(st.sampled_from(reached), "vertex")
    if data.draw(st.booleans(), "corrupt the predecessor"):
        result.pred[v] = data.draw(st.integers(-1, case.num_vertices - 1), "predecessor")
    else:
        result.dist[v] = data.draw(st.sampled_from([-1, 0, 1, *result.dist[:5].tolist()]), "distance")
    assert (result.violations(num_ranks) == []) == result.is_valid()


# ---- what users see -----------------------------------------------------------------------------------------


def test_violations_raise_one_error_that_names_rule_count_and_vertex():
    ensure_valid([])
    with pytest.raises(ValidationFailed, match=r"rule 3: no arc .*: 2 of them, first vertex 17; rule 5: "):
        ensure_valid([Violation(3, "no arc explains it", 2, 17), Violation(5, "a cycle", 1, 4)])
