"""The shared fixtures: what is missing skips with its reason, and fails where it has to be there."""

from __future__ import annotations

import pytest

from tests.engines import servers
from tests.engines.servers import missing, running, url_of
from tri_memory import engines
from tri_memory.engines.unavailable import Unavailable

WHY = Unavailable("no such thing", "get it")


@pytest.mark.parametrize(
    ("how", "environment", "outcome"),
    [
        ("embedded", {}, pytest.skip.Exception),
        ("container", {}, pytest.skip.Exception),
        ("embedded", {"STRICT": "1"}, pytest.fail.Exception),
        ("container", {"STRICT": "1"}, pytest.fail.Exception),
        ("embedded", {"STRICT": "1", "TRI_MEMORY_NO_DOCKER": "1"}, pytest.fail.Exception),
        ("container", {"STRICT": "1", "TRI_MEMORY_NO_DOCKER": "1"}, pytest.skip.Exception),
    ],
)
def test_what_is_missing_skips_or_fails_with_its_reason(
    how: str, environment: dict[str, str], outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STRICT", "TRI_MEMORY_NO_DOCKER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(outcome, match="no such thing: get it"):
        missing(how, WHY)


def test_one_server_is_there_for_the_whole_run(embedded_valkey: str) -> None:
    assert url_of(engines.redis, "embedded") == embedded_valkey
    assert running(engines.redis, "embedded").url == embedded_valkey


def test_a_docker_engine_that_is_absent_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "running", running.__wrapped__)  # the run's own servers stay as they are
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setenv("STRICT", "1")
    with pytest.raises(pytest.fail.Exception, match="no Docker engine answers here: start Docker"):
        url_of(engines.redis, "container")
