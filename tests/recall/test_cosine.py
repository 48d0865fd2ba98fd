import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tri_memory.recall import cosine
from tri_memory.recall.cosine import as_unit, top_k


def units(*vectors):
    return np.stack([as_unit(vector) for vector in vectors])


# as_unit


@pytest.mark.parametrize("vector", [[3, 4], (3.0, 4.0), np.array([3, 4], np.float16), np.array([3, 4], np.int8)])
def test_any_real_numbers_become_a_float32_vector_of_length_1(vector):
    unit = as_unit(vector)
    assert unit.dtype == np.float32
    assert unit == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e200, 1e308])
def test_a_vector_whose_squares_would_vanish_or_overflow_still_has_a_direction(size):
    assert as_unit([size, size]) == pytest.approx([math.sqrt(0.5)] * 2)


def test_the_callers_vector_is_neither_changed_nor_shared():
    vector = np.array([0.6, 0.8], np.float32)
    unit = as_unit(vector)
    vector[:] = 7
    assert unit == pytest.approx([0.6, 0.8])


def test_a_wrong_size_names_both_sizes_and_the_way_out():
    with pytest.raises(ValueError, match=r"1024 dimensions, but 384.*a new store"):
        as_unit(np.ones(1024), 384)


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([0.0, 0.0], "all zeros"),
        ([1.0, math.nan], "got nan at position 1"),
        ([math.inf, 1.0], "got inf at position 0"),
        ([], r"shape \(0,\)"),
        (5, r"shape \(\)"),
        ([[1.0, 2.0]], r"shape \(1, 2\)"),
        ([[1.0], [1.0, 2.0]], "sequence of numbers"),
        ("1.0", "sequence of numbers; got '1.0'"),
        (None, "sequence of numbers; got None"),
        ([1.0, "x"], "sequence of numbers"),
        ([1 + 2j], "sequence of numbers"),
        ([True, False], "sequence of numbers"),
        ({"a": 1}, "sequence of numbers"),
    ],
)
def test_what_is_no_direction_is_refused_with_its_reason(vector, message):
    with pytest.raises(ValueError, match=message):
        as_unit(vector)


def test_zeros_stay_zeros_only_where_that_is_allowed():
    assert as_unit([0, 0], zero_ok=True).tolist() == [0.0, 0.0]


# top_k


def test_the_best_come_first_with_their_cosine():
    found = top_k(units([1, 0], [1, 1], [0, 1], [-1, 0]), as_unit([1, 0]), 4)
    assert [row for row, _ in found] == [0, 1, 2, 3]
    assert [score for _, score in found] == pytest.approx([1, math.sqrt(0.5), 0, -1], abs=1e-7)


def test_the_exact_match_scores_1_and_nothing_scores_more():
    rng = np.random.default_rng(1)
    for d in (2, 3, 8, 37, 512):
        rows = units(*rng.standard_normal((300, d)))
        assert [top_k(rows, row, 1)[0][1] for row in rows] == [1.0] * 300


@pytest.mark.parametrize("d", [1, 7, 64, 512, 513])
def test_equal_rows_come_in_order_of_row_wherever_they_stand_also_at_the_kth_place(d):
    rng = np.random.default_rng(d)
    rows = units(*rng.standard_normal((2_000, d)))
    twins = np.sort(rng.choice(2_000, 301, replace=False))
    rows[twins] = as_unit(rng.standard_normal(d))
    query = as_unit(rows[twins[0]] + 0.1 * rng.standard_normal(d) / math.sqrt(d))
    wanted = twins.tolist() if d > 1 else np.flatnonzero(rows[:, 0] == rows[twins[0], 0]).tolist()
    for k in (1, 2, 150, 300):
        assert [row for row, _ in top_k(rows, query, k)] == wanted[:k]


class Favouring(np.ndarray):
    """A matrix whose product gives the last row a little more than its due, as float32 BLAS does now and then."""

    def __matmul__(self, other):
        scores = np.asarray(self) @ other
        scores[-1] += 1e-7
        return scores


@pytest.mark.parametrize("k", [1, 2, 9])
def test_where_the_matrix_product_favours_the_last_of_equal_rows_the_first_ones_are_still_found(k):
    rows = units(*[[1, 2, 3]] * 10).view(Favouring)
    assert [row for row, _ in top_k(rows, as_unit([1, 1, 1]), k)] == list(range(k))


def test_more_ties_than_one_block_holds_stay_in_order():
    rows = np.tile(as_unit(np.arange(1, 6)), (2 * cosine._BLOCK + 1, 1))
    found = top_k(rows, as_unit([1, 1, 1, 1, 2]), 5_000)
    assert [row for row, _ in found] == list(range(5_000))
    assert len({score for _, score in found}) == 1


def test_more_than_there_are_gives_all():
    assert len(top_k(units([1, 0], [0, 1]), as_unit([1, 1]), 10)) == 2


def test_a_zero_query_and_an_empty_matrix_find_nothing():
    assert top_k(units([1, 0]), np.zeros(2, np.float32), 3) == []
    assert top_k(np.empty((0, 2), np.float32), as_unit([1, 0]), 3) == []


@pytest.mark.parametrize("k", [0, -1, 1.0, True, None, "3"])
def test_a_k_below_1_or_not_whole_is_refused(k):
    with pytest.raises(ValueError, match="k must be a whole number of at least 1; got"):
        top_k(units([1, 0]), as_unit([1, 0]), k)


def test_sizes_that_do_not_fit_are_refused_naming_both():
    with pytest.raises(ValueError, match=r"\(1, 2\) and \(3,\)"):
        top_k(units([1, 0]), as_unit([1, 0, 0]), 1)


small = st.integers(-3, 3)
non_zero = hnp.arrays(np.int64, 4, elements=small).filter(lambda vector: vector.any())


def exact(vector, query):
    """The cosine in exact arithmetic, squared with its sign and times |query|²: the same order, no rounding."""
    dot = int(vector @ query)
    return Fraction(dot * abs(dot), int(vector @ vector))


@settings(deadline=None)
@given(st.lists(non_zero, min_size=1, max_size=40), non_zero, st.integers(1, 45))
def test_it_agrees_with_exact_arithmetic(vectors, query, k):
    found = top_k(units(*vectors), as_unit(query), k)
    got = [row for row, _ in found]
    scores = [exact(vector, query) for vector in vectors]
    assert [scores[row] for row in got] == sorted(scores, reverse=True)[:k]
    for row, score in found:
        true = vectors[row] @ query / np.linalg.norm(vectors[row]) / np.linalg.norm(query)
        assert score == pytest.approx(true, abs=1e-6)
    for twins in by_direction(vectors).values():
        inside = [row for row in got if row in twins]
        assert inside == twins[: len(inside)]


def by_direction(vectors):
    """Rows that point the same way, in order."""
    groups = {}
    for row, vector in enumerate(vectors):
        divisor = math.gcd(*map(int, vector))
        groups.setdefault(tuple(vector // divisor), []).append(row)
    return groups


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_a_float64_sort_on_real_sizes(seed):
    rng = np.random.default_rng(seed)
    wide = rng.standard_normal((3_000, 512))
    query = rng.standard_normal(512)
    true = wide @ query / np.linalg.norm(wide, axis=1) / np.linalg.norm(query)
    found = top_k(units(*wide), as_unit(query), 10)
    assert [row for row, _ in found] == np.argsort(-true, kind="stable")[:10].tolist()
