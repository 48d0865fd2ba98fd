"""ef_search measured once, with and without going on after the filter; the panel shows what was measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch08.table import WAYS, EpisodeTable
from tri_memory.lab.panel import Choice, Panel, Steps, panel
from tri_memory.lab.plots import BLUE, GREY, ORANGE, row_of_axes

EF_SEARCH = (10, 20, 40, 100, 400)
STOPS, GOES_ON = "index, stops", "index, goes on"
COLOURS = {STOPS: ORANGE, GOES_ON: BLUE}
COUNTS = (3, 10)
PLACES = (8, 4, 0)  # of the people: one with few rows, one of the middle, the one with the most
QUERIES = 4  # for each seed


@dataclass(frozen=True)
class Look:
    """What the panel shows: the measured rows of one person and one k, and where the eye shall go."""

    rows: pd.DataFrame
    ef_search: int
    k: int
    share: str


def sweep(table: EpisodeTable, seeds: Sequence[int]) -> pd.DataFrame:
    """A row an ef_search, way, person, k and seed: recall@k and rows returned (means), and ms (median)."""
    found = []
    for user in [table.people.users[place] for place in PLACES]:
        for ef in EF_SEARCH:
            for way in (STOPS, GOES_ON):
                with table.under(WAYS[way] | {"hnsw.ef_search": str(ef)}):
                    found += [
                        (share_of(table, user), ef, way, k, seed, *_asked(table, user, k, seed))
                        for k in COUNTS
                        for seed in seeds
                    ]
    return pd.DataFrame(found, columns=["share", "ef_search", "way", "k", "seed", "recall", "rows", "ms"])


def share_of(table: EpisodeTable, user: str) -> str:
    return f"{100 * table.people.share(user):.0f} %"


def _asked(table: EpisodeTable, user: str, k: int, seed: int) -> tuple[float, float, float]:
    recalls, rows, took = [], [], []
    for query in table.people.queries(user, QUERIES, seed):
        started = time.perf_counter()
        got = table.nearest(query, user, k)
        took.append(1e3 * (time.perf_counter() - started))
        recalls.append(len(set(got) & set(table.people.exact(query, user, k))) / k)
        rows.append(len(got))
    return float(np.mean(recalls)), float(np.mean(rows)), float(np.median(took))


def look(measured: pd.DataFrame, ef_search: str, k: str, share: str) -> Look:
    """The panel's model: a selection of what was measured, and nothing in between. ValueError for what was not."""
    rows = measured[(measured.share == share) & (measured.k == int(k))]
    if rows[rows.ef_search == int(ef_search)].empty:
        raise ValueError(f"ef_search {ef_search}, k {k} and a share of {share} were not measured")
    return Look(rows, int(ef_search), int(k), share)


def say(shown: Look) -> str:
    """The panel's sentence."""
    here = shown.rows[shown.rows.ef_search == shown.ef_search].groupby("way")
    recall, rows, ms = here.recall.mean(), here["rows"].mean(), here.ms.median()
    parts = [
        f"{'stopping' if way == STOPS else 'going on'} gives {rows[way]:.1f} of {shown.k} rows, "
        f"recall {recall[way]:.2f}, {ms[way]:.1f} ms"
        for way in (STOPS, GOES_ON)
    ]
    return f"ef_search {shown.ef_search}, a person with {shown.share} of the rows: {'; '.join(parts)}."


def draw(shown: Look) -> Figure:
    """Recall and time against ef_search: a dot a seed, a line through the means (recall) and medians (time)."""
    figure, (left, right) = row_of_axes(2, 10.4, 4.0)
    for way, rows in shown.rows.groupby("way", sort=False):
        for ax, column, middle in ((left, "recall", "mean"), (right, "ms", "median")):
            ax.plot(rows["ef_search"], rows[column], "o", color=COLOURS[way], alpha=0.35, markersize=5)
            line = rows.groupby("ef_search")[column].agg(middle)
            ax.plot(line.index, line, color=COLOURS[way], label=way)
    for ax in (left, right):
        ax.set_xscale("log", base=2)
        ax.set_xticks(EF_SEARCH, [str(ef) for ef in EF_SEARCH])
        ax.axvline(shown.ef_search, ymax=0.7, color=GREY, linestyle=":", zorder=0)  # below the legend
    left.set(title=f"Recall@{shown.k}", xlabel="ef_search (candidates)", ylabel=f"recall@{shown.k}", ylim=(-0.04, 1.05))
    right.set(title="Time of one query", xlabel="ef_search (candidates)", ylabel="time (ms)")
    right.set_ylim(0, 1.4 * shown.rows.ms.max())
    right.legend(loc="upper left")
    return figure


def ef_panel(measured: pd.DataFrame) -> Panel:
    """The panel itself, over the table that `sweep` measured."""

    def model(ef_search: str, k: str, share: str) -> Look:
        return look(measured, ef_search, k, share)

    shares = list(dict.fromkeys(measured.share))
    return panel(
        model,
        draw,
        say,
        [
            Steps("ef_search", [str(ef) for ef in EF_SEARCH], "40", label="ef_search (candidates)"),
            Steps("share", shares, shares[1], label="the person's share of the rows"),
            Choice("k", [str(k) for k in reversed(COUNTS)], label="k, rows asked for"),
        ],
        title="How far the index looks",
    )
