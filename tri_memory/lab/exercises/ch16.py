"""Chapter 16: tests that a learner writes, run on versions that are right and on versions that are broken."""

from __future__ import annotations

import asyncio
import inspect
import random
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from tri_memory.blocking_calls import run
from tri_memory.lab.chapters.ch03.failures import quiet_log
from tri_memory.lab.exercises import ch16_versions as v
from tri_memory.lab.exercises.ch16_quiz import QUESTIONS
from tri_memory.lab.exercises.kit import Wrong, exercise, self_test

LIMIT_S = 20  # for one version
PRAISE = "It lets the right versions pass, and catches every broken one."

# A broken version, and what is said of a test that passes it: the fault, then the input that would show it.
NEAREST = (
    (
        v.distances,
        "its scores are distances. Ask for a vector that is one of the rows: 1.0.",
    ),
    (
        v.worst_first,
        "of its k rows the nearest comes last. Hold the order of two rows or more.",
    ),
    (
        v.all_of_them,
        "it gives all rows, whatever k is. Ask for fewer rows than there are.",
    ),
    (
        v.dot_products,
        "a longer row gets a higher score there. Not all your rows should be of length"
        " 1: the cosine of [1, 0] and [3, 0] is 1.0.",
    ),
    (
        v.never_negative,
        "an opposite row gets 1.0 instead of -1.0. Have a row that points away, and look at its score.",
    ),
)
STORES = (
    (
        v.Everything,
        "it clears everybody. Look at another user's sessions after the clearing.",
    ),
    (
        v.OneOnly,
        "only one session goes. Give the user more than one.",
    ),
    (
        v.Beginning,
        "it also clears users whose name begins alike. Try “ann” and “annie”.",
    ),
    (
        v.Unquoted,
        "the sign between user and session may stand in a name. Try “ann” and “ann:work”.",
    ),
    (
        v.Pattern,
        "a name is taken for a pattern there. Clear “a*” or “[vip] j”, and look who is gone, and who is not.",
    ),
    (
        v.SmallLetters,
        "“Ann” and “ann” are one user there. An id is taken to the letter.",
    ),
)
WRITERS = (
    (
        v.ForgetsTheOldSummary,
        "a new summary replaces the old one without reading it. Send turns for two "
        "folds, and ask what the last summary stands for.",
    ),
    (
        v.Capped,
        "its model sees a few of the old turns alone. Ask for every turn, not for some.",
    ),
    (
        v.FoldsTwice,
        "two folds at once take off the turns of both. Let a summary take longer than"
        " the gap between two turns, and don't wait for one append before the next begins.",
    ),
    (
        v.Placeholder,
        "a placeholder stands for the old turns if the model fails. Give a summariser that raises.",
    ),
    (
        v.Raises,
        "if the model fails, `append` raises and the conversation stops. Give a "
        "summariser that raises, and send more than twelve turns.",
    ),
)


@exercise(
    "16-1",
    "A test for the nearest",
    dots=1,
    minutes=12,
    praise=PRAISE,
    hints=(
        "Take rows of two numbers, whose cosines you know: the same direction, 45 degrees, the opposite.",
        "Call it with a k below the number of rows, and check the rows in order; then with all, and check the scores.",
        "Scores are floats: abs(score - 1) < 1e-6. One row longer than 1 and one that points away catch the last two.",
    ),
)
def nearest_test(test: Callable[[Any], Any], rng: random.Random) -> None:
    _passes(partial(test, _without_zeros(v.nearest_by_hand)), "Each entry is a pair: (row number, cosine).")
    seventh = "The other right version passes it; in this one scores differ from there in the seventh digit."
    _passes(partial(test, v.nearest_in_float32), seventh)
    for broken, why in NEAREST:
        _catches(partial(test, broken), why)


def _without_zeros(nearest: Callable[..., Any]) -> Callable[..., Any]:
    def watched(query: Any, rows: Any, k: int) -> Any:
        if not all(any(vector) for vector in (query, *rows)):
            raise Wrong(
                "Your test gives a vector of zeros, which has no direction. The promise says: no vector is zero."
            )
        return nearest(query, rows, k)

    return watched


@exercise(
    "16-2",
    "A test for clearing one user",
    dots=2,
    minutes=15,
    praise=PRAISE,
    hints=(
        "Add two sessions each for several users, clear one of them, then compare everybody's sessions with before.",
        "The users are the test: “ann” with “annie”, with “ann:work”, with “Ann”; and names that are patterns.",
        "for leaver in users: a new store, all users added, clear(leaver) == 2, sessions(leaver) == [], and of "
        "everybody else both are left. users = ['ann', 'annie', 'ann:work', 'Ann', 'a*', '[vip] j'].",
    ),
)
def clear_test(test: Callable[[Any], Any], rng: random.Random) -> None:
    for right in (v.Nested, v.Quoted):
        _passes(partial(test, right), "Sessions may be listed in any order; an unknown user has none.")
    for broken, why in STORES:
        _catches(partial(test, broken), why)


@exercise(
    "16-3",
    "A test for a writer",
    dots=3,
    minutes=20,
    praise=PRAISE,
    hints=(
        "CoverageSummarizer(seconds) writes summaries and knows what they stand for: "
        ".stands_for(await writer.history()) is a set of contents, and every content that was sent should be in it.",
        "Start every append as a task of its own, with a short asyncio.sleep between, while a summary takes ten times "
        "as long. Await them all, then look.",
        "Then once more with `async def failing(span): raise ConnectionError`: twenty appends, none of which raises, "
        "and all twenty contents stand in the history.",
    ),
)
def writer_test(test: Callable[[Any], Awaitable[Any]], rng: random.Random) -> None:
    def bounded(version: Any) -> Any:
        result = test(version)
        if not inspect.isawaitable(result):
            raise Wrong("It should be a coroutine, `async def`: a writer is awaited.")
        return run(asyncio.wait_for(result, LIMIT_S))

    with quiet_log():  # a store says in its log that a summariser failed
        for right in (v.Queued, v.Claimed):
            _passes(partial(bounded, right), "A fold may come later, and a summary may take its time.")
        for broken, why in WRITERS:
            _catches(partial(bounded, broken), why)


def _passes(call: Callable[[], Any], allowed: str) -> None:
    """A right version passes the test; where it doesn't, the line that failed is named."""
    try:
        result = call()
    except TimeoutError:
        raise Wrong(f"Your test was still running after {LIMIT_S} s on a right version.") from None
    except Exception as raised:
        error: Exception = raised
        while isinstance(error, ExceptionGroup):  # of a TaskGroup
            error = error.exceptions[0]
        if not isinstance(error, AssertionError):
            raise error from None
        said = f" ({error})" if str(error) else ""
        line = traceback.extract_tb(error.__traceback__)[-1].line
        raise Wrong(f"“{line}” fails on a right version{said}. {allowed}") from None
    if result is not None:
        raise Wrong(f"Your test returns {result!r}. A test says no by raising: assert …, and returns nothing.")


def _catches(call: Callable[[], Any], why: str) -> None:
    """A broken version fails the test: whatever is raised counts, as it does for pytest."""
    try:
        call()
    except (NotImplementedError, Wrong):
        raise
    except Exception:
        return
    raise Wrong(f"Let through: {why}")


self_test("16", *QUESTIONS)
