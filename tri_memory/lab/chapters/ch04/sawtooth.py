"""Pictures of a bill: tokens in the history after each turn, where it was folded, which prompts were refused."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch04.bills import Bill
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, row_of_axes


def draw_bill(ax: Axes, bill: Bill, lines: Mapping[str, float]) -> None:
    """The sawtooth on `ax`, with a named horizontal line for each of `lines` (tokens)."""
    drop = {fold.turn: fold for fold in bill.folds}
    path: list[tuple[int, int]] = [(0, 0)]
    for turn, size in enumerate(bill.sizes, start=1):
        if turn in drop:
            path.append((turn, drop[turn].before))
        path.append((turn, size))
    ax.plot(*zip(*path, strict=True), color=BLUE, linewidth=2)
    if bill.folds:
        tops = [(fold.turn, fold.before) for fold in bill.folds]
        ax.plot(*zip(*tops, strict=True), "v", color=GREEN, markersize=9, label="fold")
    if bill.refused:
        ax.plot(*zip(*bill.refused, strict=True), "x", color=ORANGE, markersize=8, markeredgewidth=2.2, label="refused")
    for name, line in lines.items():
        solid = name == "window"
        ax.axhline(line, color=ORANGE if solid else GREY, linestyle="-" if solid else "--", linewidth=1.4, zorder=1)
    ax.set_xlim(0, len(bill.sizes) + 1)
    ax.set_xlabel("turn")
    ax.yaxis.set_major_formatter("{x:,.0f}")


def name_lines(ax: Axes, lines: Mapping[str, float]) -> None:
    """The names of `lines` at the right edge, pushed apart where two lines lie close. After the y limits are set."""
    gap = 0.065 * ax.get_ylim()[1]
    free = float("-inf")
    for name, line in sorted(lines.items(), key=lambda item: item[1]):
        free = max(line, free)
        ax.text(
            ax.get_xlim()[1], free, f" {name}", va="center", fontsize=11, color=ORANGE if name == "window" else GREY
        )
        free += gap


def draw_pair(bills: Mapping[str, Bill], window: int) -> Figure:
    """Two or more bills side by side under the same window, on the same scale."""
    figure, row = row_of_axes(len(bills), 11, 3.9)
    top = max(window, *(bill.largest for bill in bills.values())) * 1.1
    for ax, (name, bill) in zip(row, bills.items(), strict=True):
        draw_bill(ax, bill, {"window": window})
        ax.set(title=name, ylim=(0, top), ylabel="tokens in the history")
        name_lines(ax, {"window": window})
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="upper left", fontsize=10.5)
    return figure
