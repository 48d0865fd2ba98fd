"""Three ways to fold a history that others go on writing to, run for real: what each loses, how long each keeps you."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from tri_memory.contracts import ChatTurn
from tri_memory.lab.plots import BLUE, GREEN, ORANGE, row_of_axes
from tri_memory.session.memory import InMemorySessionStore
from tri_memory.summary import is_summary, summary_text, summary_turn

Summarize = Callable[[Sequence[ChatTurn]], Awaitable[str]]


class RacingWriter:
    """Read all, summarise, write all back. Whatever arrived in between is overwritten."""

    def __init__(self, summarize: Summarize) -> None:
        self.summarize = summarize
        self.turns: list[ChatTurn] = []

    async def append(self, turn: ChatTurn) -> None:
        turns = [*self.turns, turn]
        if len(turns) > 40:
            text = await self.summarize(turns[:-20])
            turns = [summary_turn(text), *turns[-20:]]
        self.turns = turns

    async def history(self) -> list[ChatTurn]:
        return self.turns


class SerialWriter(RacingWriter):
    """The same behind a queue, one append at a time: nothing is lost, and everybody waits for the summary."""

    def __init__(self, summarize: Summarize) -> None:
        super().__init__(summarize)
        self.queue = asyncio.Lock()

    async def append(self, turn: ChatTurn) -> None:
        async with self.queue:
            await super().append(turn)


class PlanCommitWriter:
    """The package's own store, with one session in it."""

    def __init__(self, summarize: Summarize) -> None:
        self.store = InMemorySessionStore(summarizer=summarize)

    async def append(self, turn: ChatTurn) -> None:
        await self.store.append("desk", turn)

    async def history(self) -> list[ChatTurn]:
        return await self.store.get_history("desk")


WRITERS: dict[str, type[RacingWriter] | type[PlanCommitWriter]] = {
    "racing": RacingWriter,
    "serial": SerialWriter,
    "plan-commit": PlanCommitWriter,
}
COLOURS = {"racing": ORANGE, "serial": BLUE, "plan-commit": GREEN}


@dataclass(frozen=True)
class Delivery:
    """What became of the turns sent: which are gone, how long each `append` took (seconds), how many summaries ran."""

    sent: int
    lost: tuple[ChatTurn, ...]
    waits: tuple[float, ...]
    summaries: int
    history: tuple[ChatTurn, ...]


class CoverageSummarizer:
    """Takes `seconds` to write a summary, and remembers which turns it stands for, older summaries included."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.covered: dict[str, set[str]] = {}

    async def __call__(self, span: Sequence[ChatTurn]) -> str:
        await asyncio.sleep(self.seconds)
        text = f"summary number {len(self.covered) + 1}"
        self.covered[text] = self.stands_for(span)
        return text

    def stands_for(self, turns: Sequence[ChatTurn]) -> set[str]:
        """The contents that these turns hold, literally or through a summary."""
        held = {turn.content for turn in turns}
        return held.union(*(self.covered[summary_text(turn)] for turn in turns if is_summary(turn)))


async def deliver(
    writer: str, turns: Sequence[ChatTurn], *, summary_s: float, gap_s: float, seed: int = 1, jitter: float = 1.0
) -> Delivery:
    """Send `turns` to a writer, one every `gap_s` seconds on average, while a summary takes `summary_s` seconds.

    `jitter` 1 draws each gap between 0 and twice the average, 0 makes them equal. Contents must differ.
    A turn is lost when it is neither in the final history nor in what its summary stands for.
    """
    summarizer = CoverageSummarizer(summary_s)
    target = WRITERS[writer](summarizer)
    gaps = random.Random(seed)
    waits: list[float] = []
    now = asyncio.get_running_loop().time

    async def send(turn: ChatTurn) -> None:
        started = now()
        await target.append(turn)
        waits.append(now() - started)

    async with asyncio.TaskGroup() as senders:
        for turn in turns:
            senders.create_task(send(turn))
            await asyncio.sleep(gap_s * gaps.uniform(1 - jitter, 1 + jitter))
    history = await target.history()
    held = summarizer.stands_for(history)
    lost = tuple(turn for turn in turns if turn.content not in held)
    return Delivery(len(turns), lost, tuple(waits), len(summarizer.covered), tuple(history))


def numbered_turns(count: int) -> list[ChatTurn]:
    """`count` turns that can be told apart, as a customer and a desk would alternate."""
    return [ChatTurn("user" if i % 2 == 0 else "assistant", f"message {i + 1}") for i in range(count)]


async def losses_and_waits(delays_s: Sequence[float], seeds: Sequence[int], gap_s: float = 0.004) -> pd.DataFrame:
    """One row a writer, delay and seed: turns lost of 80, and an append's wait (95th percentile, ms)."""
    rows = []
    for delay in delays_s:
        runs = [(writer, seed) for writer in WRITERS for seed in seeds]
        jobs = [deliver(w, numbered_turns(80), summary_s=delay, gap_s=gap_s, seed=seed) for w, seed in runs]
        for (writer, seed), found in zip(runs, await asyncio.gather(*jobs), strict=True):
            p95 = sorted(found.waits)[int(0.95 * len(found.waits))]
            rows.append((writer, delay * 1e3, seed, len(found.lost), p95 * 1e3))
    return pd.DataFrame(rows, columns=["writer", "delay_ms", "seed", "lost", "p95_ms"])


def plot_losses_and_waits(table: pd.DataFrame) -> Figure:
    """Losses and waits against the summary's delay: a dot a run, a line through the medians."""
    figure, (left, right) = row_of_axes(2, 10, 3.8)
    for column, ax in (("lost", left), ("p95_ms", right)):
        for writer, rows in table.groupby("writer", sort=False):
            ax.plot(rows["delay_ms"], rows[column], "o", color=COLOURS[writer], alpha=0.35, markersize=5)
            median = rows.groupby("delay_ms")[column].median()
            ax.plot(median.index, median, color=COLOURS[writer], label=writer)
    left.set(title="Turns lost", xlabel="a summary takes (ms)", ylabel="lost, of 80 turns")
    right.set(title="95 % of appends return within", xlabel="a summary takes (ms)", ylabel="wait (ms)")
    left.legend(loc="upper left")
    return figure


def loss_sentence(table: pd.DataFrame) -> str:
    """What `losses_and_waits` found about claim C01, in one sentence."""
    most = table.groupby("writer").lost.max()
    instant = table[table.delay_ms == 0].groupby("writer").lost.max()
    least = table[table.delay_ms > 0].groupby("writer").lost.min()
    return (
        f"racing lost {least['racing']} to {most['racing']} of 80 turns in each run whose summary was slower than "
        f"the gap between turns, and {instant['racing']} with an instant summary; serial lost {most['serial']} and "
        f"plan-commit {most['plan-commit']} at most"
    )
