"""The first way: a server that is there already, named by an environment variable."""

from __future__ import annotations

import os
import re

from tri_memory.engines.address import without_password
from tri_memory.engines.kind import Kind
from tri_memory.engines.patience import Limit, within
from tri_memory.engines.ready import one_line

ANSWER_S = 10.0  # a server that is there already answers sooner


def address(kind: Kind) -> str | None:
    """What the variable says; None where it is unset or blank."""
    return os.environ.get(kind.variable, "").strip() or None


class GivenServer:
    """Somebody else's server: asked whether it answers, never started and never stopped."""

    how = "url"

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.url = address(kind) or ""

    def start(self, limit: Limit) -> None:
        """ConnectionError naming the address (the password hidden) where it doesn't answer; nothing else is tried."""
        if not self.url:
            raise RuntimeError(
                f"{self.kind.variable} is not set: set it to the server's URL, or leave out prefer='url'"
            )
        one_try = limit.at_most(ANSWER_S)
        try:
            within(one_try, self.kind.name, lambda: self.kind.ask(self.url, max(0.1, one_try.left())))
        except ImportError:
            raise
        except Exception as error:
            why = _without_secrets(one_line(error), self.url)
            raise ConnectionError(
                f"{self.kind.variable} is set to {without_password(self.url)}, which does not answer as it should: "
                f"{why}. Start that server, correct the URL, or unset {self.kind.variable}"
            ) from None

    def is_alive(self) -> bool:
        return True

    def stop(self) -> None:
        """Nothing: it isn't ours."""


def _without_secrets(text: str, url: str) -> str:
    """A client's error, which may quote a password that it could not parse, or a part of it."""
    text = text.replace(url, without_password(url))
    account = url.partition("://")[2].rpartition("@")[0]
    for secret in (account.partition(":")[2], *re.findall(r"password=([^&]*)", url)):
        for part in (secret, *re.split(r"\W+", secret)):
            if len(part) > 3:  # a shorter one stands in half the words there are
                text = text.replace(part, "...")
    return text
