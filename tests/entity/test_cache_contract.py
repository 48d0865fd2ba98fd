"""The cached store answers as every other store of users' records, call by call."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.conformance import test_user_memory as contract
from tests.conformance.conftest import own_table
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.cache_entry import encoded
from tri_memory.entity.memory import InMemoryUserMemoryStore

globals().update({name: each for name, each in vars(contract).items() if name.startswith("test_")})
clock, store = contract.clock, contract.store


@pytest.fixture(params=["warm", "uncached", "dead", "postgres"])
async def user_memories(request, embedded_valkey, embedded_postgres):
    """Stores over one truth; `warm` ones read everything once before each read, so that they answer from Redis."""
    from tri_memory.entity.postgres import PostgresUserMemoryStore

    made = []
    prefix = f"{uuid4().hex}:"
    limit_s = 0.05 if request.param == "dead" else 5
    url = "redis://127.0.0.1:1" if request.param == "dead" else embedded_valkey
    kind = Warm if request.param in ("warm", "postgres") else CachedUserMemoryStore

    def make(**options):
        if request.param == "postgres":
            truth = PostgresUserMemoryStore(embedded_postgres, table=table, **options)
            made.append(truth)
        else:
            truth = InMemoryUserMemoryStore(**options)
        made.append(kind.from_url(truth, url, prefix=prefix, limit_s=limit_s, **options))
        return made[-1]

    with own_table(embedded_postgres) as table:
        yield make
        for each in made:
            if not isinstance(each, InMemoryUserMemoryStore):
                await each.close()


class Warm(CachedUserMemoryStore):
    async def find(self, user_id, **options):
        entity_ids = options.get("entity_ids")
        if entity_ids is not None and not isinstance(entity_ids, str):
            options["entity_ids"] = list(entity_ids)
        await super().find(user_id, **options)
        before = self.stats.hits
        found = await super().find(user_id, **options)
        assert self.stats.hits == before + (encoded(found) != "null")
        return found
