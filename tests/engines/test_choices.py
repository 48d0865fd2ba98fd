"""`describe` says what would be taken and why not another, and what it says is what then happens."""

from __future__ import annotations

import pytest

from tests.engines.servers import url_of
from tri_memory import engines
from tri_memory.engines import Way, describe

MAKE = {"Redis": engines.redis, "PostgreSQL": engines.postgres}


@pytest.fixture(autouse=True)
def no_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    for make in MAKE.values():
        url_of(make, "embedded")


def taken() -> dict[str, Way]:
    return {row.kind: row for row in describe() if row.taken}


def test_there_are_three_rows_a_kind_in_the_order_of_trying() -> None:
    ways = ["url", "container", "embedded"]
    assert [(row.kind, row.way) for row in describe()] == [(kind, way) for kind in MAKE for way in ways]
    assert all(row.reason and "\n" not in row.reason for row in describe())


def test_what_it_says_is_taken_is_what_is_taken() -> None:
    for kind, row in taken().items():
        with MAKE[kind]() as engine:
            assert engine.how == row.way


def test_without_docker_the_embedded_servers_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert {kind: row.way for kind, row in taken().items()} == dict.fromkeys(MAKE, "embedded")
    (row,) = [row for row in describe() if (row.kind, row.way) == ("Redis", "container")]
    assert (row.available, row.reason) == (False, "no Docker engine answers here")


def test_a_url_that_does_not_answer_is_taken_and_said_to_be_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://:s3cret-word@127.0.0.1:1/0")
    row = taken()["Redis"]
    assert (row.way, row.available) == ("url", False)
    assert "does not answer" in row.reason
    assert "s3cret" not in row.reason


def test_a_url_that_answers_is_taken_and_shown_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    url = url_of(engines.postgres, "embedded")
    monkeypatch.setenv("DATABASE_URL", url)
    row = taken()["PostgreSQL"]
    assert (row.way, row.available) == ("url", True)
    assert "DATABASE_URL is postgresql://postgres:...@127.0.0.1" in row.reason


def test_docker_without_the_image_says_that_it_has_to_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    url_of(engines.redis, "container")
    monkeypatch.setattr("tri_memory.engines.choices.image_is_there", lambda *_: False)
    row = taken()["Redis"]
    assert (row.way, row.reason) == ("container", "Docker is there, but has to fetch the image redis:8")
