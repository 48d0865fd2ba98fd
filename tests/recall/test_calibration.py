from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.embedding import HashingEmbedder
from tri_memory.recall.calibration import Pair, Threshold, calibrate, threshold_for
from tri_memory.recall.cosine import top_k
from tri_memory.recall.fusion import fuse

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


# Threshold


@pytest.mark.parametrize("value", [14.2, -1.5, np.nan, True, "0.5", None])
def test_what_is_no_cosine_is_no_threshold(value):
    with pytest.raises(ValueError, match="a threshold must be a cosine between -1 and 1; got"):
        Threshold(value, "usem3")


def test_a_fused_rank_score_is_no_threshold_and_gives_none():  # public fault 33
    [(_, score)] = fuse([(0, 14.2)], [(0, 0.61)])
    for use in (lambda: Threshold(score, "usem3"), lambda: threshold_for([score, score], [True, False], "usem3")):
        with pytest.raises(TypeError, match="RankScore"):
            use()
