"""Chapter 02: counting losses, committing a summary, and paying for one summary instead of three."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from tri_memory.blocking_calls import run
from tri_memory.lab.exercises.kit import Option, Question, Wrong, exercise, self_test


@exercise(
    "02-1",
    "Count what is gone",
    dots=1,
    minutes=5,
    hints=(
        "Two people may both say 'ok'. A set can't tell two of them from one.",
        "collections.Counter subtracts: Counter(sent) - Counter(stored) keeps what is left over.",
        "sorted((Counter(sent) - Counter(stored)).elements()) is the whole answer.",
    ),
)
def lost_messages(lost: Callable[[list[str], list[str]], list[str]], rng: random.Random) -> None:
    for _ in range(20):
        sent = [rng.choice(["ok", "yes", "thanks", f"order {rng.randrange(99)}"]) for _ in range(rng.randrange(1, 12))]
        gone = sorted(rng.sample(range(len(sent)), rng.randrange(len(sent) + 1)))
        stored = [text for i, text in enumerate(sent) if i not in gone]
        rng.shuffle(stored)
        expected = sorted(sent[i] for i in gone)
        sent_before, stored_before = list(sent), list(stored)
        found = lost(sent, stored)
        if (sent, stored) != (sent_before, stored_before):
            raise Wrong("It changes the lists it was given. Count on copies, or with a Counter.")
        if not isinstance(found, list):
            raise Wrong(f"It should return a list of texts; it returned {found!r}.")
        if sorted(found) == expected and found != expected:
            raise Wrong("The right messages, but not sorted, so two runs can't be compared.")
        misjudged = (Counter(found) - Counter(expected)) + (Counter(expected) - Counter(found))
        if misjudged and all(sent.count(text) > 1 for text in misjudged):
            raise Wrong(f"Repeats are miscounted: of {sent} only {stored} arrived, and you report {found}.")
        if found != expected:
            raise Wrong(f"Sent {sent}, stored {stored}: gone are {expected}; you report {found}.")


@exercise(
    "02-2",
    "Commit without losing anything",
    dots=2,
    minutes=10,
    hints=(
        "Ask first whether the head of the history is still what the summary was written about.",
        "history[:len(planned)] == planned is that question. If not: return the history as it is.",
        "If it is: return [summary, *history[len(planned):]]; whatever stands behind the head stays.",
    ),
)
def commit(function: Callable[[list[str], list[str], str], list[str]], rng: random.Random) -> None:
    for _ in range(20):
        before = [f"t{i}" for i in range(rng.randrange(4, 12))]
        planned = before[: rng.randrange(2, len(before))]
        arrived = [f"new{i}" for i in range(rng.randrange(0, 5))]
        history = before + arrived
        kept = list(history)
        result = function(history, list(planned), "S")
        if history != kept:
            raise Wrong(
                "It changes the history it was given; return a new list, so that a failed commit leaves no trace."
            )
        if result == ["S", *before[len(planned) :]] and arrived:
            raise Wrong(f"{arrived} arrived while the summary was written, and your commit dropped them.")
        if result == ["S"]:
            raise Wrong("Only the summary is left: the turns behind the planned head are gone.")
        if result != ["S", *history[len(planned) :]]:
            raise Wrong(
                f"History {history}, planned {planned}: expected {['S', *history[len(planned) :]]}, got {result}."
            )
        other = ["S0", *before[len(planned) :], *arrived]
        if function(list(other), list(planned), "S") != other:
            raise Wrong(
                f"Another summary is there already: {other}. The head is not {planned} any more, so replace nothing."
            )
        if function(list(planned[:1]), list(planned), "S") != planned[:1]:
            raise Wrong("The session was cleared and began again, shorter than the plan: nothing may be replaced.")


@exercise(
    "02-3",
    "One summary for three callers",
    dots=3,
    minutes=15,
    hints=(
        "Between two awaits nothing else runs. So a plain flag, set before the await, is enough in one process.",
        "if state.folding: return; then set the flag, await, and clear it again, even when the summariser raises.",
        "Set the flag, then try: state.summary = await summarize(state.turns), finally: state.folding = False.",
    ),
)
def one_in_flight(fold: Callable[[Any, Callable[[Any], Awaitable[str]]], Awaitable[None]], rng: random.Random) -> None:
    run(_bounded(_three_callers(fold, rng.randrange(2, 6))))


async def _bounded(work: Awaitable[None]) -> None:
    try:
        await asyncio.wait_for(work, 5)
    except TimeoutError:
        raise Wrong("It was still waiting after 5 s: a caller waits for something that never comes.") from None


async def _three_callers(fold: Callable[..., Awaitable[None]], callers: int) -> None:
    calls = 0
    gate = asyncio.Event()

    async def summarize(turns: Any) -> str:
        nonlocal calls
        calls += 1
        await gate.wait()
        return f"summary {calls}"

    state = SimpleNamespace(turns=["a", "b"], folding=False, summary=None)
    waiting = [asyncio.ensure_future(fold(state, summarize)) for _ in range(callers)]
    await asyncio.sleep(0.02)
    still_waiting = sum(not task.done() for task in waiting)
    gate.set()
    await asyncio.gather(*waiting)
    if calls != 1:
        raise Wrong(
            f"{callers} callers, {calls} summaries written and paid for. The second caller should see the flag."
        )
    if still_waiting != 1:
        raise Wrong(
            f"{still_waiting} callers waited for the summary. Only the one who writes it should; the others go on."
        )
    if state.summary != "summary 1":
        raise Wrong(f"The summary is not in state.summary: it holds {state.summary!r}.")
    await fold(state, summarize)
    if calls != 2:
        raise Wrong("After the first fold nobody can fold again: the flag stays up.")
    await _after_a_failure(fold)


async def _after_a_failure(fold: Callable[..., Awaitable[None]]) -> None:
    async def broken(turns: Any) -> str:
        raise ConnectionError("the model is down")

    async def working(turns: Any) -> str:
        return "summary"

    state = SimpleNamespace(turns=["a"], folding=False, summary=None)
    with suppress(ConnectionError):  # passing the error on is one right answer, swallowing it another
        await fold(state, broken)
    await fold(state, working)
    if state.summary != "summary":
        raise Wrong(
            "After a summariser that raises, nobody ever folds again: the flag stays up. try … finally clears it."
        )


self_test(
    "02",
    Question(
        "02-q1",
        "Two appends each read the list and write it back. In how many of the six orders is a message lost?",
        (
            Option("2", "Count again: a message is safe only where one append is wholly done before the other starts."),
            Option("4", "In the other two, one append is wholly done before the other starts.", right=True),
            Option("6", "Two orders are harmless: a reads and writes, then b, and the reverse."),
        ),
    ),
    Question(
        "02-q2",
        "Why does plan-commit hold no lock while the summary is written?",
        (
            Option("A lock would make the summary worse.", "The summary would be the same. Look at who has to wait."),
            Option(
                "Everybody else would wait for the slowest part.",
                "A summary takes seconds, a push microseconds. The commit checks the head instead of guarding it.",
                right=True,
            ),
            Option("asyncio has no locks.", "It has: asyncio.Lock, which the serial writer above uses."),
        ),
    ),
    Question(
        "02-q3",
        "The commit finds another summary at the head. What does it do?",
        (
            Option("It replaces it with its own.", "Then the turns that the other summary stands for are gone."),
            Option(
                "It gives up and changes nothing.", "The turns are covered already; only the money is lost.", right=True
            ),
            Option("It puts its own summary behind it.", "Then there are two, and the same turns are told twice."),
        ),
    ),
    Question(
        "02-q4",
        "When is the racing writer safe after all?",
        model_answer="When there is a single writer that waits for each append before the next one: then nothing can "
        "arrive between its read and its write. A second process, a tool that answers late, or a customer who types "
        "while the agent is still thinking is enough to break that.",
    ),
)
