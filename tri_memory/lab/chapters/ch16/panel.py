"""The panel: one draw in each of the fifteen rooms, and what went wrong there, broken and ours."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tri_memory.blocking_calls import run
from tri_memory.lab.chapters.ch16.museum import EXHIBITS, Visit, visit
from tri_memory.lab.chapters.ch16.rates import INPUTS, LANGUAGES
from tri_memory.lab.panel import Choice, Control, Panel, Slider, panel
from tri_memory.lab.plots import BLUE, GREY, ORANGE, axes

_COLUMNS = ("broken", "ours")


@dataclass(frozen=True)
class Tour:
    """One visit of each room, in the order of the tour; `at` is where the reader stands."""

    visits: tuple[Visit, ...]
    at: Visit


def tour(exhibit: str, language: str, seed: int) -> Tour:
    """The panel's model: draw `seed` of that language ("English", "Chinese"), in each room from its own inputs."""
    short = next((key for key, name in LANGUAGES.items() if name == language), language)
    visits = tuple(run(visit(name, short, seed)) for name in EXHIBITS)
    return Tour(visits, next(one for one in visits if one.exhibit.name == exhibit))


def say(shown: Tour) -> str:
    """The panel's sentences: what both versions made of the input."""
    here, its = shown.at, shown.at.exhibit
    failed = sum(bool(one.broken.lost) for one in shown.visits)
    return (
        f"{its.title} [{its.reference}]. Broken: {here.broken.counted(its.unit)}; {here.broken.came}. "
        f"Ours: {here.ours.counted(its.unit)}; {here.ours.came}. "
        f"Draw {shown.at.seed}, another input in each room, goes wrong in {failed} of {len(shown.visits)} rooms."
    )


def draw(shown: Tour) -> Figure:
    """A grid: rooms down, the two versions across, and what went wrong in each."""
    figure, ax = axes(10.6, 6.2, title=f"What went wrong with draw {shown.at.seed} of each room")
    for row, one in enumerate(shown.visits):
        for column, how in enumerate(_COLUMNS):
            outcome = getattr(one, how)
            wrong = outcome.lost > 0
            ax.add_patch(Rectangle((column + 0.03, row - 0.42), 0.94, 0.84, facecolor=ORANGE if wrong else "#EDEDED"))
            text = outcome.counted(one.exhibit.unit) if wrong else "nothing wrong"
            ax.text(column + 0.5, row, text, ha="center", va="center", fontsize=10.5, color="white" if wrong else GREY)
        if one is shown.at:
            ax.add_patch(Rectangle((0, row - 0.5), 2, 1, fill=False, edgecolor=BLUE, linewidth=3))
    ax.set(xlim=(-0.01, 2.01), ylim=(len(shown.visits) - 0.45, -0.55))
    ax.set_xticks([0.5, 1.5], _COLUMNS)
    ax.set_yticks(range(len(shown.visits)), [f"{one.exhibit.name} ({one.exhibit.kind})" for one in shown.visits])
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    return figure


def museum_panel() -> Panel:
    """The panel itself."""
    controls: list[Control] = [
        Choice("exhibit", list(EXHIBITS), label="exhibit"),
        Choice("language", list(LANGUAGES.values()), label="language"),
        Slider("seed", 0, INPUTS - 1, 0, label="draw number"),
    ]
    return panel(tour, draw, say, controls, title="A tour of the museum")
