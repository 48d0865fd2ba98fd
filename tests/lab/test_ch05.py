"""Chapter 05: its experiments count right on a real server, its panel does what a server does, and nothing is left."""

from __future__ import annotations

from uuid import uuid4

import pytest
import redis

from tri_memory import RedisSessionStore, engines
from tri_memory.contracts import ChatTurn
from tri_memory.engines import Engine
from tri_memory.engines.unavailable import Unavailable
from tri_memory.lab.chapters.ch05 import (
    crash,
    keys,
    lives,
    lost_answers,
    one_node,
    others,
    place,
    processes,
    rewrites,
    writers,
)

VISITS = ["en-shop-01-s1", "zh-shop-01-s1"]


@pytest.fixture
def prefix() -> str:
    return f"t{uuid4().hex[:8]}:"


@pytest.fixture
def raw(embedded_valkey):
    with redis.Redis.from_url(embedded_valkey, decode_responses=True) as client:
        yield client


# Processes


async def test_a_visit_in_memory_ends_with_its_process_and_one_in_redis_does_not(embedded_valkey, prefix):
    await processes.remember(VISITS[:1], None, prefix)
    assert "finds 0 turns" in await processes.ask(VISITS[:1], None, prefix)
    await processes.remember(VISITS[:1], embedded_valkey, prefix)
    stored = await processes.remember(VISITS, embedded_valkey, prefix)  # once more, and it tells the same
    found = await processes.ask(VISITS, embedded_valkey, prefix)
    assert stored.count("stored 11 turns") == found.count("finds 11 turns") == 2
    assert "那送同事了" in found
    assert len({line.split()[1] for line in (stored + "\n" + found).splitlines()}) == 4, "not four processes"


async def test_a_child_that_fails_or_hangs_is_an_error_that_says_what_it_was_to_do(monkeypatch):
    nobody = {"do": "ask", "session_id": "s", "url": "redis://127.0.0.1:1/0", "prefix": "p:"}
    with pytest.raises(RuntimeError, match="the process that was to dance failed: KeyError"):
        await processes.errand(nobody | {"do": "dance", "url": None})
    monkeypatch.setattr(processes, "PATIENCE_S", 0.01)
    with pytest.raises(TimeoutError, match="the process that was to ask had not ended"):
        await processes.errand(nobody)


# Keys


async def test_the_table_shows_every_key_of_a_session_in_one_slot_and_the_index_elsewhere(embedded_valkey, prefix, raw):
    async with RedisSessionStore.from_url(embedded_valkey, prefix=prefix, ttl_s=60) as store:
        for session_id in ("林晓蓓", "a}b"):
            await store.append(session_id, lives.HELLO)
    table = keys.table(raw, prefix).set_index("key, behind the prefix")
    assert list(table.index) == [
        *("index", "{a%7Db}", "{a%7Db}:meta", "{a%7Db}:seen"),
        *("{林晓蓓}", "{林晓蓓}:meta", "{林晓蓓}:seen"),
    ]
    assert list(table["type"]) == ["zset", "list", "hash", "zset", "list", "hash", "zset"]
    assert table["holds"]["{林晓蓓}:seen"] == "1 appends"
    assert table["slot"]["{林晓蓓}"] == table["slot"]["{林晓蓓}:meta"] != table["slot"]["{a%7Db}"]
    assert table["TTL (s)"].between(1, 60).all()
    assert "on top a}b" in table["holds"]["index"]


def test_our_slots_are_those_of_a_real_cluster(embedded_valkey):
    odd = ["a", "{a}b", "{}a", "}{a}", "{a}{b}", "{会话}:meta", "😀", "a{b", "{{a}}"]
    with one_node.cluster() as client:
        assert [client.execute_command("CLUSTER", "KEYSLOT", key) for key in odd] == [keys.slot(key) for key in odd]


def test_a_cluster_refuses_a_script_over_two_slots_and_runs_one_over_a_session(embedded_valkey):
    apart, together = one_node.what_it_says(("s:a", "s:a:meta"), ("s:{a}", "s:{a}:meta"))
    assert "refused: Keys in request don't hash to the same slot" in apart
    assert together.endswith("done")


def test_without_a_wheel_the_cluster_is_not_tried_and_says_so(monkeypatch):
    def no_wheel(*_):
        raise Unavailable("no embedded Valkey here", "use Docker")

    monkeypatch.setattr(one_node.EmbeddedValkey, "start", no_wheel)
    assert "not tried: no embedded Valkey here" in one_node.what_it_says(("a", "b"))[0]


def test_only_the_id_in_braces_keeps_sessions_whole_and_spreads_them():
    table = keys.spread([f"s{i}" for i in range(300)]).set_index("key names")
    per_node = [f"sessions on node {n}" for n in (1, 2, 3)]
    assert table["sessions whose keys share a slot"]["sess:{id}"] == "300 of 300"
    assert table["sessions whose keys share a slot"]["{sess}:id"] == "300 of 300"
    assert not table["sessions whose keys share a slot"]["sess:id"].startswith("300")
    assert sorted(table.loc["{sess}:id", per_node]) == [0, 0, 300]
    assert min(table.loc["sess:{id}", per_node]) > 60


# Rewrites


@pytest.mark.parametrize("atomic", [False, True])
def test_the_story_loses_what_was_pushed_between_reading_and_writing_back(raw, prefix, atomic):
    story = rewrites.step_by_step(raw, f"{prefix}step", atomic=atomic)
    assert [held for _, held in story] == [["1", "2", "3"], ["1", "2", "3", "b"], ["S", "3"]]
    assert not raw.exists(f"{prefix}step")


async def test_two_processes_lose_turns_by_writing_back_and_none_by_the_commit_script(embedded_valkey, prefix):
    table = await rewrites.losses(embedded_valkey, prefix, seeds=[0, 1])
    lost = table.groupby("writer").lost
    assert lost.max()["commit script"] == 0
    assert lost.min()["write back"] > 0
    assert lost.min()["write back in MULTI"] > 0
    assert (table.twice == 0).all()
    assert table[table.writer == "commit script"].summaries.between(1, 12).all()
    assert list(rewrites.loss_table(table)["lost"])[-1] == "0"


async def test_the_gate_gives_up_on_a_process_that_never_comes(monkeypatch, embedded_valkey, prefix):
    monkeypatch.setattr(writers, "GATE_S", 0.02)
    client = redis.asyncio.Redis.from_url(embedded_valkey)
    with pytest.raises(TimeoutError, match="the other writing process had not come"):
        await writers.both_are_here(client, f"{prefix}gate")
    await client.aclose()


# Who waits


async def test_the_search_among_many_keys_is_measured_in_every_way_and_leaves_no_key(embedded_valkey, prefix, raw):
    raw.set(f"{prefix}mine", "stays")
    table = await others.waits(embedded_valkey, f"{prefix}many:", [2_000, 7_000], repetitions=2)
    assert len(table) == 2 * 2 * len(others.WAYS)
    assert set(table["keys"]) == {2_000, 7_000}
    assert (table[["longest_ms", "search_ms"]] > 0).all().all()
    assert list(raw.scan_iter(f"{prefix}*")) == [f"{prefix}mine"]
    raw.delete(f"{prefix}mine")
    sentence = others.waits_sentence(table)
    assert all(way in sentence for way in others.WAYS)
    assert "with 7,000 keys" in sentence
    assert others.plot_waits(table)


async def test_a_search_that_does_not_find_its_twenty_keys_is_no_measurement(embedded_valkey, prefix, monkeypatch):
    monkeypatch.setattr(others, "FOUND", 3)

    async def none(*_):
        return 0

    monkeypatch.setattr(others, "_search", none)
    with pytest.raises(RuntimeError, match="found 0 keys, not 3"):
        await others.waits(embedded_valkey, prefix, [100], repetitions=1)


# Crashes


@pytest.fixture
def own_engine(embedded_valkey) -> Engine:
    with engines.redis("embedded", limit_s=60) as engine:
        yield engine


async def test_no_confirmed_turn_is_missing_and_none_is_doubled_when_the_server_is_killed(own_engine, prefix):
    after = await crash.append_through_crashes(own_engine, prefix, crashes=2)
    assert after.sent > 50
    assert after.crashes == 2
    assert after.missing == after.twice == ()
    assert after.longest_s > crash.DOWN_S, "no append was under way while the server was down"


async def test_the_count_after_a_crash_sees_what_is_missing_and_what_is_doubled(own_engine, prefix, monkeypatch):
    append = RedisSessionStore.append

    async def careless(self, session_id, turn):
        if turn.content.endswith("/2"):
            return
        await append(self, session_id, turn)
        if turn.content.endswith("/3"):
            await append(self, session_id, turn)

    monkeypatch.setattr(RedisSessionStore, "append", careless)
    after = await crash.append_through_crashes(own_engine, prefix, crashes=0, sessions=2)
    assert len(after.missing) == len(after.twice) == 2
    assert all(word.endswith("/2") for word in after.missing)


async def test_a_lost_answer_doubles_a_plain_push_and_not_an_append(embedded_valkey, prefix, raw):
    turns = [ChatTurn("user", f"第 {i} 句") for i in range(12)]
    found = await lost_answers.doubled(embedded_valkey, prefix, turns, every=4)
    assert found["RPUSH and retry"] == (12 + 3, 0)
    assert found["the store"] == (12, 0)
    assert [key for key in raw.scan_iter(f"{prefix}*") if not key.endswith(":index")] == []


# The house is left as it was found


def test_the_broom_takes_its_own_keys_and_no_others(raw, prefix):
    raw.mset({f"{prefix}a:{i}": "x" for i in range(1_200)} | {f"{prefix}b": "x"})
    assert place.sweep(raw, f"{prefix}a:") == 1_200
    assert raw.exists(f"{prefix}b")
    assert place.sweep(raw, prefix) == 1


def test_a_kernel_has_one_prefix_and_another_kernel_another():
    first = place.prefix()
    assert place.prefix() == first
    place.prefix.cache_clear()
    assert place.prefix() != first


def test_without_a_server_that_may_be_mistreated_the_lesson_says_so(monkeypatch):
    def no_wheel(self):
        raise Unavailable("no embedded Valkey here", "use Docker")

    monkeypatch.setattr(Engine, "start", no_wheel)
    place.spare.cache_clear()
    assert place.spare() is None
    place.spare.cache_clear()
    assert "somebody's own" in others.waits_sentence(None)


def test_somebodys_own_server_gets_no_bulk(monkeypatch):
    class Theirs:
        how = "url"

    monkeypatch.setattr(place.servers, "redis", Theirs)
    monkeypatch.setattr(place, "spare", lambda: "the spare one")
    assert place.for_bulk() == "the spare one"
