"""The pictures of shares: a dot with its interval, a row a search, and a line where blind drawing would lie."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch07.found import ROOMS, chance, hits
from tri_memory.lab.plots import BLUE, GREY, ORANGE, row_of_axes

LOOKS = {"English": (BLUE, "o", 0.14), "Chinese": (ORANGE, "s", -0.14)}  # colour, marker, how far above the row


def plot_hits(table: pd.DataFrame, k: int) -> Figure:
    """hit@k of each search, left among a person's own visits, right among everybody's, with 95 % intervals."""
    names = list(dict.fromkeys(table.search))[::-1]
    figure, both = row_of_axes(2, 12, 1.6 + 0.62 * len(names))
    for ax, room in zip(both, ROOMS, strict=True):
        found = hits(table[table.room == room], k)
        for row in found.itertuples():
            colour, marker, above = LOOKS[str(row.language)]
            y = names.index(str(row.search)) + above
            ax.plot([row.low, row.high], [y, y], color=colour, linewidth=2.4)
            ax.plot(row.share, y, marker, color=colour, markersize=9, label=str(row.language), linestyle="none")
        blind = chance(room, k)
        ax.axvline(blind, color=GREY, linestyle=":", linewidth=2, label="drawn blindly")
        ax.set(title=f"Among {room}", xlabel=f"questions answered in the first {k} (%)", xlim=(0, 102))
        ax.set_yticks(range(len(names)), names if ax is both[0] else [""] * len(names))
        ax.set_ylim(-0.5, len(names) - 0.5)
        ax.grid(True, axis="x")
    handles, labels = both[0].get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(once.values(), once.keys(), loc="outside lower center", ncols=3)
    return figure
