"""Paired differences with their intervals, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tri_memory.lab.plots import BLUE, GREY, ORANGE, row_of_axes
from tri_memory.lab.report import Report

LOOKS = {"en": ("English", BLUE, "o", 0.14), "zh": ("Chinese", ORANGE, "s", -0.14)}  # the last: how far above the row


def ahead(
    reports: Mapping[str, Report], method: str, over: Sequence[str], measure: str, kind: str | None = None
) -> pd.DataFrame:
    """Points of `measure` (0 to 100) by which `method` is ahead of each other one, by language.

    `clear` says whether the 95 % interval leaves 0 out, on whichever side.
    """
    rows = []
    for language, report in reports.items():
        for other in over:
            lead = report.lead(method, other, measure, kind)
            rows.append((language, other, 100 * lead.mean, 100 * lead.low, 100 * lead.high, lead.n))
    table = pd.DataFrame(rows, columns=["language", "over", "points", "low", "high", "n"])
    return table.assign(clear=(table.low > 0) | (table.high < 0))


def plot_ahead(tables: Mapping[str, pd.DataFrame], xlabel: str) -> Figure:
    """A plot for each table, side by side: a row a method that `ahead` compared with, a dot a language."""
    first = next(iter(tables.values()))
    names = list(dict.fromkeys(first.over))[::-1]
    figure, every = row_of_axes(len(tables), 12, 1.7 + 0.5 * len(names))
    ends = [value for table in tables.values() for value in (0, *table.low, *table.high)]
    margin = 0.06 * (max(ends) - min(ends))
    for ax, (title, table) in zip(every, tables.items(), strict=True):
        ax.axvline(0, color=GREY, linewidth=1.6)
        for row in table.itertuples():
            _, colour, marker, above = LOOKS[str(row.language)]
            y = names.index(str(row.over)) + above
            ax.plot([row.low, row.high], [y, y], color=colour)
            filled = colour if row.clear else "white"
            ax.plot(row.points, y, marker, color=colour, markersize=9, markerfacecolor=filled, ls="none")
        ax.set(title=title, xlim=(min(ends) - margin, max(ends) + margin), ylim=(-0.5, len(names) - 0.5))
        ax.set_yticks(range(len(names)), names if ax is every[0] else [""] * len(names))
        ax.grid(True, axis="x")
    figure.supxlabel(xlabel, fontsize="medium")
    present = [LOOKS[language] for language in dict.fromkeys(first.language)]
    dots = [Line2D([], [], color=colour, marker=marker, ls="none", markersize=9) for _, colour, marker, _ in present]
    figure.legend(dots, [name for name, *_ in present], loc="outside upper right", ncols=2)
    return figure
