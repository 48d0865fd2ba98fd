import warnings
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.embedding import HashingEmbedder
from tri_memory.recall.cosine import as_unit, top_k
from tri_memory.recall.fusion import RankScore, fuse
from tri_memory.recall.gate import (
    HISTORIC,
    Candidate,
    Gate,
    OtherEmbedderWarning,
    Pair,
    Threshold,
    calibrate,
    inject,
    threshold_for,
    written,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def candidate(key="a", cosine=0.6, rank=1, days=0.0, **rest):
    return Candidate(key, f"text {key}", NOW - timedelta(days=days), cosine, rank, **rest)


def gate(value=0.5, embedder="usem3"):
    return Gate(Threshold(value, embedder), embedder)


def kept(hits):
    return [hit.candidate.key for hit in hits if hit.verdict == "in"]


# threshold_for


def test_where_the_pairs_part_the_threshold_lies_midway_between_them():
    found = threshold_for([0.75, 0.25, 0.5, -0.5], [True, False, True, False], "usem3")
    assert (found.value, found.embedder) == (0.375, "usem3")


def test_the_curve_has_a_point_for_each_distinct_cosine():
    curve = threshold_for([0.75, 0.5, 0.5, 0.25], [True, True, False, False], "usem3").curve
    assert curve.cosines.tolist() == [0.75, 0.5, 0.25]
    assert curve.precision == pytest.approx([1, 2 / 3, 1 / 2])
    assert curve.recall.tolist() == [0.5, 1, 1]
    assert curve.f1 == pytest.approx([2 / 3, 4 / 5, 2 / 3])


def test_of_thresholds_with_the_same_f1_the_higher_one_is_taken():
    labels = np.isin(np.arange(10), [0, 4, 9])  # 1 of 1 and 2 of 5: F1 is a half for both
    found = threshold_for(np.arange(10, 0, -1) / 16, labels, "usem3")
    curve = found.curve
    assert curve.f1[0] == curve.f1[4] == curve.f1.max() == 0.5
    assert found.value == (10 / 16 + 9 / 16) / 2


def test_where_all_are_best_let_in_the_threshold_is_the_lowest_cosine_itself():
    assert threshold_for([0.5, 0.25, 0.125], [False, True, True], "usem3").value == 0.125


def test_a_wanted_precision_is_reached_with_the_highest_recall_that_it_allows():
    cosines = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    labels = [True, False, True, True, False, True]
    strict = threshold_for(cosines, labels, "usem3", precision=1.0)
    loose = threshold_for(cosines, labels, "usem3", precision=0.75)
    assert strict.value == pytest.approx(0.85)
    assert loose.value == pytest.approx(0.55)


def test_a_precision_out_of_reach_names_the_best_there_is():
    with pytest.raises(ValueError, match=r"precision 0\.9 with usem3; the best is 0\.500"):
        threshold_for([0.9, 0.8], [False, True], "usem3", precision=0.9)


@pytest.mark.parametrize(
    ("cosines", "labels", "message"),
    [
        ([0.5, 0.4], [True, True], "pairs of both kinds; got 2 relevant of 2"),
        ([0.5, 0.4], [False, False], "pairs of both kinds; got 0 relevant of 2"),
        ([], [], "pairs of both kinds; got 0 relevant of 0"),
        ([0.5], [True, False], r"shapes \(1,\) and \(2,\)"),
        ([0.5, np.nan], [True, False], "cosines must be finite; got .*nan"),
    ],
)
def test_what_gives_no_threshold_is_refused_with_its_reason(cosines, labels, message):
    with pytest.raises(ValueError, match=message):
        threshold_for(cosines, labels, "usem3")


scored = st.lists(st.tuples(st.integers(-8, 8).map(lambda n: n / 8), st.booleans()), min_size=2, max_size=20).filter(
    lambda pairs: len({label for _, label in pairs}) == 2
)


def reckoned(pairs, least):
    """(precision, recall, F1) of letting in at least `least`, in exact arithmetic."""
    let_in = [label for cosine, label in pairs if cosine >= least]
    hits, relevant = sum(let_in), sum(label for _, label in pairs)
    return Fraction(hits, len(let_in)), Fraction(hits, relevant), Fraction(2 * hits, len(let_in) + relevant)


@given(scored)
def test_no_threshold_has_a_better_f1_and_no_higher_one_an_equal(pairs):
    found = threshold_for(*zip(*pairs, strict=True), "usem3")
    best = reckoned(pairs, found.value)[2]
    for cosine, _ in pairs:
        other = reckoned(pairs, cosine)[2]
        assert other <= best
        if cosine > found.value and {c for c, _ in pairs if c >= found.value} != {c for c, _ in pairs if c >= cosine}:
            assert other < best


@given(scored, st.sampled_from([0.25, 0.5, 0.75, 1.0]))
def test_with_a_wanted_precision_no_threshold_that_reaches_it_recalls_more(pairs, wanted):
    reachable = [each[1] for cosine, _ in pairs if (each := reckoned(pairs, cosine))[0] >= wanted]
    if not reachable:
        with pytest.raises(ValueError, match="no threshold reaches"):
            threshold_for(*zip(*pairs, strict=True), "usem3", precision=wanted)
        return
    found = threshold_for(*zip(*pairs, strict=True), "usem3", precision=wanted)
    precision, recall, _ = reckoned(pairs, found.value)
    assert precision >= wanted
    assert recall == max(reachable)


@given(scored)
def test_the_curve_says_what_counting_says_and_recall_only_rises(pairs):
    curve = threshold_for(*zip(*pairs, strict=True), "usem3").curve
    assert curve.cosines.tolist() == sorted({cosine for cosine, _ in pairs}, reverse=True)
    assert curve.recall[-1] == 1
    assert all(before <= after for before, after in pairwise(curve.recall))
    for at, cosine in enumerate(curve.cosines):
        exact = reckoned(pairs, cosine)
        assert [curve.precision[at], curve.recall[at], curve.f1[at]] == [float(each) for each in exact]


@given(scored, st.randoms(use_true_random=False))
def test_the_order_of_the_pairs_changes_nothing(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    assert threshold_for(*zip(*pairs, strict=True), "e") == threshold_for(*zip(*shuffled, strict=True), "e")


# calibrate

PAIRS = [
    Pair("where is my parcel", "the parcel is late", True),
    Pair("where is my parcel", "she likes green tea", False),
    Pair("退货要多久", "退货要七天", True),
    Pair("退货要多久", "喜欢吃辣", False),
]


def test_calibration_parts_the_pairs_and_keeps_the_name_of_the_embedder():
    embedder = HashingEmbedder()
    threshold = calibrate(PAIRS, embedder)
    assert threshold.embedder == embedder.name
    for query, text, relevant in PAIRS:
        [(_, cosine)] = top_k(embedder.encode([text]), embedder.encode([query])[0], 1)
        assert (cosine >= threshold.value) == relevant


def test_the_cosines_of_the_curve_are_those_that_recall_gives():
    embedder = HashingEmbedder(64)
    recalled = {top_k(embedder.encode([p.text]), embedder.encode([p.query])[0], 1)[0][1] for p in PAIRS}
    assert set(calibrate(PAIRS, embedder).curve.cosines.tolist()) == recalled


def test_vectors_of_any_length_give_the_same_cosines():
    class Long(HashingEmbedder):
        def encode(self, texts):
            return super().encode(texts) * np.arange(2, 2 + len(texts), dtype=np.float32)[:, None]

    assert calibrate(PAIRS, Long()).value == pytest.approx(calibrate(PAIRS, HashingEmbedder()).value, abs=1e-6)


def test_plain_tuples_from_a_generator_will_do_and_a_wanted_precision_is_passed_on():
    pairs = [*PAIRS, Pair("parcel", "parcel", False)]
    assert calibrate((tuple(pair) for pair in PAIRS), HashingEmbedder()) == calibrate(PAIRS, HashingEmbedder())
    with pytest.raises(ValueError, match="no threshold reaches the precision 1"):
        calibrate(pairs, HashingEmbedder(), precision=1)


def test_no_pairs_and_blank_texts_are_refused():
    with pytest.raises(ValueError, match="got none"):
        calibrate([], HashingEmbedder())
    with pytest.raises(ValueError, match=r"pair 4 has a blank text.*\('tea', ' ', False\)"):
        calibrate([*PAIRS, Pair("tea", " ", False)], HashingEmbedder())


# Threshold and Candidate


@pytest.mark.parametrize("value", [14.2, -1.5, np.nan, True, "0.5", None])
def test_what_is_no_cosine_is_neither_a_threshold_nor_a_score(value):
    with pytest.raises(ValueError, match="a threshold must be a cosine between -1 and 1; got"):
        Threshold(value, "usem3")
    with pytest.raises(ValueError, match="the cosine must be a cosine between -1 and 1; got"):
        candidate(cosine=value)


def test_a_fused_rank_score_is_refused_by_name_wherever_a_cosine_belongs():  # public fault 33
    [(_, score)] = fuse([(0, 14.2)], [(0, 0.61)])
    for use in (
        lambda: candidate(cosine=score),
        lambda: Threshold(score, "usem3"),
        lambda: Gate(score, "usem3"),
        lambda: threshold_for([score, score], [True, False], "usem3"),
    ):
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
