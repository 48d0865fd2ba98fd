"""`tri-memory forget`: asked once, every store, a receipt, and an exit code that a script can go by."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from tests.conftest import needs
from tri_memory import (
    ChatTurn,
    EpisodicRecord,
    PgVectorEpisodicStore,
    PostgresPreferenceStore,
    RedisSessionStore,
)
from tri_memory.cli import app
from tri_memory.commands.purge import TABLES
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.entity.short_context import RedisShortContext
from tri_memory.privacy.hunt import hunt_postgres, hunt_redis
from tri_memory.privacy.pseudonyms import Pseudonyms

OTHERS = ("USER_MEMORY_STORE", "MEMORY_PSEUDONYM_KEY", "MEMORY_PSEUDONYM_PREVIOUS")
SETTINGS = ("SESSION_STORE", "PREFERENCE_STORE", "EPISODIC_STORE", "REDIS_URL", "DATABASE_URL")
KEY = "0123456789abcdef0123456789abcdef"
CANARY = "BX-220719"


@pytest.fixture(autouse=True)
def a_plain_environment(monkeypatch):
    for name in (*SETTINGS, *OTHERS):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def database(embedded_postgres) -> Iterator[str]:
    psycopg = needs("psycopg", "pip install 'psycopg[binary]' pgvector")
    name = f"forget_{uuid4().hex}"
    with psycopg.connect(embedded_postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield embedded_postgres.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(embedded_postgres, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def everywhere(monkeypatch, embedded_valkey, database) -> str:
    """A user with something in each layer; the environment names the servers."""
    user = f"ann-{uuid4().hex}"
    asyncio.run(plant(user, embedded_valkey, database))
    name_servers(monkeypatch, embedded_valkey, database)
    return user


def name_servers(monkeypatch, redis_url: str, database_url: str) -> None:
    values = ("redis", "pg", "pgvector", redis_url, database_url)
    for name, value in zip(SETTINGS, values, strict=True):
        monkeypatch.setenv(name, value)


async def plant(user: str, redis_url: str, database_url: str) -> None:
    async with RedisSessionStore.from_url(redis_url) as sessions:
        await sessions.append(f"{user}/s1", ChatTurn("user", CANARY))
    async with PostgresPreferenceStore(database_url) as preferences:
        await preferences.set(user, "order", CANARY)
    async with PgVectorEpisodicStore(database_url, 3) as episodes:
        await episodes.remember(EpisodicRecord(user, f"{user}/s1", CANARY, [1, 2, 3], datetime.now(UTC)))
    async with PostgresUserMemoryStore(database_url) as memories:
        await memories.put(user, "case", CANARY, {"said": CANARY})


def run(*arguments: str, typed: str | None = None):
    return CliRunner().invoke(app, ["forget", *arguments], input=typed, prog_name="tri-memory")


def erased(output: str) -> dict[str, int]:
    """{store: how many} of a receipt's lines."""
    rows = [line.split() for line in output.splitlines()]
    return {row[0]: int(row[1]) for row in rows if row[2:3] == ["erased,"]}


def test_it_forgets_in_every_store_that_is_named_and_prints_a_receipt_without_the_users_id(monkeypatch, everywhere):
    monkeypatch.setenv("MEMORY_PSEUDONYM_KEY", KEY)
    result, again = run("--user", everywhere, "--yes"), run("--user", everywhere, "--yes")

    assert (result.exit_code, again.exit_code) == (0, 0)
    assert result.output.startswith(f"Forgotten: {Pseudonyms(KEY).of_user(everywhere)}, ")
    assert erased(result.output) == {
        "sessions": 1,
        "preferences": 1,
        "episodes": 1,
        "user_memory": 1,
        "cache": 0,  # under keyed names
        "short_context": 0,
    }
    assert set(erased(again.output).values()) == {0}
    assert everywhere not in result.output
    assert CANARY not in result.output
    assert "deleted by purge" in result.output


def test_a_server_that_is_away_is_named_the_others_forget_and_the_exit_code_is_1(monkeypatch, everywhere, database):
    monkeypatch.setenv("REDIS_URL", "redis://:sk-secret@127.0.0.1:1/0")
    result = run("--user", everywhere, "--yes")

    assert result.exit_code == 1
    assert "Not everything was forgotten" in result.output
    assert erased(result.output)["preferences"] == 1
    failed = [line for line in result.output.splitlines() if "FAILED" in line]
    assert {line.split("FAILED")[0].strip() for line in failed} == {"sessions", "short_context", "copies in Redis"}
    assert all("start its server" in line for line in failed)
    assert "expire, at most 3,600 s" in failed[-2] + failed[-1]
    assert "sk-secret" not in result.output


def test_where_nothing_was_ever_stored_no_table_is_made(monkeypatch, embedded_valkey, database):
    name_servers(monkeypatch, embedded_valkey, database)
    result = run("--user", "nobody", "--yes")

    assert result.exit_code == 0
    assert set(erased(result.output).values()) == {0}
    with needs("psycopg", "pip install psycopg").connect(database) as connection:
        there = connection.execute("SELECT to_regclass('episodes'), to_regclass('user_memory')").fetchone()
    assert there == (None, None)


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_on_a_terminal_it_asks_and_only_a_yes_goes_on(monkeypatch, everywhere, typed, code):
    monkeypatch.setattr("tri_memory.cli._at_a_terminal", lambda: True)
    result = run("--user", everywhere, typed=typed)

    assert result.exit_code == code
    assert "can't be undone" in result.output
    assert ("nothing was forgotten" in result.output) == (code == 1)
    assert ("Forgotten: " in result.output) == (code == 0)


def test_at_the_end_of_a_pipe_nobody_can_be_asked_so_nothing_is_forgotten(everywhere):
    result = run("--user", everywhere, typed="y\n")

    assert result.exit_code == 1
    assert "--yes" in result.output
    assert run("--user", everywhere, "--yes").output.startswith("Forgotten: ")


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, "nothing outlives its process"),
        ({"SESSION_STORE": "redis"}, "needs REDIS_URL"),
        ({"PREFERENCE_STORE": "pg"}, "needs DATABASE_URL"),
        ({"EPISODIC_STORE": "pgvector"}, "needs DATABASE_URL"),
        ({"USER_MEMORY_STORE": "pg"}, "needs DATABASE_URL"),
        ({"SESSION_STORE": "redis", "MEMORY_PSEUDONYM_KEY": "short"}, "secrets.token_hex"),
        ({"SESSION_STORE": "redsi", "REDIS_URL": "redis://127.0.0.1:6379/0"}, "'redsi' is not one of memory, redis"),
        ({"SESSION_STORE": "redis", "EPISODIC_STORE": "pg"}, "EPISODIC_STORE='pg' is not one of memory, pgvector"),
    ],
)
def test_what_cant_begin_says_why_in_one_line(monkeypatch, env, words):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    result = run("--user", "ann", "--yes")

    assert result.exit_code == 1
    assert words in result.output
    assert len(result.output.splitlines()) == 1


def test_no_user_is_refused():
    assert run("--yes").exit_code == 2
    assert "user_id must be a non-blank string" in run("--user", " ", "--yes").output


def test_a_conversation_of_another_process_brings_nothing_back_and_may_go_on(monkeypatch, embedded_valkey, database):
    user = f"ann-{uuid4().hex}"
    name_servers(monkeypatch, embedded_valkey, database)
    monkeypatch.setenv("MEMORY_PSEUDONYM_KEY", KEY)
    with subprocess.Popen(
        [sys.executable, "-m", "tri_memory.cli", "chat", "--user", user, "-s", "s7"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as chat:
        chat.stdin.write(f"My order is {CANARY}.\n")
        chat.stdin.flush()
        while "All right" not in (line := chat.stdout.readline()):
            assert line
            assert not line.startswith("error")
        result = run("--user", user, "--yes")
        chat.stdin.write("My name is Kim.\n")
        out, _ = chat.communicate("/exit\n", timeout=60)

    assert (result.exit_code, chat.returncode) == (0, 0)
    assert erased(result.output)["sessions"] == 1
    assert out.rstrip().endswith("archived")
    with needs("psycopg", "pip install psycopg").connect(database) as connection:
        told = connection.execute("SELECT summary FROM episodes").fetchall()
        notes = connection.execute("SELECT name FROM tombstones").fetchall()
    assert CANARY not in str(told)
    assert len(told) == 1
    assert notes == [(Pseudonyms(KEY).of_user(user),)]


def test_what_a_program_keeps_in_redis_under_keyed_names_goes_as_well(
    monkeypatch, everywhere, embedded_valkey, database
):
    monkeypatch.setenv("MEMORY_PSEUDONYM_KEY", KEY)
    prefixes = ("mem:", "ctx:")

    async def fill() -> None:
        for named in ({}, {"name_of": Pseudonyms(KEY).of_user}):
            async with (
                PostgresUserMemoryStore(database) as truth,
                CachedUserMemoryStore.from_url(truth, embedded_valkey, limit_s=5, **named) as cached,
                RedisShortContext.from_url(embedded_valkey, **named) as short,
            ):
                await cached.find(everywhere)
                await short.put(everywhere, [ChatTurn("user", CANARY)])

    def with_canary() -> int:
        found = [asyncio.run(hunt_redis(embedded_valkey, [CANARY], match=f"{each}*")) for each in prefixes]
        return sum(each.get("keys", 0) for each in found)

    asyncio.run(fill())
    before = with_canary()
    result = run("--user", everywhere, "--yes")

    assert result.exit_code == 0
    assert (erased(result.output)["cache"], erased(result.output)["short_context"]) == (1, 1)
    assert before - with_canary() == 4


def purge(*arguments: str):
    return CliRunner().invoke(app, ["purge", *arguments], prog_name="tri-memory")


def age(database: str, days: int) -> None:
    with needs("psycopg", "pip install psycopg").connect(database) as connection:
        connection.execute("UPDATE user_memory SET updated_at = updated_at - make_interval(days => %s)", [days])
        connection.execute(
            "UPDATE user_memory_users SET forgotten_at = forgotten_at - make_interval(days => %s)", [days]
        )
        connection.execute("UPDATE tombstones SET forgotten_at = forgotten_at - make_interval(days => %s)", [days])


def test_purge_deletes_after_seven_days_what_was_forgotten_of_all_users(
    monkeypatch, everywhere, embedded_valkey, database
):
    monkeypatch.setenv("MEMORY_PSEUDONYM_KEY", KEY)
    asyncio.run(plant("bob", embedded_valkey, database))
    assert run("--user", everywhere, "--yes").exit_code == 0

    for days, words in ((6, "0 entries deleted"), (2, "1 entry deleted"), (0, "0 entries deleted")):
        age(database, days)
        result = purge()
        assert (result.exit_code, result.stdout.startswith(words)) == (0, True), result.output
    left = asyncio.run(hunt_postgres(database, [everywhere]))
    assert left == {}
    assert asyncio.run(hunt_postgres(database, ["bob"])).keys() >= {"public.user_memory", "public.preferences"}
    with needs("psycopg", "pip install psycopg").connect(database) as connection:
        kept = connection.execute("SELECT name FROM tombstones").fetchall()
    assert kept == [("",)], "only when somebody was last forgotten, and not who"


def test_purge_may_scrub_the_servers_files(monkeypatch, everywhere, database):
    assert run("--user", everywhere, "--yes").exit_code == 0
    with needs("psycopg", "pip install psycopg").connect(database, autocommit=True) as connection:
        connection.execute("UPDATE user_memory SET updated_at = updated_at - interval '8 days'")
    result = purge("--scrub")
    assert result.exit_code == 0, result.output
    assert "scrubbed: PostgreSQL" in result.stdout
    assert "Redis" in result.stdout


def test_a_scrub_leaves_out_no_table_that_a_store_makes(monkeypatch, everywhere, database):
    monkeypatch.setenv("MEMORY_PSEUDONYM_KEY", KEY)
    assert run("--user", everywhere, "--yes").exit_code == 0
    with needs("psycopg", "pip install psycopg").connect(database) as connection:
        there = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert {name for (name,) in there} == set(TABLES)


@pytest.mark.parametrize("env", [{}, {"SESSION_STORE": "redis", "REDIS_URL": "redis://127.0.0.1:1"}])
def test_purge_without_a_database_says_that_there_is_nothing_to_purge(monkeypatch, env):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    result = purge()
    assert result.exit_code == 1
    assert "DATABASE_URL" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_purge_of_a_server_that_is_away_is_a_line_without_the_password(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:sk-secret@127.0.0.1:1/shop")
    result = purge()
    assert (result.exit_code, result.stdout) == (1, "")
    assert "127.0.0.1:1" in result.stderr
    assert "sk-secret" not in result.output


def test_purge_of_what_is_no_url_says_what_one_looks_like(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "host=x password=sk-secret")
    result = purge()
    assert (result.exit_code, result.stdout) == (1, "")
    assert "postgresql://user:password@host:5432/database" in result.stderr
    assert "sk-secret" not in result.output


def test_purge_where_nothing_was_ever_stored_makes_no_table(monkeypatch, database):
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.setenv("MEMORY_PSEUDONYM_KEY", KEY)
    monkeypatch.setenv("PREFERENCE_STORE", "pg")
    result = purge()
    assert (result.exit_code, result.stdout.startswith("0 entries deleted")) == (0, True)
    with needs("psycopg", "pip install psycopg").connect(database) as connection:
        assert connection.execute("SELECT to_regclass('user_memory')").fetchone() == (None,)
