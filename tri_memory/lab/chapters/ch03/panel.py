"""The panel of chapter 03: a conversation replayed turn by turn, and where each turn is at each moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from tri_memory.contracts import ChatTurn
from tri_memory.lab.panel import Panel, Slider, panel
from tri_memory.lab.plots import BLUE, GREY, row_of_axes
from tri_memory.session.compression import CountPolicy
from tri_memory.summary import summary_turn

SHADES = ("#FBD9C0", "#F4AE82", "#E97F45", "#C9520A", "#7E3206")  # condensed once, twice, … five times or more


@dataclass(frozen=True)
class Call:
    """One call of the summariser: after which turn, how many turns it read, and whether an old summary was with them.

    `whole_past` is how many turns a summariser would read that starts from the first turn each time.
    """

    after: int
    read: int
    old_summary: bool
    whole_past: int


@dataclass(frozen=True)
class Replay:
    """`turns` turns under a policy.

    `lengths[m]` is the history's length after turn m + 1. `condensed[i, m]` says how often turn i + 1 was condensed by
    then: 0 verbatim, -1 not said yet.
    """

    policy: CountPolicy
    wished_keep: int
    lengths: tuple[int, ...]
    calls: tuple[Call, ...]
    condensed: NDArray[np.int16]

    @property
    def turns(self) -> int:
        return len(self.lengths)


def replay(turns: int, compress_after: int, keep_recent: int) -> Replay:
    """The panel's model: `turns` appends, one after the other. A `keep_recent` that is too large is lowered."""
    policy = CountPolicy(compress_after, min(keep_recent, compress_after - 1))
    history: list[ChatTurn] = []
    lengths, calls = [], []
    times = np.zeros(turns, np.int16)
    condensed = np.full((turns, turns), -1, np.int16)
    folded = 0
    for said in range(1, turns + 1):
        history.append(ChatTurn("user" if said % 2 else "assistant", f"turn {said}"))
        span = policy.plan(history, [1] * len(history))
        if not span.empty:
            read = span.stop - bool(folded)
            calls.append(Call(said, read, bool(folded), folded + read))
            folded += read
            times[:folded] += 1
            history[: span.stop] = [summary_turn(f"{folded} turns")]
        lengths.append(len(history))
        condensed[:said, said - 1] = times[:said]
    return Replay(policy, keep_recent, tuple(lengths), tuple(calls), condensed)


def say(seen: Replay) -> str:
    """The panel's sentence."""
    lowered = ""
    if seen.wished_keep > seen.policy.keep_recent:
        lowered = f"(keep_recent is lowered to {seen.policy.keep_recent}: it must stay below compress_after.) "
    longest = max(seen.lengths)
    if not seen.calls:
        return f"{lowered}No fold in {seen.turns} turns: the history holds all of them, and every prompt pays for them."
    read = sum(call.read for call in seen.calls)
    whole = sum(call.whole_past for call in seen.calls)
    return (
        f"{lowered}{_many(len(seen.calls), 'summary call')} read {_many(read, 'turn')}, each once "
        f"(the whole past each time: {whole:,}). The longest history is {longest}; "
        f"the first turn has been condensed {_many(int(seen.condensed[0, -1]), 'time')}."
    )


def draw(seen: Replay) -> Figure:
    """Left where each turn is at each moment, right the history's length."""
    figure, (where, length) = row_of_axes(2, 11, 4.6)
    end = seen.turns + 0.5
    most = len(SHADES)
    palette = (255 * to_rgba_array([BLUE, *SHADES, "white"])[:, :3]).astype(np.uint8)  # -1, not said yet, is the last
    where.imshow(
        palette[np.minimum(seen.condensed, most)],
        origin="lower",
        extent=(0.5, end, 0.5, end),
        aspect="auto",
        interpolation="nearest",
    )
    where.set(title="Where each turn is", xlabel="turns said so far", ylabel="turn number")
    where.grid(False)
    names = ["word for word", "in the summary: condensed once", "twice", "3 times", "4 times", "5 times or more"]
    shown = 1 + min(most, int(seen.condensed.max()))
    colours = [BLUE, *SHADES]
    where.legend(
        handles=[Patch(color=colours[i], label=names[i]) for i in range(shown)],
        loc="upper left",
        fontsize=10.5,
        handlelength=1.1,
        borderaxespad=0.2,
    )
    length.step(range(1, seen.turns + 1), seen.lengths, where="post", color=BLUE, linewidth=1.8)
    length.axhline(seen.policy.compress_after, color=GREY, linewidth=1, linestyle=(0, (5, 4)))
    length.annotate(
        "compress_after",
        (end, seen.policy.compress_after),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        fontsize=10.5,
        color=GREY,
    )
    length.set(title="What a prompt has to carry", xlabel="turns said so far", ylabel="turns in the history")
    length.set_xlim(0.5, end)
    for axis in (where.xaxis, where.yaxis, length.xaxis, length.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10], integer=True))
    length.set_ylim(0, max(*seen.lengths, seen.policy.compress_after) * 1.15)
    return figure


def fold_panel() -> Panel:
    """The panel itself."""
    return panel(
        replay,
        draw,
        say,
        [
            Slider("compress_after", 2, 80, 40, label="compress_after", unit="turns"),
            Slider("keep_recent", 1, 60, 20, label="keep_recent", unit="turns"),
            Slider("turns", 20, 400, 120, 20, label="the conversation has", unit="turns"),
        ],
        title="When to fold, and what to keep",
    )


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
