"""Vectors, queries and times that went wrong in public memory systems, on every engine. Engines: conftest.py."""

from __future__ import annotations

import warnings
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from tri_memory.contracts import EpisodicRecord
from tri_memory.embedding import load_embedder

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def record(session_id, embedding=(1.0, 0.0), created_at=NOON):
    return EpisodicRecord("ann", session_id, f"visit {session_id}", embedding, created_at)


async def recalled(store, query, k=3):
    return [(found.session_id, found.score) for found in await store.recall(query, k, user_id="ann")]


# A score is a similarity (public fault 25)


@pytest.mark.parametrize("dimensions", [2, 37, 384, 512])
async def test_each_stored_vector_finds_itself_with_1_whatever_its_length(episodes, dimensions):
    rng = np.random.default_rng(dimensions)
    vectors = rng.standard_normal((12, dimensions)) * np.logspace(-6, 6, 12)[:, None]
    store = episodes(dimensions)
    for row, vector in enumerate(vectors):
        await store.remember(record(f"s{row}", vector))
    for row, vector in enumerate(vectors):
        assert (await recalled(store, vector, k=1)) == [(f"s{row}", 1.0)]


async def test_of_two_the_nearer_has_the_higher_score_and_both_are_cosines(episodes):
    store = episodes(2)
    await store.remember(record("far", [0, 1]))
    await store.remember(record("near", [4, 3]))
    assert await recalled(store, [1, 0]) == [("near", pytest.approx(0.8, abs=1e-3)), ("far", 0.0)]


# No direction, or hardly one (public fault 26)

ZEROS = [[0, 0], [-0.0, 0.0], np.zeros(2, np.float16), np.zeros(2, np.float32), np.zeros(2, np.int8)]


@pytest.mark.parametrize("zeros", ZEROS, ids=lambda zeros: str(getattr(zeros, "dtype", zeros)))
async def test_zeros_of_any_kind_are_never_stored_and_find_nothing_however_many_there_are(episodes, zeros):
    store = episodes(2)
    for stored in range(3):
        assert await recalled(store, zeros) == []
        with pytest.raises(ValueError, match="all zeros and has no direction"):
            await store.remember(record("zeros", zeros))
        await store.remember(record(f"s{stored}"))
    assert [session for session, _ in await recalled(store, [1, 0], k=9)] == ["s0", "s1", "s2"]


TINY_AND_HUGE = [
    np.array([6e-8, 0], np.float16),
    np.array([1e-45, 0], np.float32),
    np.array([5e-324, 0]),
    np.array([1e38, 0], np.float32),
    np.array([3.4e38, 1e-38]),
    np.array([1e308, 0]),
]


@pytest.mark.parametrize("vector", TINY_AND_HUGE, ids=lambda vector: f"{vector.dtype} {vector[0]:g}")
async def test_subnormal_and_huge_numbers_have_a_direction_stored_or_asked(episodes, vector):
    store = episodes(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        await store.remember(record("that way", vector))
        await store.remember(record("square", [0, 1]))
        assert await recalled(store, [1, 0]) == await recalled(store, vector) == [("that way", 1.0), ("square", 0.0)]


async def test_512_huge_numbers_whose_squares_overflow_float32_and_float64_score_like_small_ones(episodes):
    store = episodes(512)
    direction = np.random.default_rng(5).uniform(-1, 1, 512)
    for row, size in enumerate([1e-300, 1.0, 3e38, 1e300]):
        await store.remember(record(f"s{row}", size * direction))
    assert await recalled(store, 1e300 * direction, k=4) == [(f"s{row}", 1.0) for row in range(4)]


# A query of nothing, or of next to nothing (public fault 27)


@pytest.mark.parametrize("name", ["hashing", "use"])
async def test_a_query_that_shows_nothing_finds_nothing_and_one_of_signs_alone_gives_finite_scores(episodes, name):
    embedder = load_embedder(name)
    store = episodes(embedder.dimensions)
    await store.remember(record("tea", embedder.encode(["She likes green tea."])[0]))
    await store.remember(record("茶", embedder.encode(["她喜欢喝绿茶。"])[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for text in ("", " \t\n", "\u3000", "\u200b\ufeff", "\0", "\ud83d"):
            assert await recalled(store, embedder.encode([text])[0]) == [], repr(text)
        for text in ("？！…", "...", "😀", "👨\u200d👩\u200d👧", "the of and", "的了吗", "１２３", "\u0301"):
            found = await recalled(store, embedder.encode([text])[0])
            assert {session for session, _ in found} == {"tea", "茶"}, repr(text)
            assert all(-1 <= score <= 1 for _, score in found), repr(text)


# Times (public fault 36)


@pytest.mark.parametrize(
    "when",
    [
        datetime(2026, 3, 1, 12),  # noqa: DTZ001
        date(2026, 3, 1),
        time(12, tzinfo=UTC),
        np.datetime64("2026-03-01T12:00"),
        pd.Timestamp("2026-03-01 12:00"),
        pd.NaT,
        "2026-03-01T12:00:00Z",
        1_772_366_400,
        None,
    ],
    ids=repr,
)
async def test_what_names_no_moment_is_refused_before_any_engine_sees_it(episodes, when):
    store = episodes(2)
    with pytest.raises(ValueError, match="created_at must be an aware datetime"):
        await store.remember(record("s1", created_at=when))
    assert await recalled(store, [1, 0]) == []


async def test_the_hour_that_comes_twice_in_autumn_is_two_moments(episodes):
    berlin, store = ZoneInfo("Europe/Berlin"), episodes(2)
    first, second = (datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=fold) for fold in (0, 1))
    await store.remember(record("summer time", created_at=first))
    await store.remember(record("winter time", created_at=second))
    one, other = (found.created_at for found in await store.recall([1, 0], user_id="ann"))
    assert (one.isoformat(), other - one) == ("2026-10-25T00:30:00+00:00", timedelta(hours=1))


async def test_an_aware_pandas_time_comes_back_as_its_moment_in_utc(episodes):
    store = episodes(2)
    await store.remember(record("s1", created_at=pd.Timestamp("2026-03-01 20:00:00.123456", tz="Asia/Shanghai")))
    (found,) = await store.recall([1, 0], user_id="ann")
    assert found.created_at == NOON + timedelta(microseconds=123_456)
