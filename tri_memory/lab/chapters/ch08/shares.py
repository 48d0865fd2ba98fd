"""Four ways to ask, held against the person's share of the table: recall@10, and the time of one query."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tri_memory.lab.chapters.ch08.table import WAYS, EpisodeTable
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, row_of_axes

K = 10
COLOURS = {"default": ORANGE, "index, goes on": BLUE, "exact": GREY, "the store": GREEN}
MARKS = {"default": "o", "index, goes on": "s", "exact": "^", "the store": "D"}

Ask = Callable[[NDArray[np.float32], str], list[int]]


def by_share(table: EpisodeTable, seeds: Sequence[int], queries: int = 5) -> pd.DataFrame:
    """A row a person, way and seed: share (%), the person's rows, recall@10 and rows returned (means), ms (median)."""
    found = []
    for way in COLOURS:
        with table.under(WAYS.get(way, {})):
            for user in table.people.users:
                for seed in seeds:
                    asked = table.people.queries(user, queries, seed)
                    size = len(table.people.rows_of[user])
                    found.append((100 * table.people.share(user), size, way, seed, *_run(table, way, user, asked)))
    return pd.DataFrame(found, columns=["share", "size", "way", "seed", "recall", "rows", "ms"])


def _run(table: EpisodeTable, way: str, user: str, asked: NDArray[np.float32]) -> tuple[float, float, float]:
    ask = _through_the_store(table) if way == "the store" else lambda query, user: table.nearest(query, user, K)
    recalls, rows, took = [], [], []
    for query in asked:
        started = time.perf_counter()
        got = ask(query, user)
        took.append(1e3 * (time.perf_counter() - started))
        recalls.append(len(set(got) & set(table.people.exact(query, user, K))) / K)
        rows.append(len(got))
    return float(np.mean(recalls)), float(np.mean(rows)), float(np.median(took))


def _through_the_store(table: EpisodeTable) -> Ask:
    def ask(query: NDArray[np.float32], user: str) -> list[int]:
        return [int(found.session_id) for found in table.store.recall(query, K, user_id=user)]

    return ask


def ms_per_thousand(measured: pd.DataFrame) -> float:
    """What a thousand more rows of one person cost an exact comparison: the slope of ms against rows."""
    exact = measured[measured.way == "exact"].groupby("size").ms.median()
    slope: float = np.polyfit(exact.index, exact.to_numpy(), 1)[0]
    return 1e3 * slope


def plot(measured: pd.DataFrame) -> Figure:
    """Recall and time against the share: a dot a seed, a line through the means (recall) and medians (time)."""
    figure, (left, right) = row_of_axes(2, 10.8, 4.3)
    for way, rows in measured.groupby("way", sort=False):
        for ax, column, middle in ((left, "recall", "mean"), (right, "ms", "median")):
            ax.plot(rows["share"], rows[column], MARKS[way], color=COLOURS[way], alpha=0.3, markersize=5)
            line = rows.groupby("share")[column].agg(middle)
            ax.plot(line.index, line, color=COLOURS[way], marker=MARKS[way], label=way)
    for ax in (left, right):
        ax.set_xscale("log")
        ax.set_xticks([2, 5, 10, 20], ["2", "5", "10", "20"])
        ax.minorticks_off()
        ax.set_xlabel("the person's share of the rows (%)")
    left.set(title="Recall@10", ylabel="recall@10", ylim=(min(0.5, measured.recall.min()) - 0.03, 1.03))
    right.set(title="Time of one query", ylabel="time (ms)")
    right.set_ylim(0, 1.5 * measured.ms.quantile(0.99))
    right.legend(loc="upper left", ncols=2)
    return figure
