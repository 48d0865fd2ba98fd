import operator
import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.recall.fusion import RankScore, fuse


def ranking(*rows):
    return [(row, 0.5) for row in rows]


def order(*rankings, k=60):
    return [row for row, _ in fuse(*rankings, k=k)]


def test_a_row_gets_one_over_k_plus_its_place_from_each_list():
    assert fuse(ranking(7, 3), ranking(3, 5)) == [
        (3, RankScore(1 / 62 + 1 / 61)),
        (7, RankScore(1 / 61)),
        (5, RankScore(1 / 62)),
    ]


def test_two_second_places_beat_one_first_place_and_with_k_0_they_tie_in_order_of_row():
    assert order(ranking(2, 9), ranking(1, 9)) == [9, 1, 2]
    assert order(ranking(2, 9), ranking(1, 9), k=0) == [1, 2, 9]


def test_a_larger_k_makes_a_first_place_worth_less_against_agreement():
    lists = ranking(1, 0, 5), ranking(2, 3, 5)
    assert order(*lists, k=0)[0] == 1
    assert order(*lists, k=60)[0] == 5


def test_nothing_fuses_to_nothing_and_one_list_keeps_its_order():
    assert fuse() == []
    assert fuse([], []) == []
    assert order(ranking(4, 2, 9)) == [4, 2, 9]


def test_the_scores_that_come_in_are_not_looked_at():
    assert fuse([(1, 14.2), (2, 0.1)]) == fuse([(1, -3.0), (2, float("nan"))])
    assert order(fuse(ranking(1, 2)), ranking(2, 1)) == [1, 2]


def test_a_row_twice_in_one_ranking_is_refused_naming_both():
    with pytest.raises(ValueError, match="ranking 1 has row 8 twice"):
        fuse(ranking(1), ranking(8, 3, 8))
    with pytest.raises(ValueError, match="ranking 0 has row 3 twice"):
        fuse(iter(ranking(5, 3, 3, 2, 2)))


def test_a_ranking_may_be_a_generator():
    assert fuse(iter(ranking(7, 3)), iter(ranking(3, 5))) == fuse(ranking(7, 3), ranking(3, 5))


@pytest.mark.parametrize("k", [-1, 1.5, True, None])
def test_a_k_that_is_no_count_is_refused(k):
    with pytest.raises(ValueError, match="k must be a whole number of at least 0"):
        fuse(ranking(1), k=k)


lists = st.lists(st.lists(st.integers(0, 12), unique=True, max_size=10), max_size=5)


@given(lists, st.randoms(use_true_random=False), st.integers(0, 100))
def test_the_order_of_the_lists_changes_nothing_not_even_the_last_bit(rows, random, k):
    shuffled = random.sample(rows, len(rows))
    assert fuse(*[ranking(*r) for r in rows], k=k) == fuse(*[ranking(*r) for r in shuffled], k=k)


@given(lists, st.integers(0, 100))
def test_every_row_comes_once_in_the_order_of_exact_arithmetic_with_ties_by_row(rows, k):
    exact = {}
    for each in rows:
        for place, row in enumerate(each, start=1):
            exact[row] = exact.get(row, 0) + Fraction(1, k + place)
    found = fuse(*[ranking(*r) for r in rows], k=k)
    assert sorted(row for row, _ in found) == sorted(exact)
    for (row, score), (after, next_score) in pairwise(found):
        assert score >= next_score
        assert exact[row] >= exact[after] * (1 - Fraction(1, 10**14))
        if score == next_score:
            assert row < after


@given(lists.filter(lambda rows: rows and rows[0]))
def test_moving_up_in_one_list_never_lowers_a_row(rows):
    last = rows[0][-1]
    moved = [[last, *rows[0][:-1]], *rows[1:]]
    before, after = order(*(ranking(*r) for r in rows)), order(*(ranking(*r) for r in moved))
    assert after.index(last) <= before.index(last)


# A rank score against a threshold (public fault 33)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
@pytest.mark.parametrize("number", [0.65, 1, np.float32(0.5), np.float64(0.5), np.array([0.1, 0.5])])
def test_a_rank_score_is_never_compared_with_a_number_from_either_side(compare, number):
    score = RankScore(0.033)
    with pytest.raises(TypeError, match=r"RankScore\(value=0.033\).*cannot be compared"):
        compare(score, number)
    with pytest.raises(TypeError, match=r"RankScore\(value=0.033\).*cannot be compared"):
        compare(number, score)


def test_a_rank_score_equals_no_number_and_becomes_none():
    score = RankScore(0.033)
    assert score != 0.033
    with pytest.raises(TypeError):
        float(score)
    with pytest.raises(TypeError):
        _ = score - 0.01


def test_a_rank_score_is_a_value_that_nobody_can_change():
    score = RankScore(0.033)
    with pytest.raises(AttributeError):
        score.value = 1.0
    assert score.value == 0.033
    assert {score, RankScore(0.033)} == {score}
    assert score != RankScore(0.034)
    assert pickle.loads(pickle.dumps(score)) == score


def test_rank_scores_compare_among_themselves():
    assert RankScore(0.1) < RankScore(0.2) <= RankScore(0.2)
    assert max(RankScore(0.1), RankScore(0.3)) == RankScore(0.3)
