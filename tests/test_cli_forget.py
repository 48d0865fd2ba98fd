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
from tri_memory.entity.postgres import PostgresUserMemoryStore
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
    assert failed[-1].split()[0] == "sessions"
    assert "start its server" in failed[-1]
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
