"""The pictures: precision against recall, the four rates against the threshold, and where the thresholds lie."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch10.gated import sweep
from tri_memory.lab.chapters.ch10.memories import FAR, LANGUAGES, NEAR
from tri_memory.lab.plots import BLUE, COLOURS, GREEN, GREY, ORANGE, PURPLE, axes, row_of_axes
from tri_memory.recall.calibration import HISTORIC, Threshold

LOOKS = {"recall": (BLUE, "-"), "precision": (GREEN, "-"), NEAR: (ORANGE, "--"), FAR: (PURPLE, ":")}
NAMES = {
    "recall": "recall: an answer goes in",
    "precision": "precision: what goes in answers",
    NEAR: "near miss: something goes in",
    FAR: "another topic: something goes in",
}


def curves(thresholds: Mapping[str, Threshold]) -> Figure:
    """Precision against recall of each calibration, a dot where its threshold lies."""
    figure, ax = axes(8.6, 4.2, title="Every threshold is a point on its curve")
    for (name, threshold), colour in zip(thresholds.items(), COLOURS, strict=False):
        curve = threshold.curve
        assert curve is not None
        ax.plot(100 * curve.recall, 100 * curve.precision, color=colour, label=name)
        chosen = int(np.searchsorted(-curve.cosines, -threshold.value, side="right")) - 1
        ax.plot(100 * curve.recall[chosen], 100 * curve.precision[chosen], "o", color=colour, markersize=11)
    ax.set(xlabel="recall: answers that are let in (%)", ylabel="precision (%)", xlim=(0, 102), ylim=(0, 102))
    ax.legend(loc="upper right")
    return figure


def draw_rates(ax: Axes, language: str, embedder: str, bands: bool = True) -> None:
    """The four rates against the threshold, with their 95 % intervals as bands."""
    table = sweep(language, embedder)
    for name in ("recall", "precision", NEAR, FAR):
        its, (colour, line) = table[table.rate == name], LOOKS[name]
        ax.plot(its.threshold, its.value, line, color=colour, label=NAMES[name])
        if bands:
            ax.fill_between(its.threshold, its.low, its.high, color=colour, alpha=0.12, linewidth=0)
    ax.set(xlabel="threshold (cosine)", ylabel="%", xlim=(-0.05, 0.72), ylim=(-2, 102))


def against_threshold(embedder: str) -> Figure:
    """English left, Chinese right."""
    figure, both = row_of_axes(2, 12.4, 4.9)
    for ax, language in zip(both, LANGUAGES.values(), strict=True):
        draw_rates(ax, language, embedder)
        ax.set_title(f"{language}, {embedder}")
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def where_thresholds_lie(found: pd.DataFrame) -> Figure:
    """A dot a split, a row an embedder and language."""
    rows = list(dict.fromkeys(f"{row.embedder}, {row.language}" for row in found.itertuples()))[::-1]
    figure, ax = axes(9.6, 1.5 + 0.55 * len(rows), title="The threshold with the best F1, found on half of the people")
    for row in found.itertuples():
        y = rows.index(f"{row.embedder}, {row.language}")
        ax.plot(row.threshold, y, "o", color=BLUE if row.language == "English" else ORANGE, alpha=0.45, markersize=10)
    ax.axvline(HISTORIC.value, color=GREY, linestyle=":", linewidth=2)
    ax.text(HISTORIC.value - 0.008, len(rows) - 0.5, "0.65", ha="right", va="top", color=GREY)
    ax.set(xlabel="threshold (cosine)", xlim=(0.1, 0.7), ylim=(-0.6, len(rows) - 0.4))
    ax.set_yticks(range(len(rows)), rows)
    ax.grid(True, axis="x")
    return figure
