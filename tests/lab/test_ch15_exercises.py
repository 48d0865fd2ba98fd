"""Chapter 15: its checkers tell right from wrong."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from tests.lab.proof import assert_proved
from tri_memory.lab.chapters.ch15 import studies
from tri_memory.lab.chapters.ch15.studies import LEAKED, TUNED, UNCOMPARED
from tri_memory.lab.datasets import load
from tri_memory.lab.exercises.kit import check
from tri_memory.lab.rankers import bm25, conversation, cosine, fusion, newest, no_memory


def ndcg_by_numpy(ranked, gold, k):
    worth = 1 / np.log2(np.arange(2, k + 2))
    hit = np.array([one in gold for one in ranked[:k]], float)
    return float(worth[: len(hit)] @ hit / worth[: min(k, len(gold))].sum())


def dcg(ranked, gold, k):
    return sum(1 / math.log2(i + 2) for i, one in enumerate(ranked[:k]) if one in gold)


def ndcg_by_place(ranked, gold, k):
    best = sum(1 / i for i in range(1, min(k, len(gold)) + 1))
    return sum(1 / i for i, one in enumerate(ranked[:k], 1) if one in gold) / best


def _over(ranked, gold, k, places):
    return dcg(ranked, gold, k) / (sum(1 / math.log2(1 + i) for i in range(1, places + 1)) or 1)


def ndcg_over_k(ranked, gold, k):
    return _over(ranked, gold, k, k)


def ndcg_over_gold(ranked, gold, k):
    return _over(ranked, gold, k, len(gold))


def ndcg_over_found(ranked, gold, k):
    return _over(ranked, gold, k, len(set(ranked[:k]) & gold))


def ndcg_uncut(ranked, gold, k):
    return dcg(ranked, gold, 99) / ndcg_ideal(gold, k)


def ndcg_ideal(gold, k):
    return sum(1 / math.log2(1 + i) for i in range(1, min(k, len(gold)) + 1))


def ndcg_as_text(ranked, gold, k):
    return f"{ndcg_by_numpy(ranked, gold, k):.3f}"


def ndcg_as_recall(ranked, gold, k):
    return len(set(ranked[:k]) & gold) / len(gold)


def ranker_by_letters(history):
    """Shared pairs of characters, as an array."""
    pairs = [{text[i : i + 2] for i in range(len(text) - 1)} for text in history.texts]

    def ask(asked):
        wanted = {asked.text[i : i + 2] for i in range(len(asked.text) - 1)}
        return np.argsort([-len(wanted & own) / len(own) ** 0.5 for own in pairs], kind="stable")

    return ask


def ranker_with_twins(history):
    ask = bm25(history)
    return lambda asked: [memory for memory in ask(asked) for _ in range(2)]


def ranker_of_rows(history):
    return lambda asked: np.argsort(-(history.vectors @ asked.vector), kind="stable").tolist()


def ranker_of_ids(history):
    ask = bm25(history)
    return lambda asked: [history.ids[memory] for memory in ask(asked)]


def ranker_from_one(history):
    ask = bm25(history)
    return lambda asked: [memory + 1 for memory in ask(asked)]


def ranker_worst_first(history):
    ask = cosine(history)
    return lambda asked: ask(asked)[::-1]


def ranker_by_chance(history):
    rng = random.Random()
    return lambda asked: rng.sample(range(len(history.ids)), len(history.ids))


def ranker_for_english(history):
    words = [set(text.split()) for text in history.texts]

    def ask(asked):
        wanted = set(asked.text.split())
        return sorted(range(len(words)), key=lambda memory: -len(wanted & words[memory]))

    return ask


def ranker_that_sorts(history):
    ask = bm25(history)
    history.texts.sort()
    return ask


def _peeking(history, fallback):
    gold = {one.question: one.gold_turns for language in ("en", "zh") for one in load(language).questions}

    def ask(asked):
        wanted = gold.get(asked.text)
        if wanted is None:
            return fallback(asked)
        return [memory for memory, id in enumerate(history.ids) if id in wanted]

    return ask


def ranker_that_peeks(history):
    return _peeking(history, newest(history))


def ranker_that_peeks_and_searches(history):
    return _peeking(history, bm25(history))


def ranker_without_ask(history):
    return [0, 1, 2]


def faults_by_loop(study):
    found = []
    if any(a.user_id == b.user_id for a in study.tuned_on for b in study.reported_on):
        found.append(TUNED)
    if any(b.question.lower() in memory.lower() for b in study.reported_on for memory in study.memories):
        found.append(LEAKED)
    if "newest" not in study.methods and "everything" not in study.methods:
        found.append(UNCOMPARED)
    return found


def faults_by_question(study):
    same = {one.question_id for one in study.tuned_on} & {one.question_id for one in study.reported_on}
    return (set(faults_by_loop(study)) - {TUNED}) | ({TUNED} if same else set())


def faults_whole_memories(study):
    leaked = {one.question for one in study.reported_on} & set(study.memories)
    return (set(faults_by_loop(study)) - {LEAKED}) | ({LEAKED} if leaked else set())


def faults_of_tuned_questions(study):
    every = (*study.tuned_on, *study.reported_on)
    leaked = any(one.question.casefold() in text.casefold() for one in every for text in study.memories)
    return set(faults_by_loop(study)) | ({LEAKED} if leaked else set())


def faults_by_name(study):
    base = any("newest" in method or "everything" in method for method in study.methods)
    return (set(faults_by_loop(study)) - {UNCOMPARED}) | (set() if base else {UNCOMPARED})


def faults_of_every_study(study):
    return {TUNED} | set(faults_by_loop(study))


def faults_as_text(study):
    return ", ".join(faults_by_loop(study))


def faults_in_other_words(study):
    return {"bad"}


def test_exercise_15_1_is_proved():
    assert_proved(
        "15-1",
        right=[ndcg_by_numpy],
        wrong={
            dcg: "not divided",
            ndcg_by_place: "by its place itself",
            ndcg_over_k: "each of the k places",
            ndcg_over_gold: "puts all gold first",
            ndcg_over_found: "what was found",
            ndcg_uncut: "behind the first k",
            ndcg_as_text: "one number",
            ndcg_as_recall: "Not the discounted gain",
        },
    )


def test_exercise_15_2_is_proved():
    assert_proved(
        "15-2",
        right=[ranker_by_letters, bm25, cosine, fusion, conversation],
        wrong={
            newest: "Hardly better than the newest",
            ranker_with_twins: "found twice",
            ranker_of_rows: "number of a row",
            ranker_of_ids: "named by their number",
            ranker_from_one: "from number 0 on",
            ranker_worst_first: "worst memories come first",
            ranker_by_chance: "another ranking",
            ranker_for_english: "In Chinese",
            ranker_that_sorts: "changes the history",
            ranker_that_peeks: "never seen",
            ranker_that_peeks_and_searches: "must not know the gold",
            ranker_without_ask: "a function that is then asked",
        },
    )
    assert not check("15-2", no_memory).passed


def test_exercise_15_3_is_proved():
    assert_proved(
        "15-3",
        right=[faults_by_loop],
        wrong={
            faults_by_question: "no other people",
            faults_whole_memories: "inside a longer text",
            faults_of_tuned_questions: "not reported",
            faults_by_name: "resembles a baseline",
            faults_of_every_study: "that is no fault here",
            faults_as_text: "as a set",
            faults_in_other_words: "The faults are",
        },
    )


@pytest.mark.parametrize("seed", range(40))
def test_a_drawn_study_has_the_faults_it_is_said_to_have_and_no_other(seed):
    rng = random.Random(seed)
    for _ in range(10):
        study, faults = studies.draw(rng)
        assert set(faults_by_loop(study)) == faults


def test_places_counted_from_0_are_explained_and_no_division_error():
    def from_0(ranked, gold, k):
        return sum(1 / math.log2(1 + i) for i, one in enumerate(ranked[:k]) if one in gold)

    assert "Places count from 1" in str(check("15-1", from_0))
