"""The store of users' long-term records, call by call, on every engine. Engines: conftest.py."""

from __future__ import annotations

import asyncio
import math
import random
import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tri_memory import ManualClock, blocking
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.entity.records import Forgotten, UserMemory, UserMemoryStore

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
def store(user_memories, clock):
    return user_memories(clock=clock)


def ids(found):
    return [one.entity_id for one in found]


async def test_it_keeps_the_contract(store):
    assert isinstance(store, UserMemoryStore)


async def test_a_record_comes_back_as_it_was_put(store):
    content = {"status": "offen", "数": [1, 2.5, None, True, {"b": "é😀\n"}], "a": {}}
    written = await store.put("ann", "case", "BX-2207", content)
    assert written == UserMemory("ann", "case", "BX-2207", content, START, START, 1.0, True)
    assert await store.find("ann") == [written]
    assert (await store.find("ann"))[0].created_at.tzinfo is UTC


async def test_putting_again_replaces_the_whole_content_and_keeps_created_at(store, clock):
    await store.put("ann", "case", "BX-2207", {"status": "open", "note": "late"})
    clock.advance(hours=1)
    again = await store.put("ann", "case", "BX-2207", {"status": "closed"})
    assert again == UserMemory("ann", "case", "BX-2207", {"status": "closed"}, START, START + timedelta(hours=1))
    assert await store.find("ann") == [again]


async def test_the_same_id_under_two_types_or_two_users_is_two_records(store):
    await store.put("ann", "case", "7", {"who": "ann's case"})
    await store.put("ann", "device", "7", {"who": "ann's device"})
    await store.put("bob", "case", "7", {"who": "bob's case"})
    assert {one.content["who"] for one in await store.find("ann")} == {"ann's case", "ann's device"}
    assert [one.content["who"] for one in await store.find("bob")] == ["bob's case"]


async def test_the_newest_statement_comes_first_and_of_equals_the_newest_record(store, clock):
    for entity in ("a", "b", "c"):
        await store.put("ann", "case", entity, {})
    assert ids(await store.find("ann")) == ["c", "b", "a"]
    await store.put("ann", "case", "a", {"again": True})  # a change, at the same moment, is no newer record
    assert ids(await store.find("ann")) == ["c", "b", "a"]
    clock.advance(seconds=1)
    await store.put("ann", "case", "a", {"again": True})
    assert ids(await store.find("ann")) == ["a", "c", "b"]
    assert ids(await store.find("ann", limit=2)) == ["a", "c"]
    assert ids(await store.find("ann", limit=10**30)) == ["a", "c", "b"]


async def test_records_are_found_by_type_entity_time_and_part_of_the_content(store, clock):
    await store.put("ann", "device", "phone", {"model": "P9", "tags": ["work", "new"]})
    clock.advance(days=1)
    await store.put("ann", "case", "1", {"device": "phone"})
    clock.advance(days=1)
    await store.put("ann", "case", "2", {"device": "router", "tags": ["new"]})
    assert ids(await store.find("ann", memory_type="case")) == ["2", "1"]
    assert ids(await store.find("ann", entity_ids=["phone", "2", "nothing"])) == ["2", "phone"]
    assert ids(await store.find("ann", entity_ids=iter(["1"]))) == ["1"]
    assert ids(await store.find("ann", entity_ids=[])) == []
    assert ids(await store.find("ann", since=START + timedelta(days=1))) == ["2", "1"]
    in_china = (START + timedelta(days=2)).astimezone(timezone(timedelta(hours=8)))
    assert ids(await store.find("ann", since=in_china)) == ["2"]
    assert ids(await store.find("ann", contains={"tags": ["new"]})) == ["2", "phone"]
    assert ids(await store.find("ann", contains={})) == ["2", "1", "phone"]
    assert ids(await store.find("ann", memory_type="case", entity_ids=["1", "2"], contains={"device": "phone"})) == [
        "1"
    ]


async def test_an_entity_is_found_however_its_id_was_padded_or_composed(store):
    await store.put("ann", "device", "  cafe\u0301-7 ", {"n": 1})
    await store.put("ann", "device", "café-7", {"n": 2})
    [one] = await store.find("ann", entity_ids=["cafe\u0301-7\n"])
    assert (one.entity_id, one.content) == ("café-7", {"n": 2})


async def test_user_ids_are_taken_to_the_letter_so_that_no_two_users_become_one(store):
    users = ["ann", "Ann", "ann ", "ａｎｎ", "a%", "a_", "é", "e\u0301", "安", "ann'; DROP TABLE user_memory; --"]
    for number, user in enumerate(users):
        await store.put(user, "identity", "self", {"n": number})
    assert [[one.content["n"] for one in await store.find(user)] for user in users] == [[n] for n in range(len(users))]
    assert [await store.forget(user) for user in users] == [1] * len(users)


async def test_what_a_caller_changes_afterwards_is_not_changed_in_the_store(store):
    content = {"tags": ["new"]}
    written = await store.put("ann", "case", "1", content)
    content["tags"].append("changed")
    written.content["tags"].append("changed")
    (await store.find("ann"))[0].content["tags"].append("changed")
    assert (await store.find("ann"))[0].content == {"tags": ["new"]}


async def test_keys_come_in_one_order_whatever_the_engine_keeps(store):
    written = await store.put("ann", "case", "1", {"zz": 1, "b": {"yy": 1, "c": 2}, "aaa": 3})
    for one in (written, *await store.find("ann")):
        assert list(one.content) == ["aaa", "b", "zz"]
        assert list(one.content["b"]) == ["c", "yy"]


async def test_numbers_are_the_same_number_again(store):
    numbers = [
        0,
        -1,
        2**53 + 1,
        2**63,
        -(10**300),
        0.1,
        -0.0,
        1.0,
        1e15 + 0.5,
        1e16,
        1e22,
        1e23,
        -1.7e308,
        5e-324,
        1e-7,
    ]
    await store.put("ann", "case", "1", {"numbers": numbers})
    [one] = await store.find("ann")
    assert one.content["numbers"] == numbers
    for number in numbers:
        assert ids(await store.find("ann", contains={"numbers": [number]})) == ["1"]


async def test_containment_is_that_of_postgres(store):
    """A thousand random contents and parts: the engine asked and the one in memory find the same records."""
    rng = random.Random(20260301)

    def value(depth):
        kind = rng.randrange(6 if depth else 4)
        if kind == 4:
            return [value(depth - 1) for _ in range(rng.randrange(3))]
        if kind == 5:
            return {rng.choice("ab"): value(depth - 1) for _ in range(rng.randrange(3))}
        return rng.choice([0, 1, 1.0, True, False, None, "1", "a", ""])

    memory = InMemoryUserMemoryStore(clock=ManualClock(START))
    for number in range(40):
        content = {"k": value(3), "l": value(2)}
        for each in (store, memory):
            await each.put("ann", "case", str(number), content)
    found = 0
    for _ in range(250):
        part = {"k": value(2)}
        expected = ids(await memory.find("ann", contains=part, limit=50))
        assert ids(await store.find("ann", contains=part, limit=50)) == expected, part
        found += len(expected)
    assert found > 500


async def test_fifty_puts_at_once_leave_one_record_with_one_of_the_contents(store):
    written = await asyncio.gather(*(store.put("ann", "case", "BX-2207", {"n": n}) for n in range(50)))
    [one] = await store.find("ann")
    assert one in written
    assert {each.created_at for each in written} == {START}


async def test_fifty_entities_put_at_once_are_all_there(store):
    await asyncio.gather(*(store.put("ann", "device", f"d{n}", {"n": n}) for n in range(50)))
    assert {one.content["n"] for one in await store.find("ann", limit=100)} == set(range(50))


async def test_what_was_said_later_stands_whichever_is_written_first(store, clock):
    loves = {"food": "loves Chinese"}, START
    hates = {"food": "hates Chinese"}, START + timedelta(minutes=5)
    clock.advance(minutes=10)
    for entity, order in (("in order", [loves, hates]), ("late", [hates, loves])):
        for content, said in order:
            stands = await store.put("ann", "preference", entity, content, began_at=said)
        [one] = await store.find("ann", entity_ids=[entity])
        assert one == stands
        assert (one.content, one.updated_at) == hates


async def test_of_two_statements_of_one_moment_the_one_that_arrives_last_stands(store):
    await store.put("ann", "preference", "tea", {"n": 1})
    await store.put("ann", "preference", "tea", {"n": 2}, began_at=START)
    assert [one.content for one in await store.find("ann")] == [{"n": 2}]


async def test_a_clock_that_is_put_back_does_not_make_the_store_deaf(store, clock):
    await store.put("ann", "preference", "tea", {"n": 1})
    clock.advance(hours=-1)
    await store.put("ann", "preference", "tea", {"n": 2})
    assert [one.content for one in await store.find("ann")] == [{"n": 2}]


async def test_what_was_said_in_the_future_was_said_now(store, clock):
    one = await store.put("ann", "preference", "tea", {"n": 1}, began_at=START + timedelta(days=365))
    assert one.updated_at == START
    clock.advance(seconds=1)
    await store.put("ann", "preference", "tea", {"n": 2})
    assert [one.content for one in await store.find("ann")] == [{"n": 2}]


async def test_each_write_and_each_forgetting_gives_a_version_that_never_was(store, clock):
    seen = [await store.version("ann")]
    assert seen == [0]
    for act in (
        lambda: store.put("ann", "case", "1", {}),
        lambda: store.put("ann", "case", "1", {}),
        lambda: store.deactivate("ann"),
        lambda: store.put("ann", "case", "2", {}),
        lambda: store.forget("ann"),
        lambda: store.forget("ann"),
    ):
        await act()
        assert await store.version("ann") == await store.version("ann")
        assert await store.version("ann") not in seen
        seen.append(await store.version("ann"))
    clock.advance(days=8)
    await store.purge(clock() - timedelta(days=7))
    assert await store.version("ann") == 0
    await store.put("ann", "case", "1", {})
    assert await store.version("ann") not in seen


async def test_reading_or_another_user_does_not_change_the_version(store):
    await store.put("ann", "case", "1", {})
    before = await store.version("ann")
    await store.find("ann")
    await store.put("bob", "case", "1", {})
    await store.forget("bob")
    await store.purge(START + timedelta(days=1))
    assert await store.version("ann") == before


@pytest.mark.parametrize("how", ["deactivate", "forget"])
async def test_what_is_put_away_is_never_found_again_and_only_of_that_user(store, how):
    for entity in ("1", "2"):
        await store.put("ann", "case", entity, {"secret": "canary"})
        await store.put("bob", "case", entity, {})
    hide = getattr(store, how)
    assert await hide("ann") == 2
    assert await hide("ann") == 0
    assert await hide("nobody") == 0
    assert await store.find("ann") == []
    for options in ({"contains": {"secret": "canary"}}, {"entity_ids": ["1"]}, {"memory_type": "case"}):
        assert await store.find("ann", **options) == []
    assert ids(await store.find("bob")) == ["2", "1"]


async def test_who_comes_back_after_forgetting_begins_anew(store, clock):
    await store.put("ann", "case", "1", {"old": True})
    clock.advance(days=1)
    await store.forget("ann")
    again = await store.put("ann", "case", "1", {"new": True})
    assert again.created_at == clock()
    assert again.content == {"new": True}
    assert await store.find("ann") == [again]


async def test_purge_deletes_what_has_been_inactive_since_before_and_nothing_else(store, clock):
    await store.put("ann", "case", "1", {})
    await store.put("bob", "case", "1", {})
    await store.put("cem", "case", "1", {})
    await store.forget("ann")
    clock.advance(days=3)
    await store.deactivate("bob")
    assert await store.purge(START) == 0  # inactive since then, not before
    assert await store.purge(START + timedelta(microseconds=1)) == 1
    assert await store.purge(clock() + timedelta(days=1)) == 1
    assert await store.purge(clock() + timedelta(days=1)) == 0
    assert ids(await store.find("cem")) == ["1"]
    assert await store.version("ann") == await store.version("bob") == 0
    assert await store.version("cem") != 0


async def test_a_purge_leaves_what_is_needed_to_refuse_a_job_from_before_a_later_forgetting(store, clock):
    await store.forget("ann")
    await store.put("bob", "case", "1", {})
    await store.forget("bob")
    assert await store.purge(START) == 0
    for user in ("ann", "bob"):
        assert await store.version(user) != 0
        with pytest.raises(Forgotten):
            await store.put(user, "case", "1", {}, began_at=START)
    clock.advance(days=1)
    assert await store.purge(clock()) == 1
    assert await store.version("ann") == await store.version("bob") == 0


async def test_a_queued_job_from_before_forget_is_refused_and_one_from_after_is_not(store, clock):
    for said in (START - timedelta(days=1), START):
        await store.forget("ann")
        with pytest.raises(Forgotten, match="before its user was forgotten"):
            await store.put("ann", "case", "1", {"late": True}, began_at=said)
    assert await store.find("ann") == []
    clock.advance(seconds=1)
    await store.put("ann", "case", "1", {"new": True}, began_at=clock())
    clock.advance(seconds=1)
    with pytest.raises(Forgotten):
        await store.put("ann", "case", "2", {}, began_at=START)
    assert [one.content for one in await store.find("ann")] == [{"new": True}]


async def test_forgetting_again_with_a_clock_put_back_lets_nothing_in(store, clock):
    await store.forget("ann")
    clock.advance(hours=-1)
    await store.forget("ann")
    clock.advance(hours=2)
    with pytest.raises(Forgotten):
        await store.put("ann", "case", "1", {}, began_at=START)


async def test_a_queued_job_does_not_bring_back_the_record_that_was_put_away_since(store, clock):
    await store.put("ann", "case", "1", {"n": 1})
    clock.advance(hours=1)
    await store.deactivate("ann")
    with pytest.raises(Forgotten, match="before its record was put away"):
        await store.put("ann", "case", "1", {"n": 2}, began_at=START + timedelta(minutes=5))
    assert await store.find("ann") == []


async def test_whatever_is_called_the_engine_answers_as_the_one_in_memory(store, clock):
    """Six hundred random calls under a clock that mostly goes on and sometimes back: the same records and errors."""
    rng = random.Random(20260302)
    memory = InMemoryUserMemoryStore(clock=clock)

    def call():
        user, entity = rng.choice(["ann", "bob"]), rng.choice("abc")
        kind = rng.choice(["case", "device"])
        moment = clock() + timedelta(minutes=rng.randrange(-60, 10))
        match rng.randrange(20):
            case 0:
                return "forget", [user], {}
            case 1:
                return "deactivate", [user], {}
            case 2:
                return "purge", [moment], {}
            case 3 | 4 | 5 | 6 | 7:
                return "put", [user, kind, entity, {"n": rng.randrange(100)}], {"began_at": moment}
            case 8 | 9 | 10 | 11:
                return "put", [user, kind, entity, {"n": rng.randrange(100)}], {}
            case 12 | 13:
                return "find", [user], {"since": moment, "memory_type": kind}
            case _:
                return "find", [user], {"limit": rng.randrange(1, 8)}

    async def answer(engine, name, arguments, options):
        users = ("ann", "bob")
        before = [await engine.version(user) for user in users]
        try:
            result = await getattr(engine, name)(*arguments, **options)
        except Forgotten as error:
            result = str(error)
        return result, [await engine.version(user) == version for user, version in zip(users, before, strict=True)]

    seen = set()
    for _ in range(600):
        clock.advance(minutes=rng.choice([0, 0, 1, 5, 30, -20]))
        name, arguments, options = call()
        expected = await answer(memory, name, arguments, options)
        assert await answer(store, name, arguments, options) == expected, (name, arguments, options)
        seen.add((name, type(expected[0]).__name__, bool(expected[0])))
    assert seen >= {
        ("put", "UserMemory", True),
        ("put", "str", True),
        ("find", "list", True),
        ("find", "list", False),
        ("purge", "int", True),
        ("forget", "int", True),
        ("deactivate", "int", True),
    }


class HeldUp:
    """A clock whose reader in a thread of its own is held up after having read it, as by a long garbage collection."""

    def __init__(self) -> None:
        self.read, self.go_on, self.slow = threading.Event(), threading.Event(), threading.Event()

    def __call__(self):
        now = datetime.now(UTC)
        if threading.current_thread().name == "slow" and not self.read.is_set():
            self.read.set()
            assert self.go_on.wait(30)
        return now


async def test_a_write_that_began_before_forget_and_ends_after_it_brings_nothing_back(user_memories):
    clock = HeldUp()
    store = user_memories(clock=clock)
    await store.put("ann", "case", "0", {})
    ended = []

    def slow_save():
        try:
            asyncio.run(store.put("ann", "case", "1", {"secret": "canary"}))
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=slow_save, name="slow")
    thread.start()
    try:
        assert await asyncio.to_thread(clock.read.wait, 30)
        assert await store.forget("ann") == 1
    finally:
        clock.go_on.set()
        await asyncio.to_thread(thread.join)
    assert [type(error) for error in ended] == [Forgotten]
    assert await store.find("ann") == []


async def test_thirty_writes_and_a_forgetting_at_once_leave_only_what_was_said_after_it(user_memories):
    store = user_memories()
    for turn in range(1, 11):
        user = f"ann {turn}"
        writes = [asyncio.create_task(store.put(user, "case", str(n), {"n": n})) for n in range(30)]
        for _ in range(turn):  # after the first of these all have begun
            await asyncio.sleep(0)
        await store.forget(user)
        results = await asyncio.gather(*writes, return_exceptions=True)
        assert all(isinstance(each, UserMemory | Forgotten) for each in results)
        assert await store.find(user, limit=50) == []


@pytest.mark.parametrize("bad", ["", "  ", None, 7, "a\0", "\ud800", "x" * 257])
async def test_no_user_no_memory(store, bad):
    for call in (
        lambda: store.put(bad, "case", "1", {}),
        lambda: store.find(bad),
        lambda: store.version(bad),
        lambda: store.deactivate(bad),
        lambda: store.forget(bad),
    ):
        with pytest.raises(ValueError, match="user_id"):
            await call()


@pytest.mark.parametrize("bad", ["", " \n", None, 7, "a\0", "\ud800", "x" * 257])
async def test_an_entity_needs_an_id(store, bad):
    with pytest.raises(ValueError, match="entity_id"):
        await store.put("ann", "case", bad, {})
    with pytest.raises(ValueError, match="entity_id"):
        await store.find("ann", entity_ids=[bad])


async def test_the_longest_ids_fit(store):
    longest = "".join(chr(0x1F600 + n % 64) for n in range(256))
    await store.put(longest, "preference", longest, {})
    assert ids(await store.find(longest)) == [longest]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (None, "content must be a JSON object, such as a dict; got a NoneType"),
        ([1], "got a list"),
        ('{"a": 1}', "got a str"),
        ({"a": [0, math.nan]}, r"content\.a\[1\] is nan, which JSON does not have"),
        ({"a": -math.inf}, r"content\.a is -inf"),
        ({"a": {"b": "x\0"}}, r"content\.a\.b must not contain NUL"),
        ({"x\0": 1}, "a key in content must not contain NUL"),
        ({"a": "half \ud83d"}, r"content\.a has a lone surrogate"),
        ({"\ud83d": 1}, "a key in content has a lone surrogate"),
        ({1: "a"}, "a key in content is a int"),
        ({"a": START}, r"content\.a is a datetime"),
        ({"a": {1, 2}}, r"content\.a is a set"),
        ({"a": b"x"}, r"content\.a is a bytes"),
        ({"a": 10**400}, r"content\.a is a number of more than 300 digits"),
        ({"a": "é" * 500_000}, "content has 1,000,008 bytes as JSON, and at most 1,000,000 are stored"),
    ],
)
async def test_content_that_an_engine_cannot_keep_is_refused_and_nothing_changes(store, content, named):
    await store.put("ann", "case", "1", {"n": 1})
    before = await store.version("ann")
    with pytest.raises(ValueError, match=named):
        await store.put("ann", "case", "1", content)
    if content is not None:
        with pytest.raises(ValueError, match=named.replace("content", "contains")):
            await store.find("ann", contains=content)
    assert [one.content for one in await store.find("ann")] == [{"n": 1}]
    assert await store.version("ann") == before


async def test_content_within_itself_is_refused_and_a_hundred_levels_fit(store):
    deep = {}
    for _ in range(100):
        deep = {"a": deep}
    await store.put("ann", "case", "1", deep)
    assert (await store.find("ann", contains=deep))[0].content == deep
    endless = {}
    endless["a"] = endless
    for content in ({"a": deep}, endless):
        with pytest.raises(ValueError, match="more than 100 objects and lists inside each other"):
            await store.put("ann", "case", "1", content)


async def test_a_million_bytes_fit(store):
    content = {"a": "é" * 499_996}
    await store.put("ann", "case", "1", content)
    assert [one.content for one in await store.find("ann")] == [content]


@pytest.mark.parametrize("content", [{"session_id": "s1"}, {"session_ids": ["s0", "s1"]}])
async def test_the_id_of_a_session_is_never_a_users(store, content):
    with pytest.raises(ValueError, match="user_id is the id of a session"):
        await store.put("s1", "case", "1", content)
    assert await store.put("ann", "case", "1", content)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"memory_type": "cases"}, "memory_type must be one of identity, preference, case, device; got 'cases'"),
        ({"memory_type": ["case"]}, "memory_type"),
        ({"entity_ids": "BX-2207"}, r"entity_ids must be several ids; got the string 'BX-2207': write \[entity_id\]"),
        ({"since": datetime(2026, 3, 1)}, "since must be an aware datetime"),  # noqa: DTZ001
        ({"since": "2026-03-01"}, "since"),
        ({"limit": 0}, "limit must be a whole number of at least 1"),
        ({"limit": 2.5}, "limit"),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(store, options, named):
    with pytest.raises(ValueError, match=named):
        await store.find("ann", **options)


async def test_other_arguments_that_make_no_sense_are_refused(store):
    naive = datetime(2026, 3, 1)  # noqa: DTZ001
    with pytest.raises(ValueError, match="memory_type"):
        await store.put("ann", "order", "1", {})
    with pytest.raises(ValueError, match="began_at must be an aware datetime"):
        await store.put("ann", "case", "1", {}, began_at=naive)
    with pytest.raises(ValueError, match="before must be an aware datetime"):
        await store.purge(naive)


async def test_a_clock_without_a_zone_is_refused(user_memories):
    store = user_memories(clock=lambda: datetime(2026, 3, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="the clock's time must be an aware datetime"):
        await store.put("ann", "case", "1", {})


async def test_times_at_the_ends_of_the_calendar_are_kept(user_memories):
    clock = ManualClock(datetime.max.replace(tzinfo=UTC))
    store = user_memories(clock=clock)
    first = datetime.min.replace(tzinfo=UTC)
    await store.put("ann", "case", "1", {}, began_at=first)
    await store.put("ann", "case", "2", {})
    assert [one.updated_at for one in await store.find("ann", since=first)] == [clock(), first]


def test_it_works_as_plain_calls_too(user_memories):
    plain = blocking(user_memories())
    plain.put("ann", "case", "1", {"n": 1})
    assert [one.content for one in plain.find("ann")] == [{"n": 1}]
    assert plain.forget("ann") == 1
