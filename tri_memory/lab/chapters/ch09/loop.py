"""What a system keeps alive by injecting it: 180 days of questions, counted in two ways.

All sixty visits of one language as if one person had made them, stored on day 0. Half of them, drawn by a seed, are
asked about; nobody ever needs the others. The step rule archives, and what is archived is not recalled.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tri_memory.lab.chapters.ch09.ranking import Asked, asked
from tri_memory.lab.datasets import LANGUAGES
from tri_memory.lab.plots import BLUE, ORANGE, row_of_axes
from tri_memory.recall.decay import Use, is_archived, step

DAYS, A_DAY, K = 180, 2, 3
ANSWERED, INJECTED = "answers count", "injections count"
COUNTS = (ANSWERED, INJECTED)


def simulate(its: Asked, counts: str, seed: int) -> pd.DataFrame:
    """A row a day: how many of the needed and of the unneeded memories are alive, and the share of that day's questions
    answered by the k injected."""
    random = np.random.default_rng(seed)
    gold, n = its.corpus.gold, len(its.ages)
    needed = np.zeros(n, bool)
    needed[random.permutation(n)[: n // 2]] = True
    pool = answered_by(gold, needed)
    used: list[list[float]] = [[] for _ in range(n)]
    rows = []
    for day in range(DAYS + 1):
        alive = np.array([not is_archived(step(day, [Use(day - at) for at in uses])) for uses in used])
        hits = 0
        for number in random.choice(pool, size=A_DAY):
            injected = [int(i) for i in np.argsort(-np.where(alive, its.cosines[number], -np.inf))[:K] if alive[i]]
            hits += bool(gold[number, injected].any())
            for memory in injected:
                if counts == INJECTED or gold[number, memory]:
                    used[memory].append(day)
        rows.append((day, int((alive & needed).sum()), int((alive & ~needed).sum()), hits / A_DAY))
    return pd.DataFrame(rows, columns=["day", "needed", "unneeded", "answered"]).assign(counts=counts, seed=seed)


def answered_by(gold: NDArray[np.bool_], needed: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The numbers of the questions whose gold sessions are all among the needed ones; `gold` (questions, sessions)."""
    return np.flatnonzero(gold.any(axis=1) & ~(gold & ~needed).any(axis=1))


def lives(seeds: Iterable[int]) -> pd.DataFrame:
    """`simulate` for both languages and both ways to count."""
    tables = []
    seeds = list(seeds)
    for its in map(asked, LANGUAGES):
        for counts in COUNTS:
            tables += [simulate(its, counts, seed).assign(language=its.corpus.language) for seed in seeds]
    return pd.concat(tables, ignore_index=True)


def at_the_end(table: pd.DataFrame) -> pd.DataFrame:
    """On the last day: alive of 30 needed and of 30 unneeded (mean, least, most over seeds), and the share of the last
    90 days' questions answered, in per cent."""
    last = table[table.day == DAYS].groupby(["language", "counts"], sort=False)[["needed", "unneeded"]]
    found = last.agg(["mean", "min", "max"])
    late = table[table.day > DAYS - 90].groupby(["language", "counts"], sort=False).answered.mean()
    found[("answered", "%")] = 100 * late
    return found.round(1)


def plot(table: pd.DataFrame) -> Figure:
    """A panel a language: memories alive against the day, mean and range over seeds."""
    figure, both = row_of_axes(2, 12, 4.2)
    for ax, (language, its) in zip(both, table.groupby("language", sort=False), strict=True):
        for counts, colour in ((ANSWERED, BLUE), (INJECTED, ORANGE)):
            for which, line in (("needed", "-"), ("unneeded", "--")):
                days = its[its.counts == counts].groupby("day")[which]
                ax.plot(days.mean(), line, color=colour, label=f"{which}, {counts}")
                ax.fill_between(days.min().index, days.min(), days.max(), color=colour, alpha=0.13, linewidth=0)
        ax.set(title=str(language), xlabel="day", ylim=(-0.8, 31))
        ax.set_xticks(range(0, DAYS + 1, 30))
    both[0].set_ylabel("memories not archived")
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure
