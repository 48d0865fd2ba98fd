"""The panel: a text that is typed, with what it names marked by colour, line and word."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, findSystemFonts, get_font
from matplotlib.patches import Rectangle

from tri_memory.entity.extract import Entity, extract, saving
from tri_memory.lab.panel import Panel, Text, panel
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, axes

LOOKS = {  # kind: short name, colour, line
    "PERSON_ID": ("person", BLUE, "solid"),
    "DEVICE_ID": ("device", GREEN, "dashed"),
    "CASE_ID": ("case", ORANGE, "dotted"),
    "PREFERENCE": ("preference", PURPLE, "dashdot"),
}
START = (
    "Order #bx 2207 came without the pump, serial ＫＷ-448120. Ring 020 7946 0018?\n"
    "No: please write to me. Then there is BX-2270.\n订单号BX2207还没到，手机138-0000-4417，我对乳胶过敏。"
)
ROOM, LONGEST, LISTED = 92, 600, 9  # columns a line, characters shown, entities listed
CHINESE = ("cjk", "hansans", "wqy", "simhei", "msyh", "pingfang", "hiragino", "heiti", "fallback")  # in a file's name
_WIDTH, _SIZE = 11.4, 12.5


@dataclass(frozen=True)
class Marked:
    """A text, cut after 600 characters, and what it names."""

    text: str
    entities: tuple[Entity, ...]
    cut: bool

    def at(self, place: int) -> Entity | None:
        return next((each for each in self.entities if each.start <= place < each.end), None)


def mark(text: str) -> Marked:
    """The panel's model."""
    return Marked(text[:LONGEST], tuple(extract(text[:LONGEST])), len(text) > LONGEST)


def say(shown: Marked) -> str:
    """The panel's sentences, which name all that the picture shows."""
    if not shown.text.strip():
        return "Nothing there yet: type a text."
    end = f" Only the first {LONGEST} characters are read here." if shown.cut else ""
    if not shown.entities:
        return f"Nothing is named; all {len(shown.text)} characters would be dropped.{end}"
    named = "; ".join(f"{LOOKS[e.kind][0]} {e.value} ({e.confidence:.2f})" for e in shown.entities)
    share = saving([shown.text]).share
    return f"{named}. Kept: {share:.0%} of the characters.{end}"


def draw(shown: Marked) -> Figure:
    """The text with its spans, and below it kind, value and confidence of each."""
    lines = list(_lines(shown.text))
    listed = shown.entities[:LISTED]
    height = 0.9 + 0.52 * len(lines) + 0.34 * (len(listed) + 1)
    figure, ax = axes(_WIDTH, height, title="What the text names")
    ax.set(xlim=(0, ROOM), ylim=(len(lines) + 0.65 * (len(listed) + 1.4), -0.2))
    ax.axis("off")
    for row, line in enumerate(lines):
        _draw_line(ax, row, line, shown)
    _draw_list(ax, len(lines) + 0.5, listed)
    return figure


def _lines(text: str) -> Iterator[list[tuple[int, int, str]]]:
    """The text in lines of at most `ROOM` columns: (position in the text, column, character)."""
    line: list[tuple[int, int, str]] = []
    column = 0
    for place, sign in enumerate(text):
        if sign == "\n" or column + width(sign) > ROOM:
            yield line
            line, column = [], 0
        if sign != "\n":
            line.append((place, column, sign))
            column += width(sign)
    yield line


def width(sign: str) -> int:
    """Columns: 2 for a Chinese or full-width character, 0 for a combining one."""
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def _draw_line(ax: Axes, row: int, line: list[tuple[int, int, str]], shown: Marked) -> None:
    for entity, group in groupby(line, key=lambda cell: shown.at(cell[0])):
        cells = list(group)
        start, end = cells[0][1], cells[-1][1] + width(cells[-1][2])
        if entity:
            name, colour, style = LOOKS[entity.kind]
            ax.add_patch(Rectangle((start, row + 0.02), end - start, 0.56, facecolor=colour, alpha=0.18))
            ax.plot([start, end], [row + 0.6, row + 0.6], color=colour, linestyle=style, linewidth=2.2)
            ax.text(start, row + 0.82, name, color=colour, fontsize=9.5, va="center")
        for _, column, sign in cells:
            if sign.isspace() or not width(sign):
                continue
            if font := font_of(sign):
                middle = column + width(sign) / 2
                ax.text(middle, row + 0.5, sign, ha="center", fontproperties=font, parse_math=False)
            else:  # no font of this machine has it
                box = Rectangle((column + 0.2, row + 0.12), width(sign) - 0.4, 0.38, fill=False, edgecolor=GREY)
                ax.add_patch(box)


def _draw_list(ax: Axes, top: float, listed: tuple[Entity, ...]) -> None:
    columns = (0, 14, 66)
    for x, heading in zip(columns, ("kind", "value", "confidence"), strict=True):
        ax.text(x, top, heading, color=GREY, va="center")
    for row, entity in enumerate(listed, start=1):
        name, colour, style = LOOKS[entity.kind]
        y = top + 0.65 * row
        ax.text(0, y, name, color=colour, va="center", fontweight="bold")
        _draw_value(ax, 14, y, entity.value)
        ax.plot([66, 66 + 20 * entity.confidence], [y, y], color=colour, linestyle=style, linewidth=5)
        ax.text(87, y, f"{entity.confidence:.2f}", va="center")


def _draw_value(ax: Axes, x: float, y: float, value: str) -> None:
    for sign in value:
        if font := font_of(sign):
            ax.text(x + width(sign) / 2, y, sign, ha="center", va="center", fontproperties=font, parse_math=False)
        x += width(sign)


@cache
def font_of(sign: str) -> FontProperties | None:
    """A font of this machine that can draw it."""
    path = next((path for path in _fonts() if get_font(path).get_char_index(ord(sign))), None)
    return None if path is None else FontProperties(fname=path, size=_SIZE)


@cache
def _fonts() -> tuple[str, ...]:
    usual = [findfont(FontProperties(family=[name])) for name in rcParams["font.family"]]
    # The system's own list: that of matplotlib is kept in a file, and misses what was installed since.
    chinese = [path for path in findSystemFonts() if any(part in Path(path).name.lower() for part in CHINESE)]
    return (*usual, *sorted(chinese, key=lambda path: ("regular" not in path.lower(), "serif" in path.lower(), path)))


def entity_panel() -> Panel:
    """The panel itself."""
    return panel(mark, draw, say, [Text("text", START, label="text")], title="What a text names")
