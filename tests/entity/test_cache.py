"""The cache over a real server: what is served from where, what a write and a forgetting leave behind."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from tests.conftest import needs
from tri_memory import ManualClock
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.cache_entry import LARGEST_ENTRY, MOST_RECORDS
from tri_memory.entity.key_names import hashed
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.entity.records import Forgotten, UserMemoryStore

ANN = hashed("ann")
ODD_USERS = ["ann", "a}b{c", "{}", "}x", "%7B", "{", "with space", "*", "mem:*", "[a-z]?", "安", "a:case:1", "a"]


class Truth(InMemoryUserMemoryStore):
    """Counts what it is asked."""

    def __init__(self, **options):
        super().__init__(**options)
        self.finds, self.versions = 0, 0

    async def find(self, user_id, **options):
        self.finds += 1
        return await super().find(user_id, **options)

    async def version(self, user_id):
        self.versions += 1
        return await super().version(user_id)


@pytest.fixture(params=["embedded_valkey", "container_redis", "decoded", "redis_cluster"])
async def client(request):
    aioredis = needs("redis", "pip install redis").asyncio
    url = request.getfixturevalue("embedded_valkey" if request.param == "decoded" else request.param)
    kind = aioredis.RedisCluster if request.param == "redis_cluster" else aioredis.Redis
    options = {"decode_responses": True} if request.param == "decoded" else {}
    async with kind.from_url(url, **options) as client:
        yield client


@pytest.fixture
def prefix():
    return f"{uuid4().hex}:"


@pytest.fixture
def truth():
    return Truth()


@pytest.fixture
def store(truth, client, prefix):
    return CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=5)


async def keys_of(client, prefix):
    found = [key async for key in client.scan_iter(match=f"{prefix}*", count=1_000)]
    return sorted(key.decode() if isinstance(key, bytes) else key for key in found)


async def test_a_second_read_asks_the_truth_nothing(store, truth):
    assert isinstance(store, UserMemoryStore)
    written = await store.put("ann", "case", "1", {"n": [1, 2.5, "é😀"]})
    assert await store.find("ann", memory_type="case") == [written]
    asked = truth.finds, truth.versions
    assert await store.find("ann", memory_type="case", contains={"n": [1]}) == [written]
    assert await store.find("ann", memory_type="case", entity_ids=["2"]) == []
    assert (truth.finds, truth.versions) == asked == (1, 1)
    assert (store.stats.hits, store.stats.misses, store.stats.failures) == (2, 1, 0)


async def test_the_keys_name_user_type_and_version_and_expire_within_the_hour(store, client, prefix, truth):
    await store.put("ann", "case", "1", {})
    await store.find("ann", memory_type="case")
    await store.find("ann")
    version = await truth.version("ann")
    entries = [f"{prefix}{{{ANN}}}:any:{version}", f"{prefix}{{{ANN}}}:case:{version}"]
    assert await keys_of(client, prefix) == [*entries, f"{prefix}{{{ANN}}}:index", f"{prefix}{{{ANN}}}:version"]
    for name, most in [(entries[0], 3_600), (entries[1], 3_600), (f"{prefix}{{{ANN}}}:version", 60)]:
        assert most - 30 < await client.ttl(name) <= most
    assert int(await client.get(f"{prefix}{{{ANN}}}:version")) == version


async def test_every_write_is_seen_at_once_by_every_store(store, truth, client, prefix):
    other = CachedUserMemoryStore(truth, client, prefix=prefix, limit_s=5)
    for number in range(5):
        await (store, other)[number % 2].put("ann", "case", "1", {"n": number})
        for reader in (store, other, store):
            assert [one.content["n"] for one in await reader.find("ann")] == [number]
            assert [one.content["n"] for one in await reader.find("ann", memory_type="case")] == [number]
    assert await other.deactivate("ann") == 1
    assert await store.find("ann") == await store.find("ann", memory_type="case") == []


async def test_forgetting_leaves_no_key_of_the_user_in_redis_and_no_other_user_loses_any(store, client, prefix):
    for user in ODD_USERS:
        await store.put(user, "case", "1", {"of": user})
        assert [one.content["of"] for one in await store.find(user)] == [user]
        await store.find(user, memory_type="case")
    for number, user in enumerate(ODD_USERS):
        assert len(await keys_of(client, prefix)) == 4 * (len(ODD_USERS) - number)
        assert await store.forget(user) == 1
    assert await keys_of(client, prefix) == []


async def test_recall_forget_recall_finds_nothing_and_keeps_nothing_of_it(store, client, prefix):
    await store.put("ann", "case", "1", {"secret": "s3cret"})
    assert await store.find("ann")
    await store.forget("ann")
    assert await store.find("ann") == []
    kept = [await client.get(key) for key in await keys_of(client, prefix) if ":any:" in key]
    assert len(kept) == 1
    assert "s3cret" not in str(kept)


async def test_entries_of_versions_written_past_the_store_go_with_the_others(truth, client, prefix):
    store = CachedUserMemoryStore(truth, client, prefix=prefix, check_s=0.02, limit_s=5)
    for number in range(3):
        await truth.put("ann", "case", "1", {"n": number})  # nobody tells Redis
        await asyncio.sleep(0.05)  # longer than what was read may be served
        assert [one.content["n"] for one in await store.find("ann")] == [number]
    assert len([key for key in await keys_of(client, prefix) if ":any:" in key]) == 3
    await store.forget("ann")
    assert await keys_of(client, prefix) == []


async def test_an_unchanged_version_saves_reading_the_records_again(truth, client, prefix):
    store = CachedUserMemoryStore(truth, client, prefix=prefix, check_s=0.02, limit_s=5)
    await store.put("ann", "case", "1", {})
    await store.find("ann")
    await asyncio.sleep(0.05)
    assert len(await store.find("ann")) == 1
    assert (truth.finds, truth.versions, store.stats.hits) == (1, 2, 1)


async def test_who_has_too_much_for_an_entry_is_served_by_the_truth(store, truth, client):
    for number in range(MOST_RECORDS + 1):
        await truth.put("many", "case", str(number), {})
    await truth.put("large", "case", "1", {"a": "x" * LARGEST_ENTRY})
    for _ in range(2):
        assert len(await store.find("many", limit=1_000)) == MOST_RECORDS + 1
        assert len(await store.find("large")) == 1
    assert store.stats.hits == 0
    for number in range(MOST_RECORDS):
        await truth.put("just", "case", str(number), {})
    for _ in range(2):
        assert len(await store.find("just", limit=1_000)) == MOST_RECORDS
    assert store.stats.hits == 1


async def test_a_user_who_was_purged_comes_back_with_nothing_from_before(client, prefix):
    truth = Interrupted()
    store = CachedUserMemoryStore(truth, client, prefix=prefix, check_s=0.2, limit_s=5)

    async def live_and_be_purged():  # between a reader's question for the version, 0, and for the records
        await truth.put("ann", "case", "1", {})

    truth.between = live_and_be_purged
    assert len(await store.find("ann")) == 1
    await truth.deactivate("ann")
    await truth.purge(datetime.max.replace(tzinfo=UTC))
    assert await truth.version("ann") == 0
    await asyncio.sleep(0.3)
    assert await store.find("ann") == []


class Interrupted(Truth):
    between = None

    async def find(self, user_id, **options):
        if self.between is not None:
            between, self.between = self.between, None
            await between()
        return await super().find(user_id, **options)


async def test_a_clock_that_is_moved_by_hand_makes_nothing_expire_in_redis(client, prefix):
    clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
    store = CachedUserMemoryStore(Truth(clock=clock), client, prefix=prefix, limit_s=5, clock=clock)
    await store.put("ann", "case", "1", {})
    await store.find("ann")
    clock.advance(days=400)
    assert len(await store.find("ann")) == 1
    assert (store.stats.hits, store.stats.misses) == (1, 1)


async def test_what_was_said_before_a_slow_consolidation_does_not_overwrite_what_was_said_since(store):
    began = datetime.now(UTC)
    await store.put("ann", "preference", "seat", {"is": "window"})
    stands = await store.put("ann", "preference", "seat", {"is": "aisle"}, began_at=began)
    assert stands.content == {"is": "window"}
    assert [one.content["is"] for one in await store.find("ann")] == ["window"]


async def test_a_refused_write_leaves_no_mark(store, client, prefix):
    began = datetime.now(UTC)
    await store.put("ann", "case", "1", {})
    await store.forget("ann")
    with pytest.raises(Forgotten):
        await store.put("ann", "case", "1", {}, began_at=began)
    with pytest.raises(ValueError, match="content"):
        await store.put("ann", "case", "1", {"a": float("nan")})
    assert await keys_of(client, prefix) == []


@pytest.mark.parametrize(
    "wrong",
    [{"ttl_s": 0}, {"check_s": -1}, {"limit_s": True}, {"pause_s": float("nan")}, {"ttl_s": 1e12}, {"prefix": "a{b"}],
)
def test_settings_that_could_not_work_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        CachedUserMemoryStore.from_url(Truth(), "redis://127.0.0.1:1", **wrong)


def test_a_client_that_is_not_async_is_refused():
    with pytest.raises(ValueError, match="client"):
        CachedUserMemoryStore(Truth(), object())
