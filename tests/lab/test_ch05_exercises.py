"""Chapter 05's checkers tell right from wrong, on every engine that this machine has."""

from __future__ import annotations

import asyncio
import hashlib
from urllib.parse import quote

import pytest

from tests.lab.proof import assert_proved
from tri_memory.lab import servers
from tri_memory.lab.exercises import ch05_index
from tri_memory.lab.exercises.kit import check, questions_of

# 05-1


def named(turns):
    return turns, f"{turns}:meta", f"{turns}:lock"


def keys_quoted(session_id):
    return named(f"s:{{{quote(session_id, safe='')}}}")


def keys_hashed(session_id):
    return named(f"{{{hashlib.sha256(session_id.encode()).hexdigest()}}}")


def keys_without_braces(session_id):
    return named(f"sess:{session_id}")


def keys_with_the_raw_id(session_id):
    return named(f"sess:{{{session_id}}}")


def keys_dropping_braces(session_id):
    return named(f"sess:{{x{session_id.replace('{', '').replace('}', '')}}}")


def keys_forgetting_the_percent_sign(session_id):
    return named(f"sess:{{{session_id.replace('{', '%7B').replace('}', '%7D')}}}")


def keys_in_one_slot(session_id):
    return named(f"{{sess}}:{quote(session_id, safe='')}")


def keys_that_are_one(session_id):
    return (f"{{{quote(session_id, safe='')}}}",) * 3


def keys_as_bytes(session_id):
    return tuple(key.encode() for key in keys_quoted(session_id))


def keys_without_separator(session_id):
    tag = f"{{{len(session_id)}}}"
    return tag + session_id, tag + session_id + ":meta", tag + session_id + ":lock"


def test_exercise_05_1_is_proved():
    assert_proved(
        "05-1",
        right=[keys_quoted, keys_hashed],
        wrong={
            keys_without_braces: "Put the id into braces",
            keys_with_the_raw_id: "brought braces of its own",
            keys_in_one_slot: "one node of the cluster would have all the work",
            keys_that_are_one: "need a key each",
            keys_as_bytes: "should return three texts",
        },
    )


@pytest.mark.parametrize("collides", [keys_dropping_braces, keys_forgetting_the_percent_sign])
def test_two_ids_in_one_key_are_named_both(collides):
    verdict = check("05-1", collides)
    assert not verdict.passed
    assert "Two sessions in one key" in verdict.message


def test_a_tag_that_is_not_the_sessions_own_is_no_right_answer():
    assert not check("05-1", keys_without_separator).passed


# 05-2


async def fork_by_a_huge_window(store, source, target):
    if target in [row.session_id for row in await store.list_sessions()]:
        raise ValueError(target)
    turns = await store.get_window(source, 1_000_000)
    for turn in turns:
        await store.append(target, turn)
    return len(turns)


async def fork_by_window(store, source, target):
    if await store.get_history(target):
        raise ValueError(target)
    turns = await store.get_window(source)
    for turn in turns:
        await store.append(target, turn)
    return len(turns)


async def fork_backwards(store, source, target):
    turns = await store.get_history(source)
    for turn in reversed(turns):
        await store.append(target, turn)
    return len(turns)


async def fork_unchecked(store, source, target):
    turns = await store.get_history(source)
    for turn in turns:
        await store.append(target, turn)
    return len(turns)


async def fork_checked_too_late(store, source, target):
    before = await store.get_history(target)
    copied = await fork_unchecked(store, source, target)
    if before:
        raise ValueError(target)
    return copied


async def fork_by_moving(store, source, target):
    copied = await fork_unchecked(store, source, target)
    await store.clear(source)
    return copied


async def fork_without_a_count(store, source, target):
    await fork_unchecked(store, source, target)


async def fork_all_at_once(store, source, target):
    if await store.get_history(target):
        raise ValueError(target)
    turns = await store.get_history(source)
    await asyncio.gather(*(store.append(target, turn) for turn in turns))
    return len(turns)


def test_exercise_05_2_is_proved():
    assert_proved(
        "05-2",
        right=[fork_by_a_huge_window],
        wrong={
            fork_by_window: "A window is not the history",
            fork_backwards: "in another order",
            fork_unchecked: "no ValueError says so",
            fork_checked_too_late: "only after it had changed the target",
            fork_by_moving: "the source is no longer what it was",
            fork_without_a_count: "should return how many turns it copied",
        },
    )


def test_appends_sent_all_at_once_pass_in_memory_and_are_caught_by_a_real_engine(embedded_valkey):
    verdicts = [check("05-2", fork_all_at_once) for _ in range(5)]  # luck may keep the order once
    caught = [verdict for verdict in verdicts if not verdict.passed]
    assert caught
    assert "in another order" in caught[0].message
    assert "On the engine 'memory'" not in caught[0].message


def test_the_checker_says_on_which_engine_an_answer_fails(embedded_valkey):
    async def for_redis_only(store, source, target):
        if type(store).__name__ == "InMemorySessionStore":
            return await fork_by_a_huge_window(store, source, target)
        return await fork_by_window(store, source, target)

    message = check("05-2", for_redis_only).message
    assert "On the engine 'embedded'" in message or "On the engine 'container'" in message


def test_the_checker_leaves_no_session_behind(embedded_valkey):
    import redis

    check("05-2", fork_unchecked)
    for prefer in ("container", "embedded"):
        engines = servers._every("Redis", servers.engines.redis)
        if prefer in engines:
            with redis.Redis.from_url(engines[prefer].url) as client:
                assert list(client.scan_iter("lesson:*")) == []


async def never_ending(*_):
    await asyncio.sleep(3_600)


@pytest.mark.parametrize("exercise_id", ["05-2", "05-3"])
def test_a_plain_function_and_one_that_never_ends_are_told_what_is_wrong(embedded_valkey, exercise_id, monkeypatch):
    monkeypatch.setattr(ch05_index, "PATIENCE_S", 0.05)
    assert "should be an async def" in check(exercise_id, lambda *_: 2).message
    assert "had not ended" in check(exercise_id, never_ending).message


def test_every_question_has_one_right_choice_or_a_model_answer():
    questions = questions_of("05")
    assert 3 <= len(questions) <= 6
    for question in questions:
        assert [option.right for option in question.options].count(True) == 1 or question.model_answer
