"""Real servers for any test: one of each for the whole run, started when the first test asks for it.

Each fixture is a URL. Tests share the server, so they keep apart by a prefix, a schema or fresh ids.
`tests/conftest.py` imports the fixtures, which is all it takes.

What is missing makes a test skip with the reason, and fail under STRICT=1. Only the containers may be missing there, on
a machine that is known to have no Docker engine: `TRI_MEMORY_NO_DOCKER=1`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import NoReturn

import pytest

from tests.conftest import needs
from tri_memory import engines
from tri_memory.engines.unavailable import Unavailable


@pytest.fixture(scope="session")
def embedded_valkey() -> str:
    return url_of(engines.redis, "embedded")


@pytest.fixture(scope="session")
def container_redis() -> str:
    return url_of(engines.redis, "container")


@pytest.fixture(scope="session")
def embedded_postgres() -> str:
    return url_of(engines.postgres, "embedded")


@pytest.fixture(scope="session")
def container_postgres() -> str:
    return url_of(engines.postgres, "container")


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[str]:
    needs("redis", "pip install redis")
    from tests.cluster import three_nodes

    try:
        cluster = three_nodes()
        url = cluster.__enter__()
    except Unavailable as why:
        missing("embedded", why)
    yield url
    cluster.__exit__(None, None, None)


def url_of(make: Callable[..., engines.Engine], how: str) -> str:
    """The URL of the run's one server of that kind; skips or fails where there is none."""
    needs("redis" if make is engines.redis else "psycopg", "pip install redis 'psycopg[binary]'")
    try:
        return running(make, how).url
    except Unavailable as why:
        missing(how, why)


@cache
def running(make: Callable[..., engines.Engine], how: str) -> engines.Engine:
    """Started once; it goes when the run ends, as every engine does at the end of its process."""
    engine = make(how, limit_s=60)
    engine.start()
    return engine


def missing(how: str, why: Unavailable) -> NoReturn:
    """Skip, or fail where the component has to be there."""
    if is_expected(how):
        pytest.fail(str(why), pytrace=False)
    pytest.skip(str(why))


def is_expected(how: str) -> bool:
    if os.environ.get("STRICT") != "1":
        return False
    return how != "container" or os.environ.get("TRI_MEMORY_NO_DOCKER") != "1"
