"""Chapter 10: its checkers tell right from wrong, on each engine that this machine has."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import numpy as np
import pytest

from tests.lab.proof import assert_proved, assert_told_on_which_engine
from tri_memory.lab.exercises.kit import check
from tri_memory.recall.calibration import Threshold
from tri_memory.recall.fusion import fuse
from tri_memory.recall.gate import Candidate, Gate, inject, written
from tri_memory.recall.lexical import LexicalIndex


def fused_by_the_package(by_cosine, by_words, k=60):
    names = list(dict.fromkeys([*by_cosine, *by_words]))
    rankings = [[(names.index(name), 0.0) for name in each] for each in (by_cosine, by_words)]
    return [names[row] for row, _ in fuse(*rankings, k=k)]


def fused_by_defaultdict(by_cosine, by_words, k=60):
    scores = defaultdict(float)
    for names in (by_cosine, by_words):
        for i in range(len(names)):
            scores[names[i]] += 1 / (k + i + 1)
    return [name for name, _ in sorted(scores.items(), key=lambda pair: pair[1], reverse=True)]


def fused_from_zero(by_cosine, by_words, k=60):
    scores = defaultdict(float)
    for names in (by_cosine, by_words):
        for place, name in enumerate(names):
            scores[name] += 1 / (k + place)
    return sorted(scores, key=lambda name: -scores[name])


def fused_from_zero_and_careful(by_cosine, by_words, k=60):
    return fused_from_zero(by_cosine, by_words, k or 1)


def fused_both_only(by_cosine, by_words, k=60):
    return [name for name in fused_by_the_package(by_cosine, by_words, k) if name in by_cosine and name in by_words]


def fused_worst_first(by_cosine, by_words, k=60):
    scores = defaultdict(float)
    for names in (by_cosine, by_words):
        for place, name in enumerate(names, 1):
            scores[name] += 1 / (k + place)
    return sorted(scores, key=lambda name: scores[name])


def fused_by_adding_places(by_cosine, by_words, k=60):
    sums = defaultdict(int)
    for names in (by_cosine, by_words):
        for place, name in enumerate(names, 1):
            sums[name] += place
    return sorted(sums, key=lambda name: sums[name])


def fused_by_turns(by_cosine, by_words, k=60):
    turns = [name for pair in zip(by_cosine, by_words, strict=False) for name in pair]
    return list(dict.fromkeys([*turns, *by_cosine, *by_words]))


def fused_with_sixty(by_cosine, by_words, k=60):
    return fused_by_the_package(by_cosine, by_words, 60)


def fused_words_first(by_cosine, by_words, k=60):
    return fused_by_the_package(by_words, by_cosine, k)


def fused_scores(by_cosine, by_words, k=60):
    return [1 / (k + place) for place, _ in enumerate(by_cosine, 1)]


def threshold_by_numpy(cosines, relevant, wanted):
    values, right = np.array(cosines), np.array(relevant)
    reached = [least for least in cosines if right[values >= least].mean() >= wanted]
    return float(min(reached)) if reached else None


def threshold_going_down(cosines, relevant, wanted):
    best, pairs = None, sorted(zip(cosines, relevant, strict=True), reverse=True)
    right = 0
    for count, (cosine, is_right) in enumerate(pairs, start=1):
        right += is_right
        last_of_equals = count == len(pairs) or pairs[count][0] != cosine
        if last_of_equals and right / count >= wanted:
            best = cosine
    return best


def threshold_highest(cosines, relevant, wanted):
    reached = [c for c in cosines if threshold_by_numpy([c], [True], 0) and precision(cosines, relevant, c) >= wanted]
    return max(reached, default=None)


def precision(cosines, relevant, least):
    let_in = [right for cosine, right in zip(cosines, relevant, strict=True) if cosine >= least]
    return sum(let_in) / len(let_in)


def threshold_that_stops(cosines, relevant, wanted):
    best = None
    for least in sorted(set(cosines), reverse=True):
        if precision(cosines, relevant, least) < wanted:
            break
        best = least
    return best


def threshold_that_stops_once_it_had_one(cosines, relevant, wanted):
    best = None
    for least in sorted(set(cosines), reverse=True):
        if precision(cosines, relevant, least) >= wanted:
            best = least
        elif best is not None:
            break
    return best


def threshold_above(cosines, relevant, wanted):
    reached = []
    for least in cosines:
        let_in = [right for cosine, right in zip(cosines, relevant, strict=True) if cosine > least]
        if let_in and sum(let_in) / len(let_in) >= wanted:
            reached.append(least)
    return min(reached, default=None)


def threshold_ever(cosines, relevant, wanted):
    return threshold_by_numpy(cosines, relevant, wanted) or max(cosines)


def threshold_between(cosines, relevant, wanted):
    least = threshold_by_numpy(cosines, relevant, wanted)
    return None if least is None else least - 0.005


async def lines_by_the_package(store, embedder, question, user, least, picks=10, newest=3):
    rows = await asyncio.to_thread(embedder.encode, [question])
    found = await store.recall(rows[0], 10_000, user_id=user)
    ranks = {row: n for n, (row, _) in enumerate(LexicalIndex([r.summary for r in found]).rank(question, 10_000), 1)}
    candidates = [Candidate(r.session_id, r.summary, r.created_at, r.score, ranks.get(i)) for i, r in enumerate(found)]
    hits = inject(candidates, Gate(Threshold(least, embedder.name), embedder.name), picks=picks, newest=newest)
    return written(hits)


async def everything(store, embedder, question, user, k=1_000):
    return await store.recall(embedder.encode([question])[0], k, user_id=user)


def ranked(found, question, picks=1_000):
    return [found[row] for row, _ in LexicalIndex([one.summary for one in found]).rank(question, picks)]


def as_lines(records, newest=None):
    newest_first = sorted(records, key=lambda one: one.created_at, reverse=True)
    return [f"[{one.created_at:%Y-%m-%d}] {one.summary}" for one in newest_first[:newest]]


async def lines_in_the_loop(store, embedder, question, user, least, picks=10, newest=3):
    found = await everything(store, embedder, question, user)
    return as_lines([one for one in ranked(found, question, picks) if one.score >= least], newest)


async def lines_without_gate(store, embedder, question, user, least, picks=10, newest=3):
    return as_lines(ranked(await everything(store, embedder, question, user), question, picks), newest)


async def lines_newest_first_then_gate(store, embedder, question, user, least, picks=10, newest=3):
    found = ranked(await everything(store, embedder, question, user), question, picks)
    found = sorted(found, key=lambda one: one.created_at, reverse=True)[:newest]
    return as_lines([one for one in found if one.score >= least])


async def lines_gate_first(store, embedder, question, user, least, picks=10, newest=3):
    found = await everything(store, embedder, question, user)
    near = [one for one in ranked(found, question) if one.score >= least]
    return as_lines(near[:picks], newest)


async def lines_of_the_nearest(store, embedder, question, user, least, picks=10, newest=3):
    found = await everything(store, embedder, question, user, picks)
    return as_lines([one for one in ranked(found, question) if one.score >= least], newest)


async def lines_best_first(store, embedder, question, user, least, picks=10, newest=3):
    found = await everything(store, embedder, question, user)
    kept = [one for one in ranked(found, question, picks) if one.score >= least][:newest]
    return [f"[{one.created_at:%Y-%m-%d}] {one.summary}" for one in kept]


async def lines_oldest_first(store, embedder, question, user, least, picks=10, newest=3):
    return (await lines_in_the_loop(store, embedder, question, user, least, picks, newest))[::-1]


async def lines_with_time(store, embedder, question, user, least, picks=10, newest=3):
    found = await everything(store, embedder, question, user)
    kept = [one for one in ranked(found, question, picks) if one.score >= least]
    return [f"{one.created_at} {one.summary}" for one in sorted(kept, key=lambda r: r.created_at)[::-1]][:newest]


async def lines_of_somebody_else(store, embedder, question, user, least, picks=10, newest=3):
    return await lines_in_the_loop(store, embedder, question, f"{user}-other", least, picks, newest)


async def lines_without_end(store, embedder, question, user, least, picks=10, newest=3):
    return await lines_in_the_loop(store, embedder, question, user, least, picks, None)


def test_exercise_10_1_is_proved():
    assert_proved(
        "10-1",
        right=[fused_by_the_package, fused_by_defaultdict],
        wrong={
            fused_from_zero: "It divides by zero",
            fused_from_zero_and_careful: "Places count from 0",
            fused_both_only: "Only those that are in both lists",
            fused_worst_first: "The worst comes first",
            fused_by_adding_places: "The places themselves are added",
            fused_with_sixty: "It takes k = 60",
            fused_words_first: "Equal scores are not in the order",
            fused_by_turns: "Not the order of the sums",
            fused_scores: "It should return a list of names",
        },
    )


def test_exercise_10_2_is_proved():
    assert_proved(
        "10-2",
        right=[threshold_by_numpy, threshold_going_down],
        wrong={
            threshold_highest: "That is the highest threshold",
            threshold_ever: "return None",
            threshold_between: "none of the cosines given",
        },
    )


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        (threshold_that_stops, ["There is one.", "A lower one reaches it, too"]),
        (threshold_that_stops_once_it_had_one, ["A lower one reaches it, too", "That is the highest"]),
        (threshold_above, ["too low", "There is one", "return None", "highest"]),
    ],
)
def test_a_threshold_that_does_not_look_at_all_or_forgets_equality_is_told_so(answer, parts):
    verdict = check("10-2", answer)
    assert not verdict.passed
    assert any(part in verdict.message for part in parts), verdict.message


def test_exercise_10_3_is_proved():
    assert_proved(
        "10-3",
        right=[lines_by_the_package, lines_in_the_loop],
        wrong={
            lines_without_gate: "Nothing was kept out",
            lines_newest_first_then_gate: "The newest were taken before the gate",
            lines_gate_first: "The gate came before the picking",
            lines_of_the_nearest: "Only the 6 nearest were looked at",
            lines_best_first: "They are the best by BM25",
            lines_oldest_first: "the newest has to come first",
            lines_with_time: "a line reads",
            lines_of_somebody_else: "Another user's memory",
            lines_without_end: "More than `newest` lines",
        },
    )


def test_an_answer_that_is_right_in_memory_alone_is_told_on_which_engine_it_fails():
    async def right_in_memory(store, embedder, question, user, least, picks=10, newest=3):
        lines = await lines_in_the_loop(store, embedder, question, user, least, picks, newest)
        return lines if type(store).__name__ == "InMemoryEpisodicStore" else lines[1:]

    assert_told_on_which_engine("10-3", right_in_memory)
