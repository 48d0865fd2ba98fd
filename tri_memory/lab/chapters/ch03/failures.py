"""A summariser that fails, in five ways, and what the history and the trace say each time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pandas as pd

from tri_memory.contracts import ChatTurn
from tri_memory.session.compression import CountPolicy
from tri_memory.session.folding import OnFailure
from tri_memory.session.memory import InMemorySessionStore
from tri_memory.summary import Summarizer, is_summary

POLICY = CountPolicy(compress_after=20, keep_recent=10)


def first_words(turns: Sequence[ChatTurn]) -> str:
    """A summariser that works: the first three words of each turn."""
    return "; ".join(" ".join(turn.content.split()[:3]) for turn in turns if not is_summary(turn))


async def raising(turns: Sequence[ChatTurn]) -> str:
    raise ConnectionError("the model is down")


async def hanging(turns: Sequence[ChatTurn]) -> str:
    await asyncio.sleep(3_600)
    return "too late"


def blank(turns: Sequence[ChatTurn]) -> str:
    return " \n "


def too_long(turns: Sequence[ChatTurn]) -> str:
    return "Certainly! Here is everything that was said: " * 60


FAILURES: dict[str, Summarizer | None] = {
    "missing": None,
    "raises": raising,
    "hangs": hanging,
    "blank": blank,
    "too long": too_long,
}


async def after_a_failure(turns: Sequence[ChatTurn], timeout_s: float = 0.1) -> pd.DataFrame:
    """The first fold works, then the summariser fails, once for each way and each `on_failure`.

    `turns` must be enough for two folds under POLICY (31).
    """
    rows = []
    for on_failure in ("truncate", "keep"):
        for name, failing in FAILURES.items():
            store = _store(first_words, on_failure, timeout_s)
            with quiet_log():
                for turn in turns[: POLICY.compress_after + 1]:
                    await store.append("desk", turn)
                store.summarizer = failing
                for turn in turns[POLICY.compress_after + 1 : 31]:
                    await store.append("desk", turn)
            history = await store.get_history("desk")
            record = store.trace[-1]
            cut = record.turns if record.outcome == "truncated" else 0
            rows.append(
                (on_failure, name, len(history), "yes" if is_summary(history[0]) else "gone", cut, record.reason)
            )
    columns = ["on_failure", "the summariser", "history (turns)", "old summary", "turns cut", "reason in the trace"]
    return pd.DataFrame(rows, columns=columns)


async def through_an_outage(
    turns: Sequence[ChatTurn], on_failure: OnFailure, *, down: range = range(30, 46)
) -> pd.DataFrame:
    """A store's trace where the summariser raises during the turns of `down`: one row a fold, with its turn.

    `history` is the number of turns kept afterwards.
    """
    store = _store(first_words, on_failure, 10)
    rows: list[tuple[int, str, int, int]] = []
    with quiet_log():
        for said, turn in enumerate(turns, start=1):
            store.summarizer = raising if said in down else first_words
            await store.append("desk", turn)
            if len(store.trace) > len(rows):
                record = store.trace[-1]
                rows.append((said, record.outcome, record.turns, len(await store.get_history("desk"))))
    return pd.DataFrame(rows, columns=["at turn", "outcome", "turns", "history then"])


def _store(summarizer: Summarizer, on_failure: OnFailure, timeout_s: float) -> InMemorySessionStore:
    return InMemorySessionStore(
        policy=POLICY, summarizer=summarizer, on_failure=on_failure, summary_timeout_s=timeout_s
    )


@contextmanager
def quiet_log() -> Iterator[None]:
    """The same reasons go to the log `tri_memory.session`; a table of them is enough."""
    log = logging.getLogger("tri_memory.session")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
