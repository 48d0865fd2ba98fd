"""The exercises of chapter 16: good tests pass, each typical hole in a test is named."""

from __future__ import annotations

import asyncio
import math

import pytest

from tests.lab.proof import assert_proved
from tri_memory import ChatTurn
from tri_memory.lab.chapters.ch02.writers import CoverageSummarizer, numbered_turns
from tri_memory.lab.exercises import ch16, ch16_versions, check

ROWS = [[-2, 0], [0, 3], [4, 4], [7, 0]]


def nearest_by_angle(nearest):
    rows = [[math.cos(a), math.sin(a)] for a in (0.1, 2.5, 1.0, math.pi)]
    rows[2] = [9 * x for x in rows[2]]
    found = nearest([3, 0], rows, 3)
    assert [row for row, _ in found] == [0, 2, 1]
    for row, score in nearest([3, 0], rows, 4):
        assert math.isclose(score, math.cos((0.1, 2.5, 1.0, math.pi)[row]), abs_tol=1e-5)


def nearest_exactly(nearest):
    assert nearest([1, 0], [[1, 1]], 1) == [(0, 0.5**0.5)]


def nearest_of_a_zero_row(nearest):
    assert nearest([1, 0], [[1, 0], [0, 0]], 1)[0][0] == 0


def nearest_takes_a_pair_for_a_row(nearest):
    assert nearest([1, 0], ROWS, 2)[0] == 3


def nearest_asserts_nothing(nearest):
    nearest([1, 0], ROWS, 2)


def nearest_says_true(nearest):
    return nearest([1, 0], ROWS, 2)[0][0] == 3


def nearest_one_alone(nearest):
    assert abs(nearest([1, 0], ROWS, 1)[0][1] - 1) < 1e-6


def nearest_all_rows(nearest):
    found = nearest([1, 0], ROWS, 4)
    assert [row for row, _ in found] == [3, 2, 1, 0]
    assert abs(found[0][1] - 1) < 1e-6


def nearest_of_unit_rows(nearest):
    found = nearest([1, 0], [[1, 0], [0, 1], [-1, 0]], 2)
    assert [row for row, _ in found] == [0, 1]
    assert abs(found[0][1] - 1) < 1e-6


def nearest_without_an_opposite(nearest):
    found = nearest([1, 0], ROWS, 2)
    assert [row for row, _ in found] == [3, 2]
    assert abs(found[0][1] - 1) < 1e-6


def clearing(users, sessions=("s1", "s2"), others=True):
    def clearing_holds(make):
        for leaver in users:
            store = make()
            for user in users:
                for session in sessions:
                    store.add(user, session, "hello")
            assert store.clear(leaver) == len(sessions)
            assert store.sessions(leaver) == []
            for user in {*users} - {leaver} if others else ():
                assert sorted(store.sessions(user)) == sorted(sessions)

    return clearing_holds


def clearing_an_unknown_user_raises(make):
    try:
        make().clear("nobody")
    except KeyError:
        return
    raise AssertionError("nobody was cleared")


async def sends(make, check_held, *, seconds=0.01, gap_s=0.001, failing=True, forgiving=False):
    sent, summarizer = numbered_turns(40), CoverageSummarizer(seconds)
    writer = make(summarizer)
    async with asyncio.TaskGroup() as group:
        for turn in sent:
            task = group.create_task(writer.append(turn))
            if gap_s is None:
                await task
            else:
                await asyncio.sleep(gap_s)
    check_held(sent, summarizer.stands_for(await writer.history()))
    if failing:
        await fails(make, sent, forgiving)


async def fails(make, sent, forgiving):
    async def down(span):
        raise OSError("no model")

    writer = make(down)
    for turn in sent:
        try:
            await writer.append(turn)
        except OSError:
            if not forgiving:
                raise
    assert {turn.content for turn in sent} <= {turn.content for turn in await writer.history()}


def every(sent, held):
    assert {turn.content for turn in sent} <= held


def the_first(sent, held):
    assert sent[0].content in held


def nothing(sent, held):
    pass


def writer_by(check_held, **options):
    async def writer_holds(make):
        await sends(make, check_held, **options)

    return writer_holds


async def writer_of_two_bursts(make):
    summarizer = CoverageSummarizer(0.02)
    writer = make(summarizer)
    sent = [ChatTurn("user", f"第{i}句") for i in range(60)]
    for start in (0, 30):
        await asyncio.gather(*(writer.append(turn) for turn in sent[start : start + 30]))
    every(sent, summarizer.stands_for(await writer.history()))
    await fails(make, sent[:13], False)


async def writer_that_wants_seven(make):
    writer = make(CoverageSummarizer(0))
    for turn in numbered_turns(40):
        await writer.append(turn)
    assert len(await writer.history()) == 7


async def writer_that_asserts_in_a_task(make):
    async def one(turn):
        await make(CoverageSummarizer(0)).append(turn)
        assert turn.content == "never"

    async with asyncio.TaskGroup() as group:
        group.create_task(one(numbered_turns(1)[0]))


def writer_without_await(make):
    return None


def test_exercise_16_1_is_proved():
    assert_proved(
        "16-1",
        right=[nearest_by_angle],
        wrong={
            nearest_asserts_nothing: "its scores are distances",
            nearest_one_alone: "the nearest comes last",
            nearest_all_rows: "whatever k is",
            nearest_of_unit_rows: "a longer row gets a higher score",
            nearest_without_an_opposite: "an opposite row gets 1.0",
            nearest_exactly: "fails on a right version",
            nearest_takes_a_pair_for_a_row: "ROWS, 2)[0] == 3” fails on a right version",
            nearest_of_a_zero_row: "no vector is zero",
            nearest_says_true: "Your test returns True",
        },
    )


def test_exercise_16_2_is_proved():
    names = ["ann", "annie", "ann:work", "a*", "[vip] j", "Ann"]
    assert_proved(
        "16-2",
        right=[clearing(names), clearing(["李", "李*", "李:1", "李雷", "x", "X"], ("a", "b", "c"))],
        wrong={
            clearing(names, others=False): "it clears everybody",
            clearing(names, sessions=("s1",)): "only one session goes",
            clearing(["ann", "bob"]): "users whose name begins alike",
            clearing(["ann", "annie"]): "the sign between user and session",
            clearing(["ann", "annie", "ann:work"]): "a name is taken for a pattern",
            clearing(names[:-1]): "“Ann” and “ann” are one user",
            clearing_an_unknown_user_raises: '“raise AssertionError("nobody was cleared")”',
        },
    )


def test_exercise_16_3_is_proved():
    assert_proved(
        "16-3",
        right=[writer_by(every), writer_of_two_bursts],
        wrong={
            writer_by(nothing, failing=False): "a new summary replaces the old one",
            writer_by(the_first, failing=False): "its model sees a few",
            writer_by(every, gap_s=None): "two folds at once",
            writer_by(every, failing=False): "a placeholder stands for the old turns",
            writer_by(every, forgiving=True): "`append` raises and the conversation stops",
            writer_that_wants_seven: "“assert len(await writer.history()) == 7”",
            writer_that_asserts_in_a_task: '“assert turn.content == "never"”',
            writer_without_await: "It should be a coroutine",
        },
    )


def test_praise_says_what_a_test_was_run_on():
    assert check("16-1", nearest_by_angle).message == ch16.PRAISE


def test_a_test_that_never_ends_is_told_so(monkeypatch):
    async def endless(make):
        await asyncio.sleep(3_600)

    monkeypatch.setattr(ch16, "LIMIT_S", 0.05)
    assert "still running after 0.05 s on a right version" in check("16-3", endless).message


@pytest.mark.parametrize("group", [ch16.NEAREST, ch16.STORES, ch16.WRITERS])
def test_each_broken_version_is_told_in_words_of_its_own(group):
    assert len({why[:30] for _, why in group}) == len(group)
    assert len({version for version, _ in group}) == len(group)


def test_a_capped_writer_keeps_what_it_has_where_its_model_fails():
    """The faults are one each: a version that had two would hide a hole in a test."""

    async def down(span):
        raise OSError

    async def kept(version):
        writer = version(down)
        for turn in numbered_turns(20):
            await writer.append(turn)
        return len(await writer.history())

    for version in (ch16_versions.Capped, ch16_versions.ForgetsTheOldSummary, ch16_versions.FoldsTwice):
        assert asyncio.run(kept(version)) == 20
