"""The pictures of the experiment: right against the number of cases, and what each way gives for each question."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch11.cases import KINDS
from tri_memory.lab.chapters.ch11.looking import (
    COSINE,
    EMBEDDED,
    EXACT,
    HYBRID,
    NOTHING,
    RIGHT,
    WAYS,
    WORDS,
    WRONG,
    shares,
)
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, row_of_axes

LOOKS = {
    EXACT: (BLUE, "o", "-"),
    WORDS: (PURPLE, "s", "--"),
    HYBRID: (GREEN, "^", "-"),
    COSINE: (ORANGE, "D", "-"),
    EMBEDDED: (GREY, "v", ":"),
}
OUTCOMES = {RIGHT: (GREEN, ""), NOTHING: ("#D9D9D9", ".."), WRONG: (ORANGE, "//")}


def against_cases(table: pd.DataFrame, timed: pd.DataFrame) -> Figure:
    """English, Chinese, milliseconds; dots are the seeds, lines their mean."""
    figure, (*both, right) = row_of_axes(3, 13.4, 4.4)
    its = shares(table)
    for ax, (language, part) in zip(both, its.groupby("language", sort=False), strict=True):
        for way in WAYS:
            colour, marker, line = LOOKS[way]
            own = part[part.way == way]
            ax.plot(own.cases, own.right, marker, color=colour, alpha=0.45)
            mean = own.groupby("cases").right.mean()
            ax.plot(mean.index, mean, line, color=colour, marker=marker, markersize=8, label=way)
        ax.set(title=str(language), ylabel="right (%)", ylim=(-3, 106))
    for way, part in timed.groupby("way", sort=False):
        colour, marker, line = LOOKS[str(way)]
        right.plot(part.cases, part.ms, line, color=colour, marker=marker, label=way)
    right.set(title="One question in Postgres", ylabel="ms (median)", ylim=(0, None))
    for ax in (*both, right):
        ax.set(xscale="log", xlabel="cases of this user")
        ax.set_xticks(sorted(set(table.cases)), [str(size) for size in sorted(set(table.cases))])
        ax.minorticks_off()
    handles = {
        label: handle for ax in (right, both[0]) for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    return figure


def by_kind(table: pd.DataFrame) -> Figure:
    """For each kind of question and each way, what came first, among the most cases, both languages."""
    many = table[table.cases == table.cases.max()]
    figure, plots = row_of_axes(len(WAYS), 13.4, 4.2)
    for ax, way in zip(plots, WAYS, strict=True):
        for row, kind in enumerate(KINDS):
            its = many[(many.way == way) & (many.kind == kind)]
            left = 0.0
            for outcome, (colour, hatch) in OUTCOMES.items():
                share = 100 * (its.outcome == outcome).mean()
                label = outcome if row == 0 else None
                ax.barh(row, share, left=left, color=colour, hatch=hatch, edgecolor="white", label=label)
                left += share
        ax.set(title=way, xlabel="questions (%)", xlim=(0, 100), ylim=(len(KINDS) - 0.4, -0.6))
        ax.set_yticks(range(len(KINDS)), KINDS if ax is plots[0] else [""] * len(KINDS))
        ax.grid(False)
    figure.legend(*plots[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
