"""The picture of the measurement: right answers, outdated answers, and what the prompt costs."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch06.asking import MEMORIES, shares
from tri_memory.lab.plots import BLUE, ORANGE, row_of_axes

LOOKS = {"English": (BLUE, "o", 0.14), "Chinese": (ORANGE, "s", -0.14)}  # colour, marker, how far above the row


def plot_answers(table: pd.DataFrame) -> Figure:
    """A row a memory. Shares with their 95 % intervals; tokens as mean, and from the smallest to the largest prompt."""
    figure, (right, outdated, tokens) = row_of_axes(3, 12.4, 4.4)
    names = list(MEMORIES)[::-1]
    for language, (colour, marker, above) in LOOKS.items():
        look: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "linestyle": "none",
            "markersize": 9,
            "label": language,
        }
        for ax, judged in ((right, "right"), (outdated, "outdated")):
            found = shares(table, judged)
            for row in found[found.language == language].itertuples():
                y = names.index(row.memory) + above
                ax.plot([row.low, row.high], [y, y], color=colour, linewidth=2.4)
                ax.plot(row.share, y, **look)
        for memory, its in table[table.language == language].groupby("memory"):
            y = names.index(str(memory)) + above
            tokens.plot([its.tokens.min(), its.tokens.max()], [y, y], color=colour, linewidth=2.4)
            tokens.plot(its.tokens.mean(), y, **look)
    right.set(title="Right answers", xlabel="of all questions (%)", xlim=(-4, 104))
    outdated.set(title="An outdated value in the answer", xlabel="of all questions (%)", xlim=(-4, 104))
    tokens.set(title="Size of the prompt", xlabel="tokens (log scale)", xscale="log", xlim=(40, 4_000))
    tokens.set_xticks([50, 100, 500, 2_000], ["50", "100", "500", "2,000"])
    tokens.minorticks_off()
    for ax in (right, outdated, tokens):
        ax.set_yticks(range(len(names)), names if ax is right else [""] * len(names))
        ax.set_ylim(-0.5, len(names) - 0.5)
        ax.grid(True, axis="x")
    handles, labels = right.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(once.values(), once.keys(), loc="outside lower center", ncols=2)
    return figure
