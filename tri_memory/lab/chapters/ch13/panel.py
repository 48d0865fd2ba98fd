"""The panel: the days after a request to be forgotten, and where a text still stands on each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tri_memory.blocking_calls import run
from tri_memory.lab.chapters.ch11.highlight import font_of, width
from tri_memory.lab.chapters.ch13.days import (
    AFTER,
    BEFORE,
    HIDDEN,
    LAST_DAY,
    LOGS,
    PLACES,
    PURGE_ON,
    WAYS,
    Found,
    lived,
)
from tri_memory.lab.panel import Choice, Control, Panel, Slider, Text, panel
from tri_memory.lab.plots import BLUE, GREY, ORANGE, axes

START = "订单号BX-220719：我对花生过敏"
LONGEST = 60


@dataclass(frozen=True)
class Shown:
    """`found` up to that day, a column each: before the request, after it, then the days."""

    canary: str
    way: str
    log: str
    day: int
    found: tuple[Found, ...]

    @property
    def last(self) -> Found:
        return self.found[-1]


def at(canary: str, way: str, day: int, log: str) -> Shown:
    """The panel's model: a user who said `canary` in ten places is forgotten in this way; then days go by."""
    canary = " ".join(canary.split())[:LONGEST]
    whole = _lived(canary, way, log) if canary else ()
    return Shown(canary, way, log, day, whole[: day + 2])


@lru_cache(maxsize=32)
def _lived(canary: str, way: str, log: str) -> tuple[Found, ...]:
    found: tuple[Found, ...] = run(lived(canary, way, log))
    return found


def say(shown: Shown) -> str:
    """The panel's sentence, which names what the picture shows."""
    if not shown.canary:
        return "Nothing to look for yet: type a text."
    when = "Right after the request" if shown.day == 0 else f"On day {shown.day}"
    hidden = [place for place, count in shown.last.items() if count == HIDDEN]
    there = [place for place, count in shown.last.items() if count > 0]
    said = f"{shown.way.capitalize()}, log {shown.log}. {when}, {len(there)} of {len(PLACES)} places give it away"
    said += f": {', '.join(there)}." if there else "."
    return f"{said} Hidden until the purge: {', '.join(hidden)}." if hidden else said


def draw(shown: Shown) -> Figure:
    """Places down, time across; what stands there is a number on orange, what is hidden is hatched."""
    figure, ax = axes(11.4, 5.9)
    columns = [BEFORE, AFTER, *(str(day) for day in range(1, LAST_DAY + 1))]
    for column in range(len(columns)):
        for row, place in enumerate(PLACES):
            count = shown.found[column][place] if column < len(shown.found) else None
            _cell(ax, column, row, count)
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(PLACES) - 0.5, -0.5), xlabel="days after the request")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(PLACES)), PLACES)
    ax.tick_params(length=0)
    ax.grid(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    if shown.found:
        edge = Rectangle((len(shown.found) - 1.5, -0.5), 1, len(PLACES), fill=False, edgecolor=BLUE, linewidth=3)
        ax.add_patch(edge)
    _title(ax, shown.canary)
    ax.set_title(f"{shown.way}, log {shown.log}", loc="right", fontsize=14)
    figure.legend(handles=_kinds(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _kinds() -> list[Rectangle]:
    return [
        Rectangle((0, 0), 1, 1, facecolor=ORANGE, label="so many entries give it away"),
        Rectangle((0, 0), 1, 1, facecolor="white", edgecolor=GREY, hatch="///", label="hidden until the purge"),
        Rectangle((0, 0), 1, 1, facecolor="#EDEDED", label="nothing found"),
    ]


def _cell(ax: Axes, column: int, row: int, count: int | None) -> None:
    box = {"xy": (column - 0.46, row - 0.42), "width": 0.92, "height": 0.84}
    if count is None:
        return
    if count == HIDDEN:
        ax.add_patch(Rectangle(**box, facecolor="white", edgecolor=GREY, hatch="///", linewidth=0.8))  # type: ignore[arg-type]
    elif count:
        ax.add_patch(Rectangle(**box, facecolor=ORANGE))  # type: ignore[arg-type]
        ax.text(column, row, str(count), ha="center", va="center", color="white", fontweight="bold")
    else:
        ax.add_patch(Rectangle(**box, facecolor="#EDEDED"))  # type: ignore[arg-type]


def _title(ax: Axes, canary: str) -> None:
    """Sign by sign, in a font of this machine that has it."""
    x = 0.0
    for sign in f"“{canary}”" if canary else "":
        font = font_of(sign)
        step = 0.0098 * width(sign)
        if font and not sign.isspace():
            ax.text(
                x + step / 2, 1.03, sign, transform=ax.transAxes, ha="center", fontproperties=font, parse_math=False
            )
        x += step


def canary_panel() -> Panel:
    """The panel itself."""
    controls: list[Control] = [
        Text("canary", START, label="what the user said"),
        Choice("way", list(WAYS), label="way to forget"),
        Choice("log", list(LOGS), label="log"),
        Slider("day", 0, LAST_DAY, PURGE_ON, label="days after the request"),
    ]
    return panel(at, draw, say, controls, title="Where is it still?")
