"""Ready means that the server answered a question, not that a port is open or that a log says so."""

from __future__ import annotations

import time
from collections.abc import Callable

from tri_memory.engines.kind import Kind
from tri_memory.engines.patience import Limit, within

ONE_TRY_S = 3.0
PAUSE_S = 0.05
STOPS = ".:;?! "  # what ends a client's sentence would stand before our own stop


class ServerEnded(RuntimeError):
    """The server that was waited for has ended."""


def wait_until_ready(
    kind: Kind, url: str, limit: Limit, has_ended: Callable[[], bool], last_words: Callable[[], str]
) -> None:
    """Return once the server at `url` has answered. TimeoutError after the limit, ServerEnded when it is no more.

    Both say what the server wrote last.
    """
    last = "it was not asked yet"  # a text: the exception would hold on to the frames, and through them to the engine
    while limit.left() > 0:
        if has_ended():
            raise ServerEnded(f"the {kind.name} server ended while it started: {last_words()}")
        try:
            one_try = limit.at_most(ONE_TRY_S)
            within(one_try, kind.name, lambda: kind.ask(url, max(0.1, one_try.left())))  # noqa: B023
        except ImportError:
            raise
        except Exception as error:  # whatever the client makes of a server that is not there yet
            last = one_line(error)
            time.sleep(min(PAUSE_S, limit.left()))
        else:
            return
    raise TimeoutError(
        f"{kind.name} was not ready within {limit.seconds:.0f} s ({last}); it wrote last: {last_words()}. "
        "Give it longer with limit_s="
    )


def one_line(error: BaseException) -> str:
    """An exception on one line, without the stop at its end."""
    return " ".join(str(error).split()).rstrip(STOPS) or type(error).__name__
