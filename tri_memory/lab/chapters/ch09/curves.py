"""The three laws as curves over 180 simulated days."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, row_of_axes
from tri_memory.recall.decay import ARCHIVE_BELOW, Use, ebbinghaus, half_life, step

DAYS = 180
HALF_LIFE, EBBINGHAUS, STEP = "half-life", "Ebbinghaus", "step rule"
COLOURS = {HALF_LIFE: BLUE, EBBINGHAUS: ORANGE, STEP: GREEN}
Law = Callable[[float, Sequence[Use]], float]


def law(name: str, days: float) -> Law:
    """One of the three; `days` is the half-life or the strength, and nothing to the step rule."""
    if name == HALF_LIFE:
        return lambda age, uses: half_life(age, days)
    if name == EBBINGHAUS:
        return lambda age, uses: ebbinghaus(age, uses, strength=days)
    if name == STEP:
        return lambda age, uses: step(age, uses)
    raise ValueError(f"a law is one of {', '.join(COLOURS)}; got {name!r}")


def weight_at(fades: Law, age: float, used_on: Sequence[float]) -> float:
    """The weight at this age of a memory that was used when it was `used_on` days old; later uses are to come."""
    return fades(age, [Use(age - at) for at in used_on if at <= age])


def plot(days: float = 30, used_on: Sequence[float] = (40, 80)) -> Figure:
    """Left: never used. Right: used twice. The dashed line is where the step rule archives."""
    figure, both = row_of_axes(2, 12, 4.2)
    for ax, uses, title in zip(both, ((), used_on), ("never used", _days(used_on)), strict=True):
        for name in COLOURS:
            curve(ax, law(name, days), uses, COLOURS[name], name)
        archive_line(ax)
        ax.set_title(title)
    both[0].set_ylabel("weight")
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def curve(ax: Axes, fades: Law, used_on: Sequence[float], colour: str, label: str) -> None:
    """The weight over 180 days, four points a day, so that steps look like steps."""
    ages = np.arange(0, DAYS + 0.01, 0.25)
    ax.plot(ages, [weight_at(fades, float(age), used_on) for age in ages], color=colour, label=label)
    ax.set(xlabel="age of the memory (days)", xlim=(0, DAYS + 2), ylim=(0, 1.06))
    ax.set_xticks(range(0, DAYS + 1, 30))


def archive_line(ax: Axes) -> None:
    """Where the step rule archives."""
    ax.axhline(ARCHIVE_BELOW, color=GREY, linestyle="--", linewidth=1.4)
    ax.text(DAYS + 4, ARCHIVE_BELOW, "archive\nline", color=GREY, va="center", fontsize=11)


def _days(used_on: Sequence[float]) -> str:
    return "used on day " + " and ".join(f"{day:g}" for day in used_on)
