"""Calling a learner's function without waiting for ever."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from tri_memory.lab.exercises.kit import Wrong

MOST_STEPS = 20_000  # lines of Python; the exercises of this chapter take some hundreds


def patiently(function: Callable[..., Any], *arguments: Any) -> Any:
    """What `function` returns. Wrong, once it has run 20,000 lines: a loop in it never ends."""
    steps = 0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        if steps > MOST_STEPS:
            raise Wrong("It never comes to an end: look at the loop. Something in its condition has to change.")
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        return function(*arguments)
    finally:
        sys.settrace(before)
