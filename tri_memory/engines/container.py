"""The second way: a container, by Testcontainers, on a random port of 127.0.0.1 and with a random password.

Testcontainers' own reaper is one more container to be fetched; the watchman (watch.py) removes ours without it.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import re
import secrets
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from tri_memory import missing_package
from tri_memory.engines import remove_container
from tri_memory.engines.guard import Guard
from tri_memory.engines.kind import REDIS, Kind
from tri_memory.engines.patience import Limit, say, within
from tri_memory.engines.ready import one_line, wait_until_ready
from tri_memory.engines.unavailable import Unavailable

ANSWER_S = 5.0  # a Docker engine that is there answers sooner
WAY_OUT = "start Docker, or leave out prefer='container' to get an embedded server"

NOBODY_THERE = re.compile("FileNotFoundError|ConnectionRefusedError|cannot find the file")  # needs no explanation


def docker_client(limit: Limit) -> Any:
    """A client of the Docker engine that Testcontainers finds. Unavailable where none answers."""

    def connect() -> Any:
        from testcontainers.core.docker_client import DockerClient

        client = DockerClient().client
        client.ping()
        return client

    try:
        return within(limit.at_most(ANSWER_S), "Docker", connect)
    except ModuleNotFoundError as error:
        reason = f"no container ({missing_package(error)})"
    except Exception as error:
        why = "" if NOBODY_THERE.search(str(error)) else f" ({_shortly(error)})"
        reason = f"no Docker engine answers here{why}"
    _close_what_failed()
    raise Unavailable(reason, WAY_OUT)  # here, where the error and the sockets in its frames are gone


def _close_what_failed() -> None:
    """docker-py leaves the sockets of its failed attempts open, and Python would complain about each, cells later."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def image_is_there(client: Any, image: str, limit: Limit) -> bool:
    from docker.errors import ImageNotFound

    try:
        within(limit, "Docker", lambda: client.images.get(image))
    except ImageNotFound:
        return False
    return True


def fetch_image(client: Any, image: str, limit: Limit) -> None:
    """Unavailable where it can't be had, TimeoutError where that takes too long."""
    from docker.errors import DockerException

    say(f"Docker fetches the image {image}, this once …")
    try:
        within(limit, f"docker pull {image}", lambda: client.images.pull(image))
    except TimeoutError as error:
        raise TimeoutError(f"{error}: run that in a terminal first, or take prefer='embedded'") from None
    except DockerException as error:
        reason = f"the image {image} is not here and cannot be fetched ({_shortly(error)})"
        raise Unavailable(reason, f"docker pull {image} where there is a network") from None


class Container:
    """A container of `kind.image`. After it ended, `start` starts it again with the same data; its port may change."""

    how = "container"

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.url = ""
        self.name = f"tri_memory-{kind.name.lower()}-{secrets.token_hex(6)}"
        self._password = secrets.token_urlsafe(16)
        self._guard: Guard | None = None
        self._container: Any = None

    def start(self, limit: Limit) -> None:
        with contextlib.closing(docker_client(limit)) as client:
            if not image_is_there(client, self.kind.image, limit):
                fetch_image(client, self.kind.image, limit)
        if self._guard is None:
            self._guard = Guard()
            self._guard.at_the_end([sys.executable, remove_container.__file__, self.name])
        self._container = within(limit, f"Docker, asked for a container of {self.kind.image},", self._run)
        self.url = within(limit, "Docker", self._address)
        wait_until_ready(self.kind, self.url, limit, lambda: not self.is_alive(), self._last_words)

    def _run(self) -> Any:
        if self._container is not None:
            self._container.start()
            return self._container
        from testcontainers.core.container import DockerContainer

        recipe = DockerContainer(self.kind.image, name=self.name)
        recipe.ports[str(self.kind.port)] = ("127.0.0.1", None)  # type: ignore[assignment]  # docker-py's any free port
        if self.kind.port == REDIS.port:
            recipe.with_command(["redis-server", "--appendonly", "yes", "--requirepass", self._password])
        else:
            recipe.with_env("POSTGRES_PASSWORD", self._password)
            recipe.with_kwargs(shm_size="1g")  # building an index over many vectors takes more than Docker's 64 MB
        with _quietly():
            container = recipe.start().get_wrapped_container()
        if self._guard is None:  # made after all, when nobody waits for it any more
            container.remove(force=True, v=True)
        return container

    def _address(self) -> str:
        self._container.reload()
        published = self._container.ports.get(f"{self.kind.port}/tcp")
        if not published:
            return ""  # it has ended already, which waiting for it will tell
        where = f"{self._password}@127.0.0.1:{published[0]['HostPort']}"
        return f"redis://:{where}/0" if self.kind.port == REDIS.port else f"postgresql://postgres:{where}/postgres"

    def is_alive(self) -> bool:
        def status() -> str:
            self._container.reload()
            return str(self._container.status)

        if self._container is None:
            return False
        try:
            return within(Limit(ANSWER_S), "Docker", status) in ("created", "running")
        except Exception:  # removed by somebody, or Docker is gone
            return False

    def _last_words(self, most: int = 400) -> str:
        try:
            log: bytes = within(Limit(ANSWER_S), "Docker", lambda: self._container.logs(tail=8))
        except Exception as error:
            return one_line(error)
        return " / ".join(log.decode("utf-8", "replace").split("\n"))[-most:].strip() or "nothing"

    def stop(self) -> None:
        if self._guard is not None:
            guard, self._guard = self._guard, None
            guard.let_go()
        if self._container is not None:
            self._container.client.close()
        self._container = None


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Testcontainers without its reaper and its log lines, for as long as it starts ours."""
    from testcontainers.core.config import testcontainers_config as config

    log = logging.getLogger("testcontainers")
    before, level = config.ryuk_disabled, log.level
    config.ryuk_disabled = True
    log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        config.ryuk_disabled = before
        log.setLevel(level)


def _shortly(error: Exception, most: int = 160) -> str:
    text = one_line(error)
    return text if len(text) <= most else f"{text[:most]}…"
