"""The pictures of the chapter: what the raw files hold step by step, and how long forgetting takes."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tri_memory.lab.chapters.ch13.timing import (
    CLAIMED,
    CLAIMED_S,
    ENGINES,
    MEMORY,
    ONE_BY_ONE,
    POSTGRES,
    REDIS,
    Timed,
)
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, axes, row_of_axes

LOOKS = {
    MEMORY: (GREY, "o", ":"),
    REDIS: (ORANGE, "D", "-"),
    POSTGRES: (BLUE, "s", "-"),
    ONE_BY_ONE: (PURPLE, "^", "--"),
}


def in_files(found: pd.DataFrame | None) -> Figure:
    """A row a kind of file, a column a step; the number is how often the text stands there. None gives a sentence."""
    figure, ax = axes(10.4, 3.2)
    if found is None:
        ax.text(0.5, 0.5, "no embedded servers on this machine: tri-memory doctor says why", ha="center", fontsize=14)
        ax.axis("off")
        return figure
    most = int(found.to_numpy().max()) or 1
    for row, counts in enumerate(found.to_numpy()):
        for column, count in enumerate(counts):
            alpha = 0.7 + 0.3 * count / most
            colour, face = ("white", ORANGE) if count else (GREEN, "#EDEDED")
            ax.add_patch(
                Rectangle((column - 0.47, row - 0.44), 0.94, 0.88, facecolor=face, alpha=alpha if count else 1)
            )
            ax.text(column, row, f"{count:,}", ha="center", va="center", color=colour, fontsize=15, fontweight="bold")
    ax.set(xlim=(-0.5, len(found.columns) - 0.5), ylim=(len(found) - 0.5, -0.5))
    ax.set_xticks(range(len(found.columns)), list(found.columns))
    ax.set_yticks(range(len(found)), list(found.index))
    ax.tick_params(length=0)
    ax.grid(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    return figure


def durations(its: Timed) -> Figure:
    """Against the user's own entries, and against those of all others; dots are runs, lines their median."""
    figure, (left, right) = row_of_axes(2, 12.4, 5.0)
    right.sharey(left)
    for engine in ENGINES:
        _line(left, its.sizes[its.sizes.engine == engine], "records", engine)
    claimed = f"as claimed: {CLAIMED} in {CLAIMED_S:.0f} s"
    left.plot([CLAIMED], [1e3 * CLAIMED_S], "*", color=GREEN, markersize=16, label=claimed)
    for engine in (REDIS, POSTGRES):
        _line(right, its.others[its.others.engine == engine], "others", engine)
    sizes, others = sorted(set(its.sizes.records)), sorted(set(its.others.others))
    left.set(xscale="log", yscale="log", xlabel="entries of the user", ylabel="milliseconds", title="Alone")
    left.set_xticks(sizes, [f"{size:,}" for size in sizes])
    right.set(xlabel="entries of others", title="One entry among those of others")
    right.set_xticks(others, [f"{other:,}" for other in others])
    left.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    for ax in (left, right):
        ax.minorticks_off()
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _line(ax: Axes, runs: pd.DataFrame, across: str, engine: str) -> None:
    colour, marker, line = LOOKS[engine]
    ax.plot(runs[across], 1e3 * runs.seconds, marker, color=colour, alpha=0.4)
    middle = 1e3 * runs.groupby(across).seconds.median()
    ax.plot(middle.index, middle, line, marker=marker, color=colour, label=engine)
