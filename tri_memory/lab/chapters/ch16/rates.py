"""How often each broken version fails: many inputs a room, with Wilson's interval."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch16.museum import EXHIBITS, Visit, visit
from tri_memory.lab.plots import BLUE, GREY, ORANGE, row_of_axes

INPUTS = 20  # a room and language
LANGUAGES = {"en": "English", "zh": "Chinese"}


def wilson(failed: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share of `of` inputs, after Wilson (1927): also of 0 of 20 it says what may still be.

    >>> [round(end, 2) for end in wilson(0, 20)]
    [0.0, 0.16]
    """
    if not 0 <= failed <= of or not of:
        raise ValueError(f"needs 0 <= failed <= of and of > 0; got {failed} of {of}")
    z = 1.959964
    share, spread = failed / of, z * z / of
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / of + spread / (4 * of)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


async def rates(inputs: int = INPUTS, names: Sequence[str] = tuple(EXHIBITS)) -> pd.DataFrame:
    """A row a room and language: how many of the inputs failed with each version."""
    rows = []
    for name in names:
        for language in LANGUAGES:
            visits = await _visits(name, language, inputs)
            broken, ours = (sum(bool(getattr(one, how).lost) for one in visits) for how in ("broken", "ours"))
            rows.append((name, language, inputs, broken, ours, *wilson(broken, inputs)))
    return pd.DataFrame(rows, columns=["exhibit", "language", "inputs", "broken", "ours", "low", "high"])


async def costs(inputs: int = INPUTS, names: Sequence[str] = tuple(EXHIBITS)) -> pd.DataFrame:
    """A row a room, in ms, both languages: the median visit of each version, and ours - broken on the same input, its
    median and quartiles."""
    rows = []
    for name in names:
        visits = [one for language in LANGUAGES for one in await _visits(name, language, inputs)]
        times = pd.DataFrame([(one.broken_s * 1e3, one.ours_s * 1e3) for one in visits], columns=["broken", "ours"])
        more = (times.ours - times.broken).quantile([0.5, 0.25, 0.75])
        rows.append((name, *times.median(), *more))
    return pd.DataFrame(rows, columns=["exhibit", "broken", "ours", "more", "from", "to"]).set_index("exhibit")


async def _visits(name: str, language: str, inputs: int) -> list[Visit]:
    if EXHIBITS[name].waits:
        return list(await asyncio.gather(*(visit(name, language, seed) for seed in range(inputs))))
    return [await visit(name, language, seed) for seed in range(inputs)]


def plot_rates(table: pd.DataFrame) -> Figure:
    """The share of inputs on which each version failed, English and Chinese, in the order of the tour."""
    figure, panels = row_of_axes(2, 11.4, 6.4)
    by_hand = {name: EXHIBITS[name].set_by_hand for name in dict.fromkeys(table.exhibit)}
    names = list(dict.fromkeys(table.exhibit))
    for ax, (language, title) in zip(panels, LANGUAGES.items(), strict=True):
        its = table[table.language == language].set_index("exhibit").loc[names]
        share, rows = its.broken / its.inputs * 100, range(len(names))
        ends = [(share - 100 * its.low).clip(lower=0), (100 * its.high - share).clip(lower=0)]
        ax.errorbar(share, rows, xerr=ends, fmt="o", color=ORANGE, ecolor=ORANGE, elinewidth=1.6, label="broken")
        ax.plot(its.ours / its.inputs * 100, rows, "s", color=BLUE, markersize=9, mfc="none", label="ours")
        given = [(share * 100, row) for row, share in enumerate(by_hand.values()) if share is not None]
        if given:
            ax.plot(*zip(*given, strict=True), "|", color=GREY, markersize=19, markeredgewidth=3, label="set by us")
        ax.set(title=title, xlabel="inputs that went wrong (%)", xlim=(-4, 104), ylim=(len(names) - 0.5, -0.5))
        ax.set_yticks(
            rows, [f"{name} ({EXHIBITS[name].kind})" for name in names] if ax is panels[0] else [""] * len(names)
        )
        ax.grid(True, axis="x")
    panels[1].legend(loc="lower right", bbox_to_anchor=(1.02, 1.0), ncols=3, columnspacing=1, handletextpad=0.3)
    return figure
