"""The map of the kit: what each layer keeps of five real visits, how long, and which notebook teaches it."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch00.asking import COLOURS
from tri_memory.lab.datasets import Session
from tri_memory.lab.plots import GREY, axes

WIDE = 5.0  # days: how wide a visit is drawn; a real one lasts minutes
ROWS = {"window": 2.0, "preferences": 1.15, "episodes": 0.0}
TEXTS = {
    "window": ("1  session window\nwhat was just said", "until the visit ends\nnotebooks 01 to 05"),
    "preferences": ("2  preferences\nwho this is", "until replaced or forgotten\nnotebook 06"),
    "episodes": ("3  episodes\nwhat happened before", "until it fades;\nthe 3 nearest come back\nnotebooks 07 to 10"),
}


def draw(visits: Sequence[Session], topics: Sequence[str], stated: tuple[int, str]) -> Figure:
    """The visits, each with a topic for a label, and what still reaches the prompt during the last of them.

    `stated` is a preference and the index of the visit in which it was told.
    """
    figure, ax = axes(10.5, 4.7, title="What each layer keeps of five visits")
    begins = [(visit.started_at - visits[0].started_at).total_seconds() / 86_400 for visit in visits]
    now = begins[-1]
    ax.axvspan(now - WIDE, now + 3 * WIDE, color="#ECECEC", zorder=0)
    ax.text(now + WIDE, 2.75, "the prompt", ha="center", fontweight="bold")
    for begin, visit in zip(begins, visits, strict=True):
        end = begin + (2 if begin == now else 1) * WIDE
        ax.plot([begin, end], [ROWS["window"]] * 2, lw=16, color=COLOURS["window"], solid_capstyle="butt")
        middle = begin + (WIDE if begin == now else WIDE / 2)
        ax.text(middle, 2.42, f"{visit.started_at.day} {visit.started_at:%b}", ha="center", fontsize=10.5, color=GREY)
    _arrow(ax, begins[stated[0]] + WIDE, now, ROWS["preferences"], "preferences", stated[1])
    for i, (begin, topic) in enumerate(zip(begins[:-1], topics, strict=True)):
        _arrow(ax, begin + WIDE, now, ROWS["episodes"] + 0.42 - 0.3 * i, "episodes", topic)
    for layer, y in ROWS.items():
        sides = ax.get_yaxis_transform()
        ax.text(-0.01, y, TEXTS[layer][0], transform=sides, ha="right", va="center", color=COLOURS[layer])
        ax.text(1.01, y, TEXTS[layer][1], transform=sides, ha="left", va="center", fontsize=10.5)
    ax.set(xlim=(begins[0] - WIDE, now + 3 * WIDE), ylim=(-0.75, 2.95))
    ax.axis("off")
    return figure


def _arrow(ax: Axes, start: float, now: float, y: float, layer: str, text: str) -> None:
    """From where something was kept to the prompt."""
    arrow = {"arrowstyle": "-|>", "color": COLOURS[layer], "lw": 2.4, "shrinkA": 0, "shrinkB": 0}
    ax.plot([start], [y], "o", color=COLOURS[layer])
    ax.annotate("", (now + WIDE / 2, y), (start, y), arrowprops=arrow)
    ax.text(start + WIDE / 2, y + 0.05, text, fontsize=10.5, color=COLOURS[layer])
