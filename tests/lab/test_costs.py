"""Costs of remembering, on stores that are slow on purpose, and on real servers."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import numpy as np
import psycopg
import pytest
import redis

from tri_memory import InMemoryEpisodicStore, PgVectorEpisodicStore
from tri_memory.clock import system_clock
from tri_memory.contracts import EpisodicRecord
from tri_memory.lab.costs import bytes_in_memory, bytes_in_postgres, bytes_in_redis, write_to_recallable

VECTORS = np.random.default_rng(2).standard_normal((6, 16), dtype=np.float32)


class Late(InMemoryEpisodicStore):
    """Recalls a memory only 30 ms after it was written, as a replica would."""

    async def remember(self, record):
        asyncio.get_running_loop().call_later(0.03, lambda: asyncio.ensure_future(super(Late, self).remember(record)))


async def test_a_lag_is_seen_and_nothing_is_left_behind():
    store = InMemoryEpisodicStore()
    quick = await write_to_recallable(store, VECTORS)
    assert quick.shape == (6,)
    assert (quick > 0).all()
    assert store._episodes == {}
    slow = await write_to_recallable(Late(), VECTORS)
    assert slow.min() >= 30


async def test_equal_vectors_are_found_among_their_like():
    assert len(await write_to_recallable(InMemoryEpisodicStore(), np.ones((5, 8)))) == 5


async def test_a_memory_that_never_comes_is_waited_for_only_so_long():
    class Lost(InMemoryEpisodicStore):
        async def remember(self, record):
            pass

    with pytest.raises(TimeoutError):
        await write_to_recallable(Lost(), VECTORS, limit_s=0.1)


async def test_a_larger_vector_takes_more_bytes():
    def records(dimensions):
        rows = np.ones((90, dimensions), np.float32)  # in a matrix with room for 128
        return [EpisodicRecord("u", f"s{i}", "x", row, system_clock()) for i, row in enumerate(rows)]

    small, large = [await bytes_in_memory(records(d)) for d in (64, 512)]
    assert 4 * (512 - 64) <= large - small <= 4 * (512 - 64) * 2  # four bytes a number, and room to grow
    with pytest.raises(ValueError, match="at least one record"):
        await bytes_in_memory([])


async def test_bytes_and_lag_in_postgres(embedded_postgres):
    url, table = embedded_postgres, f"costs_{uuid4().hex}"
    async with await PgVectorEpisodicStore.connect(url, 16, table=table) as store:
        try:
            assert (await write_to_recallable(store, VECTORS)).shape == (6,)
            with pytest.raises(ValueError, match="holds no row"):
                bytes_in_postgres(url, table)
            await store.remember(EpisodicRecord("u", "s", "x", VECTORS[0], system_clock()))
            assert bytes_in_postgres(url, table) > 8_192  # one row, and a page for it and for each index
        finally:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"DROP TABLE IF EXISTS {table}, {table}_archive")


def test_bytes_in_redis(embedded_valkey):
    prefix = uuid4().hex
    with redis.Redis.from_url(embedded_valkey) as client:
        client.set(f"{prefix}:a", "x" * 10_000)
        client.set(f"{prefix}:b", "x" * 30_000)
    assert 20_000 <= bytes_in_redis(embedded_valkey, f"{prefix}:*") <= 30_000
    with pytest.raises(ValueError, match="no key matches"):
        bytes_in_redis(embedded_valkey, f"{prefix}:none:*")
