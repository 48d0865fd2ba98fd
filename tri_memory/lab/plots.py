"""One look for every picture: large type for a projector, colours that colour-blind readers can tell apart.

A picture is a matplotlib Figure made without pyplot, so nothing is left open and nothing is drawn twice. Its paper is
white and opaque, so that it reads on a dark page as well. Importing this module sets matplotlib's defaults, so that a
learner's own plots look the same, and each picture sets them again: a style chosen in between, a dark one say, would
put white words on white paper.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from IPython.display import Image
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import findSystemFonts, fontManager

# Okabe and Ito's palette (2008), darkened where it has to carry text.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#00795A", "#A6487F", "#6B6B6B"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, GREY)
DOTS_PER_INCH = 160

_FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Microsoft YaHei", "PingFang SC")
_FILES = ("NotoSansCJK", "msyh", "PingFang")


def installed_fonts() -> list[str]:
    """Those of `_FONTS` that are there. Matplotlib keeps a list of fonts; what was installed since is added to it."""
    known = {font.name for font in fontManager.ttflist}
    if not known.intersection(_FONTS[1:]):
        for path in findSystemFonts():
            if any(name in path for name in _FILES):
                fontManager.addfont(path)
        known = {font.name for font in fontManager.ttflist}
    return [name for name in _FONTS if name in known]


_INSTALLED = installed_fonts()


def _set_look() -> None:
    rcParams.update(
        {
            "font.family": _INSTALLED,
            "font.size": 12,
            "axes.titlesize": 13,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.titlepad": 12,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": GREY,
            "axes.axisbelow": True,
            "axes.grid": True,
            "axes.grid.axis": "y",
            "grid.color": "#E3E3E3",
            "lines.linewidth": 2.4,
            "lines.markersize": 6,
            "legend.frameon": False,
            "figure.facecolor": "white",
            "axes.facecolor": "white",
            "savefig.facecolor": "white",
            "savefig.transparent": False,
            "text.color": "black",
            "axes.labelcolor": "black",
            "xtick.color": "black",
            "ytick.color": "black",
            "patch.edgecolor": "black",
        }
    )


_set_look()


def axes(width: float = 8.0, height: float = 3.6, **axes_text: str) -> tuple[Figure, Axes]:
    """An empty picture of `width` × `height` inches; `axes_text` sets title, xlabel, ylabel.

    >>> figure, ax = axes(title="Tokens in the prompt", xlabel="turn", ylabel="tokens")
    """
    figure, row = row_of_axes(1, width, height)
    row[0].set(**axes_text)
    return figure, row[0]


def row_of_axes(columns: int, width: float = 10.0, height: float = 3.6) -> tuple[Figure, Sequence[Axes]]:
    """`columns` empty plots side by side."""
    _set_look()
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def label_line(ax: Axes, x: float, y: float, text: str, colour: str) -> None:
    """A name at the end of a line, which a reader finds faster than a legend."""
    ax.annotate(text, (x, y), xytext=(6, 0), textcoords="offset points", va="center", color=colour, fontweight="bold")


def png(figure: Figure, dots_per_inch: int = DOTS_PER_INCH) -> bytes:
    """The picture as PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dots_per_inch)
    return buffer.getvalue()


def picture(figure: Figure, alt: str) -> Image:
    """The picture as a cell shows it; `alt` says in a sentence what it shows, for those who can't see it."""
    return Image(data=png(figure), width=int(figure.get_figwidth() * 92), alt=alt)
