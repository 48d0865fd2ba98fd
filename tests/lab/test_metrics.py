"""Measures of a ranking against the same thing said slowly, and intervals that cover what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.lab.metrics import interval, ndcg, recall_all, recall_any, reciprocal_rank

rankings = st.lists(st.integers(0, 12), unique=True, max_size=12)
golds = st.sets(st.integers(0, 12), min_size=1, max_size=4)
ks = st.integers(1, 15)


def test_by_hand():
    ranked, gold = ["b", "a", "d", "c"], {"a", "c"}
    assert [recall_any(ranked, gold, k) for k in (1, 2)] == [0, 1]
    assert [recall_all(ranked, gold, k) for k in (3, 4)] == [0, 1]
    assert reciprocal_rank(ranked, gold) == 0.5
    assert ndcg(ranked, gold, 4) == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3)))
    assert reciprocal_rank([], gold) == recall_any([], gold, 3) == ndcg([], gold, 3) == 0


@given(rankings, golds, ks)
def test_a_longer_list_never_recalls_less_and_all_is_never_more_than_any(ranked, gold, k):
    assert recall_any(ranked, gold, k) <= recall_any(ranked, gold, k + 1)
    assert recall_all(ranked, gold, k) <= recall_all(ranked, gold, k + 1)
    assert recall_all(ranked, gold, k) <= recall_any(ranked, gold, k)
    assert 0 <= ndcg(ranked, gold, k) <= 1 + 1e-12
    assert (reciprocal_rank(ranked, gold) > 0) == bool(gold & set(ranked))


@given(golds, st.lists(st.integers(20, 30), unique=True), ks)
def test_gold_first_is_perfect_and_gold_last_is_worse(gold, others, k):
    assert ndcg([*gold, *others], gold, k) == pytest.approx(1)
    if others:
        assert ndcg([*others, *gold], gold, k) < 1


@pytest.mark.parametrize("measure", [lambda r, g: recall_any(r, g, 3), reciprocal_rank, lambda r, g: ndcg(r, g, 3)])
def test_what_cannot_be_measured_is_refused(measure):
    with pytest.raises(ValueError, match="without gold"):
        measure(["a"], set())
    with pytest.raises(ValueError, match="holds something twice"):
        measure(["a", "a"], {"a"})
    with pytest.raises(ValueError, match="k must be"):
        recall_any(["a"], {"a"}, 0)


def test_an_interval_is_the_same_each_time_and_holds_its_mean():
    found = interval([0, 1, 1, 1])
    assert found == interval([0, 1, 1, 1])
    assert (found.mean, found.n) == (0.75, 4)
    assert 0.25 <= found.low < 0.75 < found.high == 1
    assert str(interval([1, 1])) == "1.000 [1.000, 1.000]"
    assert math.isnan(interval([]).mean)
    assert str(interval([])) == "–"


def test_people_who_agree_within_themselves_make_it_wider():
    values, people = [0] * 30 + [1] * 30, ["a"] * 30 + ["b"] * 30
    alone, grouped = interval(values), interval(values, people)
    assert grouped.high - grouped.low > 2 * (alone.high - alone.low)


def test_one_person_has_an_interval_too():
    found = interval([0, 1] * 20, ["a"] * 40)
    assert found.high - found.low > 0.1


def test_it_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(3)
    covered = 0
    for seed in range(200):
        people = rng.normal(0.5, 0.1, 20)
        values = np.concatenate([rng.normal(person, 0.3, 8) for person in people])
        found = interval(values, np.repeat(np.arange(20), 8).tolist(), seed=seed)
        covered += found.low <= 0.5 <= found.high
    assert 0.90 <= covered / 200 <= 1.0


def test_the_same_bootstrap_as_drawing_people_and_questions_one_by_one():
    rng = np.random.default_rng(0)
    own = [rng.random(size) for size in (3, 9, 1, 5)]
    slow = []
    for _ in range(4_000):
        drawn = [own[i] for i in rng.integers(4, size=4)]
        slow.append(np.concatenate([rng.choice(one, len(one)) for one in drawn]).mean())
    groups = [g for g, one in enumerate(own) for _ in one]
    found = interval(np.concatenate(own), groups)
    assert [found.low, found.high] == pytest.approx(np.percentile(slow, [2.5, 97.5]).tolist(), abs=0.03)


@pytest.mark.parametrize(
    ("values", "groups", "said"),
    [
        ([1.0, math.nan], None, "value 1 is NaN"),
        ([math.inf, 1.0], None, "value 0 is inf"),
        ([1.0], ["a", "b"], "n groups"),
        ([[1.0]], None, "shape"),
    ],
)
def test_wrong_values_are_refused(values, groups, said):
    with pytest.raises(ValueError, match=said):
        interval(values, groups)
