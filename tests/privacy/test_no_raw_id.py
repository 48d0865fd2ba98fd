"""No raw id where copies of it pile up: in the keys and values of caches, in a trace, in a log, in an error (M42)."""

from __future__ import annotations

import logging
from uuid import uuid4

import pytest

from tests.conftest import needs
from tri_memory import ChatTurn, InMemoryUserMemoryStore
from tri_memory.agent.chat import Chat
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.key_names import hashed, in_a_key
from tri_memory.entity.short_context import RedisShortContext
from tri_memory.privacy.hunt import hunt_files, hunt_redis
from tri_memory.privacy.log_filter import MaskIds
from tri_memory.privacy.pseudonyms import Pseudonyms

NAMES = Pseudonyms("0123456789abcdef" * 4)
USERS = ["ann-4711@example.org", "安妮{7}", "138 0000 4417"]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("keyed", [False, True], ids=["hashed", "keyed"])
async def test_the_users_id_is_in_no_key_and_no_value_of_a_cache_no_trace_and_no_log(
    embedded_valkey, tmp_path, user, keyed
):
    handler = logging.FileHandler(tmp_path / "app.log", encoding="utf-8")
    handler.addFilter(MaskIds(NAMES, users=[user]))
    logger = logging.getLogger("tri_memory")
    logger.addHandler(handler)
    prefix = f"{uuid4().hex}:"
    options = {"prefix": prefix} | ({"name_of": NAMES.of_user} if keyed else {})
    truth = InMemoryUserMemoryStore()
    try:
        async with (
            CachedUserMemoryStore.from_url(truth, embedded_valkey, limit_s=5, **options) as memories,
            RedisShortContext.from_url(embedded_valkey, **options) as short,
        ):
            with (tmp_path / "trace.jsonl").open("w", encoding="utf-8") as trace:
                chat = Chat(user, "s1", user_memory=memories, trace=lambda one: print(one.to_json(), file=trace))
                await chat.say("My order BX-2207 is a kettle.")
                await chat.say("What is order BX-2207?")
            await memories.find(user)
            await short.put(user, [ChatTurn("user", "My order is late.")])
            logger.warning("%s asked twice", user)
            keys = await keys_of(embedded_valkey, prefix)
            found = await hunt_redis(embedded_valkey, [user, *user.split("-")[1:]], match=f"{prefix}*")
            assert memories.stats.failures == 0
    finally:
        logger.removeHandler(handler)
        handler.close()

    assert len(keys) >= 4
    name = NAMES.of_user(user) if keyed else hashed(user)
    assert all(f"{{{name}}}" in key for key in keys)
    assert found == {}
    assert {path.name for path in tmp_path.iterdir() if path.stat().st_size} == {"app.log", "trace.jsonl"}
    assert hunt_files(tmp_path, [user]) == {}


async def keys_of(url: str, prefix: str) -> list[str]:
    async with needs("redis", "pip install redis").asyncio.from_url(url, decode_responses=True) as client:
        return [key async for key in client.scan_iter(match=f"{prefix}*", count=1_000)]


async def test_no_error_of_a_cache_names_the_user(embedded_valkey):
    class Broken(InMemoryUserMemoryStore):
        async def find(self, user_id, **options):
            raise ConnectionError("the truth is away")

    user, prefix = USERS[0], f"{uuid4().hex}:"
    async with CachedUserMemoryStore.from_url(Broken(), embedded_valkey, prefix=prefix) as memories:
        for call in (memories.find(user), memories.put(user, "case", "", {}), memories.put(user, "lamp", "1", {})):
            with pytest.raises((ConnectionError, ValueError)) as raised:
                await call
            assert user not in str(raised.value)
    async with RedisShortContext.from_url("redis://127.0.0.1:1") as short:
        with pytest.raises(ConnectionError) as raised:
            await short.get(user)
        assert user not in str(raised.value)


def test_two_users_have_two_names_and_one_user_the_same_everywhere():
    assert len({hashed(user) for user in [*USERS, "ann", "Ann", "ann "]}) == 6
    assert hashed("ann") == "a0f3b5cd8cc4469122686f9478835635"  # as another process, and another version, has it


@pytest.mark.parametrize("name", ["", " ", None, 7])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match="name_of must give a non-blank string"):
        in_a_key(lambda user: name, "ann")
    assert in_a_key(lambda user: "a}b%", "ann") == "a%7Db%25"


@pytest.mark.parametrize("make", [CachedUserMemoryStore.from_url, None])
async def test_a_function_that_gives_no_name_stores_nothing(embedded_valkey, make):
    prefix = f"{uuid4().hex}:"
    options = {"prefix": prefix, "name_of": lambda user: ""}
    if make is None:
        async with RedisShortContext.from_url(embedded_valkey, **options) as short:
            with pytest.raises(ValueError, match="name_of"):
                await short.put("ann", [ChatTurn("user", "hello")])
    else:
        async with make(InMemoryUserMemoryStore(), embedded_valkey, **options) as memories:
            with pytest.raises(ValueError, match="name_of"):
                await memories.put("ann", "case", "1", {})
            assert await memories.truth.find("ann") == []
    assert await keys_of(embedded_valkey, prefix) == []
