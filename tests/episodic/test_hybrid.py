"""Hybrid recall on every engine: what words find and meaning misses, the other way round, and why each is there."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest

from tests.conformance.conftest import (  # noqa: F401  (fixtures, by name)
    container_postgres_episodes,
    embedded_postgres_episodes,
    episodes,
    memory_episodes,
)
from tri_memory.clock import ManualClock
from tri_memory.contracts import EpisodicRecord
from tri_memory.embedding import HashingEmbedder
from tri_memory.episodic.hybrid import hybrid_recall
from tri_memory.episodic.memory import InMemoryEpisodicStore
from tri_memory.recall.calibration import Threshold
from tri_memory.recall.decay import PRESETS
from tri_memory.recall.fusion import fuse
from tri_memory.recall.gate import Gate, written
from tri_memory.recall.lexical import LexicalIndex

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Directions:
    """Texts with directions given by hand, in degrees; any other text points along 0."""

    name, dimensions = "by hand", 2

    def __init__(self, **degrees: float) -> None:
        self.degrees = degrees
        self.calls: list[list[str]] = []
        self.threads: set[int] = set()

    def encode(self, texts):
        self.calls.append(list(texts))
        self.threads.add(threading.get_ident())
        angles = np.radians([self.degrees.get(text.split()[0], 0.0) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


async def filled(store, embedder, texts, user_id="ann", days_ago=None):
    """Each text as a session of its own, s0, s1, …; returns the store."""
    for i, (text, vector) in enumerate(zip(texts, embedder.encode(texts), strict=True)):
        at = NOON - timedelta(days=days_ago[i] if days_ago else 0)
        await store.remember(EpisodicRecord(user_id, f"s{i}", text, vector, at))
    return store


def recall(question, store, embedder, **options):
    options = {"user_id": "ann", "clock": ManualClock(NOON)} | options
    return hybrid_recall(question, episodes=store, embedder=embedder, **options)


def keys(hits):
    return [hit.candidate.key for hit in hits]


def gate_at(value, embedder):
    return Gate(Threshold(value, embedder.name), embedder.name)


# On every engine


async def test_a_chinese_word_inside_a_longer_run_is_found_by_its_words(episodes):  # noqa: F811  (public fault 34)
    embedder = Directions(今天玩成语接龙游戏=90)
    others = ["昨天下了一整天的雨", "会议改到周五下午", "火锅很辣", "作业写完了"]
    store = await filled(episodes(2), embedder, [*others, "今天玩成语接龙游戏"])
    hits = await recall("成语接龙", store, embedder, k=5)
    [found] = [hit.candidate for hit in hits if hit.candidate.text == "今天玩成语接龙游戏"]
    assert found.lexical_rank == 1
    assert found.cosine == pytest.approx(0, abs=1e-3)
    assert keys(hits)[0] == "s4", "first by words and last of five by cosine beats what no word speaks for"


async def test_an_id_that_the_cosine_puts_last_comes_first_by_the_word(episodes):  # noqa: F811
    embedder = Directions(order=80)
    texts = [f"small talk number {name}" for name in "abcdef"] + ["order BX-2207 was returned"]
    hits = await recall("What became of BX-2207?", await filled(episodes(2), embedder, texts), embedder, k=1)
    assert [(hit.candidate.text, hit.candidate.lexical_rank) for hit in hits] == [("order BX-2207 was returned", 1)]


async def test_a_paraphrase_without_a_common_word_comes_first_by_meaning(episodes):  # noqa: F811
    embedder = Directions(allergic=1, boots=70, parcel=80)
    texts = ["boots in size 41", "parcel lost in May", "allergic to pine resin"]
    [hit] = await recall("Which substance harms me", await filled(episodes(2), embedder, texts), embedder, k=1)
    assert (hit.candidate.text, hit.candidate.lexical_rank) == ("allergic to pine resin", None)
    assert hit.candidate.cosine > 0.99


async def test_every_hit_says_its_cosine_place_age_verdict_and_reason(episodes):  # noqa: F811
    embedder = Directions(refund=0, cello=60)
    store = await filled(episodes(2), embedder, ["refund for boots", "cello out of tune"], days_ago=[7, 0])
    hits = await recall("refund", store, embedder, gate=gate_at(0.7, embedder), weight=PRESETS["service"].weight, k=2)
    by_key = {hit.candidate.key: hit for hit in hits}
    refund, cello = by_key["s0"], by_key["s1"]
    assert (refund.verdict, refund.reason) == ("in", "cosine 1.00 reaches 0.70 of by hand")
    assert (refund.candidate.lexical_rank, refund.candidate.age_weight) == (1, pytest.approx(0.5))
    assert refund.candidate.created_at == NOON - timedelta(days=7)
    assert (cello.verdict, cello.reason) == ("out", "cosine 0.50 below 0.70 of by hand")
    assert (cello.candidate.lexical_rank, cello.candidate.age_weight) == (None, 1.0)
    assert written(hits) == ["[2026-02-22] refund for boots"]


async def test_equal_scores_come_in_order_of_arrival(episodes):  # noqa: F811
    embedder = Directions()
    store = await filled(episodes(2), embedder, ["same words"] * 30)
    for _ in range(2):
        assert keys(await recall("same", store, embedder, k=12)) == [f"s{i}" for i in range(12)]


async def test_another_users_better_match_stays_with_that_user(episodes):  # noqa: F811
    embedder = Directions(mine=45)
    store = await filled(episodes(2), embedder, ["refund of BX-2207"], user_id="bob")
    await filled(store, embedder, ["mine is small talk"], user_id="ann")
    assert [hit.candidate.text for hit in await recall("BX-2207", store, embedder, k=9)] == ["mine is small talk"]
    assert await recall("BX-2207", store, embedder, user_id="nobody") == []


@pytest.mark.parametrize("question", ["", "  \n", "\u200b", "\0", "\ud800"])
async def test_a_blank_question_finds_nothing_and_embeds_nothing(episodes, question):  # noqa: F811
    embedder = Directions()
    store = await filled(episodes(2), embedder, ["anything"])
    embedder.calls.clear()
    assert await recall(question, store, embedder) == []
    assert embedder.calls == []


async def test_the_engines_give_what_exact_arithmetic_gives(episodes):  # noqa: F811
    random, embedder = np.random.default_rng(10), HashingEmbedder(64)
    words = "refund parcel boots exam cello printer pump 退货 包裹 考试 水泵 过敏".split()
    texts = [" ".join(random.choice(words, 5)) for _ in range(25)]
    store = await filled(episodes(64), embedder, texts)
    vectors, question = embedder.encode(texts), "refund 考试 pump"
    cosines = vectors @ embedder.encode([question])[0]
    by_cosine = [(int(row), 0.0) for row in np.argsort(-cosines.round(4), kind="stable")]
    expected = {f"s{row}": score.value for row, score in fuse(by_cosine, LexicalIndex(texts).rank(question, 25))}
    found = keys(await recall(question, store, embedder, k=25))
    assert sorted(found) == sorted(expected)
    ties = 1e-3  # half precision may exchange two neighbours by cosine
    assert all(expected[a] >= expected[b] - ties for a, b in pairwise(found))


async def test_of_two_that_change_places_between_the_lists_the_nearer_comes_first(episodes):  # noqa: F811
    embedder, store = Directions(), episodes(2)
    for session_id, text in (("z", "a refund in a long story"), ("a", "refund")):
        [vector] = embedder.encode([text])
        await store.remember(EpisodicRecord("ann", session_id, text, vector, NOON))
    hits = await recall("refund", store, embedder)
    assert [(hit.candidate.key, hit.candidate.lexical_rank) for hit in hits] == [("z", 2), ("a", 1)]


async def test_half_an_emoji_and_a_nul_in_the_question_do_no_harm(episodes):  # noqa: F811
    embedder = HashingEmbedder(64)
    store = await filled(episodes(64), embedder, ["a cello", "a refund"])
    assert keys(await recall("\ud800 refund \0", store, embedder, k=1)) == ["s1"]


# Order


@pytest.fixture
def store():
    return InMemoryEpisodicStore()


async def test_first_by_one_and_second_by_the_other_beats_first_by_one_alone(store):
    embedder = Directions(far=50, near=5, small=20, nearest=0)
    await filled(store, embedder, ["nearest small talk", "near a refund", "small hours", "far refund refund"])
    assert keys(await recall("refund", store, embedder, k=4))[0] == "s1"


async def test_age_multiplies_the_fused_score_and_leaves_the_verdict_alone(store):
    embedder = Directions(old=0, new=30)
    await filled(store, embedder, ["old parcel", "new parcel"], days_ago=[365, 0])
    options = {"gate": gate_at(0.9, embedder), "k": 2}
    assert keys(await recall("parcel", store, embedder, **options)) == ["s0", "s1"]
    faded = await recall("parcel", store, embedder, weight=PRESETS["service"].weight, **options)
    assert [(hit.candidate.key, hit.verdict) for hit in faded] == [("s1", "out"), ("s0", "in")]


async def test_a_clock_that_has_jumped_back_makes_nothing_younger_than_new(store):
    embedder = Directions()
    await filled(store, embedder, ["parcel"], days_ago=[-3])
    [hit] = await recall("parcel", store, embedder, weight=lambda age: 1.0 if age == 0 else 0.0)
    assert hit.candidate.age_weight == 1.0


@pytest.mark.parametrize("weight", [1.5, -0.1, float("nan")])
async def test_a_weight_outside_of_0_to_1_is_refused_by_its_value(store, weight):
    await filled(store, Directions(), ["parcel"])
    with pytest.raises(ValueError, match=f"age_weight must be between 0 and 1; got {weight}"):
        await recall("parcel", store, Directions(), weight=lambda age: weight)


# The gate


async def test_the_gate_looks_at_the_cosine_and_never_at_the_fused_score(store):  # public fault 33
    embedder = Directions(refund=0)
    await filled(store, embedder, ["refund"])
    [hit] = await recall("refund", store, embedder, gate=gate_at(0.99, embedder))
    assert hit.verdict == "in", "the best fused score is 2 / 61, which no cosine threshold would let in"
    opposite = Directions(refund=180, small=20)
    far = await filled(InMemoryEpisodicStore(), opposite, ["refund", "small talk"])
    hits = await recall("a refund", far, opposite, gate=gate_at(0.0, opposite), k=2)
    assert {hit.candidate.text: hit.verdict for hit in hits} == {"refund": "out", "small talk": "in"}


async def test_k_counts_those_that_go_in_and_those_kept_out_before_them_are_shown(store):
    embedder = Directions(refund=60, near=0)
    await filled(store, embedder, ["refund of boots", "near one", "near two", "near three"])
    hits = await recall("boots", store, embedder, gate=gate_at(0.9, embedder), k=2)
    assert [(hit.candidate.key, hit.verdict) for hit in hits] == [("s0", "out"), ("s1", "in"), ("s2", "in")]


async def test_where_nothing_passes_every_candidate_is_there_with_its_reason(store):
    embedder = Directions(**{f"t{i}": 80 + i for i in range(5)})
    await filled(store, embedder, [f"t{i} talk" for i in range(5)])
    hits = await recall("refund", store, embedder, gate=gate_at(0.5, embedder), k=2)
    assert [hit.verdict for hit in hits] == ["out"] * 5
    assert written(hits) == []


async def test_without_a_gate_the_first_k_go_in_and_say_that_nobody_judged(store):
    await filled(store, Directions(), ["a", "b", "c", "d"])
    hits = await recall("q", store, Directions())
    assert [(hit.verdict, hit.reason) for hit in hits] == [("in", "no gate")] * 3


async def test_a_gate_for_another_embedders_cosines_is_refused_naming_both(store):
    other = HashingEmbedder(64)
    with pytest.raises(ValueError, match="judges cosines of hashing-64, and these come from by hand"):
        await recall("refund", store, Directions(), gate=gate_at(0.5, other))


# The edges


async def test_beyond_among_nothing_is_seen_not_even_the_very_word(store):
    embedder = Directions(refund=90)
    await filled(store, embedder, ["small talk", "more talk", "refund for BX-2207"])
    assert "s2" in keys(await recall("BX-2207", store, embedder, k=3, among=3))
    assert keys(await recall("BX-2207", store, embedder, k=3, among=2)) == ["s0", "s1"]


async def test_the_embedder_works_in_a_thread_of_its_own(store):
    embedder = await _with_one(store)
    await recall("refund", store, embedder)
    assert embedder.threads
    assert threading.get_ident() not in embedder.threads


async def _with_one(store):
    await filled(store, Directions(), ["refund"])
    return Directions()


async def test_other_coroutines_run_while_the_embedder_works(store):
    await filled(store, Directions(), ["refund"])
    loop, ran = asyncio.get_running_loop(), threading.Event()

    class Waiting(Directions):
        def encode(self, texts):
            loop.call_soon_threadsafe(ran.set)
            assert ran.wait(10), "no other coroutine ran"
            return super().encode(texts)

    assert len(await recall("refund", store, Waiting())) == 1


async def test_what_the_embedder_raises_goes_through(store):
    class Broken(Directions):
        def encode(self, texts):
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        await recall("refund", store, Broken())


@pytest.mark.parametrize("rows", [[1.0, 0.0], np.zeros((2, 2)), np.zeros((0, 2)), "no"])
async def test_an_embedder_that_gives_no_single_vector_is_named(store, rows):
    class Odd(Directions):
        def encode(self, texts):
            return rows

    with pytest.raises(ValueError, match="the embedder by hand gave the shape"):
        await recall("refund", store, Odd())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": 0}, "k must be a whole number of at least 1; got 0"),
        ({"among": 0}, "among must be a whole number of at least 1; got 0"),
        ({"user_id": " "}, "user_id must be a non-blank string"),
    ],
)
async def test_what_makes_no_sense_is_refused_also_for_a_blank_question(store, wrong, message):
    for question in ("refund", " "):
        with pytest.raises(ValueError, match=message):
            await recall(question, store, Directions(), **wrong)


@pytest.mark.parametrize("question", [None, b"refund", ["refund"]])
async def test_a_question_that_is_no_string_is_refused(store, question):
    with pytest.raises(ValueError, match="question must be a string; got"):
        await recall(question, store, Directions())


async def test_a_question_of_a_megabyte_costs_no_more_than_seconds_and_finds(store):
    embedder = HashingEmbedder()
    await filled(store, embedder, ["refund for boots", "cello"])
    hits = await recall("refund " * 150_000, store, embedder, k=1)
    assert keys(hits) == ["s0"]


async def test_an_embedder_of_another_size_than_the_stored_ones_is_refused_naming_both(store):
    await filled(store, Directions(), ["refund"])
    with pytest.raises(ValueError, match="64 dimensions, but 2 are stored"):
        await recall("refund", store, HashingEmbedder(64))
