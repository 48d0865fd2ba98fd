"""The panel of chapter 04: one recorded conversation, turn by turn, under a token watermark."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from tri_memory.blocking_calls import run
from tri_memory.lab.chapters.ch04.bills import Bill, replay, still_said, tokens_in
from tri_memory.lab.chapters.ch04.people import NAMES, talk
from tri_memory.lab.chapters.ch04.sawtooth import draw_bill, name_lines
from tri_memory.lab.panel import Choice, Panel, Slider, panel
from tri_memory.lab.plots import axes
from tri_memory.session.compression import TokenWatermark


@dataclass(frozen=True)
class Shown:
    """A bill with the lines it is drawn under; `kept` of `facts` gold facts are still in the history at the end."""

    bill: Bill
    window: int
    high_line: int
    low_line: int
    kept: int
    facts: int


def watermark(name: str, context_tokens: int, high: float, low: float) -> Shown:
    """The panel's model: what a conversation costs under a window in tokens, with high and low as shares of it."""
    heard = talk(name)
    policy = TokenWatermark(context_tokens, high, low, count=tokens_in)
    bill = run(replay(heard.turns, policy, heard.notes, window=context_tokens))
    said = still_said(heard.facts, bill.history)
    return Shown(bill, context_tokens, policy.high_line, policy.low_line, sum(said.values()), len(said))


def say(shown: Shown) -> str:
    """The panel's sentences."""
    bill, largest = shown.bill, max(tokens for _, tokens in shown.bill.prompts)
    return (
        f"{len(bill.prompts)} prompts cost {bill.prompt_tokens:,} tokens, {bill.summary_calls} summary calls "
        f"{bill.summary_tokens:,}. The largest prompt has {largest:,}, {largest / shown.window:.0%} of the window; "
        f"the model refuses {len(bill.refused)}. {shown.kept} of {shown.facts} facts are still there at the end."
    )


def draw(shown: Shown) -> Figure:
    """The sawtooth under the three lines."""
    figure, ax = axes(9.6, 4.2, title="After each turn", ylabel="tokens in the history")
    lines = {"low": shown.low_line, "high": shown.high_line, "window": shown.window}
    draw_bill(ax, shown.bill, lines)
    ax.set_ylim(0, max(shown.window, shown.bill.largest) * 1.1)
    name_lines(ax, lines)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2)
    return figure


def watermark_panel() -> Panel:
    """The panel itself."""
    return panel(
        watermark,
        draw,
        say,
        [
            Choice("name", NAMES, label="conversation"),
            Slider("context_tokens", 1_000, 12_000, 4_000, 500, label="the window holds", unit="tokens"),
            Slider("high", 0.55, 1.0, 0.75, 0.05, label="fold above", unit="of the window"),
            Slider("low", 0.2, 0.5, 0.5, 0.05, label="down to", unit="of the window"),
        ],
        title="When to fold, and how far",
    )
