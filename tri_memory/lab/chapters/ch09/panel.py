"""The panel of chapter 09: a law and its days, some recalls, and which of a person's visits are above the line."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch09.curves import (
    COLOURS,
    EBBINGHAUS,
    HALF_LIFE,
    STEP,
    archive_line,
    curve,
    law,
    weight_at,
)
from tri_memory.lab.panel import Choice, Panel, Slider, panel
from tri_memory.lab.plots import GREY, axes
from tri_memory.recall.decay import age_in_days, is_archived

EVERY = 20  # days from one recall to the next
PEOPLE = {
    "Ruth, cello": "en-coach-02",
    "Gwen, pumps": "en-device-01",
    "Lin Xiaobei (zh), bread machine": "zh-shop-01",
    "Mr Luo (zh), erhu": "zh-coach-02",
}


@dataclass(frozen=True)
class Faded:
    """One law over 180 days. `used_on` are ages in days; a visit is (day it took place, age, weight)."""

    name: str
    days: float
    used_on: tuple[float, ...]
    person: str
    visits: tuple[tuple[str, float, float], ...]

    @property
    def recalled(self) -> list[str]:
        return [day for day, _, weight in self.visits if not is_archived(weight)]


def fade(name: str, days: float, recalls: int, person: str) -> Faded:
    """The panel's model: each memory is recalled every 20 days after it was made, `recalls` times, then no more.

    The visits stand at the age that they have on the last of the 180 days.
    """
    used_on = tuple(float(EVERY * (i + 1)) for i in range(recalls))
    user = PEOPLE[person]
    visits = []
    for session in datasets.load(user[:2]).of(user):
        age = age_in_days(session.started_at, datasets.LAST_DAY)
        visits.append((f"{session.started_at:%d %b}", age, weight_at(law(name, days), age, used_on)))
    return Faded(name, days, used_on, person, tuple(visits))


def say(its: Faded) -> str:
    """The panel's sentence."""
    knob = {
        HALF_LIFE: f"Half-life of {its.days:g} days, which recalls don't change",
        EBBINGHAUS: f"Ebbinghaus with a strength of {its.days:g} days",
        STEP: "Step rule, which has no days to choose",
    }
    above = ", ".join(its.recalled) or "none"
    return f"{knob[its.name]}. Visits at 0.5 or above: {above} ({len(its.recalled)} of {len(its.visits)})."


def draw(its: Faded) -> Figure:
    """The curve, the recalls as ticks at the bottom, and a dot a visit."""
    title = f"{its.name[0].upper()}{its.name[1:]}, and the visits of {its.person}"
    figure, ax = axes(9.2, 4.2, title=title, ylabel="weight")
    curve(ax, law(its.name, its.days), its.used_on, COLOURS[its.name], its.name)
    archive_line(ax)
    for at in its.used_on:
        ax.plot(at, 0.02, "^", color=GREY, markersize=8)
    for number, (day, age, weight) in enumerate(its.visits):
        kept = not is_archived(weight)
        face = COLOURS[its.name] if kept else "white"
        ax.plot(age, weight, "o", markersize=11, markerfacecolor=face, markeredgecolor=COLOURS[its.name])
        side, x = ("right", 8) if age > 160 else ("left", 5)
        to = (x, 9 + 17 * (number % 2))  # neighbours that lie close don't write over each other
        white = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
        ax.annotate(day, (age, weight), xytext=to, textcoords="offset points", ha=side, fontsize=11, bbox=white)
    ax.set_ylim(0, 1.12)
    return figure


def fade_panel() -> Panel:
    """The panel itself."""
    return panel(
        fade,
        draw,
        say,
        [
            Choice("name", list(COLOURS), label="law"),
            Slider("days", 5, 180, 30, 5, label="half-life or strength", unit="days"),
            Slider("recalls", 0, 8, 0, label=f"recalls, one every {EVERY} days"),
            Choice("person", list(PEOPLE), label="whose visits"),
        ],
        title="How a memory fades over 180 days",
    )
