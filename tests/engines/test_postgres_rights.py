"""Every Postgres store names the statement that gives a missing right, and no client's full stop is doubled."""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime
from uuid import uuid4

import pytest

if os.environ.get("STRICT") != "1":
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]' pgvector")

import psycopg

from tri_memory.contracts import EpisodicRecord
from tri_memory.engines.postgres_connection import first_line
from tri_memory.engines.ready import one_line
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.episodic.pgvector import PgVectorEpisodicStore
from tri_memory.preference.postgres import PostgresPreferenceStore
from tri_memory.privacy.postgres_tombstones import PostgresTombstones
from tri_memory.privacy.pseudonyms import Pseudonyms

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STORES = {  # a name: how the store is made, its first write, and the tables that this write needs
    "preferences": (
        PostgresPreferenceStore,
        lambda store: store.set("ann", "size", "42"),
        ["{table}"],
    ),
    "episodes": (
        lambda url, table: PgVectorEpisodicStore(url, 2, table=table),
        lambda store: store.remember(EpisodicRecord("ann", "s1", "A refund.", [1, 0], NOW)),
        ["{table}", "{table}_archive"],
    ),
    "records": (
        PostgresUserMemoryStore,
        lambda store: store.put("ann", "case", "c1", {"by": "me"}),
        ["{table}", "{table}_users", "{table}_id_seq", "{table}_users_version_seq"],
    ),
    "registry": (
        lambda url, table: PostgresTombstones(url, Pseudonyms(secrets.token_bytes(32)), table=table),
        lambda store: store.begin("ann"),
        ["{table}", "{table}_writes"],
    ),
}


@pytest.fixture
async def owner(embedded_postgres):
    async with await psycopg.AsyncConnection.connect(embedded_postgres, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def weak(owner):
    """A role that may connect, and its URL."""
    name = f"Weak_{uuid4().hex[:8]}"
    await owner.execute(f"CREATE ROLE \"{name}\" LOGIN PASSWORD 'weak'")
    yield name
    await owner.execute(f'DROP OWNED BY "{name}"; DROP ROLE "{name}"')


def url_for(role: str, owners: str) -> str:
    return f"postgresql://{role}:weak@{owners.rpartition('@')[2]}"


@pytest.mark.parametrize("store", STORES)
async def test_the_grants_that_the_errors_name_are_all_that_a_user_needs(store, owner, weak, embedded_postgres):
    make, write, needed = STORES[store]
    table = f"rights_{secrets.token_hex(4)}"
    async with make(embedded_postgres, table=table) as owners:
        await write(owners)
    async with make(url_for(weak, embedded_postgres), table=table) as theirs:
        for _ in range(len(needed) + 1):
            try:
                await write(theirs)
                break
            except RuntimeError as error:
                message = str(error)
            said, _, grant = message.partition("its owner lets this user in with ")
            assert said.startswith("permission denied for ")
            assert grant.startswith("GRANT ")
            assert grant.endswith(f' TO "{weak}"')
            assert any(name.replace("{table}", table) in grant.split() for name in needed)
            await owner.execute(grant)
        else:
            raise AssertionError(f"still refused: {message}")


@pytest.mark.parametrize("store", STORES)
async def test_who_may_make_no_table_is_told_so_by_every_store(store, owner, weak, embedded_postgres):
    make, write, _ = STORES[store]
    async with make(url_for(weak, embedded_postgres), table=f"rights_{secrets.token_hex(4)}") as theirs:
        with pytest.raises(RuntimeError, match=r"GRANT USAGE, CREATE ON SCHEMA public|have its owner connect once"):
            await write(theirs)


async def test_who_is_not_the_owner_of_what_is_to_be_altered_is_sent_to_the_owner(owner, weak, embedded_postgres):
    table = f"rights_{secrets.token_hex(4)}"
    async with PostgresUserMemoryStore(embedded_postgres, table=table) as owners:
        await owners.purge(NOW)
    await owner.execute(f'DROP INDEX {table}_recent; GRANT ALL ON {table}, {table}_users TO "{weak}"')
    async with PostgresUserMemoryStore(url_for(weak, embedded_postgres), table=table) as theirs:
        with pytest.raises(RuntimeError, match=r"(must be owner of|permission denied for) .*: .*owner"):
            await theirs.purge(NOW)


# What a client's error ends with


@pytest.mark.parametrize("end", ["", ".", "?", ":", "; ", "?!", " …."])
def test_a_clients_error_loses_the_stop_at_its_end_before_ours_follows(end):
    for line in (one_line, first_line):
        assert line(ValueError(f"accepting TCP/IP connections{end}")).rstrip("… ") == "accepting TCP/IP connections"
        assert line(ValueError("?")) == "ValueError"
