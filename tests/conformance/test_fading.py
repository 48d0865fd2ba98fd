"""Fading, archive and return, on every engine that has them. Engines: conftest.py."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from uuid import uuid4

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tri_memory import InMemoryEpisodicStore, ManualClock
from tri_memory.contracts import EpisodicRecord, Recollection
from tri_memory.episodic import pgvector_archive
from tri_memory.episodic.fading import Archived, Faded, FadingStore, MemoryId
from tri_memory.recall.decay import Use, is_archived, step

EVENING = datetime(2026, 1, 1, 23, 30, tzinfo=UTC)
ENGINES = ["memory", "embedded_postgres", "container_postgres"]


def record(user_id="ann", session_id="s1", embedding=(1.0, 0.0), summary="A refund.", created_at=EVENING):
    return EpisodicRecord(user_id, session_id, summary, embedding, created_at)


@asynccontextmanager
async def on(engine, url, clock):
    """An empty store; its tables go when the test ends."""
    if engine == "memory":
        yield InMemoryEpisodicStore(clock=clock)
        return
    from tri_memory import PgVectorEpisodicStore

    table = f"t_{uuid4().hex}"
    async with PgVectorEpisodicStore(url, 2, table=table, clock=clock) as store:
        yield store
    await drop(url, table)


async def drop(url, table):
    import psycopg

    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(f"DROP TABLE IF EXISTS {table}, {table}_archive")


@pytest.fixture(params=ENGINES)
def server(request):
    """(engine, the URL of its server)."""
    return request.param, "" if request.param == "memory" else request.getfixturevalue(request.param)


@pytest.fixture
def clock():
    return ManualClock(EVENING)


@pytest.fixture
async def store(server, clock):
    async with on(*server, clock) as store:
        yield store


async def recalled(store, user_id="ann"):
    return [found.session_id for found in await store.recall([1, 0], 1_000, user_id=user_id)]


async def kept_for_audit(store, user_id="ann"):
    return [one.session_id for one in await store.archived(user_id)]


async def remember(store, *records):
    for one in records:
        await store.remember(one)


def test_it_keeps_the_contract(store):
    assert isinstance(store, FadingStore)


# The nightly job


async def test_what_nobody_used_for_three_months_is_archived_and_not_recalled(store, clock):
    await remember(store, record(), record("bob", "s2", created_at=EVENING + timedelta(days=1)))
    clock.advance(days=89)
    assert await store.fade() == Faded(2)
    clock.advance(days=1)
    assert await store.fade() == Faded(2, (MemoryId("ann", "s1"),))
    assert await recalled(store) == []
    assert await recalled(store, "bob") == ["s2"]
    assert await store.archived("ann") == [Archived("s1", "A refund.", EVENING, EVENING + timedelta(days=90))]
    assert await store.archived("bob") == []


async def test_a_second_run_on_the_same_day_changes_nothing_and_on_the_next_day_only_what_that_day_brings(store, clock):
    await remember(store, *(record(session_id=f"s{i}", created_at=EVENING - timedelta(days=i)) for i in range(5)))
    clock.set(datetime(2026, 3, 31, 0, 0, 1, tzinfo=UTC))  # 89 days after the first of January
    first = await store.fade()
    assert (first.looked_at, first.stay) == (5, 1)
    clock.set(datetime(2026, 3, 31, 23, 59, 59, tzinfo=UTC))
    assert await store.fade() == Faded(1)
    clock.advance(seconds=1)
    assert (await store.fade()).archived == (("ann", "s0"),)


async def test_the_day_is_that_of_utc_wherever_the_clock_stands(store, clock):
    await store.remember(record(created_at=datetime(2026, 1, 2, 7, tzinfo=timezone(timedelta(hours=8)))))
    clock.set(datetime(2026, 4, 1, 7, tzinfo=timezone(timedelta(hours=8))))  # still the 31st of March
    assert await store.fade() == Faded(1)
    clock.advance(hours=1)
    assert (await store.fade()).archived == (("ann", "s1"),)
    (kept,) = await store.archived("ann")
    assert kept.archived_at == datetime(2026, 4, 1, tzinfo=UTC)
    assert kept.archived_at.tzinfo is kept.created_at.tzinfo is UTC


async def test_a_dry_run_says_what_would_happen_and_does_nothing(store, clock):
    await remember(store, record("bob", "b"), record("ann", "z"), record("ann", "a"))
    clock.advance(days=90)
    would = await store.fade(dry_run=True)
    assert would == Faded(3, (("ann", "a"), ("ann", "z"), ("bob", "b")))
    assert await recalled(store) == ["z", "a"]
    assert await store.archived("ann") == []
    assert await store.fade() == would


async def test_an_empty_store_has_nothing_to_fade(store):
    assert await store.fade() == Faded(0)
    assert await store.archived("ann") == []


async def test_a_clock_that_jumped_back_and_a_time_in_the_future_archive_nothing(store, clock):
    await remember(store, record(created_at=EVENING + timedelta(days=900)), record(session_id="s2"))
    clock.advance(days=45)
    assert await store.use("ann", "s2")
    clock.advance(days=-400)
    assert await store.use("ann", "s2")
    assert await store.fade() == Faded(2)


async def test_times_at_both_ends_of_the_calendar_fade_too(store, clock):
    await remember(
        store,
        record(session_id="first", created_at=datetime.min.replace(tzinfo=UTC)),
        record(session_id="last", created_at=datetime.max.replace(tzinfo=UTC)),
    )
    clock.set(datetime.max.replace(tzinfo=UTC))
    assert (await store.fade()).archived == (("ann", "first"),)


async def test_a_naive_clock_is_refused(server):
    async with on(*server, lambda: datetime(2026, 1, 1)) as store:  # noqa: DTZ001
        for call in (store.fade(), store.use("ann", "s1"), store.restore("ann", "s1"), store.remember(record())):
            with pytest.raises(ValueError, match="the clock's time must be an aware datetime"):
                await call


async def test_more_memories_than_a_page_of_many_users_are_each_looked_at_once(store, clock, monkeypatch):
    monkeypatch.setattr(pgvector_archive, "PAGE", 3)
    users = ["ann", "bob", "好", "😀", "a b"]
    old = [record(user, f"s{i}") for i in range(4) for user in users]
    fresh = [record(user, f"t{i}", created_at=EVENING + timedelta(days=80)) for i in range(3) for user in users]
    await remember(store, *old, *fresh)
    clock.advance(days=100)
    assert await store.fade() == Faded(35, tuple(sorted((one.user_id, one.session_id) for one in old)))
    assert await store.fade() == Faded(15)
    for user in users:
        assert await recalled(store, user) == ["t0", "t1", "t2"]
        assert await kept_for_audit(store, user) == ["s0", "s1", "s2", "s3"]


# Uses


async def test_one_use_keeps_a_memory_for_longer_and_one_that_was_injected_does_not(store, clock):
    await remember(store, *(record(session_id=name) for name in ("used", "injected", "untouched")))
    clock.advance(days=45)
    assert await store.use("ann", "used") is True
    assert await store.use("ann", "injected", injected=True) is False
    clock.advance(days=45)
    assert (await store.fade()).archived == (("ann", "injected"), ("ann", "untouched"))
    clock.advance(days=30)
    assert (await store.fade()).archived == (("ann", "used"),)


async def test_a_use_of_what_is_not_active_is_none(store, clock):
    await remember(store, record())
    assert await store.use("ann", "s2") is False
    assert await store.use("bob", "s1") is False
    clock.advance(days=90)
    await store.fade()
    assert await store.use("ann", "s1") is False
    assert await recalled(store) == []


async def test_a_use_before_the_job_runs_saves_what_is_under_the_line_by_one_tenth(store, clock):
    await remember(store, record(session_id="a"), record(session_id="b"))
    clock.advance(days=90)
    await store.use("ann", "b")
    assert (await store.fade()).archived == (("ann", "a"),)


async def test_ten_uses_at_once_are_ten_uses(store, clock):
    await remember(store, record())
    clock.advance(days=400)  # 0.3
    await asyncio.gather(*(store.use("ann", "s1") for _ in range(7)))  # 1.0
    clock.advance(days=60)  # 0.6
    assert await store.fade() == Faded(1)


@pytest.mark.parametrize("call", ["use", "restore"])
@pytest.mark.parametrize("ids", [("", "s1"), ("ann", " "), (None, "s1"), ("ann", 7), ("a\0b", "s1")])
async def test_ids_that_are_none_are_refused(store, call, ids):
    with pytest.raises(ValueError, match=r"(user|session)_id must"):
        await getattr(store, call)(*ids)
    with pytest.raises(ValueError, match="user_id must"):
        await store.archived("")


# The way back


async def test_a_restored_memory_is_what_and_where_it_was_and_weighs_1_from_today(store, clock):
    vectors = {f"s{i}": [1, 0.1 * (i % 2)] for i in range(20)}
    await remember(store, *(record(session_id=name, embedding=vector) for name, vector in vectors.items()))
    before = await store.recall([1, 0], 100, user_id="ann")
    clock.advance(days=120)
    assert len((await store.fade()).archived) == 20
    await store.remember(record(session_id="new", created_at=clock()))
    for name in ("s7", "s2", "s19", "s0"):
        assert await store.restore("ann", name) is True
        assert await store.restore("ann", name) is False
    back = [one for one in before if one.session_id in {"s7", "s2", "s19", "s0"}]
    even, odd = [one for one in back if one.score == 1], [one for one in back if one.score < 1]
    found = await store.recall([1, 0], 100, user_id="ann")
    assert found == [*even, Recollection("new", "A refund.", 1.0, clock()), *odd]
    assert await kept_for_audit(store) == [name for name in vectors if name not in {"s7", "s2", "s19", "s0"}]
    clock.advance(days=89)
    assert await store.fade() == Faded(5)
    clock.advance(days=1)
    assert (await store.fade()).stay == 0


async def test_every_memory_keeps_its_own_vector_when_others_leave_and_return(store, clock):
    vectors = {f"s{i}": (1.0, float(i)) for i in range(20)}
    for i, (name, vector) in enumerate(vectors.items()):
        await store.remember(record(session_id=name, embedding=vector, created_at=EVENING + timedelta(days=i % 3)))
    clock.advance(days=91)
    gone = [one.session_id for one in (await store.fade()).archived]
    assert len(gone) == 14
    for back in ([], gone[:5], gone[5:]):
        for name in back:
            await store.restore("ann", name)
        away = await kept_for_audit(store)
        for name in vectors.keys() - set(away):
            (nearest,) = await store.recall(vectors[name], 1, user_id="ann")
            assert (nearest.session_id, nearest.score) == (name, 1.0)


async def test_nothing_is_restored_that_is_active_or_unknown_or_another_users(store, clock):
    await remember(store, record("ann", "s1"), record("bob", "s2"))
    clock.advance(days=90)
    await store.use("ann", "s1")
    await store.fade()
    for ids in (("ann", "s1"), ("ann", "s2"), ("bob", "s1"), ("cat", "s1")):
        assert await store.restore(*ids) is False
    assert (await recalled(store), await kept_for_audit(store, "bob")) == (["s1"], ["s2"])


async def test_a_session_that_is_written_again_leaves_the_archive_keeps_place_and_time_and_is_fresh(store, clock):
    await remember(store, record(session_id="a"), record(session_id="b"))
    clock.advance(days=100)
    await store.fade()
    await remember(store, record(session_id="c"), record(session_id="a", summary="Refunded.", created_at=clock()))
    assert await store.recall([1, 0], user_id="ann") == [
        Recollection("a", "Refunded.", 1.0, EVENING),
        Recollection("c", "A refund.", 1.0, EVENING),
    ]
    assert await kept_for_audit(store) == ["b"]
    clock.advance(days=89)
    assert (await store.fade()).archived == (("ann", "c"),)
    clock.advance(days=1)
    assert (await store.fade()).archived == (("ann", "a"),)


async def test_an_active_session_that_is_written_again_is_fresh_too(store, clock):
    await remember(store, record())
    clock.advance(days=89)
    await remember(store, record(summary="Refunded."))
    clock.advance(days=89)
    assert await store.fade() == Faded(1)


async def test_a_refused_vector_leaves_the_archived_one_where_it_was(store, clock):
    await remember(store, record())
    clock.advance(days=90)
    await store.fade()
    with pytest.raises(ValueError, match="all zeros"):
        await store.remember(record(embedding=[0, 0]))
    assert (await recalled(store), await kept_for_audit(store)) == ([], ["s1"])


async def test_forgetting_takes_the_archived_ones_too_and_counts_them(store, clock):
    await remember(store, *(record(user, f"s{i}") for i in range(5) for user in ("ann", "bob")))
    clock.advance(days=90)
    await store.fade()
    await store.remember(record(session_id="s2"))
    await store.remember(record(session_id="new"))
    assert await store.forget("ann") == 6
    assert (await recalled(store), await kept_for_audit(store)) == ([], [])
    assert await store.restore("ann", "s0") is False
    assert await store.forget("ann") == 0
    assert len(await kept_for_audit(store, "bob")) == 5


# At once


async def test_runs_at_the_same_time_archive_each_memory_once(store, clock, monkeypatch):
    monkeypatch.setattr(pgvector_archive, "PAGE", 7)
    await remember(store, *(record(user, f"s{i}") for i in range(10) for user in ("ann", "bob", "cat")))
    clock.advance(days=90)
    runs = await asyncio.gather(*(store.fade() for _ in range(4)))
    archived = [one for run in runs for one in run.archived]
    assert len(archived) == len(set(archived)) == 30
    assert await kept_for_audit(store) == [f"s{i}" for i in range(10)]


async def test_what_is_forgotten_while_it_moves_there_and_back_stays_forgotten(store, clock, monkeypatch):
    monkeypatch.setattr(pgvector_archive, "PAGE", 5)
    names = [f"s{i}" for i in range(8)]
    for _ in range(8):
        await remember(store, *(record(session_id=name) for name in names))
        clock.advance(days=100)
        await asyncio.gather(store.fade(), *(store.restore("ann", name) for name in names), store.forget("ann"))
        assert (await recalled(store), await kept_for_audit(store)) == ([], [])
        await remember(store, *(record(session_id=name) for name in names))
        clock.advance(days=100)
        await store.fade()
        await asyncio.gather(*(store.restore("ann", name) for name in names), store.forget("ann"), store.fade())
        assert (await recalled(store), await kept_for_audit(store)) == ([], [])


async def test_recall_and_remember_beside_the_job_lose_and_double_nothing(store, clock, monkeypatch):
    monkeypatch.setattr(pgvector_archive, "PAGE", 4)
    names = [f"s{i}" for i in range(12)]
    await remember(store, *(record(session_id=name) for name in names))
    clock.advance(days=100)

    async def write(name):
        await store.remember(record(session_id=name, summary="Again.", created_at=clock()))

    written = names[::3]
    await asyncio.gather(store.fade(), *map(write, written), *(recalled(store) for _ in range(4)), store.fade())
    active = await store.recall([1, 0], 100, user_id="ann")
    assert {one.session_id for one in active} == set(written)
    assert all((one.summary, one.created_at) == ("Again.", EVENING) for one in active)
    assert await kept_for_audit(store) == [name for name in names if name not in written]


# Any sequence of calls


class AgainstTheRule(RuleBasedStateMachine):
    """The store, against two dictionaries and the step rule over the list of all uses."""

    users = st.sampled_from(["ann", "bob"])
    sessions = st.sampled_from(["s0", "s1", "s2", "s3"])

    def __init__(self, engine, url):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.run = self.loop.run_until_complete
        self.clock = ManualClock(EVENING)
        self.making = on(engine, url, self.clock)
        self.store = self.run(self.making.__aenter__())
        self.active: dict[tuple[str, str], dict] = {}
        self.away: dict[tuple[str, str], dict] = {}
        self.arrivals = 0

    def teardown(self):
        self.run(self.making.__aexit__(None, None, None))
        self.loop.close()

    def today(self) -> date:
        return self.clock().date()

    def weight(self, one) -> float:
        age = (self.today() - one["since"]).days
        return step(age, [Use((self.today() - day).days) for day in one["uses"]])

    @initialize(user=users, session=sessions)
    def remembered(self, user, session):
        self.remember(user, session, 0)

    @rule(days=st.sampled_from([0, 1, 29, 30, 31, 45, 89, 90]), hours=st.integers(0, 23))
    def time_passes(self, days, hours):
        self.clock.advance(days=days, hours=hours)

    @rule(user=users, session=sessions, old=st.sampled_from([0, 0, 31, 95]))
    def remember(self, user, session, old):
        key, summary = (user, session), f"Written {self.clock().isoformat()}."
        created = self.clock() - timedelta(days=old)
        self.run(self.store.remember(record(user, session, summary=summary, created_at=created)))
        known = self.active.get(key) or self.away.pop(key, None)
        if known is None:
            self.arrivals += 1
            known = {"created": created, "place": self.arrivals}
            since = created.date()
        else:
            since = self.today()
        self.active[key] = known | {"summary": summary, "since": since, "uses": []}

    @rule(user=users, session=sessions, injected=st.booleans(), times=st.integers(1, 3))
    def use(self, user, session, injected, times):
        counts = (user, session) in self.active and not injected
        for _ in range(times):
            assert self.run(self.store.use(user, session, injected=injected)) is counts
            if counts:
                self.active[user, session]["uses"].append(self.today())

    @rule(dry_run=st.booleans())
    def fade(self, dry_run):
        over = sorted(key for key, one in self.active.items() if is_archived(self.weight(one)))
        expected = Faded(len(self.active), tuple(MemoryId(*key) for key in over))
        assert self.run(self.store.fade(dry_run=dry_run)) == expected
        for key in [] if dry_run else over:
            self.away[key] = self.active.pop(key) | {"archived": self.clock()}

    @rule(user=users, session=sessions)
    def restore(self, user, session):
        one = self.away.pop((user, session), None)
        assert self.run(self.store.restore(user, session)) is (one is not None)
        if one is not None:
            self.active[user, session] = one | {"since": self.today(), "uses": []}

    @rule(user=users)
    def forget(self, user):
        gone = [(kept, key) for kept in (self.active, self.away) for key in kept if key[0] == user]
        assert self.run(self.store.forget(user)) == len(gone)
        for kept, key in gone:
            del kept[key]

    @invariant()
    def every_memory_is_in_its_one_place(self):
        for user in ("ann", "bob"):
            active, away = (
                sorted(
                    ((key[1], one) for key, one in kept.items() if key[0] == user), key=lambda each: each[1]["place"]
                )
                for kept in (self.active, self.away)
            )
            assert self.run(self.store.recall([1, 0], 100, user_id=user)) == [
                Recollection(session, one["summary"], 1.0, one["created"]) for session, one in active
            ]
            assert self.run(self.store.archived(user)) == [
                Archived(session, one["summary"], one["created"], one["archived"]) for session, one in away
            ]


def test_any_sequence_of_calls_gives_what_the_rule_over_all_uses_gives(server):
    most = settings(max_examples=60, stateful_step_count=40, deadline=None)
    if server[0] != "memory":
        most = settings(most, max_examples=6, phases=[Phase.generate])
    run_state_machine_as_test(lambda: AgainstTheRule(*server), settings=most)
