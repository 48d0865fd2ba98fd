"""Chapter 05's checkers tell right from wrong, on every engine that this machine has."""

from __future__ import annotations

import asyncio
import hashlib
from urllib.parse import quote

import pytest
from redis.exceptions import WatchError

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


# 05-3

DROP = """
local gone = 0
for i = 1, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) %s then gone = gone + redis.call('ZREM', KEYS[1], ARGV[i]) end
end
return gone
"""


async def drop_watching(client, index, seen):
    async with client.pipeline() as pipe:
        while True:
            try:
                await pipe.watch(index)
                ghosts = [member for member, score in seen if await pipe.zscore(index, member) == score]
                pipe.multi()
                for member in ghosts:
                    pipe.zrem(index, member)
                return sum(await pipe.execute())
            except WatchError:
                continue


async def drop_by_registered_script(client, index, seen):
    script = client.register_script(DROP % "== ARGV[i + 1]")
    return await script(keys=[index], args=[part for member, score in seen for part in (member, f"{score:.0f}")])


async def drop_one_by_one_in_scripts(client, index, seen):
    gone = 0
    for member, score in seen:
        gone += await client.eval(DROP % "== ARGV[i + 1]", 1, index, member, f"{score:.0f}")
    return gone


async def drop_blindly(client, index, seen):
    return await client.zrem(index, *(member for member, _ in seen))


async def drop_after_a_look(client, index, seen):
    gone = 0
    for member, score in seen:
        if await client.zscore(index, member) == score:
            gone += await client.zrem(index, member)
    return gone


async def drop_after_a_look_at_all(client, index, seen):
    now = dict(await client.zrange(index, 0, -1, withscores=True))
    return await client.zrem(index, *(member for member, score in seen if now.get(member) == score))


async def drop_in_a_pipeline_after_a_look(client, index, seen):
    async with client.pipeline() as pipe:
        for member, _ in seen:
            pipe.zscore(index, member)
        scores = await pipe.execute()
        for (member, score), now in zip(seen, scores, strict=True):
            if score == now:
                pipe.zrem(index, member)
        return sum(await pipe.execute())


async def drop_comparing_text(client, index, seen):
    return await client.eval(DROP % "== ARGV[i + 1]", 1, index, *(part for entry in seen for part in entry))


async def drop_by_score(client, index, seen):
    return await client.zremrangebyscore(index, "-inf", max(score for _, score in seen))


async def drop_the_first_only(client, index, seen):
    arguments = [part for entry in seen for part in entry][:6]
    return await client.eval(DROP.replace("%s", "+ 0 == ARGV[i + 1] + 0"), 1, index, *arguments)


async def drop_without_a_count(client, index, seen):
    await drop_watching(client, index, seen)


def test_exercise_05_3_is_proved():
    assert_proved(
        "05-3",
        right=[drop_watching, drop_by_registered_script, drop_one_by_one_in_scripts],
        wrong={
            drop_blindly: "was written to after you were told its score",
            drop_after_a_look: "between your look and your ZREM",
            drop_comparing_text: "Nothing was removed",
            drop_by_score: "were not in `seen`",
            drop_the_first_only: "are still in the index",
            drop_without_a_count: "should return how many entries it removed",
        },
    )


@pytest.mark.parametrize("racing", [drop_after_a_look_at_all, drop_in_a_pipeline_after_a_look])
def test_every_kind_of_look_meets_an_append_that_comes_right_after_it(racing):
    assert "between your look and your ZREM" in check("05-3", racing).message


async def never_ending(*_):
    await asyncio.sleep(3_600)


@pytest.mark.parametrize("exercise_id", ["05-2", "05-3"])
def test_a_plain_function_and_one_that_never_ends_are_told_what_is_wrong(exercise_id, monkeypatch):
    monkeypatch.setattr(ch05_index, "PATIENCE_S", 0.05)
    assert "should be an async def" in check(exercise_id, lambda *_: 2).message
    assert "had not ended" in check(exercise_id, never_ending).message


def test_every_question_has_one_right_choice_or_a_model_answer():
    questions = questions_of("05")
    assert 3 <= len(questions) <= 6
    for question in questions:
        assert [option.right for option in question.options].count(True) == 1 or question.model_answer
