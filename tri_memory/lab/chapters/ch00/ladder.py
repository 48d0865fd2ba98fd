"""The picture and the sentences of chapter 00's measurement."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch00.asking import COLOURS
from tri_memory.lab.chapters.ch00.measure import LADDER, MOMENTS, made_up, shares
from tri_memory.lab.plots import GREY, ORANGE, row_of_axes

BARS = (GREY, COLOURS["window"], COLOURS["preferences"], COLOURS["episodes"])
_RUNGS = ["none", "window", "+ prefs", "+ episodes"]
_KEY = "filled: answered\noutline: in the prompt\ndot: one person"


def draw(table: pd.DataFrame) -> Figure:
    """Left and middle: the share of questions answered (bar) and in the prompt (outline), a dot a user.

    Right: the share of answers to questions that have none.
    """
    figure, (same, new, never) = row_of_axes(3, 12.5, 4.4)
    found = shares(table)
    for ax, moment in ((same, MOMENTS[0]), (new, MOMENTS[1])):
        rows = found.loc[moment]
        ax.bar(_RUNGS, rows.in_prompt, facecolor="none", edgecolor=BARS, linewidth=1.8, linestyle="--")
        ax.bar(_RUNGS, rows.answered, color=BARS, alpha=0.75)
        _people(ax, table[(table.kind != "unanswerable") & (table.moment == moment)])
        ax.set(title=f"Asked {moment}", ylim=(-4, 104))
    invented = made_up(table)
    never.bar(_RUNGS, invented, color=ORANGE, alpha=0.75)
    never.set(title="Asked what nobody ever said", ylim=(-4, 104), ylabel="answered all the same (%)")
    same.set_ylabel("questions answered (%)")
    new.text(-0.4, 100, _KEY, va="top", fontsize=11, linespacing=1.6)
    for ax in (same, new, never):
        ax.tick_params(axis="x", labelsize=10.5)
    return figure


def _people(ax: Axes, rows: pd.DataFrame) -> None:
    """A dot a user, moved sideways a little so that equal shares don't hide each other."""
    sideways = np.random.default_rng(7)
    for place, memory in enumerate(LADDER):
        each = 100 * rows[rows.memory == memory].groupby("user").answered.mean()
        ax.plot(place + sideways.uniform(-0.25, 0.25, len(each)), each, "o", color="black", alpha=0.4, markersize=4)


def facts(table: pd.DataFrame) -> str:
    """What the layers bring, in sentences with the run's own figures."""
    found = shares(table)
    same, new = (found.loc[moment] for moment in MOMENTS)
    best = new.loc["+ episodes"]
    return (
        f"In the same visit the window alone answers {same.answered['+ window']:.0f} % of the questions. "
        f"In a new visit it answers {new.answered['+ window']:.0f} %.\n"
        f"Preferences: {new.answered['+ preferences']:.1f} %. "
        f"Episodes: {best.answered:.0f} % (95 % interval {best.low:.0f} to {best.high:.0f}), "
        f"and {best.in_prompt:.0f} % have their answer in the prompt.\n"
        f"The prompt grows from {new.tokens['no memory']:.0f} to {best.tokens:.0f} tokens."
    )


def where_it_stops(table: pd.DataFrame) -> str:
    """The price of remembering: answers to questions that have none."""
    invented = made_up(table)
    asked = int((table.kind == "unanswerable").sum() / len(LADDER))
    return (
        f"{asked} questions ask what nobody ever said. Answered all the same: {invented['no memory']:.0f} % without "
        f"memory,\n{invented['+ preferences']:.0f} % with window and preferences, {invented['+ episodes']:.0f} % with "
        f"all three layers."
    )
