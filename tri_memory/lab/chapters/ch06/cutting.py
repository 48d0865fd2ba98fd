"""The panel of chapter 06: where a limit in code points falls, and where the guard rail cuts."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import regex
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tri_memory.lab.panel import Choice, Panel, Slider, panel
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, axes
from tri_memory.preference.rules import cut

TEXTS = {
    "family emoji": "tea for 👨\u200d👩\u200d👧 👍🏽!",
    "accents in code points of their own": "cafe\u0301 cre\u0300me bru\u0302le\u0301e",
    "Chinese": "靠窗的座位，谢谢👌🏽",
    "Hindi": "मुझे चाय पसंद है",
    "flags": "🇬🇧🇨🇳 to 🇮🇪🇫🇷",
}
LONGEST = max(map(len, TEXTS.values()))
_SHORTER = ("COMBINING ", "DEVANAGARI ", "REGIONAL INDICATOR SYMBOL ")


@dataclass(frozen=True)
class Cuts:
    """A text of graphemes, its first `limit` code points, and what the guard rail keeps under that limit."""

    graphemes: tuple[str, ...]
    limit: int
    sliced: str
    kept: str

    @property
    def split(self) -> str:
        """The grapheme that the slice goes through; "" where it goes through none."""
        end = 0
        for grapheme in self.graphemes:
            if end < self.limit < end + len(grapheme):
                return grapheme
            end += len(grapheme)
        return ""


def cuts(text: str, limit: int) -> Cuts:
    """The panel's model: `text` is a name in `TEXTS`, `limit` is in code points."""
    whole = TEXTS[text]
    return Cuts(tuple(regex.findall(r"\X", whole)), limit, whole[:limit], cut(whole, limit))


def say(shown: Cuts) -> str:
    """The panel's sentences."""
    whole = "".join(shown.graphemes)
    size = f"{len(shown.graphemes)} graphemes, {points(len(whole))}."
    if shown.limit >= len(whole):
        return f"“{whole}”: {size} All of it fits into {shown.limit}."
    if not shown.split:
        return f"{size} text[:{shown.limit}] and the guard rail keep the same: “{shown.kept}”."
    return (
        f"{size} text[:{shown.limit}] goes through “{shown.split}” and keeps “{shown.sliced}”. "
        f"The guard rail keeps “{shown.kept}”, {points(len(shown.kept))}."
    )


def points(number: int) -> str:
    return "1 code point" if number == 1 else f"{number} code points"


def draw(shown: Cuts) -> Figure:
    """A column a code point, a box around each grapheme, a line where each of the two cuts."""
    figure, ax = axes(10.4, 4.2, title="A box is what a reader sees as one character; a column is a code point")
    at = 0
    for grapheme in shown.graphemes:
        broken = at < shown.limit < at + len(grapheme)
        _box(ax, at, grapheme, ORANGE if broken else BLUE)
        at += len(grapheme)
    kept = len(shown.kept)
    for x, name, colour, y in ((shown.limit, "slice", ORANGE, 1.13), (kept, "guard rail", GREEN, 1.26)):
        if x < at:
            ax.plot([x, x], [-0.06, y - 0.03], color=colour, linewidth=3.2, linestyle="--", clip_on=False)
            ax.text(x, y, name, color=colour, ha="center", va="center", fontweight="bold")
    ax.set_xlim(-0.2, max(at, 12) + 0.2)
    ax.set_ylim(-0.08, 1.34)
    ax.set_xticks(range(0, at + 1, 2))
    ax.set_xlabel("position (code points)")
    ax.yaxis.set_visible(False)
    ax.spines["left"].set_visible(False)
    ax.grid(False)
    return figure


def _box(ax: Axes, start: int, grapheme: str, colour: str) -> None:
    width = len(grapheme)
    ax.add_patch(Rectangle((start + 0.06, 0), width - 0.12, 1, facecolor=colour, alpha=0.12))
    ax.add_patch(Rectangle((start + 0.06, 0), width - 0.12, 1, fill=False, edgecolor=colour, linewidth=1.8))
    for place, sign in enumerate(grapheme, start):
        joins = place > start
        ax.text(
            place + 0.5,
            0.5,
            label(sign),
            rotation=90 if len(label(sign)) > 1 else 0,
            ha="center",
            va="center",
            fontsize=12,
        )
        if joins:
            ax.plot([place, place], [0.04, 0.96], color=GREY, linewidth=0.8, linestyle=":")


def label(sign: str) -> str:
    """A code point by its Unicode name, which every font can write."""
    if sign.isascii() and sign != " ":
        return sign
    name = unicodedata.name(sign, f"U+{ord(sign):04X}")
    if name.startswith("EMOJI MODIFIER"):
        return "skin tone"
    if name.startswith("CJK UNIFIED"):
        return f"CJK {ord(sign):04X}"
    for prefix in _SHORTER:
        name = name.removeprefix(prefix)
    return name.lower()


def cut_panel() -> Panel:
    """The panel itself."""
    return panel(
        cuts,
        draw,
        say,
        [
            Choice("text", list(TEXTS), label="text"),
            Slider("limit", 1, LONGEST, 11, label="limit", unit="code points"),
        ],
        title="Where a limit cuts",
    )
