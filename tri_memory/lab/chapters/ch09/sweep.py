"""How long should the half-life be? Old answers and changed facts pull in opposite directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch07.found import interval
from tri_memory.lab.chapters.ch09.ranking import (
    BY_DATE,
    CHANGED,
    GROUPS,
    LONG_AGO,
    NEVER_FADES,
    WAYS,
    Asked,
    asked,
    by_half_life,
    judged,
)
from tri_memory.lab.datasets import LANGUAGES
from tri_memory.lab.plots import BLUE, GREY, ORANGE, row_of_axes

DAYS = (4, 7, 15, 30, 60, 120, 240, 480, 960)
LOOKS = {LONG_AGO: (BLUE, "o"), CHANGED: (ORANGE, "s")}


def sweep(days: Sequence[float] = DAYS) -> pd.DataFrame:
    """Language, half_life (days), group, share in per cent, low and high of its 95 % interval over users."""
    tables = [
        _shares(judged(its, by_half_life(each)(its))).assign(half_life=each)
        for each in days
        for its in map(asked, LANGUAGES)
    ]
    return pd.concat(tables, ignore_index=True)


def compare(view: Callable[[str], Asked] = asked) -> pd.DataFrame:
    """The same shares for each of `WAYS`, in a column `way`; `view` says which visits compete for a question."""
    tables = []
    for its in map(view, LANGUAGES):
        tables += [_shares(judged(its, rank(its))).assign(way=way) for way, rank in WAYS.items()]
    return pd.concat(tables, ignore_index=True)


def differences(view: Callable[[str], Asked] = asked) -> pd.DataFrame:
    """Each way minus cosine alone, question by question: points, and the 95 % interval over users."""
    rows = []
    for its in map(view, LANGUAGES):
        plain = judged(its, WAYS[NEVER_FADES](its))
        for way, rank in WAYS.items():
            gained = plain.assign(value=judged(its, rank(its)).value - plain.value)
            for group in GROUPS:
                of_group = gained[gained.group == group]
                points = 100 * float(of_group.value.mean())
                rows.append((way, its.corpus.language, group, points, *interval(of_group)))
    found = pd.DataFrame(rows, columns=["way", "language", "group", "points", "low", "high"])
    return found[found.way != NEVER_FADES].reset_index(drop=True)


def spread(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """A table to read: a row a way, a column a language and group, `value` with its interval."""
    sign = "+.0f" if value == "points" else ".0f"
    cells = [f"{row[value]:{sign}} ({row.low:{sign}} to {row.high:{sign}})" for _, row in table.iterrows()]
    its = table.assign(cell=cells).pivot(index="way", columns=["language", "group"], values="cell")
    return its.loc[[way for way in WAYS if way in its.index]].rename_axis(index=None)


def plot(swept: pd.DataFrame, ways: pd.DataFrame) -> Figure:
    """A panel a language: share served against half-life; at the right end, what the two ways without one give."""
    figure, both = row_of_axes(2, 12, 4.6)
    for ax, language in zip(both, dict.fromkeys(swept.language), strict=True):
        _lines(ax, swept[swept.language == language])
        _ends(ax, ways[ways.language == language])
        ticks = {7: "7", 30: "30", 120: "120", 480: "480", 3_000: "never", 9_000: "by\ndate"}
        ax.set(title=language, xlabel="half-life (days), then no half-life", xscale="log", ylim=(0, 104))
        ax.set_xticks(list(ticks), list(ticks.values()))
        ax.minorticks_off()
        ax.axvline(1_650, color=GREY, linewidth=1, linestyle=":")
    both[0].set_ylabel("served by the first 3 of 5 (%)")
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _lines(ax: Axes, its: pd.DataFrame) -> None:
    for group, (colour, marker) in LOOKS.items():
        line = its[its.group == group]
        ax.plot(line.half_life, line.share, marker=marker, color=colour, label=group)
        ax.fill_between(line.half_life, line.low, line.high, color=colour, alpha=0.15, linewidth=0)


def _ends(ax: Axes, its: pd.DataFrame) -> None:
    for x, way in ((3_000, NEVER_FADES), (9_000, BY_DATE)):
        for group, (colour, marker) in LOOKS.items():
            row = its[(its.way == way) & (its.group == group)].iloc[0]
            at = x * (0.9 if group == LONG_AGO else 1.1)
            ax.plot([at, at], [row.low, row.high], color=colour)
            ax.plot(at, row.share, marker, color=colour, markersize=9)


def _shares(judgement: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for group in GROUPS:
        its = judgement[judgement.group == group]
        rows.append((its.language.iloc[0], group, len(its), 100 * float(its.value.mean()), *interval(its)))
    return pd.DataFrame(rows, columns=["language", "group", "questions", "share", "low", "high"])
