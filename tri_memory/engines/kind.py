"""What the two kinds of server differ in: the variable that may name one, the image, and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tri_memory import missing_package


@dataclass(frozen=True)
class Kind:
    """`ask(url, seconds)` returns when the server has answered a question, and raises when it has not."""

    name: str
    variable: str
    image: str
    port: int  # inside the container
    ask: Callable[[str, float], None]
    instead: str  # what a learner can do without an embedded server


def ping(url: str, seconds: float) -> None:
    """PING, on a connection of its own, without the client's own retries."""
    try:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ModuleNotFoundError as error:
        raise missing_package(error) from None
    client = redis.Redis.from_url(
        url, socket_connect_timeout=seconds, socket_timeout=seconds, retry=Retry(NoBackoff(), 0)
    )
    with client:
        client.ping()


def select_one(url: str, seconds: float) -> None:
    """SELECT 1, on a connection of its own."""
    try:
        import psycopg
    except ModuleNotFoundError as error:
        raise missing_package(error) from None
    with psycopg.connect(url, connect_timeout=max(1, round(seconds)), autocommit=True) as connection:
        connection.execute("SELECT 1")


REDIS = Kind(
    name="Redis",
    variable="REDIS_URL",
    image="redis:8",
    port=6379,
    ask=ping,
    instead="use Docker, or fakeredis for a lesson",
)
POSTGRES = Kind(
    name="PostgreSQL",
    variable="DATABASE_URL",
    image="pgvector/pgvector:pg17",
    port=5432,
    ask=select_one,
    instead="use Docker, or set DATABASE_URL",
)
