"""Chapter 08: its checkers tell right from wrong, on each engine that this machine has."""

from __future__ import annotations

import math

from tests.lab.proof import assert_proved, assert_told_on_which_engine


def score_by_negation(distance):
    if distance != distance:
        raise ValueError("no direction")
    return -(distance - 1)


def score_is_the_distance(distance):
    return distance


def score_from_two(distance):
    return 2 - distance


def score_cut_off(distance):
    if math.isnan(distance):
        raise ValueError("no direction")
    return max(0, 1 - distance)


def score_of_anything(distance):
    return 1 - distance


def recall_by_counting(found, exact, k):
    first = exact[:k]
    return sum(one in found[:k] for one in first) / len(first) if first else 1.0


def recall_as_precision(found, exact, k):
    got = set(found[:k])
    return len(got & set(exact[:k])) / len(got) if got else 0.0


def recall_by_k(found, exact, k):
    return len(set(found[:k]) & set(exact[:k])) / k


def recall_uncut(found, exact, k):
    return min(1.0, len(set(found) & set(exact)) / len(exact[:k])) if exact else 1.0


def recall_with_repeats(found, exact, k):
    return sum(one in exact[:k] for one in found[:k]) / len(exact[:k]) if exact else 1.0


def recall_of_nothing_is_nothing(found, exact, k):
    return len(set(found[:k]) & set(exact[:k])) / len(exact[:k]) if exact else 0.0


async def between_asking_for_all(store, embedding, user, start, end, k):
    found = await store.recall(embedding, 100_000, user_id=user)
    return [one for one in found if start <= one.created_at < end][:k]


async def between_growing(store, embedding, user, start, end, k):
    kept, found, ask = [], [None], k
    while len(kept) < k and len(found) > 0:
        found = await store.recall(embedding, ask, user_id=user)
        kept = [one for one in found if start <= one.created_at < end]
        if len(found) < ask:
            break
        ask += 7
    return kept[:k]


async def between_filtering_once(store, embedding, user, start, end, k):
    found = await store.recall(embedding, k, user_id=user)
    return [one for one in found if start <= one.created_at < end]


async def between_with_the_end(store, embedding, user, start, end, k):
    found = await store.recall(embedding, 1_000, user_id=user)
    return [one for one in found if start <= one.created_at <= end][:k]


async def between_by_time(store, embedding, user, start, end, k):
    found = await store.recall(embedding, 1_000, user_id=user)
    return sorted((one for one in found if start <= one.created_at < end), key=lambda one: one.created_at)[:k]


async def between_unfiltered(store, embedding, user, start, end, k):
    return await store.recall(embedding, k, user_id=user)


async def between_for_ever(store, embedding, user, start, end, k):
    while True:
        found = await store.recall(embedding, k, user_id=user)
        kept = [one for one in found if start <= one.created_at < end]
        if len(kept) >= k:
            return kept


async def between_without_end(store, embedding, user, start, end, k):
    return [one for one in await store.recall(embedding, 1_000, user_id=user) if start <= one.created_at < end]


def test_exercise_08_1_is_proved():
    assert_proved(
        "08-1",
        right=[score_by_negation],
        wrong={
            score_is_the_distance: "the distance came back as it was",
            score_from_two: "subtract from 1",
            score_cut_off: "cut off at 0",
            score_of_anything: "Raise a ValueError",
        },
    )


def test_exercise_08_2_is_proved():
    assert_proved(
        "08-2",
        right=[recall_by_counting],
        wrong={
            recall_as_precision: "That is precision",
            recall_by_k: "you divide by k",
            recall_uncut: "Rows behind the first k",
            recall_with_repeats: "counts twice",
            recall_of_nothing_is_nothing: "nothing was missed",
        },
    )


def test_exercise_08_3_is_proved():
    assert_proved(
        "08-3",
        right=[between_asking_for_all, between_growing],
        wrong={
            between_filtering_once: "Too few",
            between_with_the_end: "A record of exactly `end`",
            between_by_time: "not the nearest first",
            between_unfiltered: "outside the period",
            between_for_ever: "asked the store 100 times",
            between_without_end: "More than k",
        },
    )


def test_an_answer_that_is_right_in_memory_alone_is_told_on_which_engine_it_fails():
    async def right_in_memory(store, embedding, user, start, end, k):
        found = await between_asking_for_all(store, embedding, user, start, end, k)
        return found if type(store._store).__name__ == "InMemoryEpisodicStore" else found[1:]

    assert_told_on_which_engine("08-3", right_in_memory)
