"""An engine is a real server between start and stop, on whichever way it came."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import needs
from tests.engines.servers import url_of
from tri_memory import engines
from tri_memory.engines import Engine
from tri_memory.engines.embedded_valkey import EmbeddedValkey
from tri_memory.engines.kind import ping, select_one
from tri_memory.engines.patience import Limit

ASK = {"redis": ping, "postgres": select_one}
MAKE = {"redis": engines.redis, "postgres": engines.postgres}


@pytest.fixture(params=["redis", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    url_of(MAKE[request.param], "embedded")  # skips, or fails under STRICT=1, where there is none
    return str(request.param)


@pytest.fixture(autouse=True)
def no_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)


def answers(kind: str, url: str) -> bool:
    try:
        ASK[kind](url, 3)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("how", ["embedded", "container"])
def test_it_answers_inside_the_block_and_not_behind_it(kind: str, how: str) -> None:
    url_of(MAKE[kind], how)
    with MAKE[kind](how, limit_s=60) as engine:
        url = engine.url
        assert engine.how == how
        assert "@127.0.0.1:" in url
        assert answers(kind, url)
    assert not answers(kind, url)


def test_an_error_in_the_block_stops_it(kind: str) -> None:
    urls = []

    def cell() -> None:
        with MAKE[kind]("embedded") as engine:
            urls.append(engine.url)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cell()
    assert not answers(kind, urls[0])


def test_starting_and_stopping_twice_is_harmless(kind: str) -> None:
    engine = MAKE[kind]("embedded")
    engine.start()
    url = engine.url
    engine.start()
    assert engine.url == url
    assert answers(kind, url)
    engine.stop()
    engine.stop()
    engine.start()
    assert engine.url != url  # a new server, not the old one
    assert answers(kind, engine.url)
    engine.stop()


def test_without_its_password_nobody_gets_in(kind: str) -> None:
    url = url_of(MAKE[kind], "embedded")
    account = url.partition("://")[2].rpartition("@")[0]
    assert len(account.partition(":")[2]) >= 16
    assert not answers(kind, url.replace(account, "postgres" if kind == "postgres" else ""))
    assert not answers(kind, url.replace(account, account.partition(":")[0] + ":wrong"))


@pytest.mark.parametrize("how", ["embedded", "container"])
def test_it_listens_on_the_loopback_interface_only(kind: str, how: str) -> None:
    psutil = needs("psutil", "pip install psutil")
    port = int(url_of(MAKE[kind], how).rpartition(":")[2].partition("/")[0])
    listening = {c.laddr.ip for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == port}
    assert listening == {"127.0.0.1"}


def test_a_killed_server_comes_back_on_the_same_url_with_what_it_had_confirmed(kind: str) -> None:
    with MAKE[kind]("embedded") as engine:
        url = engine.url
        write, read = WRITE[kind], READ[kind]
        write(url)
        engine.kill()
        assert not answers(kind, url)
        engine.start()
        assert engine.url == url
        assert read(url) == 1000


def test_a_container_cannot_be_killed_and_says_so() -> None:
    url_of(engines.redis, "container")
    with engines.redis("container") as engine, pytest.raises(RuntimeError, match="'container'"):
        engine.kill()


def test_a_container_that_somebody_stopped_is_started_again_with_its_data() -> None:
    docker = needs("docker", "pip install testcontainers")
    url_of(engines.redis, "container")
    with engines.redis("container", limit_s=60) as engine:
        write_keys(engine.url)
        client = docker.from_env(timeout=30)
        client.containers.get(engine._server.name).stop(timeout=10)
        client.close()
        engine.start()
        assert count_keys(engine.url) == 1000


def test_it_starts_inside_a_running_loop(kind: str) -> None:
    async def cell() -> bool:
        with MAKE[kind]("embedded") as engine:
            return answers(kind, engine.url)

    assert asyncio.run(cell())


def test_a_loop_goes_on_while_a_thread_starts_it(kind: str) -> None:
    async def cell() -> int:
        engine, turns = MAKE[kind]("embedded"), 0
        start = asyncio.create_task(asyncio.to_thread(engine.start))
        while not start.done():
            await asyncio.sleep(0)
            turns += 1
        assert answers(kind, engine.url)
        engine.stop()
        return turns

    assert asyncio.run(cell()) > 1


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_an_unknown_preference_is_named_with_the_choices(make: Callable[..., Engine]) -> None:
    with pytest.raises(ValueError, match=r"url, container, embedded, or None; got 'docker'"):
        make("docker")


@pytest.mark.parametrize("limit_s", [0, -1, float("inf"), float("nan"), "2", True])
def test_a_limit_is_a_number_of_seconds_above_zero(limit_s: Any) -> None:
    with pytest.raises(ValueError, match="limit_s must be"):
        engines.redis(limit_s=limit_s)


def test_before_its_start_it_says_how_to_start_it() -> None:
    engine = engines.postgres()
    for ask in (lambda: engine.url, lambda: engine.how, engine.kill):
        with pytest.raises(RuntimeError, match=r"call start\(\)"):
            ask()
    assert "not started" in repr(engine)


def test_its_repr_hides_the_password(kind: str) -> None:
    with MAKE[kind]("embedded") as engine:
        password = engine.url.partition("://")[2].rpartition("@")[0].partition(":")[2]
        assert password not in repr(engine)
        assert "embedded" in repr(engine)


def test_the_room_imports_no_client_and_no_docker_library() -> None:
    check = "import sys, tri_memory.engines; print([m for m in sys.modules if m in sys.argv[1].split()])"
    found = subprocess.run(
        [sys.executable, "-c", check, "redis psycopg docker testcontainers"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert found.stdout.strip() == "[]"


def test_a_port_that_somebody_took_meanwhile_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    url = url_of(engines.redis, "embedded")
    taken = int(url.rpartition(":")[2].partition("/")[0])
    from tri_memory.engines import port

    free, offered = port.free_port(), [taken]
    monkeypatch.setattr(port, "free_port", lambda: offered.pop() if offered else free)
    server = EmbeddedValkey()
    try:
        server.start(Limit(30))
        assert server.port == free
        assert answers("redis", server.url)
    finally:
        server.stop()


def write_keys(url: str) -> None:
    import redis

    with redis.Redis.from_url(url) as client:
        for number in range(1000):
            client.rpush("turns", number)


def count_keys(url: str) -> int:
    import redis

    with redis.Redis.from_url(url) as client:
        return int(client.llen("turns"))


def write_rows(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")  # the wheel and the image carry it
        connection.execute("CREATE TABLE turns (n int, v vector(3))")
        connection.execute("INSERT INTO turns SELECT n, '[1,2,3]' FROM generate_series(1, 1000) n")


def count_rows(url: str) -> int:
    import psycopg

    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM turns WHERE v <-> '[1,2,3]' = 0").fetchone()
        assert row is not None
        return int(row[0])


WRITE = {"redis": write_keys, "postgres": write_rows}
READ = {"redis": count_keys, "postgres": count_rows}
