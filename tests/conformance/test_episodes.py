"""The episodic store, call by call, on every engine. Engines: conftest.py."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tri_memory import ChatTurn, InMemorySessionStore
from tri_memory.contracts import EpisodicRecord, Recollection
from tri_memory.embedding.hashing import HashingEmbedder
from tri_memory.episodic.archive import ArchiveError, archive

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def record(user_id="ann", session_id="s1", embedding=(1.0, 0.0), summary="She asked for a refund.", created_at=NOON):
    return EpisodicRecord(user_id, session_id, summary, embedding, created_at)


async def store_of(episodes, *records, dimensions=2):
    store = episodes(dimensions)
    for one in records:
        await store.remember(one)
    return store


async def sessions_found(store, query, k=10, user_id="ann"):
    return [found.session_id for found in await store.recall(query, k, user_id=user_id)]


async def test_what_was_remembered_is_recalled_whole(episodes):
    store = await store_of(episodes, record())
    assert await store.recall([1, 0], user_id="ann") == [Recollection("s1", "She asked for a refund.", 1.0, NOON)]


async def test_three_are_recalled_unless_asked_otherwise(episodes):
    store = await store_of(episodes, *(record(session_id=f"s{i}", embedding=[1, i]) for i in range(5)))
    assert [found.session_id for found in await store.recall([1, 0], user_id="ann")] == ["s0", "s1", "s2"]


async def test_equal_scores_come_in_order_of_arrival_also_at_the_kth_place(episodes):
    store = await store_of(episodes, *(record(session_id=f"s{i}", embedding=[2 + i, 2 + i]) for i in range(50)))
    assert await sessions_found(store, [1, 1], k=7) == [f"s{i}" for i in range(7)]


async def test_a_user_never_gets_the_best_match_of_another(episodes):
    store = await store_of(episodes, record("ann", "hers", [0, 1]), record("bob", "his", [1, 0]))
    assert await sessions_found(store, [1, 0]) == ["hers"]
    assert await sessions_found(store, [1, 0], user_id="Ann") == []


async def test_the_callers_vector_may_be_used_again(episodes):
    vector = np.array([1.0, 0.0], np.float32)
    store = await store_of(episodes, record(embedding=vector))
    vector[:] = [0, 1]
    assert (await store.recall([1, 0], user_id="ann"))[0].score == 1.0


# The same session again


async def test_the_same_session_again_replaces_summary_and_vector_and_keeps_place_and_time(episodes):
    store = await store_of(episodes, record(session_id="a"), record(session_id="b"))
    await store.remember(record(session_id="a", summary="Refunded.", created_at=NOON + timedelta(days=1)))
    assert await store.recall([1, 0], user_id="ann") == [
        Recollection("a", "Refunded.", 1.0, NOON),
        Recollection("b", "She asked for a refund.", 1.0, NOON),
    ]
    await store.remember(record(session_id="a", embedding=[0, 1]))
    assert await sessions_found(store, [1, 0]) == ["b", "a"]


async def test_a_session_id_of_two_users_is_two_records(episodes):
    store = await store_of(episodes, record("ann", "s1", summary="hers"), record("bob", "s1", summary="his"))
    assert [found.summary for found in await store.recall([1, 0], user_id="ann")] == ["hers"]
    assert [found.summary for found in await store.recall([1, 0], user_id="bob")] == ["his"]


# Forgetting


async def test_forgetting_counts_the_records_and_takes_the_vectors_along(episodes):
    store = await store_of(episodes, *(record(session_id=f"s{i}") for i in range(20)), record("bob", "his"))
    assert await store.forget("ann") == 20
    assert await sessions_found(store, [1, 0]) == []
    assert await store.forget("ann") == 0
    assert await sessions_found(store, [1, 0], user_id="bob") == ["his"]
    await store.remember(record(session_id="new", embedding=[0, 1]))
    assert await sessions_found(store, [1, 0]) == ["new"]


# Refusals


@pytest.mark.parametrize(
    ("embedding", "message"),
    [
        ([0, 0], "all zeros"),
        ([1, float("nan")], "finite"),
        ([float("inf"), 1], "finite"),
        (np.ones(1024), "1024 dimensions, but 2"),
        ([[1, 0]], "shape"),
        ("vector", "numbers"),
    ],
)
async def test_a_vector_that_cannot_be_compared_is_refused_and_changes_nothing(episodes, embedding, message):
    store = await store_of(episodes, record())
    with pytest.raises(ValueError, match=message):
        await store.remember(record(embedding=embedding, summary="changed"))
    with pytest.raises(ValueError, match=message):
        await store.remember(record(session_id="s2", embedding=embedding))
    assert await store.recall([1, 0], user_id="ann") == [Recollection("s1", record().summary, 1.0, NOON)]


async def test_the_size_is_one_for_all_users(episodes):
    store = await store_of(episodes, record(embedding=np.ones(384)), dimensions=384)
    with pytest.raises(ValueError, match="1024 dimensions, but 384"):
        await store.remember(record("bob", embedding=np.ones(1024)))
    with pytest.raises(ValueError, match="1024 dimensions, but 384"):
        await store.recall(np.ones(1024), user_id="bob")


async def test_what_is_no_record_is_refused(episodes):
    with pytest.raises(ValueError, match="record must be an EpisodicRecord; got 'a summary'"):
        await episodes(2).remember("a summary")


@pytest.mark.parametrize("stored", [0, 1])
async def test_a_blank_query_finds_nothing(episodes, stored):
    store = await store_of(episodes, *[record()] * stored)
    assert await store.recall([0, 0], user_id="ann") == []


@pytest.mark.parametrize("stored", [0, 1])
async def test_a_query_that_cannot_be_compared_is_refused_whether_or_not_anything_is_stored(episodes, stored):
    store = await store_of(episodes, *[record()] * stored)
    with pytest.raises(ValueError, match="got nan at position 0"):
        await store.recall([float("nan"), 1], user_id="ann")
    with pytest.raises(ValueError, match="sequence of numbers"):
        await store.recall("refund", user_id="ann")


@pytest.mark.parametrize("k", [0, -3, 2.5, True, None])
async def test_a_k_below_1_or_not_whole_is_refused(episodes, k):
    with pytest.raises(ValueError, match="k must be a whole number of at least 1; got"):
        await episodes(2).recall([1, 0], k, user_id="ann")


@pytest.mark.parametrize("user_id", ["", "  ", None, 7, "a\0b", "half an emoji \ud83d"])
async def test_without_a_user_there_is_no_memory(episodes, user_id):
    store = await store_of(episodes, record())
    with pytest.raises(ValueError, match="user_id"):
        await store.recall([1, 0], user_id=user_id)
    with pytest.raises(ValueError, match="user_id"):
        await store.forget(user_id)
    with pytest.raises(TypeError, match="user_id"):
        await store.recall([1, 0])
    assert await sessions_found(store, [1, 0]) == ["s1"]


def test_threads_with_loops_of_their_own_lose_nothing(episodes):
    store = episodes(2)

    async def write(writer):
        for i in range(50):
            await store.remember(record(session_id=f"{writer}-{i}", embedding=[1, i]))
            await store.recall([1, 0], user_id="ann")

    threads = [threading.Thread(target=lambda name=name: asyncio.run(write(name))) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asyncio.run(sessions_found(store, [1, 0], k=1_000))) == 200


class AgainstAList(RuleBasedStateMachine):
    """Any sequence of calls gives what a list of records, compared one by one in float64, would give."""

    users = st.sampled_from(["ann", "bob"])
    vectors = st.lists(st.integers(-2, 2), min_size=3, max_size=3)

    def __init__(self, episodes):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.run = self.loop.run_until_complete
        self.store = episodes(3)
        for user in ("ann", "bob"):
            self.run(self.store.forget(user))
        self.listed: dict[tuple[str, str], EpisodicRecord] = {}
        self.now = NOON

    def teardown(self):
        if hasattr(self.store, "close"):
            self.run(self.store.close())
        self.loop.close()

    @rule(user=users, session=st.integers(0, 30), vector=vectors.filter(any))
    def remember(self, user, session, vector):
        self.now += timedelta(minutes=1)
        new = record(user, f"s{session}", vector, f"at {self.now}", self.now)
        self.run(self.store.remember(new))
        old = self.listed.get((user, new.session_id))
        self.listed[user, new.session_id] = replace(new, created_at=old.created_at) if old else new

    @rule(user=users)
    def forget(self, user):
        gone = [key for key in self.listed if key[0] == user]
        assert self.run(self.store.forget(user)) == len(gone)
        for key in gone:
            del self.listed[key]

    @rule(user=users, query=vectors.filter(any), k=st.integers(1, 40))
    def recall(self, user, query, k):
        own = [one for one in self.listed.values() if one.user_id == user]
        scores = [round(cosine(one.embedding, query), 9) for one in own]
        found = self.run(self.store.recall(query, k, user_id=user))
        assert [one.score for one in found] == pytest.approx(sorted(scores, reverse=True)[:k], abs=1e-3)
        by_session = {one.session_id: one for one in own}
        for one in found:
            kept = by_session[one.session_id]
            assert (one.summary, one.created_at) == (kept.summary, kept.created_at)
            assert one.score == pytest.approx(cosine(kept.embedding, query), abs=1e-3)

    @rule(user=users)
    def twins_come_in_order_of_arrival(self, user):
        own = [one for one in self.listed.values() if one.user_id == user]
        for vector in {tuple(one.embedding) for one in own}:
            twins = [one.session_id for one in own if tuple(one.embedding) == vector]
            found = [one.session_id for one in self.run(self.store.recall(vector, 40, user_id=user))]
            assert [session for session in found if session in twins] == twins

    @invariant()
    def nobody_sees_anybody_else(self):
        for user in ("ann", "bob"):
            found = self.run(self.store.recall([1, 0, 0], 100, user_id=user))
            assert {one.session_id for one in found} == {session for own, session in self.listed if own == user}


def cosine(vector, query):
    vector, query = np.array(vector, np.float64), np.array(query, np.float64)
    return float(vector @ query / np.linalg.norm(vector) / np.linalg.norm(query))


def test_any_sequence_of_calls_gives_what_a_list_would_give(episodes, request):
    in_memory = request.node.callspec.params["episodes"] == "memory"
    most = settings(max_examples=25, stateful_step_count=40) if in_memory else settings(max_examples=4)
    run_state_machine_as_test(lambda: AgainstAList(episodes), settings=settings(most, deadline=None))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, list])
async def test_any_real_numbers_are_normalised_on_the_way_in(episodes, dtype):
    vector = [3, 4] if dtype is list else np.array([3, 4], dtype)
    store = await store_of(episodes, record(embedding=vector))
    assert (await store.recall(vector, user_id="ann"))[0].score == 1.0


class Failing:
    name, dimensions = "failing", 2

    def encode(self, texts):
        raise RuntimeError("out of memory")


async def test_when_the_embedder_raises_nothing_is_stored_and_the_error_says_so(episodes):
    store, sessions = episodes(2), InMemorySessionStore()
    await sessions.append("s1", ChatTurn("user", "My order is BX-2207."))
    with pytest.raises(ArchiveError, match=r"'s1' was not archived, nothing was stored.*out of memory"):
        await archive(
            "s1",
            user_id="ann",
            sessions=sessions,
            episodes=store,
            embedder=Failing(),
            summarizer=lambda turns: "an order",
        )
    assert await store.forget("ann") == 0


async def test_a_blank_question_is_asked_of_the_embedder_and_finds_nothing(episodes):
    embedder = HashingEmbedder()
    store = episodes(embedder.dimensions)
    await store.remember(record(embedding=embedder.encode(["My order is BX-2207."])[0]))
    for text in ("", " \n", "\u200b"):
        assert await store.recall(embedder.encode([text])[0], user_id="ann") == []
    assert len(await store.recall(embedder.encode(["order BX-2207"])[0], user_id="ann")) == 1


async def test_user_ids_full_of_signs_are_found_and_forgotten_and_nobody_else_is(episodes):
    users = ["a-b:{c}@d.com *", "a-b:{c}@d.com", "%", "_", "ann'; DROP TABLE episodes; --"]
    store = await store_of(episodes, *(record(user, "s {1} *") for user in users))
    for i, user in enumerate(users):
        assert [found.session_id for found in await store.recall([1, 0], user_id=user)] == ["s {1} *"]
        assert await store.forget(user) == 1
        left = [other for other in users if await store.recall([1, 0], user_id=other)]
        assert left == users[i + 1 :]


async def test_fifty_calls_at_once_are_all_answered(episodes):
    store = episodes(2)
    await asyncio.gather(*(store.remember(record(session_id=f"s{i}", embedding=[50 - i, i])) for i in range(50)))
    found = await asyncio.gather(*(sessions_found(store, [50 - i, i], k=1) for i in range(50)))
    assert found == [[f"s{i}"] for i in range(50)]


async def test_the_same_session_remembered_fifty_times_at_once_is_one_record(episodes):
    store = episodes(2)
    await asyncio.gather(*(store.remember(record(summary=f"summary {i}")) for i in range(50)))
    assert len(await store.recall([1, 0], 10, user_id="ann")) == 1


async def test_a_time_in_another_zone_comes_back_in_utc(episodes):
    beijing = timezone(timedelta(hours=8))
    store = await store_of(episodes, record(created_at=datetime(2026, 3, 1, 20, 0, 0, 123456, tzinfo=beijing)))
    (found,) = await store.recall([1, 0], user_id="ann")
    assert found.created_at == datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
    assert found.created_at.tzinfo is UTC


async def test_text_that_needs_care_comes_back_to_the_letter(episodes):
    text = "退款 'BX-2207' \\ \"100 %s\" {} 👨‍👩‍👧\n-- DROP TABLE"
    store = await store_of(episodes, record("用户'一", "会话 {1}", summary=text))
    (found,) = await store.recall([1, 0], user_id="用户'一")
    assert (found.session_id, found.summary) == ("会话 {1}", text)


async def test_opposite_and_square_vectors_score_minus_one_and_zero(episodes):
    store = await store_of(
        episodes,
        record(session_id="same", embedding=[2, 0]),
        record(session_id="square", embedding=[0, 5]),
        record(session_id="opposite", embedding=[-1, 0]),
    )
    found = await store.recall([1, 0], user_id="ann")
    assert [(one.session_id, one.score) for one in found] == [("same", 1.0), ("square", 0.0), ("opposite", -1.0)]
