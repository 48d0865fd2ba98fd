"""Ready means answered; what never is has an end, with the reason and the server's last words."""

from __future__ import annotations

import dataclasses

import pytest

from tri_memory.engines.kind import REDIS
from tri_memory.engines.patience import Limit
from tri_memory.engines.ready import ServerEnded, wait_until_ready


class Server:
    """Answers at the `answers_at`-th time that it is asked."""

    def __init__(self, answers_at: int) -> None:
        self.answers_at, self.asked = answers_at, 0

    def ask(self, url: str, seconds: float) -> None:
        self.asked += 1
        if self.asked < self.answers_at:
            raise ConnectionError(f"refused,\n  for the {self.asked}. time.")


def wait_for(server: Server, limit_s: float = 30, has_ended: bool = False) -> None:
    kind = dataclasses.replace(REDIS, ask=server.ask)
    wait_until_ready(kind, "redis://there", Limit(limit_s), lambda: has_ended, lambda: "out of memory")


def test_it_is_asked_until_it_answers() -> None:
    server = Server(answers_at=3)
    wait_for(server)
    assert server.asked == 3


def test_one_that_never_answers_is_a_time_out_with_all_that_is_known() -> None:
    with pytest.raises(
        TimeoutError,
        match=r"Redis was not ready within 0 s \(refused, for the \d+\. time\); "
        r"it wrote last: out of memory\. Give it longer with limit_s=$",
    ):
        wait_for(Server(answers_at=10**9), limit_s=0.3)


def test_one_that_has_ended_is_not_waited_for() -> None:
    server = Server(answers_at=1)
    with pytest.raises(ServerEnded, match="ended while it started: out of memory"):
        wait_for(server, has_ended=True)
    assert server.asked == 0
