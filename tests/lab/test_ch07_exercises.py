"""Chapter 07: its checkers tell right from wrong, on each engine that this machine has."""

from __future__ import annotations

import asyncio

import numpy as np

from tests.lab.proof import assert_proved, assert_told_on_which_engine


def nearest_by_unit_rows(matrix, query, k):
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.argsort(-(unit @ (query / np.linalg.norm(query))), kind="stable")[:k].tolist()


def nearest_by_sorted(matrix, query, k):
    scores = np.einsum("nd,d->n", matrix, query) / np.sqrt((matrix * matrix).sum(axis=1))
    return sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:k]


def nearest_by_product(matrix, query, k):
    return np.argsort(-(matrix @ query), kind="stable")[:k]


def nearest_upside_down(matrix, query, k):
    return np.argsort(matrix @ query / np.linalg.norm(matrix, axis=1), kind="stable")[:k]


def nearest_reversed(matrix, query, k):
    return np.argsort(matrix @ query / np.linalg.norm(matrix, axis=1), kind="stable")[::-1][:k]


def nearest_in_a_loop(matrix, query, k):
    scores = [row @ query / np.linalg.norm(row) for row in matrix]
    return np.argsort(-np.array(scores), kind="stable")[:k]


def nearest_by_index(matrix, query, k):
    scores = [matrix[i] @ query / np.linalg.norm(matrix[i]) for i in range(len(matrix))]
    return np.argsort(-np.array(scores), kind="stable")[:k]


def nearest_without_k(matrix, query, k):
    return np.argsort(-(matrix @ query) / np.linalg.norm(matrix, axis=1), kind="stable")


def nearest_scores(matrix, query, k):
    return np.sort(matrix @ query / np.linalg.norm(matrix, axis=1))[::-1][:k]


def nearest_in_place(matrix, query, k):
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.argsort(-(matrix @ query), kind="stable")[:k]


def rates_by_loop(asked, k):
    hit = complete = count = 0
    for found, gold in asked:
        if not gold:
            continue
        count += 1
        hit += any(one in gold for one in found[:k])
        complete += all(one in found[:k] for one in gold)
    return [hit / max(count, 1), complete / max(count, 1)]


def rates_the_wrong_way_round(asked, k):
    return tuple(rates_by_loop(asked, k))[::-1]


def rates_with_misses(asked, k):
    hit = sum(bool(set(found[:k]) & gold) for found, gold in asked)
    complete = sum(bool(gold) and gold <= set(found[:k]) for found, gold in asked)
    return hit / len(asked), complete / len(asked)


def rates_with_the_empty_set(asked, k):
    hit = sum(bool(set(found[:k]) & gold) for found, gold in asked)
    complete = sum(gold <= set(found[:k]) for found, gold in asked)
    return hit / len(asked), complete / len(asked)


def rates_as_a_mean(asked, k):
    pairs = [(set(found[:k]), gold) for found, gold in asked if gold]
    if not pairs:
        return 0.0, 0.0
    return rates_by_loop(asked, k)[0], sum(len(first & gold) / len(gold) for first, gold in pairs) / len(pairs)


def rates_uncut(asked, k):
    return tuple(rates_by_loop(asked, 99))


def rates_that_divide_by_zero(asked, k):
    pairs = [(set(found[:k]), gold) for found, gold in asked if gold]
    if not pairs:
        return 1.0, 1.0
    return tuple(rates_by_loop(asked, k))


def rates_as_one_number(asked, k):
    return rates_by_loop(asked, k)[0]


async def sessions_in_an_executor(store, embedder, question, user, k=3, least=0.0):
    loop = asyncio.get_running_loop()
    [vector] = await loop.run_in_executor(None, embedder.encode, (question,))
    found = await store.recall(vector, k, user_id=user)
    return [one.session_id for one in found if one.score >= least]


async def sessions_from_more(store, embedder, question, user, k=3, least=0.0):
    rows = await asyncio.to_thread(embedder.encode, [question])
    found = await store.recall(rows[0], 100, user_id=user)
    return [one.session_id for one in sorted(found, key=lambda one: -one.score) if one.score >= least][:k]


async def sessions_in_the_loop(store, embedder, question, user, k=3, least=0.0):
    found = await store.recall(embedder.encode([question])[0], k, user_id=user)
    return [one.session_id for one in found if one.score >= least]


async def sessions_of_one_text(store, embedder, question, user, k=3, least=0.0):
    rows = await asyncio.to_thread(embedder.encode, question)
    return [one.session_id for one in await store.recall(rows[0], k, user_id=user)]


async def sessions_of_any_score(store, embedder, question, user, k=3, least=0.0):
    rows = await asyncio.to_thread(embedder.encode, [question])
    return [one.session_id for one in await store.recall(rows[0], k, user_id=user)]


async def sessions_of_any_number(store, embedder, question, user, k=3, least=0.0):
    rows = await asyncio.to_thread(embedder.encode, [question])
    return [one.session_id for one in await store.recall(rows[0], 100, user_id=user)]


async def sessions_of_everybody(store, embedder, question, user, k=3, least=0.0):
    rows = await asyncio.to_thread(embedder.encode, [question])
    return [one.session_id for one in await store.recall(rows[0], k, user_id=f"{user}-other") if one.score >= least]


async def sessions_worst_first(store, embedder, question, user, k=3, least=0.0):
    return (await sessions_in_an_executor(store, embedder, question, user, k, least))[::-1]


async def sessions_as_records(store, embedder, question, user, k=3, least=0.0):
    rows = await asyncio.to_thread(embedder.encode, [question])
    return await store.recall(rows[0], k, user_id=user)


async def sessions_above(store, embedder, question, user, k=3, least=0.0):
    return (await sessions_in_an_executor(store, embedder, question, user, k, least + 0.5))[:k]


def test_exercise_07_1_is_proved():
    assert_proved(
        "07-1",
        right=[nearest_by_unit_rows, nearest_by_sorted],
        wrong={
            nearest_by_product: "Long rows win",
            nearest_upside_down: "argsort sorts upwards",
            nearest_reversed: "not in order of arrival",
            nearest_in_a_loop: "in a loop",
            nearest_by_index: "one at a time",
            nearest_without_k: "rows came back",
            nearest_scores: "the numbers of the rows",
            nearest_in_place: "changes the matrix",
        },
    )


def test_exercise_07_2_is_proved():
    assert_proved(
        "07-2",
        right=[rates_by_loop],
        wrong={
            rates_the_wrong_way_round: "wrong way round",
            rates_with_misses: "counts as a miss",
            rates_with_the_empty_set: "counts as all found",
            rates_as_a_mean: "mean share of the gold",
            rates_uncut: "behind the first k",
            rates_that_divide_by_zero: "nothing to divide by",
            rates_as_one_number: "two numbers",
        },
    )


def test_exercise_07_3_is_proved():
    assert_proved(
        "07-3",
        right=[sessions_in_an_executor, sessions_from_more],
        wrong={
            sessions_in_the_loop: "Encode in a thread",
            sessions_of_one_text: "encode takes a list",
            sessions_of_any_score: "less than `least`",
            sessions_of_any_number: "More than k",
            sessions_of_everybody: "another user",
            sessions_worst_first: "not the best first",
            sessions_as_records: "a list of session ids",
            sessions_above: "Not the k nearest",
        },
    )


def test_an_answer_that_is_right_in_memory_alone_is_told_on_which_engine_it_fails():
    async def right_in_memory(store, embedder, question, user, k=3, least=0.0):
        found = await sessions_in_an_executor(store, embedder, question, user, k, least)
        return found if type(store).__name__ == "InMemoryEpisodicStore" else found[1:]

    assert_told_on_which_engine("07-3", right_in_memory)
