"""What renews a session's time to live, and how many sessions with real pauses outlast it, on a real server."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pandas as pd
from matplotlib.figure import Figure

from tri_memory.contracts import ChatTurn, SessionStore
from tri_memory.lab import datasets
from tri_memory.lab.claims import Outcome
from tri_memory.lab.plots import BLUE, ORANGE, axes
from tri_memory.session.redis import RedisSessionStore

TURNS = 6
BEGIN_WITHIN_S = 1.5
HELLO = ChatTurn("user", "在吗 / Are you there?")


async def keep_busy(store: SessionStore, *, for_s: float, every_s: float) -> dict[str, int]:
    """Three sessions at the same time, one for each of "append", "get_window", "list_sessions": append once, then make
    that call every `every_s` seconds for `for_s` seconds. By call, how many turns are there at the end."""
    ways = ("append", "get_window", "list_sessions")
    left = await asyncio.gather(*(_busy_with(store, what, for_s, every_s) for what in ways))
    return dict(zip(ways, left, strict=True))


async def _busy_with(store: SessionStore, what: str, for_s: float, every_s: float) -> int:
    session_id = f"busy with {what} {uuid4().hex[:6]}"
    calls = {
        "append": lambda: store.append(session_id, HELLO),
        "get_window": lambda: store.get_window(session_id),
        "list_sessions": store.list_sessions,
    }
    await store.append(session_id, HELLO)
    for _ in range(round(for_s / every_s)):
        await asyncio.sleep(every_s)
        await calls[what]()
    left = len(await store.get_history(session_id))
    await store.clear(session_id)
    return left


def pauses_between_visits() -> list[timedelta]:
    """How long each person in `data/` stayed away, from one visit to the next, both languages."""
    pauses = []
    for language in datasets.LANGUAGES:
        data = datasets.load(language)
        for user in data.users():
            starts = [visit.started_at for visit in data.of(user)]
            pauses += [after - before for before, after in pairwise(starts)]
    return pauses


async def survival(
    url: str, prefix: str, *, ttl_s: float, ratios: Sequence[float], seeds: Sequence[int], sessions: int = 10
) -> pd.DataFrame:
    """One row a way to be active, planned mean pause (in TTLs) and seed: the mean pause `taken`, which is longer on a
    busy machine, and the share of sessions that are `whole` at the end, of `sessions` that each make six steps with
    random (exponential) pauses between. "writes" appends at each step, "reads" only at the first."""
    runs = [(way, ratio, seed) for way in ("writes", "reads") for ratio in ratios for seed in seeds]
    async with RedisSessionStore.from_url(url, prefix=f"{prefix}lives:", ttl_s=ttl_s) as store:
        jobs = [_one_run(store, way, ratio * ttl_s, seed, sessions) for way, ratio, seed in runs]
        results = await asyncio.gather(*jobs)
    rows = [(*run, taken_s / ttl_s, whole) for run, (taken_s, whole) in zip(runs, results, strict=True)]
    return pd.DataFrame(rows, columns=["way", "planned", "seed", "taken", "whole"])


async def _one_run(store: SessionStore, way: str, mean_s: float, seed: int, sessions: int) -> tuple[float, float]:
    random_pauses = random.Random(f"{seed} {mean_s}")
    lives = []
    for i in range(sessions):
        begin = random_pauses.uniform(0, BEGIN_WITHIN_S)  # all at once, they would wait for each other
        pauses = [random_pauses.expovariate(1 / mean_s) for _ in range(TURNS - 1)]
        lives.append(_live(store, f"{way} {mean_s} {seed} {i} {uuid4().hex[:6]}", way, begin, pauses))
    taken_s, whole = zip(*await asyncio.gather(*lives), strict=True)
    return sum(taken_s) / sessions, sum(whole) / sessions


async def _live(
    store: SessionStore, session_id: str, way: str, begin: float, pauses: Sequence[float]
) -> tuple[float, bool]:
    """The mean pause taken (s), and whether all that was written is there at the end."""
    await asyncio.sleep(begin)
    await store.append(session_id, HELLO)
    started = time.perf_counter()
    for pause in pauses:
        await asyncio.sleep(pause)
        if way == "writes":
            await store.append(session_id, HELLO)
        else:
            await store.get_window(session_id)
    taken_s = (time.perf_counter() - started) / len(pauses)
    return taken_s, len(await store.get_history(session_id)) == (TURNS if way == "writes" else 1)


def expected(way: str, ratio: float) -> float:
    """What exponential pauses of mean `ratio` TTLs give: each of five shorter than a TTL, or their sum (Erlang)."""
    pauses, rate = TURNS - 1, 1 / ratio
    if way == "writes":
        return float((1 - math.exp(-rate)) ** pauses)
    return 1 - sum(rate**n * math.exp(-rate) / math.factorial(n) for n in range(pauses))


def plot_survival(table: pd.DataFrame) -> Figure:
    """A dot a run, a line for what exponential pauses give by arithmetic."""
    figure, ax = axes(
        9.2,
        4.0,
        title="Sessions that are whole after six steps",
        xlabel="mean pause between two steps (in TTLs)",
        ylabel="sessions (%)",
    )
    longest = table["taken"].max()
    grid = [longest * i / 100 for i in range(3, 101)]
    for way, colour, words in (("writes", BLUE, "each step writes"), ("reads", ORANGE, "only the first step writes")):
        rows = table[table["way"] == way]
        ax.plot(rows["taken"], rows["whole"] * 100, "o", color=colour, alpha=0.45, markersize=7)
        ax.plot(grid, [expected(way, ratio) * 100 for ratio in grid], color=colour, label=words)
    ax.set_ylim(-4, 112)
    ax.set_yticks(range(0, 101, 20))
    ax.legend(loc="upper right", alignment="left", title="dots: measured, lines: arithmetic")
    return figure


def survival_verdict(table: pd.DataFrame) -> Outcome:
    """It holds where every session that went on writing was whole, and fails where not even the quickest were."""
    whole = table[table["way"] == "writes"].groupby("planned")["whole"].mean()
    if whole.min() == 1:
        return "holds"
    return "depends" if whole.iloc[0] > 0.95 else "fails"


def survival_sentence(table: pd.DataFrame, pauses: Sequence[timedelta], ttl: timedelta) -> str:
    """What was measured about claim C04."""
    mean = table.groupby(["way", "planned"])[["taken", "whole"]].mean()
    least, most = table["planned"].min(), table["planned"].max()
    written, read = mean.loc["writes"], mean.loc["reads"]
    after = sum(pause > ttl for pause in pauses)
    return (
        f"of sessions that write, {written.whole[least]:.0%} were whole with pauses of {written.taken[least]:.2f} TTL "
        f"on average, and {written.whole[most]:.0%} with {written.taken[most]:.2f} TTL; of sessions that only read, "
        f"{read.whole[least]:.0%} with {read.taken[least]:.2f} TTL and {read.whole[most]:.0%} with "
        f"{read.taken[most]:.2f} TTL. "
        f"In data/, {after} of {len(pauses)} returns come later than {ttl.total_seconds() / 3600:.0f} h"
    )
