import warnings
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.recall.calibration import HISTORIC, Threshold
from tri_memory.recall.cosine import as_unit, top_k
from tri_memory.recall.fusion import RankScore, fuse
from tri_memory.recall.gate import Candidate, Gate, OtherEmbedderWarning, inject, written

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def candidate(key="a", cosine=0.6, rank=1, days=0.0, **rest):
    return Candidate(key, f"text {key}", NOW - timedelta(days=days), cosine, rank, **rest)


def gate(value=0.5, embedder="usem3"):
    return Gate(Threshold(value, embedder), embedder)


def kept(hits):
    return [hit.candidate.key for hit in hits if hit.verdict == "in"]


# Candidate


@pytest.mark.parametrize("value", [14.2, -1.5, np.nan, True, "0.5", None])
def test_what_is_no_cosine_is_no_score(value):
    with pytest.raises(ValueError, match="the cosine must be a cosine between -1 and 1; got"):
        candidate(cosine=value)


def test_a_fused_rank_score_is_refused_by_name_wherever_a_cosine_belongs():  # public fault 33
    [(_, score)] = fuse([(0, 14.2)], [(0, 0.61)])
    for use in (lambda: candidate(cosine=score), lambda: Gate(score, "usem3")):
        with pytest.raises(TypeError, match="RankScore"):
            use()


@pytest.mark.parametrize("number", [0.65, 1, None])
def test_a_bare_number_is_no_threshold_since_it_names_no_embedder(number):
    with pytest.raises(TypeError, match="a threshold belongs to an embedder; got"):
        Gate(number, "usem3")


def test_a_candidate_refuses_naive_times_place_0_and_weights_above_1():
    with pytest.raises(ValueError, match="created_at must be an aware datetime"):
        Candidate("a", "a", datetime(2026, 3, 1), 0.5)  # noqa: DTZ001
    with pytest.raises(ValueError, match="lexical_rank must be a whole number of at least 1; got 0"):
        candidate(rank=0)
    with pytest.raises(ValueError, match=r"age_weight must be between 0 and 1; got 1\.5"):
        candidate(age_weight=1.5)


# Gate


def test_a_threshold_of_another_embedder_warns_where_the_gate_is_made_naming_both():
    with pytest.warns(OtherEmbedderWarning, match=r"0\.65 was found with .*MiniLM.*come from usem3") as caught:
        Gate(HISTORIC, "usem3")
    assert [each.filename for each in caught] == [__file__]


def test_the_same_embedder_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gate().judge([candidate()])


def test_each_verdict_gives_its_reason_and_the_order_stays():
    hits = gate(0.52).judge([candidate("a", 0.41), candidate("b", 0.61)])
    assert [(hit.candidate.key, hit.verdict, hit.reason) for hit in hits] == [
        ("a", "out", "cosine 0.41 below 0.52 of usem3"),
        ("b", "in", "cosine 0.61 reaches 0.52 of usem3"),
    ]


def test_the_threshold_itself_is_let_in():
    hit = gate(0.5).judge([candidate(cosine=0.5)])[0]
    assert (hit.verdict, hit.reason) == ("in", "cosine 0.50 reaches 0.50 of usem3")


def test_two_cosines_that_are_nearly_equal_are_printed_so_that_one_sees_which_is_larger():
    [hit] = gate(0.52).judge([candidate(cosine=0.51996)])
    assert hit.reason == "cosine 0.51996 below 0.52000 of usem3"


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_the_verdict_is_the_comparison_and_the_reason_never_contradicts_it(cosine, least):
    [hit] = gate(least).judge([candidate(cosine=cosine)])
    assert (hit.verdict == "in") == (cosine >= least)
    printed = [float(word) for word in hit.reason.split() if word.lstrip("-")[0].isdigit()]
    assert printed == pytest.approx([cosine, least], abs=0.0051)
    assert (printed[0] >= printed[1]) if hit.verdict == "in" else (printed[0] <= printed[1])


def test_an_exact_match_with_rounding_above_1_is_still_a_cosine():
    [(_, cosine)] = top_k(as_unit([1, 2, 3])[None], as_unit([1, 2, 3]), 1)
    assert gate(1.0).judge([candidate(cosine=np.float32(cosine))])[0].verdict == "in"


# inject


def test_bm25_picks_cosine_keeps_and_the_newest_go_in():
    hits = inject(
        [
            candidate("old", 0.9, rank=1, days=40),
            candidate("far", 0.4, rank=2, days=0),
            candidate("new", 0.6, rank=3, days=1),
            candidate("newer", 0.7, rank=10, days=0.5),
            candidate("eleventh", 0.9, rank=11, days=0),
            candidate("meant", 0.9, rank=None, days=0),
            candidate("mid", 0.5, rank=5, days=20),
        ],
        gate(0.5),
    )
    assert kept(hits) == ["new", "newer", "mid"]
    assert [hit.reason for hit in hits if hit.verdict == "out"] == [
        "cosine 0.90 reaches 0.50 of usem3, but only the newest 3 go in",
        "cosine 0.40 below 0.50 of usem3",
        "place 11 by BM25, of which the first 10 are picked",
        "shares no word with the query, so BM25 did not pick it",
    ]
    assert written(hits) == ["[2026-03-01] text newer", "[2026-02-28] text new", "[2026-02-09] text mid"]


def test_of_equally_new_ones_the_better_place_by_bm25_goes_in_first():
    hits = inject([candidate("c", rank=3), candidate("a", rank=1), candidate("b", rank=2)], gate(), newest=2)
    assert kept(hits) == ["a", "b"]
    assert written(hits) == ["[2026-03-01] text a", "[2026-03-01] text b"]


def test_the_same_candidate_twice_is_two_hits():
    one = candidate()
    assert [hit.verdict for hit in inject([one, one], gate(), newest=1)] == ["in", "out"]


def test_nothing_found_writes_nothing():
    assert inject([], gate()) == []
    assert written([]) == []


def test_the_day_is_that_of_utc_and_a_text_stays_on_its_line():
    when = datetime(2026, 3, 1, 3, tzinfo=timezone(timedelta(hours=8)))
    hits = gate().judge([Candidate("a", "one\n[2026-01-01] forged\ttwo", when, 0.9)])
    assert written(hits) == ["[2026-02-28] one [2026-01-01] forged two"]


@pytest.mark.parametrize("count", [0, -1, True, 1.5])
def test_counts_below_1_are_refused(count):
    with pytest.raises(ValueError, match="picks must be a whole number of at least 1"):
        inject([], gate(), picks=count)
    with pytest.raises(ValueError, match="newest must be a whole number of at least 1"):
        inject([], gate(), newest=count)


candidates = st.lists(
    st.builds(
        candidate,
        st.sampled_from("abcdef"),
        st.integers(-4, 4).map(lambda n: n / 4),
        st.none() | st.integers(1, 15),
        st.integers(0, 5),
    ),
    max_size=15,
)


@given(candidates, st.sampled_from([-0.5, 0.0, 0.25, 0.5]), st.integers(1, 12), st.integers(1, 5))
def test_every_candidate_gets_one_hit_and_who_is_in_passed_all_three(found, least, picks, newest):
    hits = inject(found, gate(least), picks=picks, newest=newest)
    assert [hit.candidate for hit in hits] == found
    passed = [c for c in found if c.lexical_rank and c.lexical_rank <= picks and c.cosine >= least]
    going_in = [hit.candidate for hit in hits if hit.verdict == "in"]
    assert len(going_in) == min(newest, len(passed)) == len(written(hits))
    assert all(c in passed for c in going_in)
    left = [hit.candidate for hit in hits if hit.verdict == "out" and hit.candidate in passed]
    assert all(kept.created_at >= out.created_at for kept in going_in for out in left)
    lines = written(hits)
    assert [line[:12] for line in lines] == sorted((line[:12] for line in lines), reverse=True)


@given(candidates)
def test_a_higher_threshold_never_lets_in_what_a_lower_one_kept_out(found):
    for lower, higher in pairwise([-0.5, 0.0, 0.25, 0.5, 1.0]):
        strict, loose = gate(higher).judge(found), gate(lower).judge(found)
        assert all(b.verdict == "in" for a, b in zip(strict, loose, strict=True) if a.verdict == "in")


@pytest.mark.parametrize("value", [RankScore(0.5), RankScore(0.0)])
def test_a_rank_score_is_refused_also_where_its_value_would_pass_for_a_cosine(value):
    with pytest.raises(TypeError, match="the cosine must be a cosine"):
        candidate(cosine=value)
