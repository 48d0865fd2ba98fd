"""Waiting with an end: one limit over all the steps of a start, and a line that says what is waited for."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Value = TypeVar("Value")
QUIET_S = 2.0  # a wait as short as this needs no word


class Limit:
    """`seconds` from now. All the steps of one start share it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until the end, never below 0."""
        return max(0.0, self._ends - time.monotonic())

    def at_most(self, seconds: float) -> Limit:
        """A shorter limit inside this one."""
        return Limit(min(seconds, self.left()))


def within(limit: Limit, what: str, function: Callable[[], Value]) -> Value:
    """The value of `function()`, or TimeoutError naming `what`.

    It runs in a thread, since neither a name look-up nor a server that accepts and stays silent can be interrupted; a
    late one is left behind in its thread, which keeps no program from ending.
    """
    outcome: list[Value] = []
    failure: list[BaseException] = []

    def attempt() -> None:
        try:
            outcome.append(function())
        except BaseException as error:  # handed to the caller, who is waiting for it
            failure.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(limit.left())
    if failure:
        try:
            raise failure[0]
        finally:
            failure.clear()  # else the exception holds this frame, and this frame the exception
    if not outcome:
        raise TimeoutError(f"{what} gave no answer within {limit.seconds:.0f} s")
    return outcome[0]


def say(line: str) -> None:
    """A line for the learner: under the cell in a notebook, on stderr in a terminal."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def progress(what: str, quiet_s: float = QUIET_S) -> Iterator[None]:
    """Say what is waited for, once, if the block takes longer than `quiet_s` seconds; how long it took, at the end."""
    began = time.monotonic()
    spoke = threading.Event()

    def speak() -> None:
        spoke.set()
        say(f"{what} …")

    timer = threading.Timer(quiet_s, speak)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if spoke.is_set():
            say(f"{what}: {time.monotonic() - began:.1f} s")
