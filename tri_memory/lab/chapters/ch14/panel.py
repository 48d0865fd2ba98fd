"""The panel: one question, a budget and its shares; what stands where in the prompt, and whether the answer is in."""

from __future__ import annotations

from dataclasses import dataclass, replace

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tri_memory.agent.budget import LAYERS, Filled
from tri_memory.agent.prompt import SYSTEM, as_message, episode_line, fact_line, preference_line
from tri_memory.lab.chapters.ch14.people import Offer, in_prompt, offer, said
from tri_memory.lab.panel import Choice, Control, Panel, Slider, panel
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, axes
from tri_memory.session.tokens import estimate_tokens

QUESTIONS = ("en-shop-q04", "en-coach-q20", "zh-device-q17", "zh-shop-q22", "en-coach-q03", "zh-coach-q48")
ALWAYS, ANSWER = "always in", "#222222"
LOOKS = {ALWAYS: "#9A9A9A", "preferences": GREEN, "episodes": BLUE, "facts": PURPLE, "window": ORANGE}
FENCED = ("preferences", "episodes", "facts")


@dataclass(frozen=True)
class Block:
    """One item of the prompt in its place: its layer, its price, and whether it says a part of the answer."""

    layer: str
    tokens: int
    answers: bool


@dataclass(frozen=True)
class Shown:
    """One setting of the panel."""

    its: Offer
    budget: int
    filled: Filled
    blocks: tuple[Block, ...]
    answered: bool


def show(question: str, budget: int, window: int, facts: int, preferences: int, episodes: int) -> Shown:
    """The panel's model. `question` begins with its id; shares may be any numbers, 0 keeps a layer out."""
    its = offer(question.split(":")[0])
    shares = {"window": window, "facts": facts, "preferences": preferences, "episodes": episodes}
    if not any(shares.values()):
        raise ValueError("one layer at least needs a share above 0; all are 0")
    filled = its.filled(budget, shares)
    return Shown(its, budget, filled, tuple(_blocks(its, filled)), in_prompt(filled, its.asked.facts))


def _blocks(its: Offer, filled: Filled) -> list[Block]:
    """In the order in which the model reads them."""
    rows = [(ALWAYS, SYSTEM)]
    rows += [("preferences", preference_line(*pair)) for pair in filled.preferences.items()]
    rows += [("episodes", episode_line(one)) for one in filled.episodes]
    rows += [("facts", fact_line(one)) for one in filled.facts]
    rows += [("window", "{role}: {content}".format(**as_message(turn))) for turn in filled.window[:-1]]
    blocks = [
        Block(layer, estimate_tokens(f"{text}\n"), layer != ALWAYS and any(said([f], text) for f in its.asked.facts))
        for layer, text in rows
    ]
    for layer in FENCED:  # its fence is paid by its first item
        if first := next((i for i, block in enumerate(blocks) if block.layer == layer), None):
            fence = estimate_tokens(f'<memory name="{layer}">\n</memory>\n\n')
            blocks[first] = replace(blocks[first], tokens=blocks[first].tokens + fence)
    return [*blocks, Block(ALWAYS, estimate_tokens(f"user: {filled.window[-1].content}"), False)]


def say(shown: Shown) -> str:
    """The panel's sentence."""
    counts = {name: sum(out.layer == name for out in shown.filled.left_out) for name in LAYERS}
    left = ", ".join(f"{count} of {name}" for name, count in counts.items() if count) or "nothing"
    answer = "the answer is in" if shown.answered else "the answer is NOT in"
    over = f" System text and question alone are {shown.filled.over} over." if shown.filled.over else ""
    return (
        f"{shown.its.asked.question} {shown.filled.tokens:,} of {shown.budget:,} tokens, {answer}. "
        f"Left out: {left}.{over}"
    )


def draw(shown: Shown) -> Figure:
    """The prompt as a bar, top to bottom from left to right; items that say a part of the answer are black below."""
    figure, ax = axes(11.4, 3.5, xlabel="tokens from the beginning of the prompt")
    left = 0
    for block in shown.blocks:
        ax.barh(1, block.tokens, 0.8, left=left, color=LOOKS[block.layer], edgecolor="white", linewidth=1.2)
        if block.answers:
            ax.barh(0.42, block.tokens, 0.24, left=left, color=ANSWER)
        left += block.tokens
    ax.axvline(shown.budget, color=GREY, linestyle="--", linewidth=1.8)
    ax.annotate("budget", (shown.budget, 1.5), xytext=(-6, 0), textcoords="offset points", ha="right", color=GREY)
    mark = "the answer is in" if shown.answered else "the answer is not in"
    ax.set(
        title=f"{shown.filled.tokens:,} tokens, {mark}",
        ylim=(0.2, 1.65),
        xlim=(0, 1.02 * max(left, shown.budget)),
        yticks=[],
    )
    ax.grid(False)
    handles = [Patch(color=colour, label=name) for name, colour in LOOKS.items()]
    handles.append(Patch(color=ANSWER, label="says (part of) the answer"))
    figure.legend(handles=handles, loc="outside lower center", ncols=6)
    return figure


def budget_panel() -> Panel:
    """The panel itself."""
    questions = [f"{id}: {offer(id).asked.question}" for id in QUESTIONS]
    shares = [
        Slider(name, 0, 10, start, label=f"share of {name}")
        for name, start in (("window", 4), ("facts", 2), ("preferences", 2), ("episodes", 2))
    ]
    controls: list[Control] = [
        Choice("question", questions),
        Slider("budget", 100, 2_200, 500, 50, unit="tokens"),
        *shares,
    ]
    return panel(show, draw, say, controls, title="What goes into the prompt")
