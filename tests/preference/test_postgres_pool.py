"""The pool under the Postgres stores: loops and threads, dead connections, restarts, servers that say nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import threading
import warnings
from contextlib import asynccontextmanager

import pytest

if os.environ.get("STRICT") != "1":
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")

import psycopg

from tri_memory import blocking, engines
from tri_memory.engines import postgres_connection, postgres_loop
from tri_memory.preference.postgres import PostgresPreferenceStore


def new_table() -> str:
    return f"preferences_{secrets.token_hex(4)}"


@pytest.fixture(params=["embedded_postgres", "container_postgres"])
def marked(request):
    """A URL whose connections carry a name of their own, so that this test ends no others."""
    return f"{request.getfixturevalue(request.param)}?application_name=test_{secrets.token_hex(4)}"


@pytest.fixture
async def store(marked):
    async with await PostgresPreferenceStore.connect(marked, table=new_table(), pool_size=3) as store:
        await store.set("ann", "size", "42")
        yield store


async def as_server(url: str, query: str) -> list[tuple]:
    """`query` on a connection of no store; `%s` is the name that `url` carries."""
    bare, _, name = url.partition("?application_name=")
    async with await psycopg.AsyncConnection.connect(bare, autocommit=True) as connection:
        done = await connection.execute(query, [name] if name else None)
        return await done.fetchall() if done.description else []


async def kill_backends(url: str) -> int:
    killed = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s"
    return len(await as_server(url, killed))


async def connections(url: str) -> int:
    [(number,)] = await as_server(url, "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s")
    return number


async def gone(url: str) -> bool:
    """Whether the server has noticed, within 5 s, that nobody is connected any more."""
    for _ in range(100):
        if not await connections(url):
            return True
        await asyncio.sleep(0.05)
    return False


# Many at once


async def test_fifty_calls_at_once_on_three_connections_are_all_answered(store, marked):
    assert await asyncio.gather(*(store.get("ann", "size") for _ in range(50))) == ["42"] * 50
    assert 1 <= await connections(marked) <= 3


async def test_fifty_first_calls_at_once_open_one_pool(marked):
    async with PostgresPreferenceStore(marked, table=new_table(), pool_size=3) as store:
        assert await asyncio.gather(*(store.set("ann", f"k{n}", "v") for n in range(50))) == [True] * 50
        assert await connections(marked) <= 3


async def test_a_cancelled_call_gives_its_connection_back(store, marked):
    calls = [asyncio.create_task(store.get("ann", "size")) for _ in range(30)]
    await asyncio.sleep(0)
    for call in calls[::2]:
        call.cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert answers[1::2] == ["42"] * 15
    assert await asyncio.gather(*(store.get("ann", "size") for _ in range(10))) == ["42"] * 10


# Connections that died


@pytest.mark.parametrize("busy", [1, 10], ids=["one connection", "all connections"])
async def test_after_its_backends_were_killed_the_next_call_works(store, marked, busy):
    await asyncio.gather(*(store.get("ann", "size") for _ in range(busy)))
    assert await kill_backends(marked)
    assert await store.get("ann", "size") == "42"
    assert await kill_backends(marked)
    assert await store.set("ann", "tea", "green")
    assert await kill_backends(marked)
    assert await store.all("ann") == {"size": "42", "tea": "green"}
    assert await kill_backends(marked)
    assert await store.forget("ann") == 2


async def test_backends_killed_under_fifty_reads_lose_none_of_them(store, marked):
    calls = [asyncio.create_task(store.get("ann", "size")) for _ in range(50)]
    await asyncio.sleep(0.01)
    await kill_backends(marked)
    assert await asyncio.gather(*calls) == ["42"] * 50


async def test_backends_killed_under_fifty_writes_lose_no_write_that_was_confirmed(store, marked):
    calls = [asyncio.create_task(store.set("ann", f"k{n}", "v")) for n in range(50)]
    await asyncio.sleep(0.01)
    await kill_backends(marked)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    unsure = [str(answer) for answer in answers if answer is not True]
    assert all("whether the call had its effect is not known, so make it again" in text for text in unsure)
    assert len(unsure) <= 3, "more than the pool's connections were in use"
    kept = await store.all("ann")
    assert {f"k{n}" for n, answer in enumerate(answers) if answer is True} <= kept.keys()


async def test_a_write_whose_outcome_is_unknown_is_not_repeated_after_somebody_has_forgotten(
    store, marked, monkeypatch
):
    """Written, the answer lost, forgotten by another: a second try would bring it back."""
    other = PostgresPreferenceStore(marked, table=store._table)
    execute = psycopg.AsyncConnection.execute

    async def lost_answer(connection, query, *arguments, **options):
        cursor = await execute(connection, query, *arguments, **options)
        if "INSERT" in str(query):
            monkeypatch.setattr(psycopg.AsyncConnection, "execute", execute)
            await other.forget("ann")
            connection.pgconn.finish()
            raise psycopg.OperationalError("the connection is lost")
        return cursor

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", lost_answer)
    with pytest.raises(ConnectionError, match="whether the call had its effect is not known"):
        await store.set("ann", "secret", "x")
    assert await other.all("ann") == {}
    await other.close()


async def test_a_deletion_whose_outcome_is_unknown_is_not_repeated(store, marked, monkeypatch):
    tried = 0

    async def die(connection):
        nonlocal tried
        tried += 1
        await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(ConnectionError, match="whether the call had its effect is not known"):
        await store._pool.run(die, repeatable=False)
    assert tried == 1
    with pytest.raises(ConnectionError, match=r"went away during a call \(terminating connection"):
        await store._pool.run(die)
    assert tried == 3
    assert await store.get("ann", "size") == "42"


async def test_forgetting_counts_once_or_says_that_it_cannot_tell(store, marked):
    die = f"die_{secrets.token_hex(4)}"
    await as_server(
        f"{marked.partition('?')[0]}?application_name=",
        f"CREATE FUNCTION {die}() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN old; END'; "
        f"CREATE TRIGGER die BEFORE DELETE ON {store._table} FOR EACH ROW EXECUTE FUNCTION {die}()",
    )
    with pytest.raises(ConnectionError, match="whether the call had its effect is not known, so make it again"):
        await store.forget("ann")


async def test_an_error_of_the_statement_is_raised_as_it_is_and_once(store):
    tried = 0

    async def wrong(connection):
        nonlocal tried
        tried += 1
        await connection.execute("SELECT 1 / 0")

    with pytest.raises(psycopg.errors.DivisionByZero):
        await store._pool.run(wrong)
    assert tried == 1


def test_a_server_that_was_killed_and_started_again_is_found_again():
    with engines.postgres(prefer="embedded") as server:
        store = blocking(PostgresPreferenceStore(server.url, pool_size=3))
        store.set("ann", "size", "42")
        server.kill()
        server.start()
        assert store.get("ann", "size") == "42"
        server.kill()
        server.start()
        assert store.forget("ann") == 1
        store.close()


def test_a_call_while_the_server_restarts_waits_for_it():
    with engines.postgres(prefer="embedded") as server:
        store = blocking(PostgresPreferenceStore(server.url))
        store.set("ann", "size", "42")
        server.kill()
        answers: list[str] = []
        waiting = threading.Thread(target=lambda: answers.append(store.get("ann", "size")))
        waiting.start()
        server.start()
        waiting.join(60)
        assert answers == ["42"]
        store.close()


# Loops and threads


def test_a_store_from_one_cell_works_in_every_loop_and_leaves_no_connection(marked):
    store = PostgresPreferenceStore(marked, table=new_table())

    async def write() -> bool:
        return await store.set("ann", "size", "42")

    assert asyncio.run(write())
    assert asyncio.run(store.get("ann", "size")) == "42"
    assert asyncio.run(gone(marked))
    assert blocking(store).get("ann", "size") == "42"
    answers: list[dict[str, str]] = []
    threads = [threading.Thread(target=lambda: answers.append(asyncio.run(store.all("ann")))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == [{"size": "42"}] * 5
    blocking(store).close()
    assert asyncio.run(gone(marked))


def test_a_loop_that_ends_under_a_call_ends_whatever_the_call_was_doing(marked):
    """Connecting, creating the table, asking: `asyncio.run` never waits for a call that it cancelled."""
    table = new_table()

    kept: list[asyncio.Future] = []  # or a call would end early, with nobody to wait for it

    async def leave(after_s: float) -> None:
        call = asyncio.ensure_future(PostgresPreferenceStore(marked, table=table).get("ann", "size"))
        await asyncio.sleep(after_s)
        kept.append(call)

    def all_moments() -> None:
        for moment in range(60):
            asyncio.run(leave(moment * 0.0005))

    thread = threading.Thread(target=all_moments, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    kept.clear()  # their tracebacks hold the connections that were just being made
    gc.collect()
    assert asyncio.run(gone(marked))


def test_a_loop_that_was_only_closed_leaves_its_connections_to_the_next_call(marked):
    store = PostgresPreferenceStore(marked, table=new_table())
    loop = asyncio.new_event_loop()
    loop.run_until_complete(store.set("ann", "size", "42"))
    loop.close()
    assert asyncio.run(store.get("ann", "size")) == "42"
    assert asyncio.run(gone(marked))


def test_closing_in_one_loop_frees_the_connections_of_the_others(marked):
    store = PostgresPreferenceStore(marked, table=new_table())
    blocking(store).set("ann", "size", "42")
    idle = asyncio.new_event_loop()
    assert idle.run_until_complete(store.get("ann", "size")) == "42"
    asyncio.run(store.close())
    assert asyncio.run(gone(marked))
    idle.run_until_complete(idle.shutdown_asyncgens())
    for task in asyncio.all_tasks(idle):
        task.cancel()
    idle.run_until_complete(asyncio.sleep(0))
    idle.close()


async def test_closing_lets_calls_end_and_leaves_no_connection(marked):
    store = await PostgresPreferenceStore.connect(marked, table=new_table(), pool_size=2)
    calls = [asyncio.create_task(store.set("ann", f"k{n}", "v")) for n in range(10)]
    await asyncio.sleep(0)
    await store.close()
    assert await asyncio.gather(*calls) == [True] * 10
    assert await gone(marked)


async def test_a_closed_store_says_so_and_closing_twice_is_harmless(store):
    await store.close()
    await store.close()
    with pytest.raises(RuntimeError, match="is closed; make a new one"):
        await store.get("ann", "size")


def test_a_forgotten_store_leaves_no_warning_and_no_connection(marked):
    async def use() -> None:
        assert await PostgresPreferenceStore(marked, table=new_table()).all("ann") == {}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(use())
        gc.collect()
    assert asyncio.run(gone(marked))


# Servers that are not there, or say nothing


async def test_a_server_that_is_not_there_is_named_without_its_password():
    store = PostgresPreferenceStore("postgresql://ann:s3cret@127.0.0.1:1/shop?connect_timeout=3&password=s3cret")
    for call in (store.get("ann", "size"), store.set("ann", "size", "42"), store.all("ann"), store.forget("ann")):
        with pytest.raises(ConnectionError) as caught:
            await call
        assert str(caught.value).startswith("Postgres at postgresql://ann:...@127.0.0.1:1/shop can't be reached: ")
        assert "start the server or correct the URL" in str(caught.value)
        assert "s3cret" not in str(caught.value)


async def test_nothing_is_connected_before_the_first_call(marked):
    store = PostgresPreferenceStore(marked, table=new_table())
    assert await connections(marked) == 0
    with pytest.raises(ValueError, match="user_id"):
        await store.get("", "size")
    assert await store.set("ann", " ", "dropped") is False
    assert await connections(marked) == 0


@asynccontextmanager
async def silent_server():
    """It accepts, and never answers."""
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def test_a_server_that_accepts_and_never_answers_is_an_error(monkeypatch):
    monkeypatch.setattr(postgres_connection, "CONNECT_S", 2)  # the least that libpq takes
    async with silent_server() as port:
        with pytest.raises(ConnectionError, match="can't be reached: connection timeout"):
            await PostgresPreferenceStore(f"postgresql://ann@127.0.0.1:{port}/shop").get("ann", "size")


async def relay(source: asyncio.StreamReader, target: asyncio.StreamWriter, mute: asyncio.Event) -> None:
    while chunk := await source.read(65_536):
        if mute.is_set():
            await asyncio.Event().wait()
        target.write(chunk)


@pytest.mark.parametrize("cancelled", [False, True], ids=["left alone", "cancelled by the caller"])
async def test_a_server_that_falls_silent_during_a_call_is_an_error(marked, monkeypatch, cancelled):
    monkeypatch.setattr(postgres_loop, "SILENCE_S", 1)
    there = psycopg.conninfo.conninfo_to_dict(marked)
    mute, tasks = asyncio.Event(), []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection(there["host"], int(there["port"]))
        tasks.extend(
            [asyncio.ensure_future(relay(reader, forth, mute)), asyncio.ensure_future(relay(back, writer, mute))]
        )

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    url = marked.replace(f":{there['port']}/", f":{server.sockets[0].getsockname()[1]}/")
    store = await PostgresPreferenceStore.connect(url, table=new_table(), pool_size=1)
    assert await store.set("ann", "size", "42")
    mute.set()
    if cancelled:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(store.get("ann", "size"), 0.1)
    else:
        with pytest.raises(ConnectionError, match="gave no answer for 1 s"):
            await store.get("ann", "size")
    mute.clear()
    assert await store.get("ann", "size") == "42"
    await store.close()
    server.close()
    for task in tasks:
        task.cancel()


async def test_a_statement_that_takes_too_long_is_ended_by_the_server(marked, monkeypatch):
    monkeypatch.setattr(postgres_loop, "STATEMENT_S", 0.2)
    async with PostgresPreferenceStore(marked, table=new_table()) as store:

        async def dawdle(connection):
            await connection.execute("SELECT pg_sleep(20)")

        with pytest.raises(TimeoutError, match="canceling statement due to statement timeout"):
            await store._pool.run(dawdle)


async def test_waiting_for_a_free_connection_has_a_limit(marked, monkeypatch):
    monkeypatch.setattr(postgres_loop, "WAIT_S", 0.2)
    async with PostgresPreferenceStore(marked, table=new_table(), pool_size=1) as store:
        held, go = asyncio.Event(), asyncio.Event()

        async def hold(connection):
            held.set()
            await go.wait()

        holder = asyncio.create_task(store._pool.run(hold))
        await held.wait()
        with pytest.raises(ConnectionError, match=r"all 1 connections .* were busy for 0\.2 s; .* larger pool_size"):
            await store.get("ann", "size")
        go.set()
        await holder


async def test_on_windows_the_wrong_loop_is_an_error_that_names_the_right_one(monkeypatch):
    class ProactorEventLoop:
        pass

    monkeypatch.setattr(asyncio, "get_running_loop", ProactorEventLoop)
    with pytest.raises(RuntimeError, match="WindowsSelectorEventLoopPolicy"):
        await PostgresPreferenceStore("postgresql://localhost/shop").get("ann", "size")
